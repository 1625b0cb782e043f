//! How a run ends, and what it says about why.

use super::event::{Effect, Notice};
use super::rule::Rule;
use super::signal::RunSignal;
use super::state::{Ending, Outcome, State, Status};
use crate::words::{counted, dollars, duration, inline};
use crate::{Decision, Evidence};

/// How many signals a decision quotes.
const EVIDENCE_MAX: usize = 8;
/// How much of a hint or a denied action stands in a sentence.
const CLAUSE_MAX: usize = 300;
/// What continues a run.
pub(super) const CONTINUE: &str = "`aldis run --continue`";

/// Ends the run.
pub(super) fn finish(
    state: &mut State,
    ending: Ending,
    decision: Decision,
    mut effects: Vec<Effect>,
) -> Outcome {
    if leaves_partial_work(state, ending) {
        effects.push(Effect::KeepWork { base: state.base_fingerprint.clone() });
    }
    state.iteration_unfinished = matches!(state.status, Status::Ending { with: Some(_) })
        || matches!(ending, Ending::Aborted | Ending::Crashed | Ending::NeedsHuman)
        || state.limit_waits > 0
        || state.crashes > 0;
    state.status = Status::Ended { ending };
    let text = format!("{}. {}", decision.summary, sentence(&decision.because));
    effects.push(Effect::Notice { notice: Notice::RunEnded, text });
    effects.push(Effect::Finish { ending });
    Outcome::decided(effects, decision)
}

/// Whether uncommitted work may be lost: only work that the run itself did. What was uncommitted
/// before it began is its owner's.
fn leaves_partial_work(state: &State, ending: Ending) -> bool {
    let partial = !matches!(ending, Ending::Done | Ending::NeedsHuman | Ending::Blocked);
    // The tree was inspected after the agent stopped. Otherwise whoever keeps the work compares.
    let inspected = matches!(state.status, Status::Looking | Status::Checking);
    let unchanged = inspected
        && state.base_fingerprint.is_some()
        && state.base_fingerprint == state.tree.fingerprint;
    let started = state.agent.is_some() || state.last_exit.is_some();
    let may_be_dirty = state.tree.dirty || state.tree.fingerprint.is_some();
    partial && state.config.stagnation.commit_partial_work && started && may_be_dirty && !unchanged
}

/// The decision about a run that a limit or a human ended.
pub(super) fn ended(state: &State, ending: Ending) -> Decision {
    let missing = missing(state);
    let config = &state.config;
    let (rule, summary, because, next) = match ending {
        Ending::IterationsUsedUp => {
            let most = config.max_iterations;
            (
                Rule::IterationsUsedUp,
                format!("Stopped: {most} of {} used", counted(most, "iteration")),
                missing,
                format!("raise the limit: {CONTINUE} with --max-iterations N"),
            )
        }
        Ending::OverBudget => (
            Rule::BudgetUsedUp,
            "Stopped: the budget is used up".to_owned(),
            format!("{}; {missing}", budget(state)),
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
            format!("{}; {missing}", stop_because(state, "the work made no progress")),
            format!("find out where it got stuck, then continue it: {CONTINUE}"),
        ),
        Ending::PermissionDenied => (
            Rule::PermissionDeniedTwice,
            "Stopped: the host denied the same permission twice".to_owned(),
            stop_because(state, "a permission is missing"),
            allow(state),
        ),
        Ending::Aborted
        | Ending::Blocked
        | Ending::Crashed
        | Ending::Done
        | Ending::Failed
        | Ending::NeedsHuman => (
            Rule::Aborted,
            "Aborted".to_owned(),
            stop_because(state, "requested by a human"),
            format!("{CONTINUE} repeats the iteration"),
        ),
    };
    state.decision(rule, summary).because(because).seen(closing_evidence(state)).next(next)
}

fn stop_because(state: &State, otherwise: &str) -> String {
    state.stop_because.clone().unwrap_or_else(|| otherwise.to_owned())
}

/// How a human allows what the host denied last.
pub(super) fn allow(state: &State) -> String {
    match state.denials.last().map(|denial| denial.cure.trim()) {
        Some(cure) if !cure.is_empty() => {
            format!("add {cure} to the agent's command: `aldis run --continue -- COMMAND`")
        }
        _ => format!("allow it in the settings of the agent's host, then {CONTINUE}"),
    }
}

/// What kept the run from being done, as a clause: the last refused claim tells more than the limit
/// that was reached.
fn missing(state: &State) -> String {
    if let Some(refusal) = &state.last_refusal {
        let (iteration, because) = (refusal.iteration, &refusal.because);
        return format!("the last done claim (iteration {iteration}) was refused: {because}");
    }
    match &state.last_near_miss {
        Some(hint) => format!(
            "the agent never reported done in a form that counts; last hint: {}",
            inline(hint, CLAUSE_MAX)
        ),
        None => "the agent never reported done".to_owned(),
    }
}

/// What an ending rests on: what the agent claimed last and what contradicted it, else its last
/// reports.
pub(super) fn closing_evidence(state: &State) -> Vec<Evidence> {
    match &state.last_refusal {
        Some(refusal) => refusal.evidence.clone(),
        None => evidence(&state.signals),
    }
}

/// The latest signals as evidence.
pub(super) fn evidence(signals: &[RunSignal]) -> Vec<Evidence> {
    let first = signals.len().saturating_sub(EVIDENCE_MAX);
    signals[first..].iter().map(RunSignal::evidence).collect()
}

/// How much of each budget is used: `1200 of 1000 tokens, $0.40 of $5.00`.
pub(super) fn budget(state: &State) -> String {
    let cost = state.cost();
    let tokens = state.config.max_tokens.map(|most| format!("{} of {most} tokens", cost.tokens));
    let money = state
        .config
        .max_micro_dollars
        .map(|most| format!("{} of {}", dollars(cost.micro_dollars), dollars(most)));
    tokens.into_iter().chain(money).collect::<Vec<_>>().join(", ")
}

/// A clause as a sentence of its own.
fn sentence(clause: &str) -> String {
    let mut letters = clause.trim().chars();
    let Some(first) = letters.next() else { return String::new() };
    let stop = if clause.trim_end().ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{}{stop}", first.to_uppercase(), letters.as_str())
}
