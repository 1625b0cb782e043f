//! Applies the signals of a stop to the run, in text order.

use super::checks;
use super::config::{ExitReason, TokenPolicy};
use super::eligibility::{self, Fate};
use super::event::{PhaseFinding, PhaseSignal};
use super::pipeline::COMPLETE;
use super::state::{Detected, State};
use super::tally::{CompletedPhase, StopTally};
use crate::Refusal;
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// How many names of signals a run records. Dialects that let agents choose names have no end of
/// them.
pub const DETECTED_MAX: usize = 64;

/// Applies the signals in text order.
pub(super) fn apply(
    state: &mut State,
    now: Timestamp,
    findings: &[PhaseFinding],
    fresh_token: Option<&str>,
    mut tally: StopTally,
) -> StopTally {
    for (signal, fate) in eligibility::judge(state, findings) {
        if tally.ended.is_some() {
            break;
        }
        match fate {
            Fate::Skip => {}
            Fate::Refuse(refusal) => tally.refuse(signal, refusal),
            Fate::Take => take(state, now, signal, fresh_token, &mut tally),
        }
    }
    tally.quote_misses(eligibility::misses(findings));
    tally
}

fn take(
    state: &mut State,
    now: Timestamp,
    signal: &PhaseSignal,
    fresh_token: Option<&str>,
    tally: &mut StopTally,
) {
    if let Some(key) = eligibility::counted_key(signal) {
        state.reading.counted.insert(key);
    }
    let by_meaning =
        state.setup.pipeline.phase(&state.progress.phase).is_some_and(|p| p.signal.is_none());
    let ends = state.setup.pipeline.ended_by(&signal.name).map(|phase| phase.name.clone());
    let ends_run = state.setup.pipeline.finish.as_deref() == Some(&*signal.name);
    let ends_phase = ends.as_deref() == Some(&*state.progress.phase)
        || by_meaning && signal.meaning == Meaning::Done;
    if (ends_run || ends_phase) && state.checks.withhold() {
        // The agent repeats what it waits for.
        tally.quote(signal, None);
    } else if ends_run && !signal.subagent && checks::wants_check(state, true)
        || ends_phase && !ends_run && checks::wants_check(state, false)
    {
        checks::claim(state, now, signal, ends_run, tally);
    } else if ends_run {
        finish(state, now, signal, tally);
    } else if ends_phase {
        complete(state, now, signal, fresh_token, tally);
    } else if let Some(other) = ends {
        // Reporting a completed phase again is no mistake worth a word.
        if !state.progress.completed.contains(&other) {
            record(state, now, signal);
            tally.refuse(signal, Refusal::OutOfOrder);
        }
    } else if signal.meaning == Meaning::Failed {
        fail(state, now, signal, tally);
    } else {
        record(state, now, signal);
        tally.quote(signal, None);
    }
}

/// The whole run is declared complete, which only the main agent may do.
pub(super) fn finish(
    state: &mut State,
    now: Timestamp,
    signal: &PhaseSignal,
    tally: &mut StopTally,
) {
    if signal.subagent {
        return tally.refuse(signal, Refusal::RoleNotAllowed);
    }
    record(state, now, signal);
    tally.quote(signal, None);
    let mut phase = state.progress.phase.clone();
    while phase != COMPLETE {
        let next = state
            .setup
            .pipeline
            .next(&phase, &state.setup.config.skip)
            .unwrap_or(COMPLETE)
            .to_owned();
        state.progress.left_out.push(std::mem::replace(&mut phase, next));
    }
    state.end(now, ExitReason::AutoCompleteSignal);
    tally.ended = Some(ExitReason::AutoCompleteSignal);
}

/// The current phase is complete; the next one begins where this was reported.
pub(super) fn complete(
    state: &mut State,
    now: Timestamp,
    signal: &PhaseSignal,
    fresh_token: Option<&str>,
    tally: &mut StopTally,
) {
    // A phase that began in this very message has a code that the agent cannot know.
    if state.setup.config.token == TokenPolicy::Require && !tally.completed.is_empty() {
        return tally.refuse(signal, Refusal::WrongToken);
    }
    record(state, now, signal);
    tally.quote(signal, None);
    let reported_at = signal.at.unwrap_or(now).max(state.clock.phase_started_at);
    let next = state
        .setup
        .pipeline
        .next(&state.progress.phase, &state.setup.config.skip)
        .unwrap_or(COMPLETE)
        .to_owned();
    let took = reported_at.since(state.clock.phase_started_at).as_secs();
    state.progress.durations.insert(state.progress.phase.clone(), took);
    state.progress.completed.insert(state.progress.phase.clone());
    let who = match (&signal.agent, signal.subagent) {
        (Some(agent), _) => format!("sub-agent {agent}"),
        (None, true) => "a sub-agent".to_owned(),
        (None, false) => "the agent".to_owned(),
    };
    let by = format!("{who} reported {}", signal.name);
    tally.completed.push(CompletedPhase { phase: state.progress.phase.clone(), by });
    // The main agent's stop ends the run: a sub-agent never does.
    if next == COMPLETE && tally.of_subagent {
        state.handover.ends_at_next_stop = true;
        return;
    }
    state.progress.phase = next;
    tally.error = false;
    state.progress.iteration = 0;
    state.last_refused = None;
    state.clock.phase_started_at = reported_at;
    if state.progress.phase == COMPLETE {
        state.end(now, ExitReason::AllPhasesComplete);
        tally.ended = Some(ExitReason::AllPhasesComplete);
    } else {
        state.handover.prompt_pending = true;
        state.rotate_token(fresh_token);
    }
}

fn fail(state: &mut State, now: Timestamp, signal: &PhaseSignal, tally: &mut StopTally) {
    record(state, now, signal);
    let message = signal.error.clone().unwrap_or_else(|| signal.quote.clone());
    state.note_error(now, None, message);
    if signal.subagent {
        // A sub-agent's error is its own; whether the phase fails is for the main agent to report.
        return tally.refuse(signal, Refusal::RoleNotAllowed);
    }
    tally.quote(signal, None);
    tally.error = true;
    // Whoever fails takes back what it claimed before.
    state.checks.drop_claims();
    if signal.recoverable == Some(false) {
        state.end(now, ExitReason::CriticalError);
        tally.ended = Some(ExitReason::CriticalError);
    }
}

/// Records that a signal was detected, each name once.
pub(super) fn record(state: &mut State, now: Timestamp, signal: &PhaseSignal) {
    match state.progress.detected.iter_mut().find(|known| known.signal == signal.name) {
        Some(known) => known.detected_at = now,
        None => {
            state
                .progress
                .detected
                .push(Detected { signal: signal.name.clone(), detected_at: now });
        }
    }
    if state.progress.detected.len() > DETECTED_MAX {
        state.progress.detected.remove(0);
    }
}
