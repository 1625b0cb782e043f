//! The activities of every sample, and of lines that no sample shows.

use super::*;
use crate::events::Zone;
use crate::tests::{SAMPLES, sample};
use crate::{Format, Output, Reader};

/// Reads an input whole, one short line for each activity.
fn activities(format: Format, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut sink = |output| match output {
        Output::Activity(activity) => found.push(shown(&activity)),
        Output::Event(_) | Output::Message(_) => {}
    };
    let now = Timestamp::from_millis(0);
    let mut reader =
        Reader::new(format).with_filter(&|_| false).signals_only().with_activities(Zone::utc());
    reader.push_live(bytes, now, &mut sink);
    reader.finish_live(now, &mut sink);
    found
}

fn shown(activity: &Activity) -> String {
    let short = |text: &str| text.chars().take(40).collect::<String>();
    let fact = match &activity.fact {
        Fact::Session(id) => format!("session {}", short(id)),
        Fact::Directory(path) => format!("in {path}"),
        Fact::Prompted { words } => format!("prompted: {}", short(words)),
        Fact::Said { words } => format!("said: {}", short(words)),
        Fact::Tool(tool) => {
            let exit = tool.exit.map(|exit| format!(" {exit}")).unwrap_or_default();
            let ToolUse { name, kind, what, called, end, .. } = &**tool;
            let what = short(what);
            format!("{name} {kind:?} `{what}` of {}: {end:?}{exit}", called.line)
        }
        Fact::Denied { tool, what } => format!("denied {tool} {what}"),
        Fact::Spent { tokens, micro_dollars } => format!("spent {tokens} ${micro_dollars}"),
        Fact::Retried { what } => format!("retried: {what}"),
        Fact::Failed { limit, what, until } => {
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            format!("{}: {what}{until}", if *limit { "limit" } else { "error" })
        }
        Fact::Ended { ok, what } => format!("ended {ok} {}", what.as_deref().unwrap_or_default()),
        Fact::Interrupted => "interrupted".to_owned(),
        Fact::Compacted => "compacted".to_owned(),
    };
    let side = if activity.sidechain { " (side)" } else { "" };
    format!("{}{side} {fact}", activity.place.line)
}

#[test]
fn every_sample_tells_what_happened() {
    // One of them has 396 lines; it is told in numbers below.
    let short = SAMPLES.iter().filter(|(path, _)| *path != "claude_code/transcript.jsonl");
    let all = short.map(|(path, format)| {
        format!("== {path}\n{}\n", activities(*format, &sample(path)).join("\n"))
    });
    insta::assert_snapshot!(all.collect::<String>());
}

#[test]
fn a_long_transcript_is_told_with_its_tools_costs_and_compaction() {
    let found = activities(Format::ClaudeCode, &sample("claude_code/transcript.jsonl"));
    let count = |part: &str| found.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count(": Done"), 124);
    assert_eq!(count("Command `cargo test"), 24);
    assert_eq!(count(" compacted"), 1);
    assert_eq!(count(" session 7b1d6c52"), 1);
    assert!(found.last().unwrap().ends_with("$3418200"), "{:?}", found.last());
}

#[track_caller]
fn check(format: Format, lines: &[&str], want: &[&str]) {
    assert_eq!(activities(format, lines.join("\n").as_bytes()), want);
}

#[test]
fn claude_code_writes_down_what_went_wrong() {
    let call = |id: &str, command: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"c{id}","message":{{"id":"m{id}","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{command}"}}}}]}}}}"#
        )
    };
    let answer = |id: &str, text: &str, more: &str| {
        format!(
            r#"{{"type":"user","uuid":"r{id}","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}","is_error":true}}]}},"toolUseResult":{more}}}"#
        )
    };
    check(
        Format::ClaudeCode,
        &[
            &call("1", "npm test"),
            &answer("1", r"Exit code 1\nFAIL", r#""Error: Exit code 1""#),
            &call("2", "npm publish"),
            &answer("2", "The user doesn't want to proceed with this tool use.", r#""x""#),
            &call("3", "sleep 99"),
            &answer("3", "Started", r#"{"backgroundTaskId":"b1"}"#),
            r#"{"type":"user","uuid":"i","message":{"content":"[Request interrupted by user]"}}"#,
            r#"{"type":"system","uuid":"s","subtype":"api_error","retryInMs":500,"error":{"message":"Overloaded"}}"#,
            r#"{"type":"assistant","uuid":"e","timestamp":"2026-11-15T02:14:00Z","isApiErrorMessage":true,"error":"rate_limit","message":{"content":[{"type":"text","text":"You've hit your limit · resets 4am"}]}}"#,
            r#"{"type":"system","uuid":"t","subtype":"compact_boundary"}"#,
            &call("4", "cargo build"),
        ],
        &[
            "2 Bash Command `npm test` of 1: Failed 1",
            "4 Bash Command `npm publish` of 3: Refused",
            "6 Bash Command `sleep 99` of 5: Unknown",
            "7 interrupted",
            "8 retried: Overloaded",
            "9 limit: You've hit your limit · resets 4am until 2026-11-15T04:00:00Z",
            "10 compacted",
            "11 Bash Command `cargo build` of 11: Unanswered",
        ],
    );
}

#[test]
fn codex_writes_down_what_went_wrong() {
    let item = |item: &str| format!(r#"{{"type":"response_item","payload":{item}}}"#);
    let event = |event: &str| format!(r#"{{"type":"event_msg","payload":{event}}}"#);
    check(
        Format::CodexRollout,
        &[
            &item(
                r#"{"type":"function_call","name":"exec_command","call_id":"1","arguments":"{\"cmd\":\"npm test\"}"}"#,
            ),
            &item(
                r#"{"type":"function_call_output","call_id":"1","output":"Wall time: 2.5 seconds\nProcess exited with code 1\nOutput:\nFAIL"}"#,
            ),
            &item(
                r#"{"type":"custom_tool_call","name":"apply_patch","call_id":"2","input":"*** Update File: a.rs"}"#,
            ),
            &item(r#"{"type":"custom_tool_call_output","call_id":"2","output":"ok"}"#),
            &item(
                r#"{"type":"function_call","name":"update_goal","call_id":"3","arguments":"{\"status\":\"complete\"}"}"#,
            ),
            &item(r#"{"type":"function_call_output","call_id":"3","output":"ok"}"#),
            &event(
                r#"{"type":"error","message":"You've hit your usage limit. Try again at 4:00 AM."}"#,
            ),
            &event(r#"{"type":"turn_aborted","reason":"interrupted"}"#),
            &event(r#"{"type":"task_complete","last_agent_message":null}"#),
        ],
        &[
            "2 exec_command Command `npm test` of 1: Failed 1",
            "4 apply_patch Write `a.rs` of 3: Done",
            "6 update_goal Claim `complete` of 5: Done",
            "7 limit: You've hit your usage limit. Try again at 4:00 AM.",
            "8 interrupted",
            "9 ended true ",
        ],
    );
}
