//! What checks, changes and policy amount to, with a named reason for each part of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::{Config, OnChange, RedFirst};
use super::opinion::{Opinion, OpinionVerdict};
use super::record::{ChangeKind, CheckResult, CheckStatus, FileChange, FileClass, TestCounts};
use super::round::{Round, Stage};
use super::words;
use aldis_signal::codes;

codes! {
    /// Why a claim is refused, asked about, or accepted with a remark. The names are stable.
    pub enum Rule {
        /// A check ended with another exit code than 0.
        CheckFailed = "proof/check-failed",
        /// A check took too long.
        CheckTimedOut = "proof/check-timed-out",
        /// A check could not be started.
        CheckNotStarted = "proof/check-not-started",
        /// A check did not run because one that it needs did not pass.
        CheckNotRun = "proof/check-not-run",
        /// A check failed and passed with the same files.
        CheckFlaky = "proof/check-flaky",
        /// A file that a check runs is not what it was.
        OwnFileChanged = "proof/own-file-changed",
        /// A protected file is not what it was.
        ProtectedFileChanged = "proof/protected-file-changed",
        /// A test file is not what it was.
        TestFileChanged = "proof/test-file-changed",
        /// A check ran fewer tests than before.
        FewerTests = "proof/fewer-tests",
        /// A check skipped more tests than before.
        MoreSkipped = "proof/more-skipped",
        /// Checks run on a commit, and there is none of the work.
        NoCommit = "proof/no-commit",
        /// Checks ran on a commit, and there is more that is not committed.
        Uncommitted = "proof/uncommitted",
        /// The checks passed before the work started.
        ProvesNothing = "proof/proves-nothing",
        /// The files could not be inspected.
        NotInspected = "proof/not-inspected",
        /// Nothing was pinned when the work began.
        NotPinned = "proof/not-pinned",
        /// A second opinion is against the claim.
        OpinionRefused = "proof/opinion-refused",
        /// Nothing but a second opinion speaks for the claim.
        OpinionAlone = "proof/opinion-alone",
        /// There is no second opinion, although one was asked for.
        NoOpinion = "proof/no-opinion",
    }
}

impl Rule {
    /// Whether it says how a check ended that did not pass.
    pub fn is_about_check(self) -> bool {
        matches!(
            self,
            Self::CheckFailed | Self::CheckTimedOut | Self::CheckNotStarted | Self::CheckNotRun
        )
    }
}

codes! {
    /// What a finding means to the claim.
    pub enum Weight {
        /// It is named, and nothing follows.
        Named = "named",
        /// A human must accept it.
        Asks = "asks",
        /// The claim is refused.
        Refuses = "refuses",
    }
}

codes! {
    /// What becomes of a claim.
    pub enum Acceptance {
        /// It holds.
        Accepted = "accepted",
        /// It does not hold.
        Refused = "refused",
        /// It holds if a human says so.
        Asks = "asks",
    }
}

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What it means to the claim.
    pub weight: Weight,
    /// The check it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The file it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What was found, as a clause.
    pub what: String,
    /// What the agent can do, as a sentence; empty where it can do nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// What a round of checks amounts to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What becomes of the claim.
    pub acceptance: Acceptance,
    /// The reasons: files first, then checks, then the rest.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Who accepted it, if a human did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_by: Option<String>,
}

impl Verdict {
    /// Nothing speaks against the claim.
    pub(super) fn nothing() -> Self {
        Self { acceptance: Acceptance::Accepted, findings: Vec::new(), accepted_by: None }
    }

    fn of(findings: Vec<Finding>) -> Self {
        let has = |weight| findings.iter().any(|finding| finding.weight == weight);
        let acceptance = match () {
            () if has(Weight::Refuses) => Acceptance::Refused,
            () if has(Weight::Asks) => Acceptance::Asks,
            () => Acceptance::Accepted,
        };
        Self { acceptance, findings, accepted_by: None }
    }

    /// The reasons of this weight.
    pub fn weighing(&self, weight: Weight) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.weight == weight)
    }

    /// What the agent can do about what refuses the claim, as sentences.
    pub fn remedies(&self) -> String {
        let mut remedies: Vec<&str> =
            self.weighing(Weight::Refuses).map(|finding| &*finding.remedy).collect();
        remedies.retain(|remedy| !remedy.is_empty());
        remedies.dedup();
        remedies.join(" ")
    }

    /// Why it is refused or asked about, as clauses; why remarks are made, where it is accepted.
    pub fn because(&self) -> String {
        let weight = match self.acceptance {
            Acceptance::Refused => Weight::Refuses,
            Acceptance::Asks => Weight::Asks,
            Acceptance::Accepted => Weight::Named,
        };
        words::clauses(self.weighing(weight))
    }
}

