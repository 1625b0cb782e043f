//! Sizes and shapes of the bulk corpora.

use std::collections::BTreeSet;

use aldis_signal::{Finding, Origin, Reason, Rules, scan};
use serde_json::Value;

use super::*;

#[test]
fn agent_text_has_the_asked_for_size_and_signals() {
    let bulk = agent_text(1_000_000, Some(50_000), 1);
    assert!((1_000_000..1_010_000).contains(&bulk.text.len()), "{}", bulk.text.len());
    assert!((19..=20).contains(&bulk.signals.len()), "{}", bulk.signals.len());
    assert!(agent_text(100_000, None, 1).signals.is_empty());
}

#[test]
fn transcript_is_a_chain_of_mostly_tool_results() {
    let transcript = claude_transcript(12_000_000, 33, 1);
    assert!((12_000_000..15_000_000).contains(&transcript.text.len()));
    let mut known = BTreeSet::from([None]);
    let mut results = 0;
    for line in transcript.text.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let parent = entry["parentUuid"].as_str().map(str::to_owned);
        assert!(line.starts_with("{\"parentUuid\":"), "key order of {line:.80}");
        assert!(known.contains(&parent), "no parent of {line:.80}");
        known.insert(entry["uuid"].as_str().map(str::to_owned));
        results += if entry["toolUseResult"].is_null() { 0 } else { line.len() };
    }
    assert!(transcript.signals.len() > 10);
    let share = results * 100 / transcript.text.len();
    assert!((86..=92).contains(&share), "{share} % of the bytes are tool results");
}

#[test]
fn adversarial_texts_have_their_size() {
    let names: BTreeSet<_> = ADVERSARIAL.iter().map(|kind| kind.name).collect();
    assert_eq!(names.len(), ADVERSARIAL.len(), "two kinds share a name");
    for kind in ADVERSARIAL {
        let text = adversarial(kind, 100_000);
        assert!((100_000..100_200).contains(&text.len()), "{}: {}", kind.name, text.len());
    }
}

#[test]
fn genuine_kinds_are_made_of_signals() {
    for kind in ADVERSARIAL.iter().filter(|kind| kind.genuine) {
        let found =
            scan(Rules::builtin(), adversarial(kind, 2_000).as_bytes(), &Origin::assistant());
        let said = |finding: &&Finding| match finding {
            Finding::Signal(_) => true,
            Finding::NearMiss(miss) => miss.reason == Reason::Retracted,
        };
        // Of blocks that are left open every second one is the delimiter of the one before.
        let said = found.iter().filter(said).count();
        assert!(said * 2 >= kind.units(2_000), "{}: {said}", kind.name);
    }
}
