//! Antigravity, Kiro and Pi: what no sample shows.

use super::hosts::{check, render};
use super::*;

fn pi(id: &str, parent: &str, role: &str, text: &str, more: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-11-15T09:00:00.000Z","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]{more}}}}}"#
    )
}

#[test]
fn pi_keeps_branches_that_were_left() {
    let user = pi("u", "", "user", "go", "");
    let one = pi("a", "u", "assistant", "one", r#","stopReason":"stop""#);
    let again = pi("v", "", "user", "again", "");
    let two = pi("b", "v", "assistant", "two", r#","stopReason":"stop""#);
    let cut = |reason: &str| {
        pi(
            "c",
            "u",
            "assistant",
            "cut",
            &format!(r#","stopReason":"{reason}","errorMessage":"529""#),
        )
    };
    let (aborted, failed) = (cut("aborted"), cut("error"));
    let shell = r#"{"type":"message","id":"s","parentId":"a","message":{"role":"bashExecution","command":"ls","output":"out","exitCode":0}}"#;
    let custom = r#"{"type":"custom_message","id":"x","parentId":"a","customType":"note","content":"told","display":true}"#;
    let compaction =
        r#"{"type":"compaction","id":"k","parentId":"a","summary":"short","firstKeptEntryId":"k"}"#;
    for (name, lines, want) in [
        ("in order", vec![&*user, &one], "!user:go assistant:one"),
        (
            "another root",
            vec![&*user, &one, &again, &two],
            "!user:go !assistant:one !user:again assistant:two",
        ),
        ("cut off by a person", vec![&*user, &aborted], "!user:go !host:text/cut"),
        ("cut off by an error", vec![&*user, &failed], "!user:go !host:text/cut"),
        ("a person's command", vec![&*one, shell], "assistant:one !tool:out"),
        ("an extension's words", vec![&*one, custom], "assistant:one !host:told"),
        ("compacted", vec![&*one, compaction], "assistant:one !system:short"),
    ] {
        check(name, Format::Pi, &lines, want);
    }
}

#[test]
fn pi_streams_say_each_message_once() {
    let end = |role: &str, text: &str| {
        format!(
            r#"{{"type":"message_end","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}],"stopReason":"stop"}}}}"#
        )
    };
    let start = r#"{"type":"message_start","message":{"role":"assistant","content":[]}}"#;
    let update =
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"a"}}"#;
    let (said, more) = (end("assistant", "a"), end("assistant", "b"));
    let turn = said.replace("message_end", "turn_end");
    let lines = [start, update, &said, &turn, &more];
    check("once", Format::Pi, &lines, "assistant:a assistant:b");
}

#[test]
fn antigravity_steps_are_written_again() {
    let step = |index: u32, source: &str, kind: &str, status: &str, more: &str| {
        format!(
            r#"{{"step_index":{index},"source":"{source}","type":"{kind}","status":"{status}","created_at":"2026-11-15T09:00:00Z"{more}}}"#
        )
    };
    let says = |index, status, text: &str, more: &str| {
        step(index, "MODEL", "PLANNER_RESPONSE", status, &format!(r#","content":"{text}"{more}"#))
    };
    let (half, whole) = (says(1, "RUNNING", "a", ""), says(1, "DONE", "ab", ""));
    let clipped = says(2, "DONE", "clip", r#","truncated_fields":["tool_calls","content"]"#);
    let calls =
        says(3, "DONE", "c", r#","tool_calls":[{"name":"x","args":{}},{"name":"y","args":{}}]"#);
    let other = r#","truncated_fields":["tool_calls"]"#;
    let short_calls = says(4, "DONE", "d", other);
    let plain = step(0, "USER_EXPLICIT", "USER_INPUT", "DONE", r#","content":"plain""#);
    let checkpoint = step(5, "SYSTEM", "CHECKPOINT", "DONE", r#","content":"short""#);
    for (name, lines, want) in [
        ("typed", vec![&*plain], "!user:plain"),
        ("running", vec![&*half], ""),
        ("whole", vec![&*half, &whole], "assistant:ab"),
        ("clipped", vec![&*clipped], "!host:clip"),
        ("another member is clipped", vec![&*short_calls], "assistant:d"),
        ("a checkpoint", vec![&*whole, &checkpoint], "assistant:ab !system:short"),
    ] {
        check(name, Format::Antigravity, &lines, want);
    }
    let result = |index, status, text: &str| {
        step(index, "MODEL", "GENERIC", status, &format!(r#","content":"{text}""#))
    };
    let (runs, first, second) =
        (result(4, "RUNNING", "runs"), result(4, "DONE", "1"), result(5, "DONE", "2"));
    let words = render(Format::Antigravity, &[&calls, &runs, &first, &second]);
    assert!(words.starts_with("assistant:c") && words.ends_with("!tool:1 !tool:2"), "{words}");
}

#[test]
fn antigravity_streams() {
    let event = |kind: &str, more: &str| {
        format!(r#"{{"event":"{kind}","{kind}":{{"conversation_id":"c",{more}}}}}"#)
    };
    let says = |state: &str, text: &str| {
        let more = format!(
            r#""step_index":1,"state":"{state}","step_type":"agent_response","text_delta":"{text}""#
        );
        event("step_update", &more)
    };
    let result =
        |text: &str| event("result", &format!(r#""status":"SUCCESS","response":"{text}""#));
    let (a, b, end) = (says("ACTIVE", "a"), says("DONE", "b"), result("ab"));
    let side = a.replace("\"c\"", "\"d\"");
    let flat = r#"{"type":"step_update","conversation_id":"c","step_index":1,"state":"DONE","step_type":"agent_response","text_delta":"f"}"#;
    for (name, lines, want) in [
        ("pieces", vec![&*a, &b], "assistant:ab"),
        ("the result repeats them", vec![&*a, &b, &end], "assistant:ab"),
        ("the result alone", vec![&*end], "assistant:ab"),
        ("a sub-agent's", vec![&*a, &side, &b], "assistant:ab !assistant:a"),
        ("the first version", vec![flat], "assistant:f"),
    ] {
        check(name, Format::AntigravityStream, &lines, want);
    }
}

#[test]
fn kiro_sessions() {
    let entry = |kind: &str, text: &str| {
        format!(
            r#"{{"version":"v1","kind":"{kind}","data":{{"message_id":"m","content":[{{"kind":"text","data":"{text}"}}]}}}}"#
        )
    };
    let (ask, says) = (entry("Prompt", "u"), entry("AssistantMessage", "a"));
    let two = says.replace(
        r#""data":"a"}"#,
        r#""data":"a"},{"kind":"thinking","data":{"text":"t"}},{"kind":"text","data":"b"}"#,
    );
    let clear = r#"{"version":"v1","kind":"Clear","data":{}}"#;
    let again = entry("AssistantMessage", "c");
    for (name, lines, want) in [
        ("in order", vec![&*ask, &says], "!user:u assistant:a"),
        ("two blocks", vec![&*two], "assistant:a//b !tool:thinking/t"),
        ("cleared", vec![&*says, clear, &again], "!assistant:a assistant:c"),
    ] {
        check(name, Format::Kiro, &lines, want);
    }
}