/// Judges a round of checks: what it amounts to, and why.
///
/// `start` is the round before the work, and `first` has the tests that each check counted when it
/// first ran after a claim.
pub fn judge(
    config: &Config,
    round: &Round,
    start: Option<&Round>,
    first: &BTreeMap<String, TestCounts>,
) -> Verdict {
    let mut findings = Vec::new();
    if round.stage == Stage::Start {
        findings.extend(not_inspected(round, Weight::Named));
        if !round.pins_only {
            findings.extend(proves_nothing(config, round, true));
        }
        return Verdict::of(findings);
    }
    findings.extend(commit(config, round));
    findings.extend(not_inspected(round, Weight::Refuses));
    findings.extend(changes(config, round));
    for result in &round.results {
        findings.extend(check(result));
        findings.extend(counts(config, result, start, first));
    }
    if round.all_passed()
        && let Some(start) = start
    {
        findings.extend(proves_nothing(config, start, false));
    }
    if let Some(opinion) = &round.opinion {
        findings.extend(second(opinion));
        if config.checks.is_empty() && !opinion.refuses() {
            let what = "no check speaks for the claim, and a second opinion alone does not count";
            findings.push(finding(Rule::OpinionAlone, Weight::Asks, what, ""));
        }
    }
    Verdict::of(findings)
}

/// What a second opinion means to a claim.
fn second(opinion: &Opinion) -> Option<Finding> {
    let reason = &opinion.reason;
    match opinion.verdict {
        OpinionVerdict::Accept => None,
        OpinionVerdict::Refuse => {
            let what = format!("a second opinion refused it: {reason}");
            Some(finding(Rule::OpinionRefused, Weight::Refuses, what, ""))
        }
        OpinionVerdict::None => {
            let what = format!("there is no second opinion: {reason}");
            Some(finding(Rule::NoOpinion, Weight::Named, what, ""))
        }
    }
}

/// A finding about nothing in particular.
fn finding(rule: Rule, weight: Weight, what: impl Into<String>, remedy: &str) -> Finding {
    let (what, remedy) = (what.into(), remedy.to_owned());
    Finding { rule, weight, check: None, path: None, what, remedy }
}

fn not_inspected(round: &Round, weight: Weight) -> Option<Finding> {
    let inspection = round.inspection.as_ref()?;
    if let Some(problem) = &inspection.problem {
        let what = format!("the files could not be inspected ({problem})");
        return Some(finding(Rule::NotInspected, weight, what, ""));
    }
    // At a claim there is something to compare with, unless the run is older than its pins.
    let late = round.stage == Stage::Claim && inspection.pinned.is_some();
    let what = "nothing was pinned when the work began";
    late.then(|| finding(Rule::NotPinned, Weight::Named, what, ""))
}

fn commit(config: &Config, round: &Round) -> Option<Finding> {
    if !config.clean {
        return None;
    }
    if !round.claim.is_committed() {
        let what = "there is no commit since the work began, and the checks run on a commit";
        let remedy = "Commit your work, then report done again.";
        return Some(finding(Rule::NoCommit, Weight::Refuses, what, remedy));
    }
    let what = "there are changes that are not committed, and nothing checked them";
    round.claim.dirty.then(|| finding(Rule::Uncommitted, Weight::Named, what, ""))
}

fn changes<'r>(config: &Config, round: &'r Round) -> impl Iterator<Item = Finding> + 'r {
    let policy = config.on_change;
    let changes = || round.inspection.iter().flat_map(|it| &it.changes);
    let is_move = move |gone: &FileChange| {
        let has_it = |new: &FileChange| new.kind == ChangeKind::Added && new.after == gone.before;
        gone.kind == ChangeKind::Deleted && gone.before.is_some() && changes().any(has_it)
    };
    changes().map(move |change| changed(policy, change, is_move(change)))
}

fn changed(policy: Option<OnChange>, change: &FileChange, moved: bool) -> Finding {
    let (rule, why) = match change.class {
        FileClass::Own => (Rule::OwnFileChanged, "a check runs it"),
        FileClass::Protected => (Rule::ProtectedFileChanged, "it is protected"),
        FileClass::Test => (Rule::TestFileChanged, "it belongs to the tests"),
    };
    let weight = weight_of(policy, change, moved);
    let verb = if moved { "was moved" } else { words::verb(change.kind) };
    let what = format!("{} {verb}, and {why}", words::shown(&change.place()));
    let remedy = match (weight, change.kind) {
        (Weight::Named, _) => "",
        (_, ChangeKind::Added) => "Remove it.",
        (..) => "Restore it as it was.",
    };
    Finding { path: Some(change.path.clone()), ..finding(rule, weight, what, remedy) }
}

