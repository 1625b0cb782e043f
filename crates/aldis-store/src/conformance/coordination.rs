//! Timers, leases and fencing numbers: who may act, and when.

use std::time::Duration;

use super::{at, create, event, id, ok, refused, set, some, step, stored};
use crate::error::{CommitError, LeaseError};
use crate::record::{Lease, Timer};
use crate::step::{Revision, Step, TimerChange};
use crate::store::Store;

const TTL: Duration = Duration::from_millis(100);

fn arm(store: &dyn Store, run: &str, expected: u64, timers: Vec<TimerChange>) {
    ok(store.commit(&Step { timers, ..step(run, expected) }));
}

fn due(store: &dyn Store, now: i64) -> Vec<String> {
    let timers = ok(store.due_timers(at(now), 100));
    timers.iter().map(|timer| format!("{}/{}", timer.run, timer.key)).collect()
}

fn acquire(store: &dyn Store, holder: &str, now: i64) -> Result<Lease, LeaseError> {
    store.acquire_lease(&id("r"), holder, at(now), TTL)
}

pub(super) fn timers_come_due_in_order(store: &dyn Store) {
    assert_eq!(ok(store.next_timer()), None);
    arm(store, "b", 0, vec![set("late", 30), set("y", 10), set("x", 10)]);
    arm(store, "a", 0, vec![set("z", 10), set("first", -5)]);
    assert_eq!(ok(store.next_timer()), Some(at(-5)));
    assert_eq!(due(store, -6), [""; 0]);
    assert_eq!(due(store, -5), ["a/first"]);
    assert_eq!(due(store, 29), ["a/first", "a/z", "b/x", "b/y"]);
    assert_eq!(due(store, 30).len(), 5);
    let first = ok(store.due_timers(at(30), 1));
    assert_eq!(first, [Timer { run: id("a"), key: "first".to_owned(), due: at(-5) }]);
}

pub(super) fn a_timer_can_be_moved_and_cleared(store: &dyn Store) {
    arm(store, "r", 0, vec![set("k", 10), set("other", 50)]);
    arm(store, "other", 0, vec![set("k", 40)]);
    arm(store, "r", 1, vec![set("k", 20)]);
    assert_eq!(due(store, 19), [""; 0]);
    assert_eq!(due(store, 20), ["r/k"]);

    let clear = |key: &str| TimerChange::Clear { key: key.to_owned() };
    arm(store, "r", 2, vec![clear("k"), clear("unknown")]);
    assert_eq!(due(store, 100), ["other/k", "r/other"]);
    // In the order given: the last change counts.
    arm(store, "r", 3, vec![clear("other"), set("other", 60), set("gone", 1), clear("gone")]);
    assert_eq!(due(store, 100), ["other/k", "r/other"]);
    assert_eq!(ok(store.next_timer()), Some(at(40)));
}

pub(super) fn a_lease_keeps_others_out(store: &dyn Store) {
    create(store, "r");
    let lease = ok(acquire(store, "one", 1_000));
    assert_eq!(lease, Lease { run: id("r"), holder: "one".to_owned(), fence: 1, until: at(1_100) });
    match acquire(store, "two", 1_099) {
        Err(LeaseError::Held { holder, until, fence }) => {
            assert_eq!((&*holder, until, fence), ("one", at(1_100), 1));
        }
        other => panic!("unexpected {other:?}"),
    }
    assert_eq!(stored(store, "r").fence, 1);
}

pub(super) fn an_expired_lease_passes_on(store: &dyn Store) {
    create(store, "r");
    ok(acquire(store, "one", 1_000));
    let taken = ok(acquire(store, "two", 1_100));
    assert_eq!((taken.fence, taken.until), (2, at(1_200)));
    assert_eq!(stored(store, "r").fence, 2);
}

pub(super) fn a_lease_can_be_kept(store: &dyn Store) {
    create(store, "r");
    let lease = ok(acquire(store, "one", 1_000));
    let kept = ok(store.renew_lease(&lease, at(1_050), TTL));
    assert_eq!((kept.fence, kept.until), (1, at(1_150)));
    assert!(matches!(acquire(store, "two", 1_149), Err(LeaseError::Held { .. })));
    // Late, but nobody took it.
    let kept = ok(store.renew_lease(&kept, at(5_000), TTL));
    assert_eq!((kept.fence, kept.until), (1, at(5_100)));
}

pub(super) fn a_lost_lease_cannot_be_kept(store: &dyn Store) {
    create(store, "r");
    let old = ok(acquire(store, "one", 1_000));
    let new = ok(acquire(store, "two", 2_000));
    let lost = store.renew_lease(&old, at(2_001), TTL);
    assert!(matches!(lost, Err(LeaseError::Lost { current: 2 })), "{lost:?}");
    let forged = Lease { fence: new.fence, ..old.clone() };
    let lost = store.renew_lease(&forged, at(2_001), TTL);
    assert!(matches!(lost, Err(LeaseError::Lost { current: 2 })), "{lost:?}");
    assert!(!ok(store.release_lease(&old)), "it is somebody else's now");
    assert!(matches!(acquire(store, "three", 2_050), Err(LeaseError::Held { .. })));
}

