//! How a run ends, and what it says about why.

use super::event::{Effect, Notice};
use super::rule::Rule;
use super::signal::{self, RunSignal};
use super::state::{Ending, Outcome, State, Status};
use crate::words::{counted, dollars, duration, inline};
use crate::{Decision, Evidence};

/// How many signals a decision quotes.
const EVIDENCE_MAX: usize = 8;
/// How much of a hint or a denied action stands in a sentence.
const CLAUSE_MAX: usize = 300;
/// What continues a run.
pub(super) const CONTINUE: &str = "`aldis run --continue`";

impl State {
    /// Ends the run.
    pub(super) fn finish(&mut self, ending: Ending, decided: Outcome) -> Outcome {
        let kept = self
            .leaves_partial_work(ending)
            .then(|| Effect::KeepWork { base: self.trees.base_fingerprint.clone() });
        self.iteration_unfinished = matches!(self.status, Status::Ending { with: Some(_) })
            || matches!(ending, Ending::Aborted | Ending::Crashed | Ending::NeedsHuman)
            || self.counts.limit_waits > 0
            || self.counts.crashes > 0;
        self.status = Status::Ended { ending };
        // What ended works no longer.
        self.clock.waiting_since = self.clock.waiting_since.or_else(|| Some(self.now()));
        let text = |by: &Decision| format!("{}. {}", by.summary, sentence(&by.because));
        let text = decided.decision().map(text).unwrap_or_default();
        let notice = Effect::notice(Notice::RunEnded, text);
        decided.with(kept).with([notice, Effect::Finish { ending }])
    }

    /// Ends the run because of a limit or a human.
    pub(super) fn end_with(&mut self, ending: Ending) -> Outcome {
        let decided = self.decided_to_end(ending);
        self.finish(ending, decided)
    }

    /// Whether uncommitted work may be lost: only work that the run itself did. What was uncommitted
    /// before it began is its owner's.
    fn leaves_partial_work(&self, ending: Ending) -> bool {
        let partial = !matches!(ending, Ending::Done | Ending::NeedsHuman | Ending::Blocked);
        // The tree was inspected after the agent stopped. Otherwise whoever keeps the work compares.
        let inspected = matches!(self.status, Status::Looking | Status::Checking);
        let unchanged = inspected
            && self.trees.base_fingerprint.is_some()
            && self.trees.base_fingerprint == self.trees.tree.fingerprint;
        let started = self.agent.is_some() || self.last_exit.is_some();
        let may_be_dirty = self.trees.tree.dirty || self.trees.tree.fingerprint.is_some();
        partial
            && self.start.config.stagnation.commit_partial_work
            && started
            && may_be_dirty
            && !unchanged
    }

    /// The decision about a run that a limit or a human ended.
    fn decided_to_end(&self, ending: Ending) -> Outcome {
        let missing = self.missing();
        let config = &self.start.config;
        let (rule, summary, because, next) = match ending {
            Ending::IterationsUsedUp => {
                let most = config.max_iterations;
                (
                    Rule::IterationsUsedUp,
                    format!("Stopped: {most} of {} used", counted(most, "iteration")),
                    match &self.attempt.stop_because {
                        Some(stopped) => {
                            format!("{missing}; the last iteration was ended: {stopped}")
                        }
                        None => missing,
                    },
                    format!("raise the limit: {CONTINUE} with --max-iterations N"),
                )
            }
            Ending::OverBudget => (
                Rule::BudgetUsedUp,
                "Stopped: the budget is used up".to_owned(),
                format!("{}; {missing}", self.budget_used()),
                format!("raise the limit: {CONTINUE} with --max-cost DOLLARS or --max-tokens N"),
            ),
            Ending::TimedOut => (
                Rule::TimedOut,
                format!("Timed out after {}", duration(config.timeout)),
                missing,
                format!("give it more time: {CONTINUE} with --total-timeout TIME"),
            ),
            Ending::Stagnated => (
                Rule::Stagnated,
                "Stopped: no progress".to_owned(),
                format!("{}; {missing}", self.stop_because("the work made no progress")),
                format!("find out where it got stuck, then continue it: {CONTINUE}"),
            ),
            Ending::PermissionDenied => (
                Rule::PermissionDeniedTwice,
                "Stopped: the host denied the same permission twice".to_owned(),
                self.stop_because("a permission is missing"),
                self.how_to_allow(),
            ),
            Ending::Aborted
            | Ending::Blocked
            | Ending::Crashed
            | Ending::Done
            | Ending::Failed
            | Ending::NeedsHuman => (
                Rule::Aborted,
                "Aborted".to_owned(),
                self.stop_because("requested by a human"),
                format!("{CONTINUE} repeats the iteration"),
            ),
        };
        self.decided(rule, summary).because(because).seen(self.closing_evidence()).next(next)
    }

