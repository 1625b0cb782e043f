//! What happens while an agent works.

use std::fmt::Write as _;

use super::ending::{allow, budget, evidence};
use super::event::{Effect, Notice, Usage};
use super::levels;
use super::progress::{PROGRESS_INTERVAL, ProgressBatch};
use super::prompt::add_feedback;
use super::rule::Rule;
use super::signal::RunSignal;
use super::state::{Denial, Ending, Outcome, ServiceLimit, State, Status};
use super::{verdict, waits};
use crate::Decision;
use crate::stagnation::Observation;
use crate::words::{cut, duration, inline};
use aldis_signal::signal::{Meaning, Via};
use aldis_signal::time::Timestamp;

/// How many signals of one iteration are remembered.
const SIGNALS_MAX: usize = 64;
/// How many pieces of feedback there may be before near misses are no longer added.
const NEAR_MISSES_MAX: usize = 8;
/// How many denied permissions are remembered. The oldest gives way.
const DENIALS_MAX: usize = 16;
/// How much of a host's message is kept.
const MESSAGE_MAX: usize = 1_000;

/// The agent reported signals.
pub(super) fn on_signals(state: &mut State, now: Timestamp, signals: &[RunSignal]) -> Outcome {
    on_reports(state, now, signals, (1, 1))
}

/// The agent reported progress, several times as one event.
pub(super) fn on_progress(state: &mut State, now: Timestamp, batch: &ProgressBatch) -> Outcome {
    let latest = std::slice::from_ref(&batch.latest);
    on_reports(state, now, latest, (batch.count.max(1), batch.repeated.max(1)))
}

fn on_reports(
    state: &mut State,
    now: Timestamp,
    signals: &[RunSignal],
    (count, repeated): (u64, u64),
) -> Outcome {
    let Some(last) = signals.last().filter(|_| state.has_agent()) else {
        return Outcome::nothing();
    };
    host_works_again(state, now);
    let mut noteworthy = false;
    for signal in signals {
        noteworthy |= is_noteworthy(state, signal);
        take(state, now, signal);
    }
    let observation = Observation::State {
        phase: state.phase.clone().unwrap_or_default(),
        progress: state.progress,
        iteration: state.reported_iteration.unwrap_or(state.iteration),
        fingerprint: state.tree.fingerprint.clone(),
    };
    let times = u32::try_from(repeated).unwrap_or(u32::MAX);
    let change = state.monitor.observe_times(now, &observation, times);
    let mut outcome = Outcome::nothing();
    let recorded = state.progress_recorded_at;
    if noteworthy || recorded.is_none_or(|at| now.since(at) >= PROGRESS_INTERVAL) {
        state.progress_recorded_at = Some(now);
        outcome.decisions.push(reported(state, last, count).seen(evidence(signals)));
    }
    if let Some(change) = change {
        levels::on_level_change(state, now, &change, &mut outcome);
    }
    outcome
}

/// Whether a signal says more than the last ones: not if it only moves a number within its phase,
/// and not if it is an exact repetition. An agent can print a thousand of those in a second.
fn is_noteworthy(state: &State, signal: &RunSignal) -> bool {
    let enters_phase = signal.phase.is_some() && signal.phase != state.phase;
    let moves_number = signal.meaning == Meaning::Progress && !enters_phase;
    !moves_number && !state.signals.iter().any(|known| known.repeats(signal))
}

fn reported(state: &State, signal: &RunSignal, count: u64) -> Decision {
    let mut summary = format!("The agent reported {}", signal.name);
    if let Some(progress) = signal.progress {
        let _ = write!(summary, ": {progress} %");
    }
    if count > 1 {
        let _ = write!(summary, " ({count} reports)");
    }
    let because = match signal.via {
        Via::Said => "in its output",
        Via::Token => "in its output, with the run token",
        Via::Receipt => "with `aldis signal`",
        Via::Call => "by tool call",
    };
    let decides = !matches!(signal.meaning, Meaning::Progress | Meaning::Info);
    let next = if decides { "it counts when the agent stops" } else { "nothing to do" };
    state.decision(Rule::SignalReported, summary).because(because).next(next)
}

/// Takes over what a signal says.
fn take(state: &mut State, now: Timestamp, signal: &RunSignal) {
    let enters_phase = signal.phase.is_some() && signal.phase != state.phase;
    if let Some(phase) = &signal.phase {
        state.phase = Some(phase.clone());
    }
    state.reported_iteration = signal.iteration.or(state.reported_iteration);
    // The bar never goes backwards on an exit.
    let ends = matches!(signal.meaning, Meaning::Done | Meaning::Failed);
    if let Some(progress) = signal.progress {
        let least = state.progress.filter(|_| ends).unwrap_or(0);
        state.progress = Some(progress.max(least));
    }
    let implied = signal.phase_progress.filter(|_| enters_phase);
    if let Some(shown) = signal.progress.or(implied) {
        let least = state.shown_progress.filter(|_| ends).unwrap_or(0);
        state.shown_progress = Some(shown.max(least));
    }
    if signal.meaning == Meaning::Done {
        state.claimed_at = state.claimed_at.or(Some(now));
    }
    remember(&mut state.signals, signal);
}

