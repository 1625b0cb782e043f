//! Limits and errors, in short streams that show one thing each.

use super::*;

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
        ("API Error: 500 Internal server error", r#","api_error_status":500"#, "limited"),
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
        // What a tool was told is the agent's word, and only that may change.
        let without = |line: &str| match line.strip_prefix("tool ") {
            Some(tool) => tool.split(' ').next().unwrap_or_default().to_owned(),
            None => line.to_owned(),
        };
        let found: Vec<String> = found.lines().map(without).collect();
        let want: Vec<String> = want.iter().map(|line| without(line)).collect();
        assert_eq!(found, want, "{path}");
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
fn denied_permissions() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","permission_denials":[
        {"tool_name":"Write","tool_use_id":"t1","tool_input":{"file_path":"/p/a.rs","content":"x"}},
        {"tool_name":"Bash","tool_use_id":"t2","tool_input":{"command":"npm test"}},
        {"tool_use_id":"t3"}]}"#;
    let result = result.replace('\n', "");
    let denied = ["denied Write: /p/a.rs", "denied Bash: npm test", "denied tool: "];
    let want = [&["session s"][..], &denied, &["ended true"]].concat();
    check(Format::ClaudeStream, &[INIT, &result], &want);
    let declined = r#"{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"rm -r x","status":"declined"}}"#;
    let want = ["denied command_execution: rm -r x"];
    check(Format::CodexExec, &[declined], &want);
    // An agent that quotes one was denied nothing.
    let said = r#"{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"\"status\":\"declined\""}}"#;
    check(Format::CodexExec, &[said], &[]);
}