    fn stop_because(&self, otherwise: &str) -> String {
        self.attempt.stop_because.clone().unwrap_or_else(|| otherwise.to_owned())
    }

    /// Returns how a human allows what the host denied last, as a clause.
    pub fn how_to_allow(&self) -> String {
        match self.memory.denials.last().map(|denial| denial.cure.trim()) {
            Some(cure) if !cure.is_empty() => cure.to_owned(),
            _ => format!("allow it in the settings of the agent's host, then {CONTINUE}"),
        }
    }

    /// What kept the run from being done, as a clause: the last refused claim tells more than the limit
    /// that was reached.
    fn missing(&self) -> String {
        if let Some(refusal) = &self.memory.last_refusal {
            let (iteration, because) = (refusal.iteration, &refusal.because);
            let claim = refusal.evidence.iter().find(|seen| seen.what == "signal");
            let claim = claim.filter(|claim| !claim.quote.is_empty());
            let claim = claim.map(|claim| format!(", {}", inline(&claim.quote, CLAUSE_MAX)));
            let claim = claim.unwrap_or_default();
            return format!(
                "the last done claim (iteration {iteration}{claim}) was refused: {because}"
            );
        }
        match &self.memory.last_near_miss {
            Some(hint) => format!(
                "the agent never reported done in a form that counts; last hint: {}",
                inline(hint, CLAUSE_MAX)
            ),
            None => "the agent never reported done".to_owned(),
        }
    }

    /// What an ending rests on: what the agent claimed last and what contradicted it, else its last
    /// reports.
    pub(super) fn closing_evidence(&self) -> Vec<Evidence> {
        match &self.memory.last_refusal {
            Some(refusal) => refusal.evidence.clone(),
            None => self.evidence(),
        }
    }
}

impl State {
    /// The latest signals as evidence.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        latest(&self.attempt.signals)
    }

    /// How much of each budget is used: `1200 of 1000 tokens, $0.40 of $5.00`.
    pub(super) fn budget_used(&self) -> String {
        let cost = self.cost();
        let tokens =
            self.start.config.max_tokens.map(|most| format!("{} of {most} tokens", cost.tokens));
        let money = self
            .start
            .config
            .max_micro_dollars
            .map(|most| format!("{} of {}", dollars(cost.micro_dollars), dollars(most)));
        tokens.into_iter().chain(money).collect::<Vec<_>>().join(", ")
    }
}

/// The latest of these signals as evidence.
pub(super) fn latest(signals: &[RunSignal]) -> Vec<Evidence> {
    let first = signals.len().saturating_sub(EVIDENCE_MAX);
    signal::evidence(signals).split_off(first)
}

/// A clause as a sentence of its own.
fn sentence(clause: &str) -> String {
    let mut letters = clause.trim().chars();
    let Some(first) = letters.next() else { return String::new() };
    let stop = if clause.trim_end().ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{}{stop}", first.to_uppercase(), letters.as_str())
}
