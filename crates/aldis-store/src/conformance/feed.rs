//! The change feed: whoever waits is woken by whatever is written, and by nothing is fooled into missing it.

use std::thread;
use std::time::Duration;

use super::{create, effect, id, ok, refused, some, step};
use crate::claim::ClaimRequest;
use crate::cursor::ChangeStamp;
use crate::step::{Revision, Step};
use crate::store::Store;

/// Far longer than any check takes: one that needs it hangs, and fails by that.
const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(20);

fn wait(store: &dyn Store, after: &ChangeStamp, timeout: Duration) -> ChangeStamp {
    ok(store.wait_for_change(after, timeout))
}

pub(super) fn a_wait_without_a_change_ends_in_time(store: &dyn Store) {
    let stamp = ok(store.change());
    assert_eq!(wait(store, &stamp, SHORT), stamp);
    create(store, "r");
    let stamp = ok(store.change());
    assert_eq!(wait(store, &stamp, SHORT), stamp);
    assert_eq!(wait(store, &stamp, Duration::ZERO), stamp);
    // What is refused is no change.
    refused(store, &step("r", 7));
    assert_eq!(wait(store, &stamp, SHORT), stamp);
    assert_eq!(ok(store.change()), stamp);
}

pub(super) fn a_change_before_the_wait_ends_it_at_once(store: &dyn Store) {
    let mut stamp = ok(store.change());
    let mut changed = |what: &str| {
        let next = wait(store, &stamp, LONG);
        assert_ne!(next, stamp, "{what}");
        stamp = next;
    };
    ok(store.commit(&Step { effects: vec![effect("a", 0)], ..step("r", 0) }));
    changed("a step");
    let request = ClaimRequest::new(&[], "me", super::at(0), LONG);
    let claim = some(ok(store.claim(&request)).pop());
    changed("a claim");
    assert!(ok(store.done(&claim)));
    changed("an effect that is done");
    let lease = ok(store.acquire_lease(&id("r"), "me", super::at(0), LONG));
    changed("a lease");
    assert!(ok(store.release_lease(&lease)));
    changed("the end of a lease");
}

pub(super) fn every_waiting_thread_is_woken(store: &dyn Store) {
    create(store, "r");
    let stamp = ok(store.change());
    thread::scope(|scope| {
        let waiters: Vec<_> =
            (0..6).map(|_| scope.spawn(|| wait(store, &stamp, LONG) != stamp)).collect();
        // One that gives up early leaves the others their wait.
        assert_eq!(wait(store, &stamp, SHORT), stamp);
        ok(store.commit(&step("r", 1)));
        assert!(waiters.into_iter().all(|waiter| waiter.join().is_ok_and(|changed| changed)));
    });
}

/// Two that answer each other: each waits for the step of the other one.
pub(super) fn nothing_is_missed_between_reading_and_waiting(store: &dyn Store) {
    const STEPS: u64 = 40;
    create(store, "r");
    let play = |mine: u64| loop {
        let stamp = ok(store.change());
        let revision = some(ok(store.run(&id("r")))).revision;
        if revision > Revision(STEPS) {
            return;
        }
        if revision.0 % 2 == mine {
            ok(store.commit(&step("r", revision.0)));
        } else {
            wait(store, &stamp, LONG);
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || play(0));
        scope.spawn(move || play(1));
    });
}
