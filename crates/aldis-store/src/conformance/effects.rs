//! The outbox: nothing lost, nothing enqueued twice.

use std::time::Duration;

use super::{at, effect, id, ok, some, step, stored};
use crate::error::CommitError;
use crate::record::{Effect, EffectFilter, EffectState};
use crate::step::{NewEffect, Revision, Step};
use crate::store::Store;

fn enqueue(store: &dyn Store, run: &str, expected: u64, effects: &[(&str, i64)]) {
    let effects = effects.iter().map(|(key, due)| effect(key, *due)).collect();
    ok(store.commit(&Step { effects, ..step(run, expected) }));
}

fn pending(store: &dyn Store, due_by: i64) -> Vec<Effect> {
    ok(store.pending_effects(&EffectFilter::due_by(at(due_by))))
}

/// Records that an effect was performed. Returns whether it was pending.
fn close(store: &dyn Store, run: &str, key: &str) -> bool {
    ok(store.effects_done(&id(run), None, &[key.to_owned()])) == 1
}

fn keys(effects: &[Effect]) -> Vec<&str> {
    effects.iter().map(|effect| &*effect.key).collect()
}

pub(super) fn effects_wait_in_order(store: &dyn Store) {
    enqueue(store, "a", 0, &[("z", 3), ("y", 2)]);
    enqueue(store, "b", 0, &[("x", 1)]);
    enqueue(store, "a", 1, &[("w", 0)]);
    assert_eq!(keys(&pending(store, 10)), ["z", "y", "x", "w"]);

    let of_a = EffectFilter { run: Some(id("a")), ..EffectFilter::due_by(at(10)) };
    assert_eq!(keys(&ok(store.pending_effects(&of_a))), ["z", "y", "w"]);
    let first = EffectFilter { limit: 1, ..of_a };
    let effects = ok(store.pending_effects(&first));
    assert_eq!(
        effects,
        [Effect {
            key: "z".to_owned(),
            run: id("a"),
            kind: "notify".to_owned(),
            body: r#"{"to":"z"}"#.to_owned(),
            due: at(3),
            attempts: 0,
            error: None,
            state: EffectState::Pending,
            lane: String::new(),
            requires: Vec::new(),
            worker: None,
        }]
    );
}

pub(super) fn effects_wait_until_they_are_due(store: &dyn Store) {
    enqueue(store, "r", 0, &[("now", 5), ("later", 6)]);
    assert_eq!(keys(&pending(store, 4)), [""; 0]);
    assert_eq!(keys(&pending(store, 5)), ["now"]);
    assert_eq!(keys(&pending(store, 6)), ["now", "later"]);
}

pub(super) fn a_key_is_never_enqueued_twice(store: &dyn Store) {
    enqueue(store, "a", 0, &[("k", 1), ("k", 2)]);
    enqueue(store, "a", 1, &[("k", 3)]);
    enqueue(store, "b", 0, &[("k", 4), ("other", 4)]);
    let effects = pending(store, 10);
    assert_eq!(keys(&effects), ["k", "other"]);
    assert_eq!((effects[0].due, &effects[0].run), (at(1), &id("a")));

    assert!(close(store, "a", "k"));
    enqueue(store, "a", 2, &[("k", 5)]);
    assert_eq!(keys(&pending(store, 10)), ["other"]);
}

pub(super) fn an_effect_is_pending_until_it_is_done(store: &dyn Store) {
    enqueue(store, "r", 0, &[("a", 0), ("b", 0)]);
    // Reading it is not performing it.
    for _ in 0..2 {
        assert_eq!(keys(&pending(store, 10)), ["a", "b"]);
    }
    assert!(close(store, "r", "a"));
    assert!(!close(store, "r", "a"), "it was done before");
    assert!(!close(store, "r", "unknown"));
    assert_eq!(keys(&pending(store, 10)), ["b"]);
    assert_eq!(some(ok(store.effect("a"))).state, EffectState::Done);
}

