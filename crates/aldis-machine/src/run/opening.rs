//! How a run begins, and how it goes on after a crash of ours or after its end.

use super::config::Config;
use super::decide::{finish, next_iteration, start};
use super::event::Effect;
use super::state::{Ending, Outcome, State, Status};
use crate::stagnation::{Monitor, Observation};
use aldis_signal::time::Timestamp;

pub(super) fn begin(state: &mut State, now: Timestamp) -> Outcome {
    match state.status {
        Status::Ready => next_iteration(state, now, "the run begins", Vec::new()),
        _ => Outcome::nothing(),
    }
}

/// Goes on where the run was, with the same iteration: what a lost agent did not say, it never said.
/// `before` is when anything happened last: nobody worked since.
pub(super) fn recovered(state: &mut State, now: Timestamp, before: Option<Timestamp>) -> Outcome {
    state.wait(before.unwrap_or(now));
    if !matches!(state.status, Status::Limited { .. } | Status::Asking) {
        state.wake(now);
    }
    // Whoever lets a suspended run go on is a human.
    if matches!(state.status, Status::Paused { .. }) {
        state.monitor.observe(now, &Observation::Human);
    }
    let recovered = |state: &State, next: &str| {
        let because = "nobody supervised it any more, and now somebody does";
        state.decision("recover", "Went on where it was").because(because).next(next)
    };
    match &state.status {
        Status::Ready => begin(state, now),
        Status::Working | Status::Ending { with: None } | Status::Paused { .. } => {
            let decision = recovered(state, "the same iteration starts again");
            let mut effects = Vec::new();
            start(state, now, &mut effects);
            Outcome::decided(effects, decision)
        }
        Status::Ending { with: Some(ending) } => {
            let ending = *ending;
            finish(state, ending, recovered(state, ""), Vec::new())
        }
        Status::Looking => {
            Outcome::decided([Effect::Look], recovered(state, "the claim is looked at again"))
        }
        Status::Checking => {
            Outcome::decided([Effect::Check], recovered(state, "the check runs again"))
        }
        // A decision all the same: what decides nothing is taken again after somebody else's step.
        Status::Limited { .. } | Status::Asking => {
            Outcome::decided([], recovered(state, "it waits as before"))
        }
        Status::Ended { .. } => Outcome::nothing(),
    }
}

/// Opens a run again that ended without success: same iteration if it was cut off in one, the next
/// otherwise; what was spent stays spent.
pub(super) fn reopen(state: &mut State, now: Timestamp, config: &Config) -> Outcome {
    match state.ending() {
        None | Some(Ending::Done) => return Outcome::nothing(),
        Some(_) => state.config.clone_from(config),
    }
    state.monitor = Monitor::new(now, state.config.stagnation.clone());
    state.started_at = now;
    (state.waited, state.waiting_since) = (0, None);
    state.limit_waits = 0;
    if state.question.is_some() {
        state.status = Status::Asking;
        state.wait(now);
        let decision = state.decision("reopen", "Waits for the answer again");
        let decision = decision.because("a human reopened the run").next("answer the question");
        return Outcome::decided([], decision);
    }
    if !state.cut_off {
        return next_iteration(state, now, "a human reopened the run", Vec::new());
    }
    let mut effects = Vec::new();
    start(state, now, &mut effects);
    let decision = state
        .decision("reopen", "Goes on with the same iteration")
        .because("a human reopened the run")
        .next("the agent works");
    Outcome::decided(effects, decision)
}

/// What would end a run again that ended, if it went on with these limits.
pub(super) fn reached(state: &State, config: &Config) -> Option<Ending> {
    let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
    let cost = state.cost();
    if !state.cut_off && state.question.is_none() && state.iteration >= config.max_iterations {
        Some(Ending::IterationsUsedUp)
    } else if over(cost.tokens, config.max_tokens)
        || over(cost.micro_dollars, config.max_micro_dollars)
    {
        Some(Ending::OverBudget)
    } else {
        None
    }
}
