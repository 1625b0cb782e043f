//! What is said to hosts.

use serde_json::{Value, json};

use super::*;
use crate::hosts::{Answer, TEXT_MAX, answer};

fn said(host: Host, event: &Event, what: &Answer) -> Option<Value> {
    let bytes = answer(host, event, what);
    (!bytes.is_empty()).then(|| serde_json::from_slice(&bytes).unwrap())
}

fn sample_value(name: &str) -> Value {
    serde_json::from_slice(&sample(name)).unwrap()
}

fn block(reason: &str) -> Answer {
    Answer::Block { reason: reason.to_owned(), notice: None }
}

fn prompt() -> Event {
    Event::Prompt { text: "Go".to_owned(), source: None }
}

#[test]
fn blocks_are_what_the_samples_show() {
    let two = "cargo test reports 2 failures. Fix them, then finish.";
    let three = "cargo test reports 2 failures in tests/retry.rs. Fix them, then finish.";
    for (host, name, reason) in [
        (ANTIGRAVITY, "antigravity/out_continue.json", two),
        (CLAUDE_CODE, "claude_code/out_block.json", three),
        (CODEX, "codex/out_block.json", two),
        (COPILOT, "copilot/out_block.json", two),
        (CURSOR, "cursor/out_followup.json", two),
        (DROID, "droid/out_block.json", "Tests fail."),
        (GEMINI, "gemini/out_deny.json", two),
        (GOOSE, "goose/out_block.json", "cargo test reports 2 failures."),
        (QWEN, "qwen/out_block.json", "Tests fail."),
    ] {
        assert_eq!(said(host, &Event::Stop, &block(reason)), Some(sample_value(name)), "{name}");
    }
    let mut expected = sample_value("openclaw/plugin_before_agent_finalize_result.json");
    expected["retry"]["instruction"] = expected["reason"].clone();
    let reason = expected["reason"].as_str().unwrap();
    assert_eq!(said(OPENCLAW, &Event::Stop, &block(reason)), Some(expected.clone()));
    let expected = json!({"decision": "block", "reason": "x"});
    for host in [KILO, OPENCODE, PI] {
        assert_eq!(said(host, &Event::Stop, &block("x")), Some(expected.clone()), "{host}");
    }
}

#[test]
fn to_allow_is_to_say_nothing_where_that_is_safe() {
    for (host, expected) in [
        (ANTIGRAVITY, Some(json!({}))),
        (CLAUDE_CODE, None),
        // Its sample says `{}`, which is the same and needs a parser.
        (CODEX, None),
        (COPILOT, None),
        (CURSOR, Some(sample_value("cursor/out_allow.json"))),
        (DROID, None),
        (GEMINI, Some(sample_value("gemini/out_allow.json"))),
        (GOOSE, None),
        (OPENCLAW, Some(json!({"action": "continue"}))),
        (KILO, None),
        (OPENCODE, None),
        (PI, None),
        (QWEN, None),
    ] {
        assert_eq!(said(host, &Event::Stop, &Answer::Allow), expected, "{host}");
    }
}

#[test]
fn context_goes_where_it_is_read() {
    let text = "This run is watched by aldis. The completion marker is a line of its own.";
    let context = Answer::Context { text: text.to_owned(), notice: None };
    let start = Event::SessionStart { source: None };
    let expected = sample_value("claude_code/out_session_start_context.json");
    for host in Host::all().iter().copied() {
        let usual = [CLAUDE_CODE, CODEX, DROID, QWEN];
        if !usual.contains(&host) && host != GEMINI {
            for event in [&start, &prompt()] {
                let allowed = said(host, event, &Answer::Allow);
                assert_eq!(said(host, event, &context), allowed, "{host}");
            }
            continue;
        }
        let name = if host == GEMINI { "BeforeAgent" } else { "UserPromptSubmit" };
        assert_eq!(said(host, &start, &context).as_ref(), Some(&expected), "{host}");
        let inner = json!({"hookEventName": name, "additionalContext": text});
        let on_prompt = json!({"hookSpecificOutput": inner});
        assert_eq!(said(host, &prompt(), &context), Some(on_prompt), "{host}");
        // There it would be one more way to make the agent go on.
        let allowed = said(host, &Event::Stop, &Answer::Allow);
        assert_eq!(said(host, &Event::Stop, &context), allowed, "{host}");
    }
}

