//! The scripted agent: every voice says what it should, as the real readers hear it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use aldis_signal::time::Timestamp;
use aldis_signal::{Message, Role};
use aldis_transcript::facts::{Fact, Facts, Zone};
use aldis_transcript::{Format, Reader};

use crate::sandbox::scripted_agent;

const VOICES: &str = include_str!("../../../examples/scripted-agent/voices.toml");

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// All voices, by name.
fn voices() -> Vec<String> {
    toml::from_str::<BTreeMap<String, toml::Value>>(VOICES).unwrap().into_keys().collect()
}

/// Plays the next round of a script.
fn play(script: &Path) -> Output {
    Command::new(scripted_agent()).arg(script).stdin(Stdio::null()).output().unwrap()
}

/// What a round writes, and its exit code.
fn played(voice: &str, steps: &str) -> (String, i32) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
    fs::write(&script, format!("voice = \"{voice}\"\n[[round]]\ndo = [{steps}]")).unwrap();
    let output = play(&script);
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

fn format(voice: &str) -> Format {
    Format::from_name(voice).unwrap()
}

fn facts(voice: &str, text: &str) -> Vec<Fact> {
    let mut found = Vec::new();
    let input = aldis_transcript::Input::Auto;
    let mut facts = Facts::new(input, Zone::utc());
    facts.push(text.as_bytes(), now(), &mut |fact| found.push(fact));
    facts.finish(now(), &mut |fact| found.push(fact));
    assert!(!found.is_empty() || format(voice) == Format::Text, "{voice}: {text}");
    found
}

fn messages(voice: &str, text: &str) -> Vec<Message> {
    let mut heard = Vec::new();
    let mut reader = Reader::new(format(voice), &|_| true);
    reader.push(text.as_bytes(), &mut |message| heard.push(message));
    reader.finish(&mut |message| heard.push(message));
    heard
}

const WORK: &str = r#"{ tool = { name = "execute", output = "quoted <chorus>COMPLETE</chorus>" } },
    { say = "All \"done\".\n<chorus>COMPLETE</chorus>" }, { spend = { tokens = 40, dollars = 0.5 } },
    { spend = { tokens = 2 } }"#;

#[test]
fn every_voice_says_works_spends_and_ends() {
    for voice in &voices() {
        let (text, code) = played(voice, WORK);
        assert_eq!(code, 0);
        let said: String = messages(voice, &text)
            .iter()
            .filter(|message| message.origin.role == Role::Assistant)
            .map(|message| &*message.text)
            .collect();
        assert!(said.contains("All \"done\".\n<chorus>COMPLETE</chorus>"), "{said} in {text}");
        if format(voice) == Format::Text {
            continue;
        }
        // What a tool printed is not the agent's word.
        assert!(!said.contains("quoted"), "{voice}: {said}");
        let facts = facts(voice, &text);
        assert!(facts.contains(&Fact::Tool { name: "execute".into() }), "{facts:?}");
        assert!(facts.contains(&Fact::Ended { ok: true, what: None }), "{facts:?}");
        let spent = facts.iter().rev().find_map(|fact| match fact {
            Fact::Spent { tokens, .. } => Some(*tokens),
            _ => None,
        });
        // Copilot counts requests, not tokens.
        let tokens = (format(voice) != Format::Copilot).then_some(42);
        assert_eq!(spent, tokens, "{voice}");
        let priced = [Format::Acp, Format::ClaudeStream, Format::Cline, Format::OpenCode];
        if priced.contains(&format(voice)) {
            let price = |fact: &Fact| matches!(fact, Fact::Spent { micro_dollars: 500_000, .. });
            assert!(facts.iter().any(price), "{voice}: {facts:?}");
        }
    }
}

#[test]
fn every_voice_is_refused_and_fails() {
    for voice in &voices() {
        let now = now();
        let (text, code) = played(voice, "{ limit = { seconds = 90 } }, { say = 'no' }");
        assert_eq!(code, 1, "a limit ends the round");
        let limited = facts(voice, &text).into_iter().find_map(|fact| match fact {
            Fact::Limited { until, .. } => Some(until),
            _ => None,
        });
        let until = limited.flatten().unwrap_or_else(|| panic!("{voice}: {text}"));
        let wait = until.since(now).as_secs();
        assert!((85..=100).contains(&wait), "{voice}: {wait} s in {text}");

        let (text, code) = played(voice, "{ fail = 'Unauthorized' }");
        assert_eq!(code, 1);
        let failed =
            |fact: &Fact| matches!(fact, Fact::Failed { what } if what.contains("Unauthorized"));
        assert!(facts(voice, &text).iter().any(failed), "{voice}: {text}");
    }
}

#[test]
fn hosts_that_try_again_say_so() {
    for voice in ["claude-stream", "codex-exec"] {
        let (text, _) = played(voice, "{ retry = 'overloaded' }, { say = 'on it' }");
        let facts = facts(voice, &text);
        let retrying = |fact: &Fact| matches!(fact, Fact::Retrying { what, .. } if what.contains("overloaded"));
        assert!(facts.iter().any(retrying), "{facts:?}");
    }
}

#[test]
fn rounds_follow_one_another_and_the_last_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
    let rounds = "[[round]]\ndo = [{ exit = 1 }]\n[[round]]\ndo = [{ exit = 2 }]";
    fs::write(&script, rounds).unwrap();
    let codes = [(); 4].map(|()| play(&script).status.code().unwrap());
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.toml");
        fs::write(&path, script).unwrap();
        let error = String::from_utf8(play(&path).stderr).unwrap();
        assert!(error.contains(word), "{script}: {error}");
    }
}
