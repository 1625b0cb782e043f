//! What is read out of payloads.

use std::path::Path;

use super::*;
use crate::hosts::{BlockCap, CutShort, PayloadError};

fn read(text: &str) -> HookCall {
    parse(CLAUDE_CODE, text.as_bytes(), &env()).unwrap()
}

#[test]
fn the_sender_is_known_whoever_the_hook_was_registered_for() {
    for (host, name) in payloads() {
        for registered in Host::all().iter().copied() {
            let call = call(registered, &name);
            assert_eq!(call.host, host, "{name} registered for {registered}");
            assert_eq!(call.registered, registered);
        }
    }
}

#[test]
fn samples_name_their_session() {
    for (host, name) in payloads() {
        let call = call(host, &name);
        // The end of an agent's run in OpenClaw has only a run.
        assert_eq!(call.session.is_none(), name.ends_with("agent_end_event.json"), "{name}");
    }
}

#[test]
fn a_payload_without_marks_belongs_to_whom_it_was_registered_for() {
    let start = br#"{"session_id":"s","hook_event_name":"SessionStart","source":"startup"}"#;
    for host in [CLAUDE_CODE, CODEX, COPILOT, GEMINI, QWEN] {
        assert_eq!(parse(host, start, &env()).unwrap().host, host);
    }
    // Cursor always says that it is Cursor, and Codex does at a stop.
    assert_eq!(parse(CURSOR, start, &env()).unwrap().host, CLAUDE_CODE);
    let stop = br#"{"session_id":"s","hook_event_name":"Stop"}"#;
    assert_eq!(parse(CODEX, stop, &env()).unwrap().host, CLAUDE_CODE);
    assert_eq!(parse(DROID, stop, &env()).unwrap().host, DROID);
    let dated =
        br#"{"session_id":"s","hook_event_name":"Stop","timestamp":"2026-11-15T09:20:01Z"}"#;
    assert_eq!(parse(CLAUDE_CODE, dated, &env()).unwrap().host, QWEN);
    let placed = br#"{"session_id":"s","hook_event_name":"Stop","timestamp":"2026-11-15T09:20:01Z",
        "transcript_path":"/home/dev/.claude/projects/x/s.jsonl"}"#;
    assert_eq!(parse(CLAUDE_CODE, placed, &env()).unwrap().host, CLAUDE_CODE);
    let cline = sample("cline/in_task_complete.json");
    let error = parse(CLAUDE_CODE, &cline, &env()).unwrap_err();
    assert_eq!(error.code(), "unsupported_host");
}

