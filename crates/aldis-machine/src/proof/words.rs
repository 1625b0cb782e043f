//! The sentences about a round of checks: for agents in their next prompt, and for people.

use std::fmt::Write as _;

use super::config::Config;
use super::opinion::Opinion;
use super::record::{ChangeKind, CheckResult, CheckStatus, TestCounts};
use super::round::Round;
use super::verdict::{Acceptance, Finding, Verdict, Weight};
use crate::Evidence;
use crate::words::{counted, cut, quoted};

/// How long a name is that is shown.
const NAME_MAX: usize = 200;
/// How many clauses a sentence has.
const CLAUSES_MAX: usize = 4;
/// How many findings stand in a prompt.
const FINDINGS_MAX: usize = 20;
/// How many findings a decision shows.
const SHOWN_MAX: usize = 8;
/// How much of a check's output stands in a prompt.
const OUTPUT_MAX: usize = 16_000;

/// A name from outside, in a sentence.
pub(super) fn shown(name: &str) -> String {
    let name: String = cut(name, NAME_MAX).chars().filter(|it| !it.is_control()).collect();
    format!("`{}`", name.replace('`', "'"))
}

pub(super) fn verb(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Changed => "changed",
        ChangeKind::Deleted => "was deleted",
        ChangeKind::Added => "was added",
        ChangeKind::MadeExecutable => "was made executable",
        ChangeKind::NotExecutable => "is not executable any more",
        ChangeKind::Replaced => "is not a regular file any more",
    }
}

/// What was found, as clauses.
pub(super) fn clauses<'f>(findings: impl Iterator<Item = &'f Finding>) -> String {
    let all: Vec<&str> = findings.map(|finding| &*finding.what).collect();
    let more = all.len().saturating_sub(CLAUSES_MAX);
    let mut text = all.iter().take(CLAUSES_MAX).copied().collect::<Vec<_>>().join("; ");
    if more > 0 {
        let _ = write!(text, "; and {more} more");
    }
    text
}

/// The first letter as a sentence begins.
pub(crate) fn capital(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl TestCounts {
    /// As people read it: `12 passed, 1 failed, 2 skipped`.
    pub fn sentence(&self) -> String {
        let mut text = format!("{} passed", self.passed);
        for (count, what) in [(self.failed, "failed"), (self.skipped, "skipped")] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        text
    }
}

impl CheckResult {
    /// What came of it, as people read it: `failed with exit code 1, 11 passed, 1 failed`.
    pub fn sentence(&self) -> String {
        let mut text = self.clause();
        if !self.missing.is_empty() {
            let names: Vec<String> = self.missing.iter().map(|it| shown(it)).collect();
            let _ = write!(text, ": it needs {}", crate::words::listed(&names, 3));
        }
        if self.is_flaky() {
            let _ =
                write!(text, " (flaky: {} of {})", counted(self.failures, "failure"), self.runs);
        }
        if let Some(tests) = &self.tests {
            let _ = write!(text, ", {}", tests.sentence());
        }
        text
    }
}

/// What the agent reads about a claim that does not hold.
pub(super) fn feedback(config: &Config, round: &Round, verdict: &Verdict) -> String {
    let weight = match verdict.acceptance {
        Acceptance::Asks => Weight::Asks,
        _ => Weight::Refuses,
    };
    let reasons: Vec<&Finding> = verdict.weighing(weight).collect();
    let mut text = match &*reasons {
        [only] => format!("You reported done, but {}.", with_remedy(only)),
        reasons => {
            let mut text = "You reported done, but:\n\n".to_owned();
            for reason in reasons.iter().take(FINDINGS_MAX) {
                let _ = writeln!(text, "- {}.", capital(&with_remedy(reason)));
            }
            if let Some(more) = reasons.len().checked_sub(FINDINGS_MAX).filter(|more| *more > 0) {
                let _ = writeln!(text, "- And {more} more.");
            }
            text
        }
    };
    if config.checks.len() > 1 {
        text.push_str(&steps(round));
    }
    for result in &round.results {
        text.push_str(&output(config, result));
    }
    text.trim_end().to_owned()
}

fn with_remedy(finding: &Finding) -> String {
    match finding.remedy.trim_end_matches('.') {
        "" => finding.what.clone(),
        remedy => format!("{}. {remedy}", finding.what),
    }
}

/// How each check ended.
pub(super) fn steps(round: &Round) -> String {
    let mut text = String::new();
    if !round.results.is_empty() {
        text.push_str("\n\nThe checks:\n\n");
    }
    for result in &round.results {
        let _ = writeln!(text, "- {}: {}", shown(&result.name), result.sentence());
    }
    text
}

/// What a check printed that did not pass.
fn output(config: &Config, result: &CheckResult) -> String {
    if matches!(result.status, CheckStatus::Passed | CheckStatus::NotRun) {
        return String::new();
    }
    let only = config.checks.len() < 2;
    match (quoted(&result.output.tail, OUTPUT_MAX), only) {
        (tail, true) if tail.is_empty() => " It printed nothing.".to_owned(),
        (tail, true) => format!(" Its output ends with:\n\n{tail}"),
        (tail, false) if tail.is_empty() => {
            format!("\n{} printed nothing.\n", capital(&result.title()))
        }
        (tail, false) => format!("\nThe output of {} ends with:\n\n{tail}", result.title()),
    }
}

/// What a decision shows of a round: how the checks ended, what speaks against the claim, and what the
/// first check that failed printed.
pub(crate) fn evidence(round: &Round) -> Vec<Evidence> {
    let failed =
        round.results.iter().find(|result| !result.passed() && !result.output.tail.is_empty());
    // A single check that failed is known by what it printed, if it printed anything.
    let told = round.results.len() == 1 && (failed.is_some() || round.results[0].passed());
    let checks = round.results.iter().filter(|_| !told);
    let mut seen: Vec<Evidence> = checks
        .map(|result| Evidence {
            name: Some(result.name.clone()),
            ..Evidence::new("check", format!("{} {}", result.title(), result.sentence()))
        })
        .collect();
    let verdict = round.verdict.as_ref();
    let findings = verdict.into_iter().flat_map(|verdict| &verdict.findings);
    let findings = findings.filter(|it| !it.rule.is_about_check()).take(SHOWN_MAX);
    seen.extend(findings.map(finding_evidence));
    seen.extend(round.opinion.iter().map(opinion));
    seen.extend(failed.map(|failed| Evidence::new("output", &*failed.output.tail)));
    seen
}

/// A second opinion as evidence, with what it cost.
pub(crate) fn opinion(opinion: &Opinion) -> Evidence {
    Evidence::new("opinion", opinion.sentence())
}

fn finding_evidence(finding: &Finding) -> Evidence {
    Evidence {
        name: finding.path.clone().or_else(|| finding.check.clone()),
        reason: Some(finding.rule.as_str().to_owned()),
        ..Evidence::new("finding", &*finding.what)
    }
}
