//! Which of the signals that were reported count for the machine.
//!
//! The scanner finds what is a signal; whether it may still change anything is decided here, before
//! any state changes: was it reported since the phase began, did it count already, does its own
//! message contradict it, or what came in a stronger way?

use std::collections::BTreeMap;

use super::event::{PhaseFinding, PhaseSignal};
use super::state::State;
use crate::trust::{Rank, RankedReport, ranks};
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

/// Returns every signal with its fate, in text order: one pass to sort them by message and phase, one to
/// judge. What counted before, or came too late, outranks nothing.
pub(super) fn judge<'s>(
    state: &State,
    findings: &'s [PhaseFinding],
) -> Vec<(&'s PhaseSignal, Fate)> {
    let signals: Vec<&PhaseSignal> = signals(findings).collect();
    let mut verdicts: BTreeMap<(u64, &str), Verdicts> = BTreeMap::new();
    for (at, signal) in signals.iter().enumerate() {
        verdicts.entry((signal.message, subject(state, signal))).or_default().add(signal, at);
    }
    let fresh = |signal: &&PhaseSignal| !already_judged(state, signal) && !is_late(state, signal);
    let claims: Vec<RankedReport<'_>> =
        signals.iter().copied().filter(fresh).map(|signal| claim(state, signal)).collect();
    let mut ranks = ranks(&claims).into_iter();
    let mut fate = |signal: &PhaseSignal, at: usize| {
        if already_judged(state, signal) {
            return Fate::Skip;
        } else if is_late(state, signal) {
            return Fate::Refuse(Refusal::LateSignal);
        }
        match ranks.next() {
            Some(Rank::Repeats) => Fate::Skip,
            Some(Rank::Outranked(_)) => Fate::Refuse(Refusal::Outranked),
            Some(Rank::Counts) | None => {
                let about = verdicts.get(&(signal.message, subject(state, signal)));
                about.map_or(Fate::Take, |verdicts| verdicts.fate(signal, at))
            }
        }
    };
    signals.iter().enumerate().map(|(at, signal)| (*signal, fate(signal, at))).collect()
}

/// A signal as a claim. Each agent is believed about its own work.
fn claim<'a>(state: &'a State, signal: &'a PhaseSignal) -> RankedReport<'a> {
    let reporter = match (&signal.agent, signal.subagent) {
        (Some(agent), _) => agent,
        (None, true) => "a sub-agent",
        (None, false) => "",
    };
    RankedReport {
        subject: (reporter, subject(state, signal)),
        name: &signal.name,
        meaning: signal.meaning,
        via: signal.via,
    }
}

/// What one message reports about one phase: where its first and last failure stand, and its last
/// success.
#[derive(Clone, Copy, Default)]
struct Verdicts {
    first_failed: Option<usize>,
    last_failed: Option<usize>,
    last_done: Option<usize>,
}

impl Verdicts {
    fn add(&mut self, signal: &PhaseSignal, at: usize) {
        match signal.meaning {
            Meaning::Done => self.last_done = Some(at),
            Meaning::Failed => {
                self.first_failed = self.first_failed.or(Some(at));
                self.last_failed = Some(at);
            }
            _ => {}
        }
    }

    /// The last word wins; success after failure about one phase in one message is neither.
    fn fate(&self, signal: &PhaseSignal, at: usize) -> Fate {
        let contradicted = match signal.meaning {
            Meaning::Done => self.first_failed.is_some_and(|failed| failed < at),
            Meaning::Failed => self.last_done.is_some_and(|done| done > at),
            _ => false,
        };
        if contradicted {
            Fate::Refuse(Refusal::Contradictory)
        } else if signal.meaning == Meaning::Done && self.last_failed.is_some_and(|it| it > at) {
            Fate::Skip
        } else {
            Fate::Take
        }
    }
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
    let before = match (signal.at, state.reading.read_until) {
        (Some(at), Some(until)) => at <= until && !signal.new_by_position,
        _ => false,
    };
    before || counted_key(signal).is_some_and(|key| state.reading.counted.contains(&key))
}

/// Whether it was reported before the phase began. Its position in the transcript decides, and its
/// time where the position is not known.
fn is_late(state: &State, signal: &PhaseSignal) -> bool {
    !signal.new_by_position && signal.at.is_some_and(|at| at < state.clock.phase_started_at)
}

/// The phase a signal is about. What ends the whole run is about the current one, too.
fn subject<'a>(state: &'a State, signal: &'a PhaseSignal) -> &'a str {
    if let Some(phase) = state.setup.pipeline.ended_by(&signal.name) {
        return &phase.name;
    }
    match (signal.meaning, &signal.phase) {
        (Meaning::Failed, Some(phase)) => phase,
        _ => &state.progress.phase,
    }
}
