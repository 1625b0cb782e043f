//! Rules of the specification, one row each.
//!
//! A row is a name, a dialect, a text, and what is found in it, in text order:
//!
//! * `NAME`, `NAME:subject`, `NAME=payload`, `NAME@45` (progress): a signal without warnings;
//!   `~code` names warnings it must have, `~*` allows any.
//! * `!reason NAME`: a near miss; `*` stands for any reason or name.
//! * `-`: no signal at all, `-reason`: none, and a near miss with that reason, `-*`: none, and some
//!   near miss.
//! * `=` in front: only the signals are compared.
//!
//! Texts may hold `{qa}`, `{exit}`, `{ralph}` for whole genuine signals and `{70k}` for many letters.

use std::collections::BTreeSet;

use super::properties::naive_place;
use super::*;

mod bodies;
mod claims;
mod dialects;
mod neighbours;
mod origins;
mod pilot;
mod shared;
mod users;

type Row<'a> = (&'a str, &'a str, &'a str, &'a str);

pub(super) const QA: &str = "---\nSIGNAL: QA_COMPLETE\nPHASE: qa\nSTATUS: complete\n\
    TIMESTAMP: 2026-03-02T09:15:00Z\nNEXT: review\n---";
pub(super) const EXIT: &str = "```pilot-signal\n\
    {\"v\":2,\"type\":\"exit\",\"success\":true,\"exit_signal\":true}\n```";
pub(super) const RALPH: &str = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n\
    ---END_RALPH_STATUS---";

fn fill(text: &str) -> String {
    text.replace("{qa}", QA)
        .replace("{exit}", EXIT)
        .replace("{ralph}", RALPH)
        .replace("{70k}", &"x".repeat(70_000))
        .replace("{310}", &"x".repeat(310))
        .replace("{200}", &"x".repeat(200))
}

/// Checks a table: each text whole and byte by byte, and on both searches.
#[track_caller]
fn check(rows: &[Row<'_>]) {
    let mut wrong = Vec::new();
    for (name, dialect, text, want) in rows {
        let rules = rules_for(dialect);
        let text = fill(text);
        let whole = findings(&rules, text.as_bytes(), usize::MAX);
        if !matches(&whole, want) {
            let text = text.get(..600).unwrap_or(&text);
            wrong.push(format!(
                "{name} ({dialect})\n  {text:?}\n  want {want}\n  got  {}",
                show(&whole)
            ));
        }
        for place in whole.iter().map(Finding::place) {
            let counted = naive_place(text.as_bytes(), place.span.start);
            if (place.line, place.column) != counted {
                wrong.push(format!("{name} ({dialect})\n  {place:?} is at {counted:?}"));
            }
        }
        if text.len() < 10_000 {
            let bytes = findings(&rules, text.as_bytes(), 1);
            let elsewhere = findings(&rules.on_automaton(), text.as_bytes(), usize::MAX);
            for (how, found) in [("byte by byte", bytes), ("without packed search", elsewhere)] {
                if found != whole {
                    wrong.push(format!("{name} ({dialect})\n  {text:?}\n  {how} {}", show(&found)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Renders findings in the form of the tables.
fn show(found: &[Finding]) -> String {
    let parts: Vec<String> = found.iter().map(show_one).collect();
    parts.join(", ")
}

fn show_one(finding: &Finding) -> String {
    match finding {
        Finding::Signal(signal) => {
            let warnings: String = signal.warnings.iter().map(|code| format!("~{code}")).collect();
            format!("{}{warnings}", bare(signal))
        }
        Finding::NearMiss(miss) => format!("!{} {}", miss.reason, miss.name),
    }
}

/// Renders a signal without its warnings.
fn bare(signal: &Signal) -> String {
    let subject = signal.subject.iter().map(|subject| format!(":{subject}"));
    let payload = signal.payload.iter().map(|payload| format!("={payload}"));
    let progress = signal.progress.iter().map(|progress| format!("@{progress}"));
    let parts: String = subject.chain(payload).chain(progress).collect();
    format!("{}{parts}", signal.name)
}

fn matches(found: &[Finding], want: &str) -> bool {
    if let Some(reason) = want.strip_prefix('-') {
        let given =
            misses(found).iter().any(|miss| reason == "*" || miss.reason.as_str() == reason);
        return signals(found).is_empty() && (reason.is_empty() || given);
    }
    let (want, only_signals) = match want.strip_prefix('=') {
        Some(want) => (want, true),
        None => (want, false),
    };
    let found: Vec<&Finding> =
        found.iter().filter(|finding| !only_signals || finding.signal().is_some()).collect();
    let want: Vec<&str> = want.split(", ").filter(|part| !part.is_empty()).collect();
    found.len() == want.len()
        && found.iter().zip(want).all(|(found, want)| matches_one(found, want))
}

fn matches_one(found: &Finding, want: &str) -> bool {
    match (found, want.strip_prefix('!')) {
        (Finding::Signal(signal), None) => {
            let mut parts = want.split('~');
            let same = parts.next() == Some(bare(signal).as_str());
            let codes: Vec<&str> = parts.collect();
            let given: Vec<String> = signal.warnings.iter().map(ToString::to_string).collect();
            let expected = match codes.as_slice() {
                [] => given.is_empty(),
                ["*"] => true,
                codes => codes.iter().all(|code| given.iter().any(|given| given == code)),
            };
            same && expected
        }
        (Finding::NearMiss(miss), Some(want)) => {
            let (reason, name) = want.split_once(' ').unwrap();
            (reason == "*" || reason == miss.reason.as_str())
                && (name == "*" || name == &*miss.name)
        }
        (Finding::Signal(_), Some(_)) | (Finding::NearMiss(_), None) => false,
    }
}

/// Returns every row of every table.
fn all_rows() -> impl Iterator<Item = &'static Row<'static>> {
    [shared::ROWS, dialects::ROWS, pilot::ROWS, neighbours::ROWS, claims::ROWS]
        .into_iter()
        .flatten()
        .copied()
        .flatten()
}

#[test]
fn every_reason_is_reached() {
    let mut reached = BTreeSet::from([Reason::UntrustedOrigin, Reason::WrongToken]);
    for (_, dialect, text, _) in all_rows() {
        let found = findings(&rules_for(dialect), fill(text).as_bytes(), usize::MAX);
        reached.extend(misses(&found).iter().map(|miss| miss.reason));
    }
    let missed: Vec<_> = Reason::ALL.iter().filter(|reason| !reached.contains(reason)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn every_warning_is_reached() {
    let mut reached = BTreeSet::new();
    for (_, dialect, text, _) in all_rows() {
        let found = findings(&rules_for(dialect), fill(text).as_bytes(), usize::MAX);
        let warnings = signals(&found).into_iter().flat_map(|signal| &signal.warnings);
        reached.extend(warnings.map(|code| code.to_string().split(':').next().unwrap().to_owned()));
    }
    let codes = [
        "missing_space",
        "missing_field",
        "missing_closing_delimiter",
        "missing_delimiters",
        "phase_mismatch",
        "clamped",
        "coerced",
        "unknown_version",
        "unknown_type",
        "indicator_not_bool",
        "legacy_invalid",
        "missing_payload",
        "bad_value",
    ];
    let missed: Vec<_> = codes.iter().filter(|code| !reached.contains(**code)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
