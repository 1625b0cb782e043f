//! What reviewers found in a task, and what became of it.
//!
//! Reviews that go round in circles raise points that were settled long ago. A finding is the same in
//! the next round if its reviewer, its place and its text are the same; digits count, because `case 1`
//! is not `case 2`. Once it is settled it counts again only with evidence that was not there before.
//! Reviews and audits are counted apart.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reply::ReportedSignal;
use super::signal::Role;
use crate::words;

/// How many findings of one task are kept, and how much of each.
const FINDINGS_MAX: usize = 200;
const TEXT_MAX: usize = 500;
/// How many failed reviews, and how many failed audits, are kept to see whether the work converges.
const HISTORY_MAX: usize = 32;

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingStatus {
    /// To be fixed.
    Open,
    /// The reviewer did not raise it again.
    Fixed,
    /// The developer disputed it, and the reviewer did not raise it again.
    #[serde(alias = "parked")]
    Withdrawn,
    /// The developer says that it is wrong; the reviewer has not answered yet.
    Disputed,
}

impl FindingStatus {
    /// Whether it counts again only with new evidence.
    fn is_settled(self) -> bool {
        matches!(self, Self::Fixed | Self::Withdrawn)
    }
}

/// One thing a reviewer found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewFinding {
    /// The file, or `criterion` for an acceptance criterion; empty if it has no place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is wrong, as the reviewer wrote it.
    pub text: String,
    /// What became of it.
    #[serde(alias = "standing")]
    pub status: FindingStatus,
    /// Who raised it.
    pub by: Role,
    /// How often.
    pub raised: u32,
    /// The evidence that came with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// What the developer says against it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dispute: String,
}

/// What a failed verdict came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// There is something to fix, or the reviewer does not say what is wrong.
    Counts,
    /// Nothing but settled findings without new evidence.
    OnlySettled,
}

/// The findings of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    findings: Vec<ReviewFinding>,
    /// How many of the critic's were open after each failed review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open_after_reviews: Vec<u32>,
    /// How many of the auditor's were open after each failed audit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open_after_audits: Vec<u32>,
}

