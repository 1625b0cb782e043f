//! The facts of every sample, of short streams that show one thing each, and properties.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

const NOW: &str = "2026-11-15T15:30:00Z";

#[expect(clippy::disallowed_methods, reason = "the samples are files; only tests read them")]
fn sample(path: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts/samples");
    std::fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The one place that drives a reader.
fn read<'a>(input: Input, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Fact> {
    let now = NOW.parse().unwrap();
    let mut found = Vec::new();
    let mut facts = Facts::new(input, Zone::utc());
    for chunk in chunks {
        facts.push(chunk, now, &mut |fact| found.push(fact));
    }
    facts.finish(now, &mut |fact| found.push(fact));
    found
}

/// One line per fact.
fn render(facts: &[Fact]) -> String {
    let until = |until: &Option<Timestamp>| match until {
        Some(until) => format!(" until {until}"),
        None => String::new(),
    };
    let word = |fact: &Fact| match fact {
        Fact::Session(id) => format!("session {id}"),
        Fact::Tool { name } => format!("tool {name}"),
        Fact::Spent { tokens, micro_dollars } => format!("spent {tokens} ${micro_dollars}"),
        Fact::Retrying { what, until: at } => format!("retrying: {what}{}", until(at)),
        Fact::Limited { what, until: at } => format!("limited: {what}{}", until(at)),
        Fact::Failed { what } => format!("failed: {what}"),
        Fact::Ended { ok, what: None } => format!("ended {ok}"),
        Fact::Ended { ok, what: Some(what) } => format!("ended {ok}: {what}"),
    };
    facts.iter().map(word).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(format: Format, lines: &[&str], want: &[&str]) {
    let text = lines.join("\n");
    assert_eq!(render(&read(Input::Format(format), [text.as_bytes()])), want.join("\n"), "{text}");
}

/// Live outputs among the samples, and what they tell.
const SAMPLES: [(&str, Format, &[&str]); 15] = [
    (
        "acp/v1_turn.jsonl",
        Format::Acp,
        &["session sess_1", "tool execute", "spent 0 $45000", "ended true"],
    ),
    ("acp/v2_draft_turn.jsonl", Format::Acp, &["session sess_1", "ended true"]),
    ("amp/stream.jsonl", Format::ClaudeStream, &["session T-1", "tool Bash", "ended true"]),
    (
        "claude_code/stream.jsonl",
        Format::ClaudeStream,
        &[
            "session 7b1d6c52-0f7e-4c7b-9a35-3f3f0c9d8a11",
            "spent 18913 $0",
            "tool Bash",
            "spent 37826 $0",
            "spent 56739 $0",
            "tool Agent",
            "spent 75652 $0",
            "spent 94565 $0",
            "spent 947551 $842100",
            "ended true",
        ],
    ),
    (
        "claude_code/stream_max_turns.jsonl",
        Format::ClaudeStream,
        &[
            "session 7b1d6c52-0f7e-4c7b-9a35-3f3f0c9d8a11",
            "retrying: overloaded (529), attempt 1 of 10 until 2026-11-15T15:30:01.2Z",
            "spent 39 $20000",
            "ended false: Reached maximum number of turns (3)",
        ],
    ),
    ("cline/run_stream.jsonl", Format::Cline, &["spent 960 $0", "ended true"]),
    (
        "codex/exec_stream.jsonl",
        Format::CodexExec,
        &[
            "session 0199f2a4-6c1e-7d33-9b0e-3f1f6b2f7a55",
            "tool command_execution",
            "tool file_change",
            "tool aldis/status",
            "spent 187451 $0",
            "ended true",
        ],
    ),
    (
        "codex/exec_stream_failed.jsonl",
        Format::CodexExec,
        &[
            "session 0199f2a4-6c1e-7d33-9b0e-3f1f6b2f7a55",
            "limited: exceeded retry limit, last status: 429 Too Many Requests",
            "ended false: exceeded retry limit, last status: 429 Too Many Requests",
        ],
    ),
    (
        "copilot/stream.jsonl",
        Format::Copilot,
        &["tool bash", "session 06b41838-31ab-4dc4-8481-96d85281bfa7", "ended true"],
    ),
    (
        "cursor/stream.jsonl",
        Format::CursorStream,
        &["session c6b62c6f-7ead-4fd6-9922-e952131177ff", "tool shell", "ended true"],
    ),
    (
        "droid/exec_result.json",
        Format::ClaudeStream,
        &["session 8af22e0a-d222-42c6-8c7e-7a059e391b0b", "spent 112564 $0", "ended true"],
    ),
    (
        "droid/stream.jsonl",
        Format::DroidStream,
        &[
            "session 8af22e0a-d222-42c6-8c7e-7a059e391b0b",
            "tool Execute",
            "spent 112564 $0",
            "ended true",
        ],
    ),
    (
        "gemini/stream.jsonl",
        Format::GeminiStream,
        &[
            "session 4f0b7a2e-7d7c-4b6e-9f11-0d9f7d6c5b4a",
            "tool run_shell_command",
            "spent 41210 $0",
            "ended true",
        ],
    ),
    ("goose/stream.jsonl", Format::Goose, &["spent 4120 $0", "ended true"]),
    (
        "opencode/run_stream.jsonl",
        Format::OpenCode,
        &[
            "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn",
            "tool bash",
            "spent 940 $10000",
            "spent 3000 $30000",
            "ended true",
        ],
    ),
];

#[test]
fn samples() {
    for (path, format, want) in SAMPLES {
        let bytes = sample(path);
        for input in [Input::Format(format), Input::Auto] {
            assert_eq!(render(&read(input, [&*bytes])), want.join("\n"), "{path} as {input:?}");
        }
    }
    // The bus of OpenCode, one event per file.
    for (path, want) in [
        ("opencode/event_session_idle.json", "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn\nended true"),
        (
            "opencode/event_session_status.json",
            "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn\nended true",
        ),
        (
            "opencode/event_session_error.json",
            "session ses_5f1c2a7b9ffeAbCdEfGhIjKlMn\nfailed: aborted",
        ),
    ] {
        assert_eq!(render(&read(Input::Auto, [&*sample(path)])), want, "{path}");
    }
    for path in ["claude_code/transcript.jsonl", "codex/rollout.jsonl", "gemini/session.jsonl"] {
        assert_eq!(read(Input::Auto, [&*sample(path)]), [], "{path}: a file is no live output");
    }
}

#[test]
fn hosts_are_told_by_their_streams() {
    let lines = sample("codex/exec_stream.jsonl");
    let host = |name| Input::from_name(name).unwrap();
    assert_eq!(read(host("codex"), [&*lines]), read(Input::Auto, [&*lines]));
    // Another host's lines are what the agent printed.
    assert_eq!(read(host("gemini"), [&*lines]), []);
    let noise = [b"\xef\xbb\xbfwarning: x\n\n".as_slice(), &lines].concat();
    assert_eq!(read(Input::Auto, [&*noise]), read(Input::Auto, [&*lines]));
    let list =
        [b"[", &*lines.trim_ascii().split(|b| *b == b'\n').collect::<Vec<_>>().join(&b','), b"]"]
            .concat();
    assert_eq!(read(Input::Auto, [&*list]), read(Input::Auto, [&*lines]));
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
const LIMIT: &str = "You've hit your limit · resets 5pm (Europe/Berlin)";

fn claude_says(id: &str, more: &str, block: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{block}]{more}}},"parent_tool_use_id":null}}"#
    )
}

