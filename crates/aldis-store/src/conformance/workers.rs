//! The registry of workers.

use std::time::Duration;

use super::{at, ok};
use crate::store::Store;
use crate::worker::WorkerRecord;

const TTL: Duration = Duration::from_millis(100);

fn announce(store: &dyn Store, name: &str, body: &str, now: i64) {
    ok(store.announce(name, body, at(now), TTL));
}

pub(super) fn workers_are_listed_as_they_announced_themselves(store: &dyn Store) {
    assert_eq!(ok(store.workers()), []);
    announce(store, "b", "{}", 1_000);
    announce(store, "a", "{\"slots\":1}", 1_010);
    announce(store, "a", "{\"slots\":2}", 1_050);
    let worker = |name: &str, body: &str, seen: i64| WorkerRecord {
        name: name.to_owned(),
        body: body.to_owned(),
        seen: at(seen),
        until: at(seen + 100),
    };
    assert_eq!(
        ok(store.workers()),
        [worker("a", "{\"slots\":2}", 1_050), worker("b", "{}", 1_000)]
    );
    assert!(ok(store.withdraw("b")));
    assert!(!ok(store.withdraw("b")));
    assert_eq!(ok(store.workers()), [worker("a", "{\"slots\":2}", 1_050)]);
}

pub(super) fn workers_that_are_long_gone_are_forgotten(store: &dyn Store) {
    let day = 24 * 60 * 60 * 1_000;
    announce(store, "old", "{}", 1_000);
    announce(store, "late", "{}", 1_001);
    let names = || ok(store.workers()).into_iter().map(|it| it.name).collect::<Vec<_>>();
    announce(store, "new", "{}", 1_100 + day);
    assert_eq!(names(), ["late", "new", "old"], "people can see for a day that it is gone");
    announce(store, "new", "{}", 1_101 + day);
    assert_eq!(names(), ["late", "new"]);
}