/// What a change of a file means. New files are fine: only what a check runs can be bent by them. Tests
/// are edited by honest agents, too, but a test that is gone tests nothing.
fn weight_of(policy: Option<OnChange>, change: &FileChange, moved: bool) -> Weight {
    let is_new = change.kind == ChangeKind::Added;
    let is_own = change.class == FileClass::Own;
    let is_edit = moved || change.kind == ChangeKind::Changed;
    match policy {
        Some(_) if is_new && !is_own => Weight::Named,
        None if is_new => Weight::Named,
        None if is_edit && change.class == FileClass::Test => Weight::Named,
        policy => what_it_means(policy),
    }
}

/// What is wrong with the tests or the files of a check means this by the policy.
fn what_it_means(policy: Option<OnChange>) -> Weight {
    match policy {
        Some(OnChange::Allow) => Weight::Named,
        Some(OnChange::Ask) => Weight::Asks,
        Some(OnChange::Refuse) | None => Weight::Refuses,
    }
}

fn check(result: &CheckResult) -> Option<Finding> {
    let title = result.title();
    let (rule, weight, what) = match result.status {
        CheckStatus::Passed if result.is_flaky() => {
            let failures = crate::words::counted(result.failures, "failure");
            let what = format!("{title} is flaky: it passed after {failures}");
            (Rule::CheckFlaky, Weight::Named, what)
        }
        CheckStatus::Passed => return None,
        CheckStatus::Failed => (Rule::CheckFailed, Weight::Refuses, format!("{title} failed")),
        CheckStatus::TimedOut => {
            let what = format!("{title} took too long and was ended");
            (Rule::CheckTimedOut, Weight::Refuses, what)
        }
        CheckStatus::NotStarted => {
            (Rule::CheckNotStarted, Weight::Refuses, format!("{title} could not be started"))
        }
        CheckStatus::NotRun => {
            let needs: Vec<String> = result.missing.iter().map(|it| words::shown(it)).collect();
            let needs = crate::words::listed(&needs, 3);
            (Rule::CheckNotRun, Weight::Refuses, format!("{title} did not run: it needs {needs}"))
        }
    };
    Some(Finding { check: Some(result.name.clone()), ..finding(rule, weight, what, "") })
}

/// Fewer tests than before, or more that were skipped.
fn counts(
    config: &Config,
    result: &CheckResult,
    start: Option<&Round>,
    first: &BTreeMap<String, TestCounts>,
) -> Vec<Finding> {
    let Some(now) = result.tests.filter(|_| result.passed()) else { return Vec::new() };
    let started = start.and_then(|round| round.result(&result.name)?.tests);
    let earlier = first.get(&result.name).copied();
    let weight = what_it_means(config.on_change);
    let title = result.title();
    let mut found = Vec::new();
    if now.total() == 0 {
        let what = format!("{title} ran no tests");
        found.push(finding(Rule::ProvesNothing, Weight::Named, what, ""));
    }
    let (before, when) = match (started, earlier) {
        (Some(before), _) => (before, "before the work started"),
        (None, Some(before)) => (before, "when it first ran"),
        (None, None) => (now, ""),
    };
    if now.total() < before.total() {
        let tests = crate::words::counted(now.total(), "test");
        let what = format!("{title} has {tests}, and {when} it had {}", before.total());
        found.push(finding(Rule::FewerTests, weight, what, "Bring the missing tests back."));
    }
    if now.skipped > before.skipped {
        let tests = crate::words::counted(now.skipped, "test");
        let what = format!("{title} skipped {tests}, and {when} it skipped {}", before.skipped);
        found.push(finding(Rule::MoreSkipped, weight, what, "Let the skipped tests run."));
    }
    found.iter_mut().for_each(|it| it.check = Some(result.name.clone()));
    found
}

/// The checks passed before the work started.
fn proves_nothing(config: &Config, start: &Round, at_start: bool) -> Option<Finding> {
    if config.red_first == RedFirst::Off || !start.all_passed() {
        return None;
    }
    let strict = config.red_first == RedFirst::Strict && at_start;
    let weight = if strict { Weight::Refuses } else { Weight::Named };
    let what = match &*start.results {
        [only] => format!("{} passed before the work started, so it proves nothing", only.title()),
        _ => "all checks passed before the work started, so they prove nothing".to_owned(),
    };
    Some(finding(Rule::ProvesNothing, weight, what, ""))
}
