//! How a run begins, and how it continues after a crash of ours or after its end.

use super::config::Config;
use super::ending::{CONTINUE, ended, finish};
use super::event::Effect;
use super::rule::Rule;
use super::state::{Ending, Outcome, State, Status};
use super::verdict::{conclude_without_look, next_iteration, over_budget, start};
use crate::stagnation::{Monitor, Observation};
use aldis_signal::time::Timestamp;

pub(super) fn begin(state: &mut State, now: Timestamp) -> Outcome {
    match state.status {
        Status::Ready => next_iteration(state, now, "the run begins", Vec::new()),
        _ => Outcome::nothing(),
    }
}

/// The agent was started. Stored at once: after a crash of ours somebody must find it.
pub(super) fn on_launch(state: &mut State, now: Timestamp, agent: &str) -> Outcome {
    let mut outcome = conclude_without_look(state, now);
    state.agent = Some(agent.to_owned());
    let (iteration, most) = (state.iteration, state.config.max_iterations);
    let decision = state
        .decision(Rule::AgentStarted, format!("The agent runs (iteration {iteration} of {most})"))
        .because("its process was started")
        .next("nothing to do; `aldis abort` ends the run");
    outcome.decisions.push(decision);
    outcome
}

/// The agent could not be started. Trying again does not help.
pub(super) fn on_failed_launch(state: &mut State, now: Timestamp, what: &str) -> Outcome {
    if state.status != Status::Working {
        return Outcome::nothing();
    }
    state.resume_clocks(now);
    let decision = state
        .decision(Rule::AgentNotStarted, "Stopped: the agent could not be started")
        .because(what)
        .next(format!("install the program or correct the command, then {CONTINUE}"));
    finish(state, Ending::Crashed, decision, Vec::new())
}

/// Continues where the run was, with the same iteration: what a lost agent did not report, it never
/// reported. `before` is when the last event came: nobody worked since.
pub(super) fn recovered(state: &mut State, now: Timestamp, before: Option<Timestamp>) -> Outcome {
    state.pause_clocks(before.unwrap_or(now));
    let waits =
        matches!(state.status, Status::Limited { .. } | Status::Backoff { .. } | Status::Asking);
    if !waits {
        state.resume_clocks(now);
    }
    // A run that was suspended is taken over by a human.
    if matches!(state.status, Status::Paused { .. }) {
        state.monitor.observe(now, &Observation::Human);
    }
    let recovered = |state: &State, next: &str| {
        let summary = "A new supervisor took over";
        let because = "the run had no living supervisor";
        state.decision(Rule::Recovered, summary).because(because).next(next)
    };
    let decided = match &state.status {
        Status::Ending { with } if with.is_some() => *with,
        // What the agent cost may be known although its end was not noticed.
        Status::Working | Status::Ending { .. } | Status::Paused { .. } => {
            over_budget(state).then_some(Ending::OverBudget)
        }
        _ => None,
    };
    if let Some(ending) = decided {
        let taken_over = recovered(state, "the run ends, as was decided before");
        let decision = ended(state, ending);
        let mut outcome = finish(state, ending, decision, Vec::new());
        outcome.decisions.insert(0, taken_over);
        return outcome;
    }
    match &state.status {
        Status::Ready => begin(state, now),
        Status::Working | Status::Ending { .. } | Status::Paused { .. } => {
            let decision = recovered(state, "the iteration is repeated");
            let mut effects = Vec::new();
            start(state, now, &mut effects);
            Outcome::decided(effects, decision)
        }
        Status::Looking => {
            Outcome::decided([Effect::Look], recovered(state, "the work tree is inspected again"))
        }
        Status::Checking => {
            Outcome::decided([Effect::Check], recovered(state, "the check runs again"))
        }
        // A decision all the same: an event without one is taken again after somebody else's step.
        Status::Limited { .. } | Status::Backoff { .. } | Status::Asking => {
            Outcome::decided([], recovered(state, "the run waits as before"))
        }
        Status::Ended { .. } => Outcome::nothing(),
    }
}

/// Reopens a run that ended without success: with the same iteration if it ended within one, with
/// the next otherwise. The cost so far stays.
pub(super) fn reopen(state: &mut State, now: Timestamp, config: &Config) -> Outcome {
    let concluded = conclude_without_look(state, now);
    match state.status {
        Status::Ended { ending: Ending::Done } => return concluded,
        // A human who reopens a run does not want to wait for the pause after a crash.
        Status::Ended { .. } | Status::Backoff { .. } => state.config.clone_from(config),
        _ => return concluded,
    }
    let repeats = state.iteration_unfinished || matches!(state.status, Status::Backoff { .. });
    state.monitor = Monitor::new(now, state.config.stagnation.clone());
    state.started_at = now;
    (state.waited_ms, state.waiting_since, state.paused_at) = (0, None, None);
    (state.limit_waits, state.crashes) = (0, 0);
    state.denials.clear();
    let mut outcome = if state.question.is_some() {
        state.status = Status::Asking;
        state.pause_clocks(now);
        let decision = state
            .decision(Rule::QuestionReopened, "Reopened: still waiting for an answer")
            .because("a human reopened the run")
            .next("answer the question");
        Outcome::decided([], decision)
    } else if repeats {
        let mut effects = Vec::new();
        start(state, now, &mut effects);
        let decision = state
            .decision(Rule::Reopened, format!("Reopened: repeating iteration {}", state.iteration))
            .because("a human reopened the run")
            .next("nothing to do; `aldis abort` ends the run");
        Outcome::decided(effects, decision)
    } else {
        next_iteration(state, now, "a human reopened the run", Vec::new())
    };
    // The end that was concluded is taken back in the same step: nothing of it is performed.
    outcome.decisions.splice(0..0, concluded.decisions);
    outcome
}

/// The limit that a run that ended would reach at once if it continued with `config`.
pub(super) fn reached(state: &State, config: &Config) -> Option<Ending> {
    let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used >= most);
    let cost = state.cost();
    let needs_iteration = !state.iteration_unfinished && state.question.is_none();
    if needs_iteration && state.iteration >= config.max_iterations {
        Some(Ending::IterationsUsedUp)
    } else if over(cost.tokens, config.max_tokens)
        || over(cost.micro_dollars, config.max_micro_dollars)
    {
        Some(Ending::OverBudget)
    } else {
        None
    }
}