#[test]
fn claude_limits() {
    let said = format!(r#"{{"type":"text","text":"{LIMIT}"}}"#);
    let error = claude_says("1", r#","model":"<synthetic>""#, &said)
        .replace(r#""parent_tool_use_id""#, r#""error":"rate_limit","parent_tool_use_id""#);
    let synthetic = claude_says("1", r#","model":"<synthetic>""#, &said);
    let result =
        format!(r#"{{"type":"result","subtype":"success","is_error":true,"result":"{LIMIT}"}}"#);
    let until = "2026-11-15T16:00:00Z";
    let want = [format!("limited: {LIMIT} until {until}"), format!("ended false: {LIMIT}")];
    for lines in [vec![&*error, &result], vec![&*synthetic, &result], vec![&*result]] {
        check(Format::ClaudeStream, &lines, &[&want[0], &want[1]]);
    }
    // The process was ended before the result.
    check(Format::ClaudeStream, &[&error], &[&want[0]]);

    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794794400,"rateLimitType":"five_hour","overageStatus":"rejected"}}"#;
    check(
        Format::ClaudeStream,
        &[event],
        &["limited: five hour limit reached until 2026-11-16T02:00:00Z"],
    );
    let exact = format!("limited: {LIMIT} until 2026-11-16T02:00:00Z");
    check(Format::ClaudeStream, &[event, &error, &result], &[&exact, &want[1]]);
    for (from, to) in [
        ("rejected\",\"resets", "allowed\",\"resets"),
        ("overageStatus\":\"rejected", "overageStatus\":\"allowed"),
    ] {
        check(Format::ClaudeStream, &[&event.replace(from, to)], &[]);
    }
    // The agent went on.
    let work = claude_says("2", "", r#"{"type":"text","text":"Done."}"#);
    let good = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done."}"#;
    check(Format::ClaudeStream, &[event, &error, &work, good], &["ended true"]);
    // A sub-agent's trouble is not the agent's.
    let side = error.replace(r#""parent_tool_use_id":null"#, r#""parent_tool_use_id":"t""#);
    check(Format::ClaudeStream, &[&side, good], &["ended true"]);
}

#[test]
fn claude_errors() {
    let result = |words: &str, more: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"result":"{words}"{more}}}"#
        )
    };
    for (words, more, kind) in [
        ("Invalid API key · Please run /login", "", "failed"),
        ("Credit balance is too low", r#","api_error_status":400"#, "failed"),
        ("API Error: 500 Internal server error", r#","api_error_status":500"#, "failed"),
        ("Prompt is too long", r#","terminal_reason":"blocking_limit""#, "failed"),
        ("API Error: Repeated 529 Overloaded errors", r#","api_error_status":529"#, "limited"),
        ("Something", r#","api_error_status":429"#, "limited"),
    ] {
        let want = [format!("{kind}: {words}"), format!("ended false: {words}")];
        check(Format::ClaudeStream, &[&result(words, more)], &[&want[0], &want[1]]);
    }
    let crashed =
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["boom"]}"#;
    check(Format::ClaudeStream, &[crashed], &["ended false: boom"]);
    let amp = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"error":"x"}"#;
    check(Format::ClaudeStream, &[amp], &["ended false: x"]);
    let odd = r#"{"type":"result","subtype":"success","is_error":false,"terminal_reason":"hook_stopped"}"#;
    check(Format::ClaudeStream, &[odd], &["ended true: hook_stopped"]);
}

#[test]
fn costs_are_counted_once() {
    let usage = r#","usage":{"input_tokens":10,"output_tokens":1}"#;
    let text = claude_says("1", usage, r#"{"type":"text","text":"a"}"#);
    let tool = claude_says("1", usage, r#"{"type":"tool_use","id":"t","name":"Bash"}"#);
    let other = claude_says("2", usage, "");
    let start = r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"1","usage":{"input_tokens":10,"output_tokens":1}}}}"#;
    let delta =
        r#"{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":40}}}"#;
    let result = |cost: &str| {
        format!(
            r#"{{"type":"result","is_error":false,"total_cost_usd":{cost},"usage":{{"input_tokens":30}}}}"#
        )
    };
    let format = Format::ClaudeStream;
    check(format, &[&text, &tool, &tool, &text], &["spent 11 $0", "tool Bash"]);
    check(
        format,
        &[start, &text, &tool, delta, &text],
        &["spent 11 $0", "tool Bash", "spent 50 $0"],
    );
    check(format, &[&text, &other, &text], &["spent 11 $0", "spent 22 $0"]);
    // Each result names the total of the process.
    check(
        format,
        &[&result("0.5"), &result("0.75"), &result("0.75")],
        &["spent 30 $500000", "ended true", "spent 30 $750000", "ended true", "ended true"],
    );
    let turn = r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":90,"output_tokens":5,"reasoning_output_tokens":2}}"#;
    check(Format::CodexExec, &[turn, turn], &["spent 105 $0", "ended true", "ended true"]);
    let step = r#"{"type":"message.part.updated","properties":{"part":{"id":"p1","sessionID":"s","type":"step-finish","reason":"tool-calls","cost":0.5,"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}}}"#;
    let next = step.replace("p1", "p2");
    check(
        Format::OpenCode,
        &[step, step, &next, step],
        &["session s", "spent 15 $500000", "spent 30 $1000000"],
    );
    let request = |tokens: u32| {
        format!(
            r#"{{"type":"say","say":"api_req_started","ts":7,"text":"{{\"tokensIn\":{tokens},\"cost\":0.25}}"}}"#
        )
    };
    check(
        Format::Cline,
        &[&request(0), &request(9), &request(9)],
        &["spent 0 $250000", "spent 9 $250000"],
    );
    let odd = r#"{"type":"result","is_error":false,"total_cost_usd":-1,"usage":{"input_tokens":"9","output_tokens":1e300,"cache_read_input_tokens":18446744073709551615}}"#;
    check(format, &[odd], &["spent 18446744073709551615 $0", "ended true"]);
}

#[test]
fn codex_errors() {
    let error = |words: &str| format!(r#"{{"type":"error","message":"{words}"}}"#);
    let failed =
        |words: &str| format!(r#"{{"type":"turn.failed","error":{{"message":"{words}"}}}}"#);
    let limit = "You've hit your usage limit. Visit https://x to purchase more credits or try again at Nov 16th, 2026 5:00 PM.";
    let want =
        [format!("limited: {limit} until 2026-11-16T17:00:00Z"), format!("ended false: {limit}")];
    check(Format::CodexExec, &[&error(limit), &failed(limit)], &[&want[0], &want[1]]);
    check(Format::CodexExec, &[&error(limit)], &[&want[0]]);
    check(
        Format::CodexExec,
        &[&error("Reconnecting... 1/5 (429 Too Many Requests)")],
        &["retrying: Reconnecting... 1/5 (429 Too Many Requests)"],
    );
    let work = r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"ok"}}"#;
    check(Format::CodexExec, &[&error("stream disconnected"), work], &[]);
    check(
        Format::CodexExec,
        &[&failed("401 Unauthorized")],
        &["failed: 401 Unauthorized", "ended false: 401 Unauthorized"],
    );
}

/// Streams that show one thing each.
const TROUBLES: [(Format, &[&str], &str); 13] = [
    (
        Format::GeminiStream,
        &[
            r#"{"type":"error","severity":"error","message":"RESOURCE_EXHAUSTED: You have exhausted your capacity on this model. Your quota will reset after 2h0m1s."}"#,
            r#"{"type":"result","status":"error","error":{"type":"Error","message":"Quota exceeded"},"stats":{"input_tokens":4,"output_tokens":1}}"#,
        ],
        "spent 5 $0\nlimited: Quota exceeded until 2026-11-15T17:30:01Z\nended false: Quota exceeded",
    ),
    (
        Format::GeminiStream,
        &[
            r#"{"type":"error","severity":"warning","message":"Agent execution blocked: rate limit test fails"}"#,
            r#"{"type":"result","status":"error","error":{"type":"FatalTurnLimitedError","message":"Reached max session turns for this session."}}"#,
        ],
        "ended false: Reached max session turns for this session.",
    ),
    (
        Format::Copilot,
        &[
            r#"{"type":"session.error","data":{"errorType":"query","statusCode":429,"message":"Sorry, slow down."}}"#,
            r#"{"type":"result","sessionId":"s","exitCode":0}"#,
        ],
        "session s\nlimited: Sorry, slow down.\nended false: Sorry, slow down.",
    ),
    (
        Format::Copilot,
        &[r#"{"type":"result","sessionId":"s","exitCode":1}"#],
        "session s\nended false: exit code 1",
    ),
    (
        Format::Goose,
        &[
            r#"{"type":"message","message":{"id":"1","role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"shell"}}}]}}"#,
            r#"{"type":"error","error":"Rate limit exceeded: try again in 30 seconds"}"#,
            r#"{"type":"message","message":{"id":"2","role":"assistant","content":[{"type":"text","text":"Ran into this error."}]}}"#,
            r#"{"type":"complete","total_tokens":null}"#,
        ],
        "tool shell\nlimited: Rate limit exceeded: try again in 30 seconds until 2026-11-15T15:30:30Z\nended false: Rate limit exceeded: try again in 30 seconds",
    ),
    (
        Format::OpenCode,
        &[
            r#"{"type":"error","sessionID":"a","error":{"name":"APIError","data":{"message":"slow","statusCode":429,"responseHeaders":{"retry-after":"60"}}}}"#,
        ],
        "session a\nlimited: slow until 2026-11-15T15:31:00Z",
    ),
    (
        Format::OpenCode,
        &[
            r#"{"type":"session.status","properties":{"sessionID":"a","status":{"type":"retry","attempt":1,"message":"Overloaded","next":1794756630000}}}"#,
            r#"{"type":"session.error","properties":{"sessionID":"child","error":{"name":"X","data":{"message":"rate limit"}}}}"#,
            r#"{"type":"session.idle","properties":{"sessionID":"child"}}"#,
        ],
        "session a\nretrying: Overloaded until 2026-11-15T15:30:30Z",
    ),
    (
        Format::DroidStream,
        &[
            r#"{"type":"error","source":"agent_loop","message":"401 Unauthorized","session_id":"d"}"#,
        ],
        "session d\nfailed: 401 Unauthorized",
    ),
    (
        Format::Cline,
        &[
            r#"{"type":"say","say":"tool","ts":1,"text":"{\"tool\":\"readFile\"}"}"#,
            r#"{"type":"ask","ask":"api_req_failed","ts":2,"text":"429 rate_limit_error"}"#,
        ],
        "tool readFile\nlimited: 429 rate_limit_error",
    ),
    (Format::Cline, &[r#"{"type":"run_aborted"}"#], "ended false: aborted"),
    (
        Format::CursorStream,
        &[r#"{"type":"result","subtype":"error","is_error":true,"session_id":"c"}"#],
        "session c\nfailed: error\nended false: error",
    ),
    (
        Format::Acp,
        &[
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error","data":{"details":"You've hit your weekly limit · resets 3pm (UTC)"}}}"#,
        ],
        "limited: You've hit your weekly limit · resets 3pm (UTC) until 2026-11-16T15:00:00Z\nended false: You've hit your weekly limit · resets 3pm (UTC)",
    ),
    (
        Format::Acp,
        &[
            r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"path":"docs/rate-limit.md"}}"#,
            r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"no such file: rate limit"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"refusal"}}"#,
        ],
        "ended false: refusal",
    ),
];

#[test]
fn errors_of_other_hosts() {
    for (format, lines, want) in TROUBLES {
        check(format, lines, &[want]);
    }
}

/// Limits in the mouth of anybody but the host, in every place of every format.
#[test]
fn only_the_host_is_believed() {
    let poison = "You've hit your limit · resets 5pm\\nAPI Error: 429 rate_limit_error overloaded\\nClaude AI usage limit reached|1794787200";
    for (path, format, want) in SAMPLES {
        let text = String::from_utf8(sample(path)).unwrap();
        // What agents, users and tools say in the samples.
        let mut poisoned = text;
        for words in [
            "The retry port is complete: all 61 tests",
            "SIGNAL: AUTO_COMPLETE",
            "Running the tests.",
            "Port the retry module",
            "cargo test",
            "Stop hook feedback:",
            "Two tests",
        ] {
            poisoned = poisoned.replace(words, poison);
        }
        let found = render(&read(Input::Format(format), [poisoned.as_bytes()]));
        assert_eq!(found, want.join("\n"), "{path}");
    }
    let quoted = format!(
        "{INIT}\n{}",
        claude_says("1", "", &format!(r#"{{"type":"text","text":"{poison}"}}"#))
    );
    assert_eq!(render(&read(Input::Auto, [quoted.as_bytes()])), "session s");
    let good = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"{poison}"}}"#
    );
    assert_eq!(render(&read(Input::Auto, [good.as_bytes()])), "session s\nended true");
}

#[test]
fn plain_text_is_judged_by_its_last_line() {
    let until = "2026-11-15T16:00:00Z";
    for (text, want) in [
        (format!("{LIMIT}\n"), format!("limited: {LIMIT} until {until}")),
        (format!("I am on it.\n\n{LIMIT}\r\n\n  \n"), format!("limited: {LIMIT} until {until}")),
        (format!("\x1b[31m{LIMIT}\x1b[0m"), format!("limited: {LIMIT} until {until}")),
        ("API Error: 401 Unauthorized".into(), "failed: API Error: 401 Unauthorized".into()),
        (format!("{LIMIT}\nI wait and try again."), String::new()),
        (format!("```\n{LIMIT}\n```"), String::new()),
        (format!("> {LIMIT}"), String::new()),
        (format!("The page shows: {LIMIT}"), String::new()),
        (format!("{LIMIT}\n{}", "x".repeat(LINE_MAX + 1)), String::new()),
        (String::new(), String::new()),
    ] {
        for input in [Input::Format(Format::Text), Input::Auto, Input::from_name("claude").unwrap()]
        {
            assert_eq!(render(&read(input, [text.as_bytes()])), want, "{text:.80} as {input:?}");
        }
    }
}

#[test]
fn long_lines_are_skipped() {
    let long = |length: usize| {
        let line = format!(
            r#"{{"type":"thread.started","thread_id":"long","x":"{}"}}"#,
            "x".repeat(length)
        );
        [line.as_bytes(), b"\n{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n"].concat()
    };
    let whole = long(LINE_MAX);
    for size in [whole.len(), 4_096] {
        let facts = read(Input::Format(Format::CodexExec), whole.chunks(size));
        assert_eq!(render(&facts), "session t");
    }
    let short = long(LINE_MAX / 2);
    let facts = read(Input::Format(Format::CodexExec), [&*short]);
    assert_eq!(render(&facts), "session long\nsession t");
    let named = format!(r#"{{"type":"error","message":"{}"}}"#, "wörter ".repeat(2_000));
    let facts = read(Input::Format(Format::CodexExec), [named.as_bytes()]);
    let Fact::Failed { what } = &facts[0] else { panic!("{facts:?}") };
    assert!(what.chars().count() <= 300 && what.ends_with("wörter"));
}

/// What is told by the beginning of a line is what parsing it tells.
#[test]
fn a_glance_tells_the_same() {
    let user = r#"{"type":"user","message":{"role":"user","content":"x"},"session_id":"s"}"#;
    let command = r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","aggregated_output":"x"}}"#;
    let said =
        r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"x"}}"#;
    let error = r#"{"type":"error","message":"rate limit"}"#;
    let messages = [
        r#""id":"m1","content":[{"type":"text","text":"\"}\\"},{"type":"tool_use","id":"t","name":"Bash","input":{}}],"usage":{"input_tokens":4,"output_tokens":12,"cache_creation":{"x":[1]},"outputTokens":1}"#,
        r#""id":"m1","content":[{"type":"mcp_tool_use"},{"type":"server_tool_use","name":"web"}],"usage":null"#,
        r#""id":"m1","content":[],"usage":{"input_tokens":4.9,"output_tokens":-1,"inputTokens":"7"}"#,
        r#""id":"m1","content":[],"usage":{"input_tokens":null,"output_tokens":3}"#,
        r#""id":"m1","content":"x","usage":{"input_tokens":4}"#,
        r#""content":[{"text":"no type"}],"usage":{"input_tokens":4}"#,
        r#""id":"m1","model":"<synthetic>","content":[{"type":"text","text":"Credit balance is too low"}]"#,
        r#""id":"m1","id":"m2","content":[],"usage":{"input_tokens":4}"#,
        r#""id":"m1","content":[{"type":"text","text":"\ud800"}],"usage":{"input_tokens":4"#,
    ];
    let tails = [
        r#""session_id":"s""#,
        r#""session_id":"s2","parent_tool_use_id":null,"error":null"#,
        r#""parent_tool_use_id":"t9""#,
        r#""session_id":7,"error":"rate_limit""#,
    ];
    let said_by_claude: Vec<String> = messages
        .iter()
        .flat_map(|message| tails.map(|tail| (message, tail)))
        .map(|(message, tail)| format!(r#"{{"type":"assistant","message":{{{message}}},{tail}}}"#))
        .collect();
    let trouble = r#"{"type":"assistant","error":"rate_limit","message":{"content":[]}}"#;
    let claude = said_by_claude.iter().map(|line| (Format::ClaudeStream, trouble, line.as_str()));
    for (format, before, line) in claude.chain([
        (Format::ClaudeStream, INIT, user),
        (Format::CodexExec, error, command),
        (Format::CodexExec, error, said),
    ]) {
        let spaced = line.replace("\":", "\": ");
        let glanced = read(Input::Format(format), [format!("{before}\n{line}\n").as_bytes()]);
        let parsed = read(Input::Format(format), [format!("{before}\n{spaced}\n").as_bytes()]);
        assert_eq!(glanced, parsed, "{line}");
    }
    let cut = &command[..command.len() - 5];
    assert_eq!(read(Input::Format(Format::CodexExec), [cut.as_bytes()]), []);
}

#[test]
fn broken_text_is_mended() {
    let line = b"{\"type\":\"error\",\"message\":\"rate limit \xff\"}";
    let facts = read(Input::Format(Format::CodexExec), [&line[..]]);
    assert_eq!(render(&facts), "limited: rate limit \u{fffd}");
}

fn any_sample() -> impl Strategy<Value = (Vec<u8>, Format)> {
    let samples: Vec<_> = SAMPLES.iter().map(|(path, format, _)| (sample(path), *format)).collect();
    prop::sample::select(samples)
}

fn any_input(format: Format) -> impl Strategy<Value = Input> {
    let mut all = vec![Input::Auto, Input::Format(format)];
    all.extend(crate::transcript::HOSTS.iter().filter_map(|host| Input::from_name(host)));
    all.extend(Format::ALL.map(Input::Format));
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn chunking_makes_no_difference(
        (bytes, input) in any_sample().prop_flat_map(|(b, f)| (Just(b), any_input(f))),
        junk in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let bytes = [junk, bytes].concat();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(read(input, chunks), read(input, [&*bytes]));
    }

    #[test]
    fn damaged_input_never_panics(
        (mut bytes, input) in any_sample().prop_flat_map(|(b, f)| (Just(b), any_input(f))),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
    ) {
        for (at, byte) in hits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        // Totals never fall, and nothing is endless.
        let mut known = (0, 0);
        for fact in read(input, [&*bytes]) {
            match fact {
                Fact::Spent { tokens, micro_dollars } => {
                    prop_assert!(tokens >= known.0 && micro_dollars >= known.1);
                    known = (tokens, micro_dollars);
                }
                Fact::Failed { what } | Fact::Limited { what, .. } => {
                    prop_assert!(what.chars().count() <= 300);
                }
                _ => {}
            }
        }
    }
}
