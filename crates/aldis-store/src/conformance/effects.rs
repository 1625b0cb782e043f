//! The outbox: nothing lost, nothing enqueued twice.

use super::{at, create, effect, id, ok, some, step};
use crate::record::{Effect, EffectFilter, EffectState};
use crate::step::Step;
use crate::store::Store;

fn enqueue(store: &dyn Store, run: &str, expected: u64, effects: &[(&str, i64)]) {
    let effects = effects.iter().map(|(key, due)| effect(key, *due)).collect();
    ok(store.commit(&Step { effects, ..step(run, expected) }));
}

fn pending(store: &dyn Store, due_by: i64) -> Vec<Effect> {
    ok(store.pending_effects(&EffectFilter::due_by(at(due_by))))
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

    assert!(ok(store.effect_done("k")));
    enqueue(store, "a", 2, &[("k", 5)]);
    assert_eq!(keys(&pending(store, 10)), ["other"]);
}

pub(super) fn an_effect_is_pending_until_it_is_done(store: &dyn Store) {
    enqueue(store, "r", 0, &[("a", 0), ("b", 0)]);
    // Reading it is not performing it.
    for _ in 0..2 {
        assert_eq!(keys(&pending(store, 10)), ["a", "b"]);
    }
    assert!(ok(store.effect_done("a")));
    assert!(!ok(store.effect_done("a")), "it was done before");
    assert!(!ok(store.effect_done("unknown")));
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

pub(super) fn a_failed_effect_comes_back(store: &dyn Store) {
    enqueue(store, "r", 0, &[("k", 0)]);
    for attempt in 1..=3 {
        let next = i64::from(attempt) * 100;
        assert!(ok(store.effect_failed("k", Some(at(next)), "refused")));
        assert_eq!(keys(&pending(store, next - 1)), [""; 0]);
        let effects = pending(store, next);
        assert_eq!((effects[0].attempts, effects[0].due), (attempt, at(next)));
        assert_eq!(effects[0].error.as_deref(), Some("refused"));
    }
    assert!(ok(store.effect_done("k")));
    assert!(!ok(store.effect_failed("k", Some(at(0)), "too late")));
    assert!(!ok(store.effect_failed("unknown", None, "too late")));
    assert_eq!(some(ok(store.effect("k"))).attempts, 3);
    assert_eq!(keys(&pending(store, 1_000)), [""; 0]);
}

pub(super) fn an_effect_that_was_given_up_stays_visible(store: &dyn Store) {
    create(store, "r");
    enqueue(store, "r", 1, &[("k", 7)]);
    assert!(ok(store.effect_failed("k", None, "gone for good")));
    assert_eq!(keys(&pending(store, 1_000)), [""; 0]);
    let effect = some(ok(store.effect("k")));
    assert_eq!((effect.state, effect.attempts), (EffectState::GivenUp, 1));
    assert_eq!((effect.error.as_deref(), effect.due), (Some("gone for good"), at(7)));
    assert!(!ok(store.effect_done("k")));
    enqueue(store, "r", 2, &[("k", 7)]);
    assert_eq!(keys(&pending(store, 1_000)), [""; 0]);
}
