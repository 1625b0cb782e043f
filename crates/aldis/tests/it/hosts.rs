//! The hosts' sample transcripts and streams through the real binary.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::sandbox::Sandbox;

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hosts/samples")
}

fn findings(sample: &str) -> Vec<Value> {
    let path = samples().join(sample);
    let args = ["scan", "--json", "--near-misses", path.to_str().unwrap()];
    let done = Sandbox::new().run(&args);
    done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn entries(findings: &[Value], kind: &str) -> BTreeSet<u64> {
    let of_kind = findings.iter().filter(|finding| finding["kind"] == kind);
    of_kind.map(|finding| finding["source"]["entry"].as_u64().unwrap()).collect()
}

#[test]
fn the_claude_transcript_yields_what_its_labels_say() {
    let labels = fs::read(samples().join("claude_code/transcript_expected.json")).unwrap();
    let labels: Value = serde_json::from_slice(&labels).unwrap();
    let lines = |key: &str| -> BTreeSet<u64> {
        let rows = labels[key].as_array().unwrap().iter();
        rows.map(|row| row["line"].as_u64().unwrap()).collect()
    };
    let found = findings("claude_code/transcript.jsonl");
    assert_eq!(entries(&found, "signal"), lines("genuine"));
    assert_eq!(entries(&found, "near_miss"), lines("look_alikes"));
}

#[test]
fn a_transcript_without_its_last_message_says_nothing() {
    for sample in ["transcript_lagging", "transcript_torn_tail"] {
        let found = findings(&format!("claude_code/{sample}.jsonl"));
        assert_eq!(entries(&found, "signal"), BTreeSet::new(), "{sample}");
    }
}

#[test]
fn every_host_is_heard_once() {
    for (sample, entry) in [
        ("acp/v1_turn.jsonl", 9),
        ("acp/v2_draft_turn.jsonl", 5),
        ("amp/stream.jsonl", 4),
        ("claude_code/stream.jsonl", 17),
        ("cline/run_stream.jsonl", 4),
        ("codex/exec_stream.jsonl", 9),
        ("codex/rollout.jsonl", 15),
        ("copilot/events.jsonl", 6),
        ("copilot/stream.jsonl", 8),
        ("cursor/stream.jsonl", 7),
        ("droid/stream.jsonl", 6),
        ("gemini/session.jsonl", 8),
        ("gemini/stream.jsonl", 9),
        ("goose/stream.jsonl", 1),
        ("opencode/run_stream.jsonl", 4),
    ] {
        let mut found = findings(sample);
        found.retain(|finding| finding["origin"]["role"] == "assistant");
        assert_eq!(entries(&found, "signal"), BTreeSet::from([entry]), "{sample}");
    }
}
