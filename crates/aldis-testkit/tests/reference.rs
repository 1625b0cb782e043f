//! Proves that `aldis::app::reference` is what the seeds' own patterns find, in their own languages.

#![expect(clippy::unwrap_used, reason = "a helper of a test may panic like the test itself")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aldis::app::reference;
use aldis_signal::{Dialect, Origin, Signal};
use serde_json::{Value, json};

/// The keys of seed 001's table, and what our dialect calls them.
const DELIVERY: &[(&str, &str, Option<&str>)] = &[
    ("ready_for_review", "READY_FOR_REVIEW", None),
    ("task_incomplete", "TASK_INCOMPLETE", None),
    ("infra_blocked", "INFRA_BLOCKED", None),
    ("review_passed", "REVIEW_PASSED", None),
    ("review_failed", "REVIEW_FAILED", None),
    ("audit_passed", "AUDIT_PASSED", None),
    ("audit_failed", "AUDIT_FAILED", None),
    ("audit_blocked", "AUDIT_BLOCKED", None),
    ("expanded_spec", "EXPANDED_TASK_SPECIFICATION", None),
    ("remediation_complete", "REMEDIATION_COMPLETE", None),
    ("health_healthy", "HEALTH_AUDIT", Some("HEALTHY")),
    ("health_unhealthy", "HEALTH_AUDIT", Some("UNHEALTHY")),
    ("divine_clarification", "SEEKING_DIVINE_CLARIFICATION", None),
    ("expert_request", "EXPERT_REQUEST", None),
    ("expert_advice", "EXPERT_ADVICE", None),
    ("expert_unsuccessful", "EXPERT_UNSUCCESSFUL", None),
    ("expert_created", "EXPERT_CREATED", None),
    ("file_conflict", "FILE CONFLICT", None),
    ("checkpoint", "CHECKPOINT", None),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn goldens() -> Vec<Value> {
    let text = include_str!("../goldens/reference.jsonl");
    // `lines` ends lines at LF only, as the file does.
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every match of one dialect as the goldens write it.
fn found(dialect: &str, text: &str) -> Vec<Value> {
    let dialect = Dialect::builtin(dialect).unwrap().clone();
    let signals = reference::scan(&[dialect], text, &Origin::assistant());
    let row = |Signal { name, subject, payload, place, raw, .. }: Signal| {
        let (start, end) = (place.span.start, place.span.end);
        assert_eq!(text.get(start as usize..end as usize), Some(raw.as_str()));
        json!([&*name, start, end, subject.or(payload)])
    };
    signals.into_iter().map(row).collect()
}

/// A row of the goldens in our words.
fn delivery(row: &Value) -> Value {
    let known = DELIVERY.iter().find(|(key, ..)| row[0] == *key).unwrap();
    let (_, name, verdict) = known;
    json!([name, row[1], row[2], verdict.map_or(row[3].clone(), Value::from)])
}

#[test]
fn finds_what_the_seeds_patterns_find() {
    let goldens = goldens();
    assert!(goldens.len() > 700, "only {} texts", goldens.len());
    for golden in &goldens {
        let (id, text) = (&golden["id"], golden["text"].as_str().unwrap());
        assert_eq!(&found("caw", text), golden["caw"].as_array().unwrap(), "caw, {id}");
        let want: Vec<_> = golden["delivery"].as_array().unwrap().iter().map(delivery).collect();
        assert_eq!(found("delivery", text), want, "delivery, {id}");
        assert_eq!(&found("chorus", text), golden["chorus"].as_array().unwrap(), "chorus, {id}");
        let turn: Vec<_> = match &golden["turn"] {
            Value::Null => Vec::new(),
            range => vec![json!(["TURN_COMPLETE", range[0], range[1], null])],
        };
        assert_eq!(found("turn", text), turn, "turn, {id}");
        let strip = [0, 1].map(|at| golden["strip"][at].as_u64().unwrap() as usize);
        assert_eq!(reference::strip_turn(text), text[strip[0]..strip[1]], "strip, {id}");
    }
}

/// Runs one language's script over the committed texts.
fn remade(program: &str, script: &str, goldens: &[Value]) -> Vec<Value> {
    let mut child = Command::new(program)
        .arg(script)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} is needed to check the goldens: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let mut input = String::new();
    for golden in goldens {
        let line = json!({ "id": golden["id"], "text": golden["text"] });
        input.push_str(&line.to_string());
        input.push('\n');
    }
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    assert!(output.status.success(), "{script} failed");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn goldens_are_fresh() {
    let goldens = goldens();
    for (program, script, keys) in [
        ("python3", "scripts/reference/goldens.py", ["id", "caw", "delivery"].as_slice()),
        ("node", "scripts/reference/goldens.mjs", ["id", "chorus", "turn", "strip"].as_slice()),
    ] {
        let remade = remade(program, script, &goldens);
        assert_eq!(remade.len(), goldens.len(), "{script}");
        for (old, new) in goldens.iter().zip(&remade) {
            for key in keys {
                assert_eq!(old[key], new[key], "{script}: {key} of {}", old["id"]);
            }
        }
    }
}
