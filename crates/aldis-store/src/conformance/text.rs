//! Text and numbers that databases like to get wrong.

use std::time::Duration;

use super::{at, create, event, id, ok, refused, some, step, stored};
use crate::claim::ClaimRequest;
use crate::cursor::Cursor;
use crate::error::CommitError;
use crate::record::{DecisionFilter, EffectFilter, RunFilter};
use crate::step::{
    Driver, NewDecision, NewEffect, NewEvent, PartChange, Revision, RunRecord, Source, Step,
    TimerChange,
};
use crate::store::Store;

const AWKWARD: &[&str] = &[
    "",
    " ",
    "\0",
    "a\0b",
    "a\0",
    "'; DROP TABLE runs; --",
    "%_*?[a]\\",
    "\r\n\t\u{1b}[31m",
    "Grüße, 世界, 🙂",
    "e\u{301}",
    "\u{e9}",
    "\u{feff}\u{202e}\u{200b}\u{fffd}\u{10ffff}",
    "NULL",
    "1e5",
    "0x10",
];

/// A step with `text` wherever text is allowed.
fn step_with(run: &str, expected: u64, text: &str) -> Step {
    let text = text.to_owned();
    Step {
        record: RunRecord {
            project: text.clone(),
            session: Some(text.clone()),
            machine: text.clone(),
            driver: Driver::Worker,
            title: text.clone(),
            active: true,
            state: text.clone(),
        },
        events: vec![NewEvent {
            kind: text.clone(),
            body: text.clone(),
            source: Some(Source { key: text.clone(), digest: text.clone() }),
            at: at(0),
        }],
        decisions: vec![NewDecision { body: text.clone(), at: at(0) }],
        effects: vec![NewEffect {
            key: text.clone(),
            kind: text.clone(),
            body: text.clone(),
            due: at(0),
            lane: text.clone(),
            requires: vec![text.clone(), text.clone()],
        }],
        timers: vec![TimerChange::Set { key: text.clone(), due: at(0) }],
        parts: vec![PartChange::Set { key: text.clone(), body: text }],
        ..step(run, expected)
    }
}

#[track_caller]
fn assert_stored(store: &dyn Store, run: &str, written: &Step, text: &str) {
    assert_eq!(stored(store, run).record, written.record);
    let parts = some(ok(store.load(&id(run)))).parts;
    assert!(parts.iter().any(|part| part.key == text && part.body == text), "{text:?}");
    let event = some(ok(store.event_by_source(&id(run), text)));
    assert_eq!((&*event.kind, &*event.body, event.source.as_deref()), (text, text, Some(text)));
    assert_eq!(event.digest.as_deref(), Some(text));
    let of_run = DecisionFilter { run: Some(id(run)), limit: 1, ..DecisionFilter::default() };
    assert_eq!(ok(store.decisions(&of_run))[0].body, text);
    let effect = some(ok(store.effect(text)));
    assert_eq!((&*effect.key, &*effect.kind, &*effect.body), (text, text, text));
    assert_eq!((&*effect.lane, &*effect.requires), (text, &[text.to_owned(), text.to_owned()][..]));
    let timers = ok(store.due_timers(at(0), usize::MAX));
    assert!(timers.iter().any(|timer| timer.run == id(run) && timer.key == text));
    let filter = RunFilter {
        projects: vec![text.to_owned()],
        session: Some(text.to_owned()),
        machine: Some(text.to_owned()),
        ..RunFilter::default()
    };
    assert_eq!(ok(store.list(&filter)).len(), 1);
}

pub(super) fn any_text_comes_back_as_it_was(store: &dyn Store) {
    for (number, text) in AWKWARD.iter().enumerate() {
        let run = format!("r{number}");
        let written = step_with(&run, 0, text);
        ok(store.commit(&written));
        assert_stored(store, &run, &written, text);
    }
}

pub(super) fn text_is_compared_exactly(store: &dyn Store) {
    // Neither case, nor normal form, nor what follows a NUL, nor trailing space is ignored.
    let alike = ["a", "A", "a ", "a\0", "a\0b", "\u{e9}", "e\u{301}", "1", "1.0", "01"];
    for (expected, text) in alike.iter().enumerate() {
        ok(store.commit(&step_with("r", expected as u64, text)));
    }
    assert_eq!(stored(store, "r").last_event, alike.len() as u64);
    let filter = EffectFilter::due_by(at(0));
    assert_eq!(ok(store.pending_effects(&filter)).len(), alike.len());
    assert_eq!(ok(store.due_timers(at(0), usize::MAX)).len(), alike.len());
    assert_eq!(ok(store.effects_done(&id("r"), None, &["a".to_owned()])), 1);
    // Each is alone in its lane, and none of them can be performed without its label.
    let mut request = ClaimRequest::new(&[], "\0", at(0), Duration::ZERO);
    request.labels = vec!["A".to_owned(), "e\u{301}".to_owned()];
    assert_eq!(ok(store.claim(&request)).len(), 2);
    assert_eq!(ok(store.pending_effects(&filter)).len(), alike.len() - 1);
    // Ids as well.
    create(store, "Run");
    assert_eq!(ok(store.run(&id("run"))), None);
}

pub(super) fn huge_text_comes_back_as_it_was(store: &dyn Store) {
    let text = "{\"🙂\": \"\0\"}".repeat(200_000);
    let mut written = step("r", 0);
    written.record.state.clone_from(&text);
    written.events = vec![NewEvent { body: text.clone(), ..event("huge", None) }];
    ok(store.commit(&written));
    assert!(stored(store, "r").record.state == text, "the state changed");
    assert!(ok(store.events(&id("r"), 0, 1))[0].body == text, "the event changed");
}

pub(super) fn extreme_moments_come_back_as_they_were(store: &dyn Store) {
    for (expected, millis) in [i64::MIN, -1, 0, i64::MAX].into_iter().enumerate() {
        let mut extreme = step_with("r", expected as u64, &format!("k{expected}"));
        extreme.at = at(millis);
        extreme.events[0].at = at(millis);
        extreme.decisions[0].at = at(millis);
        extreme.effects[0].due = at(millis);
        extreme.timers = vec![TimerChange::Set { key: "t".to_owned(), due: at(millis) }];
        ok(store.commit(&extreme));
        let run = stored(store, "r");
        assert_eq!((run.created, run.updated), (at(i64::MIN), at(millis)));
        assert_eq!(ok(store.events(&id("r"), expected as u64, 1))[0].at, at(millis));
        assert_eq!(ok(store.decisions(&DecisionFilter::default()))[0].at, at(millis));
        assert_eq!(some(ok(store.effect(&format!("k{expected}")))).due, at(millis));
        assert_eq!(ok(store.next_timer()), Some(at(millis)));
    }
    assert_eq!(ok(store.pending_effects(&EffectFilter::due_by(at(i64::MIN)))).len(), 1);
    assert_eq!(ok(store.pending_effects(&EffectFilter::due_by(at(i64::MAX)))).len(), 4);
}

pub(super) fn extreme_numbers_are_only_refused(store: &dyn Store) {
    create(store, "r");
    for expected in [u64::MAX, i64::MAX as u64, 1 << 63] {
        let error = refused(store, &step("r", expected));
        assert!(matches!(error, CommitError::Conflict { found: Revision(1) }), "{error}");
    }
    assert_eq!(ok(store.events(&id("r"), u64::MAX, 10)), []);
    let filter = DecisionFilter { before: Some(Cursor::START), ..DecisionFilter::default() };
    assert_eq!(ok(store.decisions(&filter)), []);
}
