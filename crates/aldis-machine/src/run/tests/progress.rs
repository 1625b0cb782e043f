//! Progress that only repeats or moves a number: the journal of an agent that prints it without end
//! stays small, and nothing is decided otherwise.

use super::*;
use std::time::Duration;

fn progress(percent: u8) -> RunSignal {
    reports("chorus", &format!("<chorus>PROGRESS: {percent}</chorus>")).remove(0)
}

fn in_phase(phase: &str, percent: u8) -> RunSignal {
    let fence = "```";
    let text = format!(
        "{fence}pilot-signal\n{{\"v\":2,\"phase\":\"{phase}\",\"progress\":{percent}}}\n{fence}"
    );
    reports("pilot", &text).remove(0)
}

/// A moment within a scenario, in milliseconds.
fn moment(millis: u64) -> Timestamp {
    at(0).after(Duration::from_millis(millis))
}

#[test]
fn a_number_that_moves_is_decided_about_once_in_ten_seconds() {
    let mut state = begun(|_| {});
    let mut decided = Vec::new();
    for millis in (0..60_000).step_by(10) {
        let percent = u8::try_from(millis / 10 % 100).unwrap();
        let event = Event::Reported { signals: vec![progress(percent)] };
        let outcome = state.on_event(moment(millis), &event);
        decided.extend(outcome.decisions.iter().map(|decision| (millis, decision.rule.clone())));
        assert_eq!(state.reported.progress, Some(percent), "the latest is known all the same");
    }
    let rule = "run/signal-reported".to_owned();
    let wanted: Vec<_> = (0..6).map(|number| (number * 10_000, rule.clone())).collect();
    assert_eq!(decided, wanted);
    assert!(state.attempt.signals.len() <= 64, "{}", state.attempt.signals.len());
}

#[test]
fn what_says_more_is_decided_about_at_once() {
    let mut state = begun(|_| {});
    let mut count = |signal: RunSignal| {
        let event = Event::Reported { signals: vec![signal] };
        let decisions = state.on_event(moment(1), &event).decisions;
        decisions.iter().filter(|it| it.rule == Rule::SignalReported.as_str()).count()
    };
    assert_eq!(count(in_phase("INIT", 1)), 1);
    assert_eq!(count(in_phase("INIT", 2)), 0, "a number moves");
    assert_eq!(count(in_phase("IMPL", 2)), 1, "a phase begins");
    let blocked = reports("chorus", "<chorus>BLOCKED: no key</chorus>").remove(0);
    assert_eq!(count(blocked.clone()), 1);
    assert_eq!(count(blocked), 0, "an exact repetition");
    let other = reports("chorus", "<chorus>BLOCKED: no login</chorus>").remove(0);
    assert_eq!(count(other), 1);
}

/// Passes reports through the coalescer, each at its millisecond. Returns the events and when they
/// are sent.
fn coalesced(reports: &[(u64, RunSignal)], until: u64) -> Vec<(u64, Event)> {
    let mut coalescer = ProgressCoalescer::default();
    let mut sent = Vec::new();
    for millis in 0..=until {
        let now = moment(millis);
        for (_, signal) in reports.iter().filter(|(at, _)| *at == millis) {
            let events = coalescer.push(now, vec![signal.clone()]);
            sent.extend(events.into_iter().map(|event| (millis, event)));
        }
        let due = coalescer.due();
        let event = coalescer.tick(now);
        assert_eq!(event.is_some(), due.is_some_and(|due| due <= now), "{millis}");
        sent.extend(event.map(|event| (millis, event)));
    }
    sent.extend(coalescer.flush().map(|event| (until, event)));
    sent
}

fn batch(latest: RunSignal, count: u64, repeated: u64) -> Event {
    Event::Progress(ProgressBatch { latest, count, repeated })
}

#[test]
fn reports_are_joined_with_their_count_and_the_latest_value() {
    let reports: Vec<_> = (0..25_000)
        .step_by(100)
        .map(|at| (at, progress(u8::try_from(at / 1_000).unwrap())))
        .collect();
    let sent = coalesced(&reports, 25_000);
    let wanted = [
        (0, batch(progress(0), 1, 1)),
        (10_000, batch(progress(10), 100, 1)),
        (20_000, batch(progress(20), 100, 1)),
        (25_000, batch(progress(24), 49, 10)),
    ];
    assert_eq!(sent, wanted);
}

#[test]
fn order_is_kept_and_what_says_more_is_not_held() {
    let done = reports("chorus", "<chorus>COMPLETE</chorus>").remove(0);
    let reported = |signal: &RunSignal| Event::Reported { signals: vec![signal.clone()] };
    let sent = coalesced(
        &[
            (0, progress(1)),
            (10, progress(2)),
            (20, progress(2)),
            (30, done.clone()),
            (40, progress(3)),
            (50, in_phase("IMPL", 4)),
            (60, in_phase("IMPL", 5)),
        ],
        100,
    );
    let wanted = [
        (0, batch(progress(1), 1, 1)),
        (30, batch(progress(2), 2, 2)),
        (30, reported(&done)),
        (50, batch(progress(3), 1, 1)),
        (50, reported(&in_phase("IMPL", 4))),
        (100, batch(in_phase("IMPL", 5), 1, 1)),
    ];
    assert_eq!(sent, wanted);
}

/// Seven identical states end a run, joined or not.
#[test]
fn joined_repetitions_count_as_repetitions() {
    for (repeated, status) in [(2, "working"), (3, "working"), (5, "paused"), (7, "ending")] {
        let mut state = begun(|_| {});
        state.on_event(at(1), &batch(progress(40), 20, repeated));
        assert_eq!(state.status.name(), status, "{repeated}");
        let repeated = u32::try_from(repeated).unwrap();
        let mut single = begun(|_| {});
        for _ in 0..repeated {
            single.on_event(at(1), &Event::Reported { signals: vec![progress(40)] });
        }
        assert_eq!(single.monitor.level(), state.monitor.level(), "{repeated}");
    }
}

#[test]
fn a_batch_without_counts_is_one_report() {
    let latest = serde_json::to_value(progress(40)).unwrap();
    let text = serde_json::json!({ "event": "progress", "latest": latest });
    let event: Event = serde_json::from_value(text).unwrap();
    assert_eq!(event, batch(progress(40), 1, 1));
}
