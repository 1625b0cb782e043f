//! The Python patterns of seeds 000 and 001.

use std::sync::LazyLock;

use regex::Regex;

use super::Hit;

/// `\s` of Python's `str` patterns, to stand inside a class.
const BLANK: &str = r"\s\x1c-\x1f";

/// The patterns `SIGNAL:\s*NAME` of seed 000, in its order. It has none for errors and transitions.
const CAW: &[&str] = &[
    "EXPANSION_COMPLETE",
    "INIT_COMPLETE",
    "PLANNING_COMPLETE",
    "EXECUTION_COMPLETE",
    "QA_COMPLETE",
    "REVIEW_COMPLETE",
    "FIX_COMPLETE",
    "CHECK_COMPLETE",
    "REFLECT_COMPLETE",
    "AUTO_COMPLETE",
];

/// What follows a name of seed 001.
#[derive(Clone, Copy, Debug)]
enum Rest {
    /// `:\s*(\S+)`.
    Word,
    /// `$`.
    End,
    /// `: VERDICT$`, which our dialect calls the subject.
    Verdict(&'static str),
}

/// The patterns of seed 001, in its order.
const DELIVERY: &[(&str, Rest)] = &[
    ("READY_FOR_REVIEW", Rest::Word),
    ("TASK_INCOMPLETE", Rest::Word),
    ("INFRA_BLOCKED", Rest::Word),
    ("REVIEW_PASSED", Rest::Word),
    ("REVIEW_FAILED", Rest::Word),
    ("AUDIT_PASSED", Rest::Word),
    ("AUDIT_FAILED", Rest::Word),
    ("AUDIT_BLOCKED", Rest::Word),
    ("EXPANDED_TASK_SPECIFICATION", Rest::Word),
    ("REMEDIATION_COMPLETE", Rest::End),
    ("HEALTH_AUDIT", Rest::Verdict("HEALTHY")),
    ("HEALTH_AUDIT", Rest::Verdict("UNHEALTHY")),
    ("SEEKING_DIVINE_CLARIFICATION", Rest::End),
    ("EXPERT_REQUEST", Rest::End),
    ("EXPERT_ADVICE", Rest::Word),
    ("EXPERT_UNSUCCESSFUL", Rest::Word),
    ("EXPERT_CREATED", Rest::Word),
    ("FILE CONFLICT", Rest::Word),
    ("CHECKPOINT", Rest::Word),
];

/// Writes a literal as Python's `IGNORECASE` reads it.
fn any_case(literal: &str) -> String {
    literal
        .chars()
        .map(|c| match c.to_ascii_lowercase() {
            'i' => "[Ii\u{130}\u{131}]".to_owned(),
            'k' => "[Kk\u{212a}]".to_owned(),
            's' => "[Ss\u{17f}]".to_owned(),
            lower if lower.is_ascii_lowercase() => format!("[{}{lower}]", c.to_ascii_uppercase()),
            other => regex::escape(&other.to_string()),
        })
        .collect()
}

/// Compiles our own tables; one that did not compile would be missing, and a test counts them.
fn compile(patterns: impl IntoIterator<Item = String>) -> Vec<Regex> {
    patterns.into_iter().filter_map(|pattern| Regex::new(&pattern).ok()).collect()
}

pub(super) static CAW_PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let key = any_case("SIGNAL:");
    compile(CAW.iter().map(|name| format!("{key}[{BLANK}]*{}", any_case(name))))
});

pub(super) static DELIVERY_PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    compile(DELIVERY.iter().map(|(name, rest)| match rest {
        Rest::Word => format!("(?m)^{name}:[{BLANK}]*([^{BLANK}]+)"),
        Rest::End => format!("(?m)^{name}$"),
        Rest::Verdict(verdict) => format!("(?m)^{name}: {verdict}$"),
    }))
});

pub(super) fn caw(text: &str) -> Vec<Hit> {
    let patterns = CAW.iter().zip(CAW_PATTERNS.iter());
    patterns
        .flat_map(|(name, pattern)| {
            pattern.find_iter(text).map(move |found| Hit::new(*name, found.start(), found.end()))
        })
        .collect()
}

pub(super) fn delivery(text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    for ((name, rest), pattern) in DELIVERY.iter().zip(DELIVERY_PATTERNS.iter()) {
        for captures in pattern.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            let mut hit = Hit::new(*name, whole.start(), whole.end());
            hit.subject = match rest {
                Rest::Word => captures.get(1).map(|word| word.as_str().to_owned()),
                Rest::End => None,
                Rest::Verdict(verdict) => Some((*verdict).to_owned()),
            };
            hits.push(hit);
        }
    }
    hits
}
