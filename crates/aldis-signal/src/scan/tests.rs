//! Tests of the scanner: the worked cases, the hostile files, the labelled endings.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::dialect::{Dialect, builtins};
use crate::message::Role;
use crate::signal::{Meaning, NearMiss, Reason, Signal, Span, Via, Warning};

mod cases;
mod endings;
mod floods;
mod hostile;
mod oracle;
mod properties;
mod table;

/// Returns a path of the repository's test data.
fn testdata(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// Returns the bytes of a file of the test data; an absolute path stands for itself.
#[expect(clippy::disallowed_methods, reason = "tests read their data")]
fn bytes_of(path: &str) -> Vec<u8> {
    fs::read(testdata(path)).unwrap()
}

/// Returns the files directly in a folder of the test data, in order.
fn files_of(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(testdata(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

fn json_lines(path: &str) -> Vec<Value> {
    let text = String::from_utf8(bytes_of(path)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rules_for(dialect: &str) -> Rules {
    Rules::new([Dialect::builtin(dialect).unwrap().clone()])
}

fn findings(rules: &Rules, text: &[u8], chunk: usize) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut scanner = Scan::new(rules).stream();
    for piece in text.chunks(chunk.max(1)) {
        scanner.push(piece, &mut |finding| out.push(finding));
    }
    scanner.finish(&mut |finding| out.push(finding));
    out.sort_by_key(|finding| finding.place().span);
    out
}

fn signals(findings: &[Finding]) -> Vec<&Signal> {
    findings.iter().filter_map(Finding::signal).collect()
}

fn misses(findings: &[Finding]) -> Vec<&NearMiss> {
    findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::NearMiss(miss) => Some(&**miss),
            Finding::Signal(_) => None,
        })
        .collect()
}

#[test]
fn findings_come_in_text_order_whenever_they_became_certain() {
    let text =
        b"READY_FOR_REVIEW: task-1\n\n> SIGNAL: QA_COMPLETE\n\n<chorus>BLOCKED: keys</chorus>\n";
    let mut certain = Vec::new();
    let mut scanner = Scan::new(Rules::builtin()).stream();
    scanner.push(text, &mut |finding| certain.push(finding));
    scanner.finish(&mut |finding| certain.push(finding));
    let in_order = |findings: &[Finding]| findings.is_sorted_by_key(|found| found.place().span);
    assert!(!in_order(&certain), "the hand-over is certain last: {certain:?}");
    let found = scan(Rules::builtin(), text, &Origin::assistant());
    assert!(in_order(&found), "{found:?}");
    assert_eq!(found.len(), certain.len());
}

#[test]
fn what_is_told_settles() {
    let text = "READY_FOR_REVIEW: t\n{\"v\":2}\n<chorus>COMPLETE</chorus>\n".repeat(2_000);
    let mut scanner = Scan::new(Rules::builtin()).stream();
    scanner.push(text.as_bytes(), &mut |_| {});
    let waits = text.len() as u64 - scanner.settled();
    assert!((4 * 1024..16 * 1024).contains(&waits), "{waits}");
}

#[test]
fn what_waits_for_the_end_does_not_settle() {
    let text = format!("TURN_COMPLETE{}", "\n".repeat(200 * 1024));
    let mut scanner = Scan::new(Rules::builtin()).stream();
    let mut told = Vec::new();
    scanner.push(text.as_bytes(), &mut |finding| told.push(finding));
    assert_eq!((scanner.settled(), told.len()), (0, 0));
    scanner.finish(&mut |finding| told.push(finding));
    assert_eq!(signals(&told).len(), 1, "{told:?}");
}
