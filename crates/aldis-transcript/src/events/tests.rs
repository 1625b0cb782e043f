//! What streams report: every sample, troubles, costs, plain text, and properties of any input.

use std::path::PathBuf;

use proptest::prelude::*;

use self::samples::SAMPLES;
use super::*;
use crate::{Format, Input, Output, Reader};

mod samples;
mod troubles;

const NOW: &str = "2026-11-15T15:30:00Z";

#[expect(clippy::disallowed_methods, reason = "the samples are files; only tests read them")]
fn sample(path: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts/samples");
    std::fs::read(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The one place that drives a reader.
fn read<'a>(input: Input, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<HostEvent> {
    let now = NOW.parse().unwrap();
    let mut found = Vec::new();
    let mut sink = |output| match output {
        Output::Event(event) => found.push(event),
        Output::Activity(_) | Output::Message(_) => {}
    };
    let chunks: Vec<&[u8]> = chunks.into_iter().collect();
    let format = input.resolve(&chunks.concat());
    let mut reader = Reader::new(format).following().with_events(Zone::utc());
    chunks.into_iter().for_each(|chunk| reader.push_live(chunk, now, &mut sink));
    reader.finish_live(now, &mut sink);
    found
}

/// One line per event.
fn render(events: &[HostEvent]) -> String {
    let until = |until: &Option<Timestamp>| match until {
        Some(until) => format!(" until {until}"),
        None => String::new(),
    };
    let word = |event: &HostEvent| match event {
        HostEvent::Session(id) => format!("session {id}"),
        HostEvent::Answered(ToolAnswer { call_id, receipt, ids, sidechain }) => {
            let who = if *sidechain { " of a sub-agent" } else { "" };
            let receipt = receipt.as_deref().unwrap_or_default();
            format!("answered {call_id}{who}: {}{receipt}", ids.join(" "))
        }
        HostEvent::Tool { name, about, lines, .. } => {
            let lines = lines.map(|(more, less)| format!(" +{more} -{less}"));
            format!("tool {name} {about}{}", lines.unwrap_or_default()).trim_end().to_owned()
        }
        HostEvent::ToolEnded { call, failed, exit_code } => {
            let code = exit_code.map(|code| format!(" {code}")).unwrap_or_default();
            format!("{} {call}{code}", if *failed { "failed" } else { "ended" })
        }
        HostEvent::Denied { tool, what } => format!("denied {tool}: {what}"),
        HostEvent::Spent { tokens, micro_dollars } => format!("spent {tokens} ${micro_dollars}"),
        HostEvent::Retrying { what, until: at } => format!("retrying: {what}{}", until(at)),
        HostEvent::Limited { what, until: at } => format!("limited: {what}{}", until(at)),
        HostEvent::Failed { what } => format!("failed: {what}"),
        HostEvent::Ended { ok, what: None } => format!("ended {ok}"),
        HostEvent::Ended { ok, what: Some(what) } => format!("ended {ok}: {what}"),
    };
    events.iter().map(word).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(format: Format, lines: &[&str], want: &[&str]) {
    let text = lines.join("\n");
    assert_eq!(render(&read(Input::Format(format), [text.as_bytes()])), want.join("\n"), "{text}");
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
const LIMIT: &str = "You've hit your limit · resets 5pm (Europe/Berlin)";

fn claude_says(id: &str, more: &str, block: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{block}]{more}}},"parent_tool_use_id":null}}"#
    )
}

#[test]
fn answers_to_our_tools_are_told_apart() {
    let result = |id: &str, agent: &str, text: &str| {
        format!(
            r#"{{"type":"user","parent_tool_use_id":{agent},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]}}}}"#
        )
    };
    let call = |id: &str, name: &str| {
        let block = format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#);
        claude_says(&format!("m{id}"), "", &block)
    };
    let answer = r#"{\"accepted\":true,\"id\":\"aldis-call-7Bq\"} aldis-call-7Bq"#;
    check(
        Format::ClaudeStream,
        &[
            INIT,
            &call("t1", "mcp__aldis__complete"),
            &result("t1", "null", answer),
            // Another tool shows the same words: a file, a command.
            &call("t2", "Bash"),
            &result("t2", "null", answer),
            &call("t3", "mcp__aldis__complete"),
            &result("t3", "\"task\"", "x"),
        ],
        &[
            "session s",
            "tool mcp__aldis__complete",
            "answered t1: aldis-call-7Bq",
            "ended t1",
            "tool Bash",
            "ended t2",
            "tool mcp__aldis__complete",
            "answered t3 of a sub-agent: ",
            "ended t3",
        ],
    );
    let item = |kind: &str, result: &str| {
        format!(
            r#"{{"type":"item.{kind}","item":{{"id":"item_1","type":"mcp_tool_call","server":"aldis","tool":"complete","arguments":{{}},"result":{result}}}}}"#
        )
    };
    let done = r#"{"content":[],"structured_content":{"id":"aldis-call-9k"}}"#;
    check(
        Format::CodexExec,
        &[&item("started", "null"), &item("completed", done)],
        &["tool aldis/complete", "answered : aldis-call-9k", "ended item_1"],
    );
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
fn calls_of_a_later_turn_may_have_the_same_names() {
    let call = r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","exit_code":0,"status":"completed"}}"#;
    let end = r#"{"type":"turn.completed","usage":{"input_tokens":1}}"#;
    let turn = ["tool command_execution ls", "ended item_1 0"];
    let want = [&turn[..], &["spent 1 $0", "ended true"], &turn].concat();
    check(Format::CodexExec, &[call, call, end, call], &want);
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
        (format!("{LIMIT}\n{}", "x".repeat(1 << 20)), String::new()),
        (String::new(), String::new()),
    ] {
        for input in [Input::Format(Format::Text), Input::Auto, Input::from_name("claude").unwrap()]
        {
            assert_eq!(render(&read(input, [text.as_bytes()])), want, "{text:.80} as {input:?}");
        }
    }
}