pub(super) fn a_released_lease_is_free(store: &dyn Store) {
    create(store, "r");
    let lease = ok(acquire(store, "one", 1_000));
    assert!(ok(store.release_lease(&lease)));
    assert!(!ok(store.release_lease(&lease)));
    let lost = store.renew_lease(&lease, at(1_001), TTL);
    assert!(matches!(lost, Err(LeaseError::Lost { current: 1 })), "{lost:?}");
    assert_eq!(ok(acquire(store, "two", 1_001)).fence, 2);
}

pub(super) fn a_lease_can_be_broken(store: &dyn Store) {
    create(store, "r");
    let lease = ok(acquire(store, "one", 1_000));
    let broken = |fence| ok(store.break_lease(&id("r"), fence));
    assert!(!broken(0) && !broken(2), "exactly the lease that is meant");
    assert!(matches!(acquire(store, "two", 1_050), Err(LeaseError::Held { .. })));
    assert!(broken(lease.fence));
    assert!(!broken(lease.fence), "it was broken before");
    // Its holder lives after all: it neither writes nor keeps the lease.
    let late = Step { fence: Some(lease.fence), ..step("r", 1) };
    assert!(matches!(refused(store, &late), CommitError::Fenced { .. }));
    assert!(matches!(store.renew_lease(&lease, at(1_050), TTL), Err(LeaseError::Lost { .. })));
    assert!(!ok(store.release_lease(&lease)));
    // The next one need not wait.
    let next = ok(acquire(store, "two", 1_050));
    assert!(next.fence > lease.fence);
    assert!(!broken(lease.fence), "a successor is not touched");
    ok(store.commit(&Step { fence: Some(next.fence), ..step("r", 1) }));
    assert!(ok(store.release_lease(&next)));
    assert!(!broken(next.fence), "nobody holds it");
    assert!(!ok(store.break_lease(&id("none"), 0)));
}

pub(super) fn the_same_name_takes_over_from_itself(store: &dyn Store) {
    create(store, "r");
    let before = ok(acquire(store, "daemon", 1_000));
    let after = ok(acquire(store, "daemon", 1_001));
    assert_eq!((before.fence, after.fence), (1, 2));
    let late = Step { fence: Some(before.fence), ..step("r", 1) };
    assert!(matches!(refused(store, &late), CommitError::Fenced { current: 2 }));
}

pub(super) fn an_old_fencing_number_writes_nothing(store: &dyn Store) {
    create(store, "r");
    let old = ok(acquire(store, "one", 1_000));
    ok(store.commit(&Step { fence: Some(old.fence), ..step("r", 1) }));
    let new = ok(acquire(store, "two", 2_000));

    // The old holder wakes up with the right revision and does not know yet.
    for fence in [0, old.fence, new.fence + 1, u64::MAX] {
        let late = Step {
            fence: Some(fence),
            events: vec![event("late", None)],
            timers: vec![set("late", 1)],
            ..step("r", 2)
        };
        let error = refused(store, &late);
        assert!(matches!(error, CommitError::Fenced { current: 2 }), "{error}");
    }
    assert_eq!(stored(store, "r").revision, Revision(2));
    assert_eq!(ok(store.next_timer()), None);
    ok(store.commit(&Step { fence: Some(new.fence), ..step("r", 2) }));
    // Who works without a lease relies on the revision.
    ok(store.commit(&step("r", 3)));
}

pub(super) fn being_fenced_is_said_first(store: &dyn Store) {
    ok(store.commit(&Step { events: vec![event("e", Some("known"))], ..step("r", 0) }));
    ok(acquire(store, "one", 1_000));
    let everything_wrong =
        Step { fence: Some(7), events: vec![event("e", Some("known"))], ..step("r", 9) };
    assert!(matches!(refused(store, &everything_wrong), CommitError::Fenced { current: 1 }));
}

pub(super) fn leases_of_missing_runs_are_refused(store: &dyn Store) {
    let missing = acquire(store, "one", 1_000);
    assert!(matches!(missing, Err(LeaseError::NoSuchRun { .. })), "{missing:?}");
    let made_up = Lease { run: id("r"), holder: "one".to_owned(), fence: 1, until: at(0) };
    let missing = store.renew_lease(&made_up, at(0), TTL);
    assert!(matches!(missing, Err(LeaseError::NoSuchRun { .. })), "{missing:?}");
    assert!(!ok(store.release_lease(&made_up)));
}

pub(super) fn a_lease_survives_steps(store: &dyn Store) {
    create(store, "r");
    let lease = ok(acquire(store, "one", 1_000));
    ok(store.commit(&step("r", 1)));
    assert!(matches!(acquire(store, "two", 1_050), Err(LeaseError::Held { .. })));
    assert_eq!(some(ok(store.run(&id("r")))).fence, lease.fence);
    ok(store.renew_lease(&lease, at(1_050), TTL));
}