/// Keeps a signal. Where there are too many, the oldest whose meaning came again gives way: the last
/// one of each meaning always stays.
fn remember(signals: &mut Vec<RunSignal>, signal: &RunSignal) {
    signals.push(signal.clone());
    if signals.len() > SIGNALS_MAX {
        let again =
            |at: usize| signals[at + 1..].iter().any(|later| later.meaning == signals[at].meaning);
        if let Some(oldest) = (0..signals.len()).find(|at| again(*at)) {
            signals.remove(oldest);
        }
    }
}

/// A near miss is explained in the next prompt.
pub(super) fn on_near_miss(state: &mut State, hint: &str) -> Outcome {
    if state.has_agent() {
        state.last_near_miss = Some(cut(hint, MESSAGE_MAX).to_owned());
        let new = state.feedback.len().saturating_sub(state.feedback_given);
        if new < NEAR_MISSES_MAX {
            let lead = "Something in your output looked like a signal and does not count";
            add_feedback(state, format!("{lead}: {hint}"));
        }
    }
    Outcome::nothing()
}

/// Work is evidence, whatever the agent reports.
pub(super) fn on_activity(state: &mut State, now: Timestamp) -> Outcome {
    host_works_again(state, now);
    levels::observe(state, now, &Observation::Evidence)
}

/// The host's own figures. They are totals of the attempt.
pub(super) fn on_usage(state: &mut State, usage: Usage) -> Outcome {
    state.spent_now = Usage {
        tokens: state.spent_now.tokens.max(usage.tokens),
        micro_dollars: state.spent_now.micro_dollars.max(usage.micro_dollars),
    };
    if verdict::over_budget(state) && state.status == Status::Working {
        let decision = state
            .decision(Rule::BudgetUsedUp, "Stopping the agent: the budget is used up")
            .because(budget(state))
            .next("the run ends when the agent has stopped");
        return stop(state, Some(Ending::OverBudget), decision);
    }
    let cost = state.cost();
    let near = |used: u64, most: Option<u64>| {
        most.is_some_and(|most| used.saturating_mul(3) >= most.saturating_mul(2))
    };
    let soon = near(cost.tokens, state.config.max_tokens)
        || near(cost.micro_dollars, state.config.max_micro_dollars);
    if soon && !std::mem::replace(&mut state.budget_warned, true) {
        let text = format!("Two thirds of the budget are used: {}.", budget(state));
        let decision = state
            .decision(Rule::BudgetWarning, "Warning: two thirds of the budget are used")
            .because(budget(state))
            .next("nothing to do yet");
        return Outcome::decided([Effect::Notice { notice: Notice::BudgetSoon, text }], decision);
    }
    Outcome::nothing()
}

/// The service refuses to work. What that means is decided when the process has ended.
pub(super) fn on_limit(state: &mut State, what: &str, until: Option<Timestamp>) -> Outcome {
    if !state.has_agent() {
        return Outcome::nothing();
    }
    let until = until.or_else(|| state.limit.as_ref()?.until);
    state.limit = Some(ServiceLimit { until, what: cut(what, MESSAGE_MAX).to_owned() });
    let decision = state
        .decision(Rule::LimitReported, "The service reported a rate limit")
        .because(what)
        .next("when the agent has stopped, the run waits and repeats the iteration");
    Outcome::decided([], decision)
}

/// The host retries by itself: until its service works again, that is no stagnation. The limits of
/// time run on.
pub(super) fn on_retry(state: &mut State, now: Timestamp, what: &str) -> Outcome {
    if !state.has_agent() || std::mem::replace(&mut state.retrying, true) {
        return Outcome::nothing();
    }
    state.monitor.observe(now, &Observation::Waiting);
    let decision = state
        .decision(Rule::HostRetrying, "The host retries after an error")
        .because(what)
        .next("nothing to do: the time until it works again does not count as missing progress");
    Outcome::decided([], decision)
}

fn host_works_again(state: &mut State, now: Timestamp) {
    if std::mem::take(&mut state.retrying) {
        state.monitor.observe(now, &Observation::Awake);
    }
}

/// The host gave up. What that means is decided when the process has ended.
pub(super) fn on_host_failure(state: &mut State, what: &str) -> Outcome {
    if !state.has_agent() {
        return Outcome::nothing();
    }
    state.host_error = Some(cut(what, MESSAGE_MAX).to_owned());
    let decision = state
        .decision(Rule::HostErrorReported, "The host reported an error that waiting does not fix")
        .because(what)
        .next("the run ends when the agent has stopped");
    Outcome::decided([], decision)
}

