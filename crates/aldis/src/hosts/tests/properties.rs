//! What holds of any payload and any answer.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::hosts::{Answer, answer};

fn any_host() -> impl Strategy<Value = Host> {
    proptest::sample::select(Host::all().to_vec())
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Stop),
        Just(Event::SubagentStop),
        Just(Event::Interrupt),
        any::<String>().prop_map(|error| Event::StopFailure { error, said: None }),
        any::<String>().prop_map(|text| Event::Prompt { text, source: None }),
        any::<Option<String>>().prop_map(|source| Event::SessionStart { source }),
        any::<Option<String>>().prop_map(|reason| Event::SessionEnd { reason }),
        any::<String>().prop_map(|text| Event::AgentResponse { text }),
        any::<String>().prop_map(Event::Other),
    ]
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Allow),
        (any::<String>(), any::<Option<String>>())
            .prop_map(|(reason, notice)| Answer::Block { reason, notice }),
        (any::<String>(), any::<Option<String>>())
            .prop_map(|(text, notice)| Answer::Context { text, notice }),
        any::<String>().prop_map(|text| Answer::Notice { text }),
    ]
}

/// A sample with some bytes put in place of others.
fn bent_sample() -> impl Strategy<Value = Vec<u8>> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..6);
    let json = proptest::sample::select(vec!["null", "{}", "[]", "\"", "7", ",", "\\ud800", "}"]);
    let bend = (any::<prop::sample::Index>(), 0..40_usize, bytes, json, any::<bool>());
    (proptest::sample::select(payloads()), proptest::collection::vec(bend, 0..4)).prop_map(
        |((_, name), bends)| {
            let mut text = sample(&name);
            for (at, cut, bytes, json, use_json) in bends {
                let at = at.index(text.len() + 1);
                let end = (at + cut).min(text.len());
                let new = if use_json { json.as_bytes().to_vec() } else { bytes };
                text.splice(at..end, new);
            }
            text
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(host in any_host(), bytes: Vec<u8>) {
        let _read = parse(host, &bytes, &env());
    }

    #[test]
    fn bent_samples_are_read_or_refused(host in any_host(), bytes in bent_sample()) {
        if let Ok(call) = parse(host, &bytes, &env()) {
            prop_assert!(call.session.is_none_or(|session| !session.trim().is_empty()));
            prop_assert!(call.final_text.is_none_or(|text| !text.trim().is_empty()));
            prop_assert!(call.cwd.is_none_or(|cwd| cwd.is_absolute()));
        }
    }

    #[test]
    fn an_answer_is_one_object_or_nothing(
        host in any_host(), event in any_event(), what in any_answer(),
    ) {
        let bytes = answer(host, &event, &what);
        if !bytes.is_empty() {
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert!(value.is_object());
            if host == CODEX {
                let known = ["decision", "reason", "hookSpecificOutput", "systemMessage"];
                let members = value.as_object().unwrap();
                prop_assert!(members.keys().all(|key| known.contains(&&**key)));
                prop_assert!(members.len() <= 3);
            }
        }
    }
}
