//! Claims that the work is done, and the checks that ran before them.

use std::collections::{BTreeMap, VecDeque};

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_signal::{Meaning, Signal};
use aldis_transcript::activity::{EntryPlace, ToolEnd, ToolKind, ToolUse};

use super::checks::checks;
use crate::view::wire::postmortem::{Check, ClaimCounts, ClaimVerdict, JudgedClaim};

/// What matters for a claim, in the order of lines.
#[derive(Debug, Default)]
pub(super) struct Claims {
    since: Option<Timestamp>,
    claims: Vec<(EntryPlace, String)>,
    /// The latest checks.
    checks: VecDeque<(String, Check)>,
    /// Lines in which a tool wrote a file.
    writes: VecDeque<u64>,
}

impl Claims {
    pub(super) fn new(since: Option<Timestamp>) -> Self {
        Self { since, ..Self::default() }
    }

    /// Takes in a call of a tool.
    pub(super) fn tool(&mut self, tool: &ToolUse, place: EntryPlace) {
        match tool.kind {
            ToolKind::Command => {
                for run in checks(tool) {
                    let command = redact(&tool.what).into_owned();
                    let EntryPlace { line, at, .. } = place;
                    let (passed, exit) = (run.passed, run.exit);
                    let check = Check { command, passed, exit, line, at, outdated: false };
                    push(&mut self.checks, (run.kind, check));
                }
            }
            ToolKind::Write if tool.end != ToolEnd::Refused => push(&mut self.writes, place.line),
            ToolKind::Claim => self.add(tool.called, format!("{} {}", tool.name, tool.what)),
            _ => {}
        }
    }

    /// Takes in a signal, if it is a claim. A handover is one where it is about something: work that is
    /// handed to a reviewer, and not the floor in a conversation.
    pub(super) fn signal(&mut self, signal: &Signal, place: EntryPlace) {
        let is_claim = match signal.meaning {
            Meaning::Done | Meaning::Approved => true,
            Meaning::Handoff => signal.subject.is_some(),
            _ => false,
        };
        if is_claim {
            let about = signal.subject.as_deref().or(signal.payload.as_deref()).unwrap_or_default();
            self.add(place, format!("{} {about}", signal.name).trim().to_owned());
        }
    }

    fn add(&mut self, place: EntryPlace, words: String) {
        if self.since.zip(place.at).is_none_or(|(since, at)| at >= since) {
            self.claims.push((place, words));
        }
    }

    pub(super) fn has_any(&self) -> bool {
        !self.claims.is_empty()
    }

    /// Returns the latest check of those whose last run failed.
    pub(super) fn failing(&self) -> Option<Check> {
        self.judge(u64::MAX).1.filter(|check| !check.passed)
    }

    /// Judges every claim. All are counted, and of each verdict the first are listed.
    pub(super) fn judged(self) -> (Vec<JudgedClaim>, ClaimCounts) {
        let (mut listed, mut counts) = (Vec::new(), ClaimCounts::default());
        for (place, words) in &self.claims {
            let (verdict, check) = self.judge(place.line);
            if counts.add(verdict) <= LISTED_MAX {
                let EntryPlace { line, at, .. } = *place;
                let words = redact(words).into_owned();
                listed.push(JudgedClaim { line, at, words, verdict, check });
            }
        }
        listed.sort_by_key(|claim| claim.line);
        (listed, counts)
    }

    /// Returns how things stood before a line. Of each kind of check the last run counts; one that
    /// failed outweighs those that passed.
    fn judge(&self, line: u64) -> (ClaimVerdict, Option<Check>) {
        let mut last: BTreeMap<&str, &Check> = BTreeMap::new();
        for (kind, check) in self.checks.iter().filter(|(_, check)| check.line <= line) {
            last.insert(kind, check);
        }
        let latest = |passed: bool| {
            let all = last.values().filter(|check| check.passed == passed);
            let check = all.max_by_key(|check| check.line).copied()?.clone();
            let written = |write: &u64| *write > check.line && *write <= line;
            Some(Check { outdated: self.writes.iter().any(written), ..check })
        };
        let check = latest(false).or_else(|| latest(true));
        let verdict = match &check {
            None => ClaimVerdict::Unchecked,
            Some(check) if !check.passed => ClaimVerdict::Contradicted,
            Some(check) if check.outdated => ClaimVerdict::Outdated,
            Some(_) => ClaimVerdict::Confirmed,
        };
        (verdict, check)
    }
}

/// Adds one; the oldest gives way.
fn push<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() >= KEPT_MAX {
        all.pop_front();
    }
    all.push_back(one);
}

/// How many claims of a verdict are listed.
const LISTED_MAX: u64 = 100;
/// How many checks and writes are kept of one session.
const KEPT_MAX: usize = 10_000;
