//! Which signals still count: against a plain version, and with clocks that step back.

use super::super::eligibility::{Fate, judge};
use super::*;
use crate::Refusal;
use aldis_signal::signal::{Meaning, Via};

/// A signal about the current phase or another, in one of two messages.
fn signal(message: u64, meaning: Meaning, phase: Option<&str>) -> PhaseSignal {
    PhaseSignal {
        name: "X".to_owned(),
        meaning,
        phase: phase.map(str::to_owned),
        error: None,
        recoverable: None,
        message,
        agent: None,
        subagent: false,
        at: None,
        new_by_position: false,
        line: 1,
        quote: String::new(),
        trusted: false,
        via: Via::Said,
    }
}

/// The rule as it is written: each signal against all others of its message about its phase.
fn plainly(state: &State, signals: &[PhaseSignal], at: usize) -> Fate {
    let subject = |signal: &PhaseSignal| match (&signal.meaning, &signal.phase) {
        (Meaning::Failed, Some(phase)) => phase.clone(),
        _ => state.phase.clone(),
    };
    let own = &signals[at];
    let same =
        |other: &&PhaseSignal| other.message == own.message && subject(other) == subject(own);
    let says = |part: &[PhaseSignal], meaning: Meaning| {
        part.iter().filter(same).any(|other| other.meaning == meaning)
    };
    let (before, after) = (&signals[..at], &signals[at + 1..]);
    match own.meaning {
        Meaning::Done if says(before, Meaning::Failed) => Fate::Refuse(Refusal::Contradictory),
        Meaning::Failed if says(after, Meaning::Done) => Fate::Refuse(Refusal::Contradictory),
        Meaning::Done if says(after, Meaning::Failed) => Fate::Skip,
        _ => Fate::Take,
    }
}

/// Every sequence of up to six signals out of these.
#[test]
fn signals_are_judged_as_the_rule_says() {
    let state = run_in("qa");
    let kinds = [
        signal(0, Meaning::Done, None),
        signal(0, Meaning::Failed, None),
        signal(0, Meaning::Failed, Some("init")),
        signal(1, Meaning::Done, None),
        signal(1, Meaning::Failed, None),
        signal(0, Meaning::Info, None),
    ];
    for length in 0..=5_u32 {
        for number in 0..kinds.len().pow(length) {
            let pick = |place: u32| kinds[number / kinds.len().pow(place) % kinds.len()].clone();
            let signals: Vec<PhaseSignal> = (0..length).map(pick).collect();
            let findings: Vec<PhaseFinding> =
                signals.iter().cloned().map(PhaseFinding::Signal).collect();
            let fates: Vec<Fate> =
                judge(&state, &findings).into_iter().map(|(_, fate)| fate).collect();
            let plain: Vec<Fate> =
                (0..signals.len()).map(|at| plainly(&state, &signals, at)).collect();
            assert_eq!(fates, plain, "{signals:?}");
        }
    }
}

#[test]
fn a_position_in_the_transcript_beats_a_clock_that_stepped_back() {
    let mut state = run_in("qa");
    (state.phase_started_at, state.read_until) = (at(5), Some(at(5)));
    let said = |minutes: i64, new_by_position: bool| {
        let signal = signal(0, Meaning::Done, None);
        [PhaseFinding::Signal(PhaseSignal { at: Some(at(minutes)), new_by_position, ..signal })]
    };
    let fate = |said: &[PhaseFinding]| judge(&state, said)[0].1;
    assert_eq!(fate(&said(4, true)), Fate::Take);
    assert_eq!(fate(&said(6, false)), Fate::Take);
    assert_eq!(fate(&said(4, false)), Fate::Skip);
    let mut fresh = state.clone();
    fresh.read_until = None;
    assert_eq!(judge(&fresh, &said(4, false))[0].1, Fate::Refuse(Refusal::LateSignal));
}

#[test]
fn a_message_that_repeats_itself_is_kept_once() {
    let state = run_in("qa");
    let origin = Origin::assistant;
    let signals = found(&state, &block("QA_COMPLETE").repeat(2_000), origin());
    assert_eq!(signals.len(), 1);
    let mixed = (block("QA_COMPLETE") + &block("INIT_COMPLETE")).repeat(3);
    assert_eq!(found(&state, &mixed, origin()).len(), 6);
    let misses = found(&state, &"I will say SIGNAL: QA_COMPLETE soon.\n".repeat(2_000), origin());
    assert!((1..100).contains(&misses.len()), "{}", misses.len());
}