#[test]
fn long_words_are_clipped() {
    let named = format!(r#"{{"type":"error","message":"{}"}}"#, "wörter ".repeat(2_000));
    let events = read(Input::Format(Format::CodexExec), [named.as_bytes()]);
    let HostEvent::Failed { what } = &events[0] else { panic!("{events:?}") };
    assert!(what.chars().count() <= 300 && what.ends_with("wörter"));
}

#[test]
fn broken_text_is_mended() {
    let line = b"{\"type\":\"error\",\"message\":\"rate limit \xff\"}";
    let events = read(Input::Format(Format::CodexExec), [&line[..]]);
    assert_eq!(render(&events), "limited: rate limit \u{fffd}");
}

fn any_sample() -> impl Strategy<Value = (Vec<u8>, Format)> {
    let samples: Vec<_> = SAMPLES.iter().map(|(path, format, _)| (sample(path), *format)).collect();
    prop::sample::select(samples)
}

fn any_input(format: Format) -> impl Strategy<Value = Input> {
    let mut all = vec![Input::Auto, Input::Format(format)];
    all.extend(crate::HOSTS.iter().filter_map(|host| Input::from_name(host)));
    all.extend(Format::ALL.iter().copied().map(Input::Format));
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
        for event in read(input, [&*bytes]) {
            match event {
                HostEvent::Spent { tokens, micro_dollars } => {
                    prop_assert!(tokens >= known.0 && micro_dollars >= known.1);
                    known = (tokens, micro_dollars);
                }
                HostEvent::Failed { what } | HostEvent::Limited { what, .. } => {
                    prop_assert!(what.chars().count() <= 300);
                }
                _ => {}
            }
        }
    }
}

/// A receipt counts in the result of a shell that runs `aldis signal` and nothing else.
#[test]
fn a_receipt_counts_only_in_the_result_of_its_own_command() {
    let receipt = r#"aldis-receipt v1 mac=- {\"id\":\"aldis-call-1\"}"#;
    let claude = |command: &str, printed: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m1","role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"{command}"}}}}]}}}}
{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{printed}"}}]}}}}
"#
        )
    };
    let codex = |command: &str, printed: &str| {
        let item = |status: &str| {
            format!(
                r#"{{"id":"item_1","type":"command_execution","command":"/bin/bash -lc '{command}'","aggregated_output":"{printed}","exit_code":0,"status":"{status}"}}"#
            )
        };
        let (started, ended) = (item("in_progress"), item("completed"));
        format!(
            "{{\"type\":\"item.started\",\"item\":{started}}}\n{{\"type\":\"item.completed\",\"item\":{ended}}}\n"
        )
    };
    let found = |format: Format, text: &str| {
        let all = read(Input::Format(format), [text.as_bytes()]).into_iter();
        let answer = |event| match event {
            HostEvent::Answered(answer) => Some((answer.call_id, answer.receipt)),
            _ => None,
        };
        all.filter_map(answer).collect::<Vec<_>>()
    };
    let line = receipt.replace("\\\"", "\"");
    let twice = format!("{receipt}\\n{receipt}");
    for (command, printed, expected) in [
        ("aldis signal done", format!("Recorded\\n{receipt}\\n"), true),
        ("aldis signal done; cat x", receipt.to_owned(), false),
        ("cat x", receipt.to_owned(), false),
        ("aldis signal done", format!("  {receipt}"), false),
        ("aldis signal done", twice, false),
        ("aldis signal done", "Accepted".to_owned(), false),
    ] {
        for (format, text, id) in [
            (Format::ClaudeStream, claude(command, &printed), "t1"),
            // The stream of Codex has names of its own for calls.
            (Format::CodexExec, codex(command, &printed), ""),
        ] {
            let expected = expected.then(|| (id.to_owned(), Some(line.clone())));
            assert_eq!(found(format, &text), Vec::from_iter(expected), "{format:?}: {command}");
        }
    }
}
