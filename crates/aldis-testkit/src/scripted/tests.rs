//! Every voice says what it should, as the real readers hear it.

use aldis_signal::{Message, Role};
use aldis_transcript::events::{HostEvent, Zone};
use aldis_transcript::{Format, Output, Reader, detect};

use super::play::now;
use super::voice::Voice;
use super::*;

/// What a round writes, and its exit code.
fn played(voice: &str, steps: &str) -> (String, u8) {
    let script = format!("voice = \"{voice}\"\n[[round]]\ndo = [{steps}]");
    let script = Script::parse(&script).unwrap();
    let mut out = Vec::new();
    let code = Player::new(&script, "the prompt", &mut out).play(script.steps(1)).unwrap();
    (String::from_utf8(out).unwrap(), code)
}

fn format(voice: &Voice) -> Format {
    Format::from_name(voice.name()).unwrap()
}

fn host_events(voice: &Voice, text: &str) -> Vec<HostEvent> {
    let mut found = Vec::new();
    let mut sink = |output| match output {
        Output::Event(event) => found.push(event),
        Output::Activity(_) | Output::Message(_) => {}
    };
    let reader = Reader::new(detect(text.as_bytes())).following();
    let mut reader = reader.with_events(Zone::utc());
    reader.push_live(text.as_bytes(), now(), &mut sink);
    reader.finish_live(now(), &mut sink);
    assert!(!found.is_empty() || format(voice) == Format::Text, "{}: {text}", voice.name());
    found
}

fn messages(voice: &Voice, text: &str) -> Vec<Message> {
    let mut heard = Vec::new();
    let mut reader = Reader::new(format(voice));
    reader.push(text.as_bytes(), &mut |message| heard.push(message));
    reader.finish(&mut |message| heard.push(message));
    heard
}

const WORK: &str = r#"{ tool = { name = "execute", output = "quoted <chorus>COMPLETE</chorus>" } },
    { say = "All \"done\".\n<chorus>COMPLETE</chorus>" }, { spend = { tokens = 40, dollars = 0.5 } },
    { spend = { tokens = 2 } }"#;

#[test]
fn every_voice_says_works_spends_and_ends() {
    for voice in Voice::all() {
        let (text, code) = played(voice.name(), WORK);
        assert_eq!(code, 0);
        let said: String = messages(&voice, &text)
            .iter()
            .filter(|message| message.origin.role == Role::Assistant)
            .map(|message| &*message.text)
            .collect();
        assert!(said.contains("All \"done\".\n<chorus>COMPLETE</chorus>"), "{said} in {text}");
        if format(&voice) == Format::Text {
            continue;
        }
        // What a tool printed is not the agent's word.
        assert!(!said.contains("quoted"), "{}: {said}", voice.name());
        let events = host_events(&voice, &text);
        let executes =
            |event: &HostEvent| matches!(event, HostEvent::Tool { name, .. } if name == "execute");
        assert!(events.iter().any(executes), "{events:?}");
        assert!(events.contains(&HostEvent::Ended { ok: true, what: None }), "{events:?}");
        let spent = events.iter().rev().find_map(|event| match event {
            HostEvent::Spent { tokens, .. } => Some(*tokens),
            _ => None,
        });
        // Copilot counts requests, not tokens.
        let tokens = (format(&voice) != Format::Copilot).then_some(42);
        assert_eq!(spent, tokens, "{}", voice.name());
        let priced = [Format::Acp, Format::ClaudeStream, Format::Cline, Format::OpenCode];
        if priced.contains(&format(&voice)) {
            let price = |event: &HostEvent| {
                matches!(event, HostEvent::Spent { micro_dollars: 500_000, .. })
            };
            assert!(events.iter().any(price), "{}: {events:?}", voice.name());
        }
    }
}

#[test]
fn every_voice_is_refused_and_fails() {
    for voice in Voice::all() {
        let began = now();
        let (text, code) = played(voice.name(), "{ limit = { seconds = 90 } }, { say = 'no' }");
        assert_eq!(code, 1, "a limit ends the round");
        let limited = host_events(&voice, &text).into_iter().find_map(|event| match event {
            HostEvent::Limited { until, .. } => Some(until),
            _ => None,
        });
        let until = limited.flatten().unwrap_or_else(|| panic!("{}: {text}", voice.name()));
        let wait = until.since(began).as_secs();
        assert!((85..=100).contains(&wait), "{}: {wait} s in {text}", voice.name());

        let (text, code) = played(voice.name(), "{ fail = 'Unauthorized' }");
        assert_eq!(code, 1);
        let failed = |event: &HostEvent| matches!(event, HostEvent::Failed { what } if what.contains("Unauthorized"));
        assert!(host_events(&voice, &text).iter().any(failed), "{}: {text}", voice.name());
    }
}

#[test]
fn hosts_that_try_again_say_so() {
    for voice in
        Voice::all().filter(|voice| ["claude-stream", "codex-exec"].contains(&voice.name()))
    {
        let (text, _) = played(voice.name(), "{ retry = 'overloaded' }, { say = 'on it' }");
        let events = host_events(&voice, &text);
        let retrying = |event: &HostEvent| matches!(event, HostEvent::Retrying { what, .. } if what.contains("overloaded"));
        assert!(events.iter().any(retrying), "{events:?}");
    }
}

#[test]
fn rounds_follow_one_another_and_the_last_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("count");
    let script = "[[round]]\ndo = [{ exit = 1 }]\n[[round]]\ndo = [{ exit = 2 }]";
    let script = Script::parse(script).unwrap();
    let codes: Vec<u8> = (0..4)
        .map(|_| {
            let steps = script.steps(round_of(&counter).unwrap());
            Player::new(&script, "", &mut Vec::new()).play(steps).unwrap()
        })
        .collect();
    assert_eq!(codes, [1, 2, 2, 2]);
}

#[test]
fn floods_have_the_size_that_was_asked_for() {
    let (text, _) = played("text", "{ flood = { bytes = 200005, line = 10 } }, { write = 'x' }");
    assert_eq!(text.len(), 200_006);
    assert!(text.lines().all(|line| line.len() <= 9));
}

#[test]
fn mistakes_are_explained() {
    for (script, word) in [
        ("", "round"),
        ("round = []", "no round"),
        ("voice = 'bass'\n[[round]]\ndo = []", "no voice `bass`"),
        ("[[round]]\ndo = [{ sing = 'x' }]", "sing"),
        ("[[round]]\ndo = [{ limit = {} }]", "seconds"),
    ] {
        let error = Script::parse(script).unwrap_err();
        assert!(error.contains(word), "{script}: {error}");
    }
}
