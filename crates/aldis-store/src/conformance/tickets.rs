//! Tickets hold until their time is over, and one of two gets them.

use std::thread;

use super::{at, ok};
use crate::store::Store;
use crate::ticket::Ticket;

fn ticket(key: &str, created: i64, until: i64) -> Ticket {
    let (kind, key) = ("login".to_owned(), key.to_owned());
    let body = format!("{key} \u{0}\u{1f600}");
    Ticket { kind, key, created: at(created), until: at(until), body }
}

pub(super) fn a_ticket_is_put_once_while_it_holds(store: &dyn Store) {
    let first = ticket("a", 0, 10);
    assert!(ok(store.put_ticket(&first)));
    for created in [0, 5, 9] {
        assert!(!ok(store.put_ticket(&ticket("a", created, 99))), "{created}");
    }
    assert_eq!(ok(store.ticket("login", "a")), Some(first));
    let second = ticket("a", 10, 20);
    assert!(ok(store.put_ticket(&second)), "its time is over");
    assert_eq!(ok(store.ticket("login", "a")), Some(second));
    // Of another kind it is another one.
    let other = Ticket { kind: "used".to_owned(), ..ticket("a", 11, 20) };
    assert!(ok(store.put_ticket(&other)));
    assert_eq!(ok(store.ticket("none", "a")), None);
}

pub(super) fn a_ticket_is_taken_once(store: &dyn Store) {
    let known = ticket("a", 0, 10);
    assert!(ok(store.put_ticket(&known)));
    assert_eq!(ok(store.take_ticket("login", "b")), None);
    assert_eq!(ok(store.take_ticket("used", "a")), None);
    assert_eq!(ok(store.take_ticket("login", "a")), Some(known));
    assert_eq!(ok(store.take_ticket("login", "a")), None);
    assert_eq!(ok(store.ticket("login", "a")), None);
}

pub(super) fn tickets_are_listed_latest_first(store: &dyn Store) {
    for (key, created) in [("b", 5), ("c", 7), ("a", 5)] {
        assert!(ok(store.put_ticket(&ticket(key, created, 99))));
    }
    let keys = |limit| -> Vec<String> {
        ok(store.tickets("login", limit)).into_iter().map(|it| it.key).collect()
    };
    assert_eq!(keys(9), ["c", "a", "b"]);
    assert_eq!(keys(2), ["c", "a"]);
    assert!(keys(0).is_empty());
    assert_eq!(ok(store.tickets("used", 9)), []);
}

pub(super) fn tickets_that_are_over_are_forgotten(store: &dyn Store) {
    for (key, until) in [("a", 10), ("b", 20), ("c", 30)] {
        assert!(ok(store.put_ticket(&ticket(key, 0, until))));
    }
    assert!(ok(store.put_ticket(&ticket("d", 20, 40))));
    let mut left: Vec<String> =
        ok(store.tickets("login", 9)).into_iter().map(|it| it.key).collect();
    left.sort_unstable();
    assert_eq!(left, ["c", "d"]);
}

/// Whoever comes at the same moment: each ticket is put by one and taken by one.
pub(super) fn racing_threads_share_tickets(store: &dyn Store) {
    const TICKETS: usize = 20;
    let race = |act: &(dyn Fn(&str) -> bool + Sync)| -> usize {
        let mine = || (0..TICKETS).filter(|number| act(&number.to_string())).count();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(mine)).collect();
            let done = threads.into_iter().map(|thread| match thread.join() {
                Ok(done) => done,
                Err(_) => panic!("a thread failed"),
            });
            done.sum()
        })
    };
    assert_eq!(race(&|key| ok(store.put_ticket(&ticket(key, 0, 10)))), TICKETS);
    assert_eq!(race(&|key| ok(store.take_ticket("login", key)).is_some()), TICKETS);
}
