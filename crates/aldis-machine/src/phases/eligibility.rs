//! Which of the signals that were reported count for the machine.
//!
//! The scanner finds what is a signal; whether it may still change anything is decided here, before
//! any state changes: was it reported since the phase began, did it count already, does its own
//! message contradict it?

use super::event::{PhaseFinding, PhaseSignal};
use super::state::State;
use crate::{Miss, Refusal};
use aldis_signal::signal::Meaning;

/// What becomes of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is considered.
    Take,
    /// It was considered before, or its message takes it back: nobody needs to know.
    Skip,
    /// It is refused, and that is recorded.
    Refuse(Refusal),
}

/// Returns every signal with its fate, in text order.
pub(super) fn judge<'s>(
    state: &State,
    findings: &'s [PhaseFinding],
) -> Vec<(&'s PhaseSignal, Fate)> {
    let signals: Vec<&PhaseSignal> = signals(findings).collect();
    let fate = |signal: &PhaseSignal, at: usize| {
        if already_judged(state, signal) {
            Fate::Skip
        } else if signal.at.is_some_and(|at| at < state.phase_started_at) {
            Fate::Refuse(Refusal::LateSignal)
        } else {
            against_its_message(state, &signals, at)
        }
    };
    signals.iter().enumerate().map(|(at, signal)| (*signal, fate(signal, at))).collect()
}

fn signals(findings: &[PhaseFinding]) -> impl Iterator<Item = &PhaseSignal> {
    findings.iter().filter_map(|finding| match finding {
        PhaseFinding::Signal(signal) => Some(signal),
        PhaseFinding::NearMiss(_) => None,
    })
}

/// Returns the near misses.
pub(super) fn misses(findings: &[PhaseFinding]) -> impl Iterator<Item = &Miss> {
    findings.iter().filter_map(|finding| match finding {
        PhaseFinding::Signal(_) => None,
        PhaseFinding::NearMiss(miss) => Some(miss),
    })
}

/// Under which name a sub-agent's signal is remembered.
pub(super) fn counted_key(signal: &PhaseSignal) -> Option<String> {
    signal.agent.as_ref().map(|agent| format!("{agent}/{}", signal.name))
}

fn already_judged(state: &State, signal: &PhaseSignal) -> bool {
    let before = match (signal.at, state.read_until) {
        (Some(at), Some(until)) => at <= until,
        _ => false,
    };
    before || counted_key(signal).is_some_and(|key| state.counted.contains(&key))
}

/// The last word wins; success after failure about one phase in one message is neither.
fn against_its_message(state: &State, signals: &[&PhaseSignal], at: usize) -> Fate {
    let signal = signals[at];
    let subject = subject(state, signal);
    let same = |other: &&&PhaseSignal| {
        other.message == signal.message && self::subject(state, other) == subject
    };
    let says = |meaning: Meaning| move |other: &&PhaseSignal| other.meaning == meaning;
    let earlier = || signals[..at].iter().filter(same);
    let later = || signals[at + 1..].iter().filter(same);
    let contradicted = match signal.meaning {
        Meaning::Done => earlier().any(says(Meaning::Failed)),
        Meaning::Failed => later().any(says(Meaning::Done)),
        _ => false,
    };
    if contradicted {
        return Fate::Refuse(Refusal::Contradictory);
    }
    if signal.meaning == Meaning::Done && later().any(says(Meaning::Failed)) {
        return Fate::Skip;
    }
    Fate::Take
}

/// The phase a signal is about. What ends the whole run is about the current one, too.
fn subject<'a>(state: &'a State, signal: &'a PhaseSignal) -> &'a str {
    if let Some(phase) = state.pipeline.ended_by(&signal.name) {
        return &phase.name;
    }
    match (signal.meaning, &signal.phase) {
        (Meaning::Failed, Some(phase)) => phase,
        _ => &state.phase,
    }
}