impl Ledger {
    /// Returns whether nothing was ever found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
            && self.open_after_reviews.is_empty()
            && self.open_after_audits.is_empty()
    }

    /// Returns the findings, oldest first.
    pub fn findings(&self) -> &[ReviewFinding] {
        &self.findings
    }

    /// Returns the findings of this status.
    pub fn with_status(&self, status: FindingStatus) -> impl Iterator<Item = &ReviewFinding> {
        self.findings.iter().filter(move |finding| finding.status == status)
    }

    /// The developer hands over, and may dispute what was found.
    pub(super) fn answered(&mut self, handover: &ReportedSignal) {
        for dispute in handover.list("disputed") {
            let words = words_of(&dispute);
            let open = self.findings.iter_mut().filter(|found| found.status == FindingStatus::Open);
            for finding in open.filter(|found| words.contains(&words_of(&found.text))) {
                finding.status = FindingStatus::Disputed;
                finding.dispute = cut(&dispute);
            }
        }
    }

    /// A reviewer refuses the work.
    pub(super) fn failed(&mut self, by: Role, verdict: &ReportedSignal) -> Raised {
        let evidence = cut(&verdict.field("evidence"));
        let points = points(by, verdict);
        let is_named = !points.is_empty();
        self.make_room(points.len());
        let mut raised = Vec::new();
        for (file, line, text) in points {
            raised.extend(self.raise(by, (file, line, text), &evidence));
        }
        if is_named && raised.is_empty() {
            return Raised::OnlySettled;
        }
        if is_named {
            self.settle_all_but(by, &raised);
        }
        let own = self.findings.iter().filter(|found| found.by == by);
        let open = own.filter(|found| !found.status.is_settled()).count();
        let history = match by {
            Role::Critic => &mut self.open_after_reviews,
            _ => &mut self.open_after_audits,
        };
        if history.len() == HISTORY_MAX {
            history.remove(0);
        }
        history.push(u32::try_from(open).unwrap_or(u32::MAX));
        Raised::Counts
    }

    /// A reviewer accepts the work: what it raised is settled.
    pub(super) fn passed(&mut self, by: Role) {
        self.settle_all_but(by, &[]);
    }

    /// Whether the last `rounds` failed verdicts of this role left no fewer findings open than the
    /// first of them.
    pub(super) fn is_plateau(&self, by: Role, rounds: u32) -> bool {
        let history = self.history(by);
        let rounds = usize::try_from(rounds).unwrap_or(usize::MAX);
        let Some(first) = history.len().checked_sub(rounds) else { return false };
        let last = history.get(first..).unwrap_or_default();
        rounds > 1 && last.iter().all(|open| last.first() <= Some(open))
    }

    /// A human looked at it: failed verdicts are counted from 0 again.
    pub(super) fn forget_history(&mut self) {
        self.open_after_reviews.clear();
        self.open_after_audits.clear();
    }

    fn history(&self, by: Role) -> &[u32] {
        if by == Role::Critic { &self.open_after_reviews } else { &self.open_after_audits }
    }

    /// Enters one point; returns its number if it counts.
    fn raise(
        &mut self,
        by: Role,
        (file, line, text): (String, Option<u64>, String),
        evidence: &str,
    ) -> Option<usize> {
        let key = normalised(&text);
        let known = self.findings.iter_mut().enumerate().find(|(_, found)| {
            let place = found.by == by && found.file == file && found.line == line;
            place && normalised(&found.text) == key
        });
        let Some((number, finding)) = known else {
            if self.findings.len() >= FINDINGS_MAX {
                // There is enough to fix: it counts and will be found again.
                return Some(usize::MAX);
            }
            self.findings.push(ReviewFinding {
                file,
                line,
                text,
                status: FindingStatus::Open,
                by,
                raised: 1,
                evidence: evidence.to_owned(),
                dispute: String::new(),
            });
            return Some(self.findings.len() - 1);
        };
        let is_new = !evidence.is_empty() && evidence != finding.evidence;
        if finding.status.is_settled() && !is_new {
            return None;
        }
        finding.raised += 1;
        if finding.status.is_settled() || is_new {
            finding.status = FindingStatus::Open;
        }
        if is_new {
            evidence.clone_into(&mut finding.evidence);
        }
        Some(number)
    }

    /// Forgets the oldest settled findings if new ones would not fit.
    fn make_room(&mut self, new: usize) {
        let mut over = (self.findings.len() + new).saturating_sub(FINDINGS_MAX);
        self.findings.retain(|finding| {
            let kept = over == 0 || !finding.status.is_settled();
            over -= usize::from(!kept);
            kept
        });
    }

    /// Settles what `by` raised before and does not raise now.
    fn settle_all_but(&mut self, by: Role, raised: &[usize]) {
        for (number, finding) in self.findings.iter_mut().enumerate() {
            if finding.by == by && !raised.contains(&number) {
                finding.status = match finding.status {
                    FindingStatus::Disputed => FindingStatus::Withdrawn,
                    FindingStatus::Open => FindingStatus::Fixed,
                    settled => settled,
                };
            }
        }
    }
}

/// What a verdict says is wrong. An auditor judges the criteria, and nothing else where it names them.
fn points(by: Role, verdict: &ReportedSignal) -> Vec<(String, Option<u64>, String)> {
    let criteria = verdict.list("failed_criteria");
    if by == Role::Auditor && !criteria.is_empty() {
        let point = |text: String| ("criterion".to_owned(), None, cut(&text));
        return criteria.into_iter().map(point).collect();
    }
    let Some(Value::Array(issues)) = verdict.fields.get("issues_found") else {
        let fixes = verdict.list("required_fixes");
        return fixes.into_iter().map(|text| (String::new(), None, cut(&text))).collect();
    };
    issues
        .iter()
        .map(|issue| {
            let text = |key: &str| issue.get(key).and_then(Value::as_str).unwrap_or_default();
            match issue.as_str() {
                Some(words) => (String::new(), None, cut(words)),
                None => {
                    let line = issue.get("line").and_then(Value::as_u64);
                    (cut(text("file")), line, cut(text("text")))
                }
            }
        })
        .filter(|(_, _, text)| !text.trim().is_empty())
        .collect()
}

/// A text without what says nothing: case, white space and a full stop.
fn normalised(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', '!', ';', ',']).to_owned()
}

/// The words of a text between blanks, so that one text can be looked for in another.
fn words_of(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

fn cut(text: &str) -> String {
    words::cut(text.trim(), TEXT_MAX).to_owned()
}