/// The host denied a permission. An agent that is denied the same one again will not get any further
/// without a human.
pub(super) fn on_denial(state: &mut State, tool: &str, what: &str, cure: &str) -> Outcome {
    if !state.has_agent() {
        return Outcome::nothing();
    }
    let [tool, what, cure] =
        [tool, what, cure].map(|text| cut(text.trim(), MESSAGE_MAX).to_owned());
    let denied = match &*what {
        "" => tool.clone(),
        what => format!("{tool} {}", inline(what, MESSAGE_MAX)),
    };
    let known = state.denials.iter().position(|it| it.tool == tool && it.what == what);
    let again = known.map(|at| state.denials.remove(at)).is_some();
    if state.denials.len() >= DENIALS_MAX {
        state.denials.remove(0);
    }
    state.denials.push(Denial { tool, what, cure: cure.clone() });
    add_feedback(
        state,
        format!(
            "The host denied the permission to use {denied}. Do not try it again: find another \
             way, or report that you are blocked."
        ),
    );
    if again && state.status == Status::Working {
        let decision = state
            .decision(
                Rule::PermissionDeniedTwice,
                "Stopping the agent: the host denied the same permission twice",
            )
            .because(denied)
            .next(allow(state));
        return stop(state, Some(Ending::PermissionDenied), decision);
    }
    let decision = state
        .decision(Rule::PermissionDenied, "The host denied the agent a permission")
        .because(match &*cure {
            "" => denied,
            cure => format!("{denied}; {cure} allows it"),
        })
        .next("the agent gets this in its next prompt; a second denial ends the run");
    Outcome::decided([], decision)
}

/// Time passed: limits, waits that are over, silence.
pub(super) fn on_tick(state: &mut State, now: Timestamp) -> Outcome {
    match state.status {
        Status::Limited { until } | Status::Backoff { until } if now >= until => {
            waits::over(state, now)
        }
        Status::Working => while_working(state, now),
        Status::Paused { stagnated: true } => while_suspended(state, now),
        _ => Outcome::nothing(),
    }
}

fn while_working(state: &mut State, now: Timestamp) -> Outcome {
    let over = |since: Timestamp, most: u64| now.since(since).as_secs() >= most;
    let grace = state.config.stagnation.grace_period;
    if verdict::out_of_time(state, now) {
        return out_of_time(state);
    }
    if state.claimed_at.is_some_and(|claimed| over(claimed, grace)) {
        let decision = state
            .decision(
                Rule::StillRunning,
                "Stopping the agent: it claimed to be done and still runs",
            )
            .because(format!("it claimed to be done more than {} ago", duration(grace)))
            .next("its claim is checked when it has stopped");
        return stop(state, None, decision);
    }
    let most = state.config.iteration_timeout;
    if over(state.iteration_started_at, most) {
        let limit = duration(most);
        add_feedback(
            state,
            format!(
                "Your last iteration was stopped after {limit}. Work in smaller steps, and report \
                 your progress before you stop."
            ),
        );
        let iteration = state.iteration;
        let decision = state
            .decision(
                Rule::IterationTimeout,
                format!("Stopping the agent: iteration {iteration} took too long"),
            )
            .because(format!("an iteration may take {limit}"))
            .next("the next iteration starts when it has stopped");
        return stop(state, None, decision);
    }
    levels::observe(state, now, &Observation::Tick)
}

/// An agent that is suspended for missing progress: the time of the run and the levels go on, so
/// that a run that nobody looks after ends.
fn while_suspended(state: &mut State, now: Timestamp) -> Outcome {
    if verdict::out_of_time(state, now) {
        return out_of_time(state);
    }
    // 0.1.0 kept only since when it waited.
    let since = state.paused_at.or(state.waiting_since);
    if let (Some(since), Some(limit)) = (since, state.config.stagnation.pause_limit)
        && now.since(since).as_secs() >= limit
    {
        return levels::on_expired_pause(state, limit);
    }
    levels::observe(state, now, &Observation::Tick)
}

fn out_of_time(state: &mut State) -> Outcome {
    let limit = duration(state.config.timeout);
    let decision = state
        .decision(Rule::TimedOut, "Stopping the agent: the time of the run is used up")
        .because(format!("the run may take {limit} in all"))
        .next("the run ends when the agent has stopped");
    stop(state, Some(Ending::TimedOut), decision)
}

/// Asks the agent to stop.
pub(super) fn stop(state: &mut State, with: Option<Ending>, decision: Decision) -> Outcome {
    let suspended = matches!(state.status, Status::Paused { .. });
    state.status = Status::Ending { with };
    state.stop_because = Some(decision.because.clone());
    let grace = state.config.stagnation.grace_period;
    let mut effects = vec![Effect::End { grace }];
    if suspended {
        // A suspended process cannot act on the request.
        effects.insert(0, Effect::Continue);
    }
    Outcome::decided(effects, decision)
}
