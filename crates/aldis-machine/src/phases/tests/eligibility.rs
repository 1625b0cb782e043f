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
        _ => state.progress.phase.clone(),
    };
    let own = &signals[at];
    let about = |other: &&PhaseSignal| subject(other) == subject(own) && other.via > own.via;
    let decides = |signal: &PhaseSignal| signal.meaning.is_decisive();
    let stronger: Vec<&PhaseSignal> =
        signals.iter().filter(about).filter(|other| decides(other)).collect();
    if decides(own) && !stronger.is_empty() {
        return match stronger.iter().any(|other| other.meaning == own.meaning) {
            true => Fate::Skip,
            false => Fate::Refuse(Refusal::Outranked),
        };
    }
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
        PhaseSignal { via: Via::Call, ..signal(2, Meaning::Done, None) },
        PhaseSignal { via: Via::Token, ..signal(0, Meaning::Failed, None) },
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
    (state.clock.phase_started_at, state.reading.read_until) = (at(5), Some(at(5)));
    let said = |minutes: i64, new_by_position: bool| {
        let signal = signal(0, Meaning::Done, None);
        [PhaseFinding::Signal(PhaseSignal { at: Some(at(minutes)), new_by_position, ..signal })]
    };
    let fate = |said: &[PhaseFinding]| judge(&state, said)[0].1;
    assert_eq!(fate(&said(4, true)), Fate::Take);
    assert_eq!(fate(&said(6, false)), Fate::Take);
    assert_eq!(fate(&said(4, false)), Fate::Skip);
    let mut fresh = state.clone();
    fresh.reading.read_until = None;
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

/// Who is believed when an agent reports in several ways before a stop.
#[test]
fn a_stronger_report_beats_a_weaker_one() {
    let called = |state: &State, name: &str, meaning: Meaning, after: &[PhaseFinding]| {
        let dialect = &state.setup.pipeline.dialect;
        let mut signal =
            aldis_signal::Signal::by_call(dialect, name, meaning, Via::Call, "called".to_owned());
        signal.fields.insert("phase".to_owned(), "qa".into());
        call_finding(&signal, after, at(1))
    };
    for (name, text, call, phase, refused) in [
        (
            "another word",
            error_block("qa", false),
            ("QA_COMPLETE", Meaning::Done),
            "cleanup",
            Some("PHASE_ERROR"),
        ),
        (
            "the other way round",
            block("QA_COMPLETE"),
            ("PHASE_ERROR", Meaning::Failed),
            "qa",
            Some("QA_COMPLETE"),
        ),
        ("the same", block("QA_COMPLETE"), ("QA_COMPLETE", Meaning::Done), "cleanup", None),
    ] {
        let mut state = run_in("qa");
        let phase = match phase {
            "qa" => "qa".to_owned(),
            _ => state.setup.pipeline.next("qa", &state.setup.config.skip).unwrap().to_owned(),
        };
        let mut stop = stop(&state, &text);
        stop.findings.push(called(&state, call.0, call.1, &stop.findings));
        let outcome = state.on_event(at(1), &Event::Stop(stop));
        assert_eq!(state.progress.phase, phase, "{name}");
        let seen = &outcome.decision().unwrap().evidence;
        let quoted = seen.iter().find(|it| it.reason.as_deref() == Some("outranked"));
        assert_eq!(quoted.and_then(|it| it.name.as_deref()), refused, "{name}: {seen:?}");
        assert!(seen.iter().any(|it| it.via == Via::Call && it.what == "signal"), "{name}");
    }
}

/// Where any claim ends the phase, a claim that came twice ends one phase.
#[test]
fn a_claim_that_came_in_two_ways_counts_once() {
    let mut state = run_in("qa");
    let said = signal(0, Meaning::Done, None);
    let called = PhaseSignal { via: Via::Call, message: 1, ..said.clone() };
    let findings = [PhaseFinding::Signal(said), PhaseFinding::Signal(called)];
    let fates: Vec<Fate> = judge(&state, &findings).into_iter().map(|(_, fate)| fate).collect();
    assert_eq!(fates, [Fate::Skip, Fate::Take]);
    // A sub-agent's report is about its own work.
    state.session = None;
    let own = PhaseSignal { subagent: true, ..signal(2, Meaning::Failed, None) };
    let findings = [findings[1].clone(), PhaseFinding::Signal(own)];
    let fates: Vec<Fate> = judge(&state, &findings).into_iter().map(|(_, fate)| fate).collect();
    assert_eq!(fates, [Fate::Take, Fate::Take]);
}