#[test]
fn the_last_words_are_the_agents_own() {
    for (name, ends) in [
        ("antigravity/in_stop.json", None),
        ("claude_code/in_stop.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("claude_code/in_stop_minimal_old.json", None),
        // What the host says about its error is not what the agent said.
        ("claude_code/in_stop_failure.json", None),
        ("codex/in_stop.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("codex/in_stop_null_fields.json", None),
        ("copilot/in_agent_stop_camel.json", None),
        ("copilot/in_subagent_stop_pascal.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("cursor/in_stop.json", None),
        ("cursor/in_subagent_stop.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("droid/in_stop.json", None),
        ("droid/in_subagent_stop.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("gemini/in_after_agent.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("gemini/in_after_agent_retry.json", None),
        ("goose/in_stop.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("goose/in_stop_no_text.json", None),
        ("openclaw/plugin_before_agent_finalize_event.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("kilo/event_session_idle.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("pi/in_agent_end.json", Some("SIGNAL: AUTO_COMPLETE")),
        ("qwen/in_stop.json", Some("SIGNAL: AUTO_COMPLETE")),
    ] {
        let text = call(CLAUDE_CODE, name).final_text;
        assert_eq!(text.is_some(), ends.is_some(), "{name}: {text:?}");
        assert!(text.is_none_or(|text| text.ends_with(ends.unwrap())), "{name}");
    }
}

#[test]
fn details_are_found_under_every_name() {
    let stop = call(CLAUDE_CODE, "claude_code/in_stop.json");
    assert_eq!(stop.turn.as_deref(), Some("0d2b1c64-7a0e-4a55-8a43-6f0d5d0a7f10"));
    assert_eq!((stop.re_entry, stop.loop_count), (Some(false), None));
    assert_eq!(stop.cwd.as_deref(), Some(Path::new("/home/dev/home/dev/widget")));
    assert!(stop.waiting.is_empty() && stop.cut_short.is_none());

    let cursor = call(CLAUDE_CODE, "cursor/in_stop_bom.json");
    assert_eq!(cursor.session.as_deref(), Some("5a2f3c1e-0b1d-4d0e-9e77-2a4b1c6d8e90"));
    assert_eq!(cursor.turn.as_deref(), Some("9d7c0a12-3f44-4b1a-8f05-6c1e2d3b4a58"));
    assert_eq!((cursor.re_entry, cursor.loop_count), (Some(true), Some(1)));
    assert_eq!(cursor.cwd.as_deref(), Some(Path::new("/home/dev/home/dev/widget")));
    let aborted = call(CURSOR, "cursor/in_stop_aborted.json");
    assert_eq!(aborted.cut_short, Some(CutShort::Aborted));

    let codex = call(CODEX, "codex/in_subagent_stop.json");
    assert_eq!(codex.turn.as_deref(), Some("0199f2a4-9999-7a10-8f4c-9d2c1b3e4f60"));
    assert!(
        codex
            .agent_transcript
            .unwrap()
            .ends_with("rollout-2026-11-15T09-04-00-0199f2a8-1111-7d33-9b0e-3f1f6b2f7a55.jsonl")
    );
    assert_eq!(call(CODEX, "codex/in_stop_null_fields.json").transcript, None);

    let droid = call(DROID, "droid/in_stop_docs_camel.json");
    assert_eq!(droid.re_entry, Some(true));
    let path = "/home/dev/.factory/projects/widget/8af22e0a-d222-42c6-8c7e-7a059e391b0b.jsonl";
    assert_eq!(droid.transcript.as_deref(), Some(Path::new(path)));

    for name in ["copilot/in_agent_stop_camel.json", "copilot/in_stop_pascal.json"] {
        assert_eq!(call(COPILOT, name).session.as_deref(), Some("b9c1"), "{name}");
    }
    assert_eq!(call(GOOSE, "goose/in_stop.json").cwd, None);
    let idle = call(OPENCODE, "opencode/event_message_part_updated.json");
    assert_eq!(idle.session.as_deref(), Some("ses_5f1c2a7b9ffeAbCdEfGhIjKlMn"));
}

#[test]
fn background_work_is_waited_for_while_it_runs() {
    let call = call(CLAUDE_CODE, "claude_code/in_stop_reentry_background.json");
    assert_eq!(call.waiting, ["dev server", "flaky test probe", "check CI"]);
    let ended = r#"{"session_id":"s","hook_event_name":"Stop","background_tasks":
        [{"id":"1","status":"completed"},{"id":"2","status":"killed"},{"id":"3"},7]}"#;
    // What is not known to have ended may still run.
    assert_eq!(read(ended).waiting.len(), 2);
    let odd = read(r#"{"session_id":"s","hook_event_name":"Stop","background_tasks":"none"}"#);
    assert!(odd.waiting.is_empty());
    let busy = super::call(ANTIGRAVITY, "antigravity/in_stop_background.json");
    assert_eq!(busy.waiting, ["work in the background"]);
    assert!(super::call(ANTIGRAVITY, "antigravity/in_stop.json").waiting.is_empty());
}

#[test]
fn antigravity_says_where_it_works_and_how_a_turn_ended() {
    let stop = call(CLAUDE_CODE, "antigravity/in_stop.json");
    assert_eq!(stop.session.as_deref(), Some("8377fd63-b158-49b9-b2c1-2d89ed9135ce"));
    assert_eq!(stop.cwd.as_deref(), Some(Path::new("/home/dev/acme")));
    let path = "/home/dev/.gemini/antigravity-cli/brain/8377fd63-b158-49b9-b2c1-2d89ed9135ce/\
                .system_generated/logs/transcript.jsonl";
    assert_eq!(stop.transcript.as_deref(), Some(Path::new(path)));
    let cut = |members: &str| {
        let text = format!(r#"{{"conversationId":"c","executionNum":1,{members}}}"#);
        parse(ANTIGRAVITY, text.as_bytes(), &env()).unwrap().cut_short
    };
    assert_eq!(cut(r#""terminationReason":"NO_TOOL_CALL","error":"""#), None);
    assert_eq!(cut(r#""terminationReason":"EXECUTOR_TERMINATION_REASON_NO_TOOL_CALL""#), None);
    let failed = Some(CutShort::Failed("quota".to_owned()));
    assert_eq!(cut(r#""terminationReason":"ERROR","error":"quota""#), failed);
    assert_eq!(cut(r#""terminationReason":"USER_CANCELED""#), Some(CutShort::Aborted));
    let other = Some(CutShort::Other("MAX_INVOCATIONS".to_owned()));
    assert_eq!(cut(r#""terminationReason":"MAX_INVOCATIONS""#), other);
    // Without an open workspace it works nowhere that it names.
    let nowhere = br#"{"conversationId":"c","executionNum":0,"workspacePaths":[]}"#;
    assert_eq!(parse(ANTIGRAVITY, nowhere, &env()).unwrap().cwd, None);
}

#[test]
fn copilot_says_why_it_stopped() {
    let reason = |reason: &str| {
        let text = format!(r#"{{"sessionId":"b","stopReason":"{reason}","cwd":"/x"}}"#);
        parse(COPILOT, text.as_bytes(), &env()).unwrap().cut_short
    };
    assert_eq!(reason("end_turn"), None);
    assert_eq!(reason("aborted"), Some(CutShort::Aborted));
    assert_eq!(reason("max_tokens"), Some(CutShort::Other("max_tokens".to_owned())));
}

#[test]
fn sessions_are_plain_names() {
    let session = |value: &str| {
        read(&format!(r#"{{"session_id":{value},"hook_event_name":"Stop"}}"#)).session
    };
    assert_eq!(session(r#""s1""#).as_deref(), Some("s1"));
    for unusable in ["null", "\"\"", "\"  \"", "7", "[\"s\"]", "{}", "true", r#""a\u0000b""#] {
        assert_eq!(session(unusable), None, "{unusable}");
    }
    assert_eq!(session(&format!("\"{}\"", "s".repeat(300))), None);
    assert_eq!(read(r#"{"hook_event_name":"Stop"}"#).session, None);
}

#[test]
fn what_is_said_twice_is_ambiguous() {
    for (text, key) in [
        (r#"{"session_id":"a","session_id":"a"}"#, "session_id"),
        (r#"{"session_id":"a","session\u005fid":"b"}"#, "session_id"),
        (r#"{"session_id":"a","sessionId":"b"}"#, "session_id"),
        (
            r#"{"hook_event_name":"Stop","session_id":"a","hook_event_name":"Stop"}"#,
            "hook_event_name",
        ),
        (r#"{"hook_event_name":"Stop","hookEventName":"SubagentStop"}"#, "hook_event_name"),
        (r#"{"cwd":"/a","x":{},"cwd":"/b"}"#, "cwd"),
    ] {
        let error = parse(CLAUDE_CODE, text.as_bytes(), &env()).unwrap_err();
        assert_eq!(error, PayloadError::Ambiguous { key }, "{text}");
    }
    for text in [
        r#"{"session_id":"a","sessionId":"a","hook_event_name":"Stop"}"#,
        r#"{"session_id":"a","hook_event_name":"Stop","unknown":1,"unknown":2}"#,
        r#"{"session_id":"a","hook_event_name":"Stop","x":{"session_id":1,"session_id":2}}"#,
    ] {
        assert_eq!(read(text).session.as_deref(), Some("a"));
    }
}

#[test]
fn what_is_no_payload_is_an_error() {
    for (bytes, code) in [
        (&b""[..], "empty"),
        (b"\xef\xbb\xbf \r\n", "empty"),
        (b"hello", "not_json"),
        (b"{\"session_id\":", "truncated"),
        (b"{\"session_id\":\"a\"", "truncated"),
        (b"[1,2]", "not_an_object"),
        (b"\"text\"", "not_an_object"),
        (b"null", "not_an_object"),
        (b"{}{}", "not_json"),
        (b"{\"a\":1} trailing", "not_json"),
        (b"{'a':1}", "not_json"),
        (b"\0{}", "not_json"),
    ] {
        let error = parse(CLAUDE_CODE, bytes, &env()).unwrap_err();
        assert_eq!(error.code(), code, "{}", bytes.escape_ascii());
    }
    let long = [&b"{\"x\":\""[..], &vec![b'a'; crate::hosts::PAYLOAD_MAX], b"\"}"].concat();
    assert_eq!(parse(CLAUDE_CODE, &long, &env()), Err(PayloadError::TooLong));
}

#[test]
fn odd_bytes_are_tolerated() {
    let crlf = "\u{feff}{\r\n\"session_id\": \"s\",\r\n\"hook_event_name\": \"Stop\"\r\n}\r\n";
    assert_eq!(read(crlf).session.as_deref(), Some("s"));
    let broken = b"{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"last_assistant_message\":\"a\xffb\"}";
    let call = parse(CLAUDE_CODE, broken, &env()).unwrap();
    assert_eq!(call.final_text.as_deref(), Some("a\u{fffd}b"));
    // A text that a host cut between the halves of an emoji.
    let half = r#"{"session_id":"s","hook_event_name":"Stop","last_assistant_message":"a\ud83d"}"#;
    let call = read(half);
    assert!(call.final_text.unwrap().starts_with("a\u{fffd}"));
    let deep = format!(
        r#"{{"session_id":"s","hook_event_name":"Stop","x":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(read(&deep).session.as_deref(), Some("s"));
    let relative = read(r#"{"session_id":"s","hook_event_name":"Stop","cwd":"here"}"#);
    assert_eq!(relative.cwd, None);
}

#[test]
fn the_environment_names_projects_and_limits() {
    let env = Env::from_lookup(|name| match name {
        "HOME" => Some("/home/dev".into()),
        "CURSOR_PROJECT_DIR" => Some("/p/cursor".into()),
        "CLAUDE_PROJECT_DIR" => Some("/p/claude".into()),
        "GEMINI_PROJECT_DIR" => Some("".into()),
        "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP" => Some("0".into()),
        "QWEN_CODE_STOP_HOOK_BLOCK_CAP" => Some("500".into()),
        "GOOSE_STOP_HOOK_BLOCK_CAP" => Some("4".into()),
        _ => None,
    });
    let project = |name: &str| parse(CODEX, &sample(name), &env).unwrap().project_dir;
    assert_eq!(project("cursor/in_stop.json"), Some("/p/cursor".into()));
    assert_eq!(project("claude_code/in_stop.json"), Some("/p/claude".into()));
    assert_eq!(project("gemini/in_after_agent.json"), Some("/p/claude".into()));
    assert_eq!(project("codex/in_stop.json"), None);
    let rootless = br#"{"cursor_version":"3","conversation_id":"c","hook_event_name":"stop"}"#;
    assert_eq!(parse(CURSOR, rootless, &env).unwrap().cwd, Some("/p/cursor".into()));

    let limit = |host: Host, env: &Env| host.block_cap(env).limit;
    let none = Env::default();
    let caps = Host::all().iter().filter_map(|host| Some((host.name(), limit(*host, &none)?)));
    let expected =
        [("claude-code", 8), ("copilot", 8), ("cursor", 50), ("openclaw", 3), ("qwen", 8)];
    assert_eq!(caps.collect::<Vec<_>>(), expected);
    assert!(CLAUDE_CODE.block_cap(&none).resets_on_tool_use);
    assert!(!QWEN.block_cap(&none).resets_on_tool_use);
    assert_eq!(limit(CLAUDE_CODE, &env), None);
    assert_eq!(limit(QWEN, &env), Some(100));
    assert_eq!(limit(GOOSE, &env), Some(4));
    let odd = Env::from_lookup(|name| name.ends_with("BLOCK_CAP").then(|| "many".into()));
    assert_eq!(limit(CLAUDE_CODE, &odd), Some(8));
}

#[test]
fn a_hook_that_cursor_imported_keeps_to_claudes_form() {
    let imported = call(CLAUDE_CODE, "cursor/in_stop.json");
    assert_eq!((imported.host, imported.answer_host()), (CURSOR, CLAUDE_CODE));
    assert_eq!(imported.block_cap(&env()), BlockCap::NONE);
    let own = call(CURSOR, "cursor/in_stop.json");
    assert_eq!((own.answer_host(), own.block_cap(&env()).limit), (CURSOR, Some(50)));
}