pub(super) fn a_step_can_close_its_own_effects(store: &dyn Store) {
    enqueue(store, "r", 0, &[("earlier", 0), ("open", 0)]);
    let closing = Step {
        effects: vec![effect("at-once", 0)],
        done: vec!["at-once".to_owned(), "earlier".to_owned(), "unknown".to_owned()],
        ..step("r", 1)
    };
    ok(store.commit(&closing));
    assert_eq!(keys(&pending(store, 10)), ["open"]);
    assert_eq!(some(ok(store.effect("at-once"))).state, EffectState::Done);
}

pub(super) fn a_step_cannot_close_the_effects_of_others(store: &dyn Store) {
    enqueue(store, "a", 0, &[("k", 0)]);
    ok(store.commit(&Step { done: vec!["k".to_owned()], ..step("b", 0) }));
    assert_eq!(keys(&pending(store, 10)), ["k"]);
}

pub(super) fn effects_are_closed_together_and_fenced(store: &dyn Store) {
    enqueue(store, "a", 0, &[("k1", 0), ("k2", 0), ("k3", 0)]);
    enqueue(store, "b", 0, &[("other", 0)]);
    let old = ok(store.acquire_lease(&id("a"), "one", at(0), Duration::from_millis(10))).fence;
    let new = ok(store.acquire_lease(&id("a"), "two", at(10), Duration::from_millis(10))).fence;
    let close = |fence, keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        store.effects_done(&id("a"), fence, &keys)
    };
    // A coordinator that was replaced closes nothing of its successor's.
    let fenced = close(Some(old), &["k1"]);
    assert!(matches!(fenced, Err(CommitError::Fenced { current }) if current == new), "{fenced:?}");
    assert_eq!(pending(store, 10).len(), 4);
    // Those of other runs, unknown ones and repetitions do not count.
    assert_eq!(ok(close(Some(new), &["k1", "other", "unknown", "k1", "k3"])), 2);
    assert_eq!(keys(&pending(store, 10)), ["k2", "other"]);
    assert_eq!(ok(close(None, &["k1", "k2"])), 1);
    assert_eq!(ok(close(None, &[])), 0);
    assert_eq!(stored(store, "a").revision, Revision(1), "no step was taken");
    let missing = store.effects_done(&id("none"), None, &[]);
    assert!(matches!(missing, Err(CommitError::NoSuchRun { .. })), "{missing:?}");
    let missing = store.effects_done(&id("none"), Some(1), &[]);
    assert!(matches!(missing, Err(CommitError::Fenced { current: 0 })), "{missing:?}");
}

pub(super) fn effects_are_chosen_by_kind_and_counted(store: &dyn Store) {
    let of = |key: &str, kind: &str, lane: &str| NewEffect {
        kind: kind.to_owned(),
        lane: lane.to_owned(),
        ..effect(key, 7)
    };
    let effects = vec![of("1", "b", ""), of("2", "a", "x"), of("3", "a", ""), of("4", "a", "x")];
    ok(store.commit(&Step { effects, ..step("r", 0) }));
    ok(store.commit(&Step { effects: vec![of("5", "c", "x")], ..step("s", 0) }));
    let chosen = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
        let filter = EffectFilter { kinds, ..EffectFilter::due_by(at(7)) };
        ok(store.pending_effects(&filter)).into_iter().map(|it| it.key).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&["a"]), ["2", "3", "4"]);
    assert_eq!(chosen(&["c", "b", "none"]), ["1", "5"]);
    assert_eq!(chosen(&["none"]), [""; 0]);
    let counted = || {
        let counts = ok(store.pending_count()).into_iter();
        counts.map(|it| format!("{} {} {}", it.kind, it.lane, it.count)).collect::<Vec<_>>()
    };
    assert_eq!(counted(), ["a  1", "a x 2", "b  1", "c x 1"], "due or not");
    assert!(close(store, "r", "2") && close(store, "s", "5"));
    assert_eq!(counted(), ["a  1", "a x 1", "b  1"]);
}