#[test]
fn users_are_told_only_where_a_host_has_a_place_for_it() {
    let text = "aldis: completion signal accepted";
    let notice = Answer::Notice { text: text.to_owned() };
    let expected = sample_value("claude_code/out_allow_with_notice.json");
    for host in Host::all().iter().copied() {
        let told = said(host, &Event::Stop, &notice);
        match host {
            _ if [CLAUDE_CODE, CODEX].contains(&host) => assert_eq!(told.as_ref(), Some(&expected)),
            _ if host == GEMINI => {
                assert_eq!(told, Some(json!({"decision": "allow", "systemMessage": text})));
            }
            _ => assert_eq!(told, said(host, &Event::Stop, &Answer::Allow), "{host}"),
        }
        let mut elsewhere = vec![Event::SubagentStop, Event::SessionEnd { reason: None }];
        match host == CLAUDE_CODE {
            true => assert_eq!(said(host, &prompt(), &notice).as_ref(), Some(&expected)),
            false => elsewhere.push(prompt()),
        }
        for event in elsewhere {
            assert_eq!(said(host, &event, &notice), said(host, &event, &Answer::Allow), "{host}");
        }
    }
}

/// What is decided stays, and what cannot be shown is left out.
#[test]
fn users_are_told_beside_a_decision() {
    let notice = Some("aldis: run 7f3k continues with phase qa".to_owned());
    let block = |notice| Answer::Block { reason: "Go on.".to_owned(), notice };
    let context = |notice| Answer::Context { text: "The task.".to_owned(), notice };
    for host in Host::all().iter().copied() {
        for (event, plain, told, shown) in [
            (
                Event::Stop,
                block(None),
                block(notice.clone()),
                [CLAUDE_CODE, CODEX, GEMINI].contains(&host),
            ),
            (prompt(), context(None), context(notice.clone()), host == CLAUDE_CODE),
        ] {
            let mut plain = said(host, &event, &plain);
            if let (Some(plain), true) = (&mut plain, shown) {
                plain["systemMessage"] = json!(notice);
            }
            assert_eq!(said(host, &event, &told), plain, "{host} {event:?}");
        }
    }
}

#[test]
fn only_stops_are_blocked() {
    let others = [
        prompt(),
        Event::SessionStart { source: None },
        Event::SessionEnd { reason: None },
        Event::StopFailure { error: "rate_limit".to_owned(), said: None },
        Event::AgentResponse { text: "x".to_owned() },
        Event::Interrupt,
        Event::Other("PreCompact".to_owned()),
    ];
    for host in Host::all().iter().copied() {
        for event in &others {
            let allowed = answer(host, event, &Answer::Allow);
            assert_eq!(answer(host, event, &block("no")), allowed, "{host} {event:?}");
        }
        let sub = said(host, &Event::SubagentStop, &block("go on"));
        let heard = sub.is_some() && sub != said(host, &Event::SubagentStop, &Answer::Allow);
        let can = [CLAUDE_CODE, CODEX, COPILOT, CURSOR, QWEN];
        assert_eq!(heard, can.contains(&host), "{host}");
    }
}

#[test]
fn texts_are_never_blank_and_never_long() {
    for host in Host::all().iter().copied() {
        for blank in ["", " \n"] {
            let text = said(host, &Event::Stop, &block(blank)).unwrap().to_string();
            assert!(text.contains("Continue with the current task."), "{host}: {text}");
        }
        for unit in ["a", "é", "🙂", "\u{0}"] {
            let long = said(host, &Event::Stop, &block(&unit.repeat(TEXT_MAX + 1))).unwrap();
            let key = if host == CURSOR { "followup_message" } else { "reason" };
            let text = long[key].as_str().unwrap();
            let units = text.encode_utf16().count();
            assert!((TEXT_MAX - 1..=TEXT_MAX).contains(&units), "{host}: {units}");
            assert!(text.ends_with("cut off.]"));
        }
        let exact = "a".repeat(TEXT_MAX);
        let whole = said(host, &Event::Stop, &block(&exact)).unwrap();
        assert!(whole.to_string().contains(&exact));
    }
}
