//! Retention of runs that are too large for one transaction, and of databases that shrink again.

use std::path::Path;

use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Driver, GroupStore, NewDecision, NewEffect, NewEvent, PartChange, Prune, Revision,
    RunFilter, RunId, RunRecord, Source, SqliteStore, Step, Store, TimerChange,
};
use rusqlite::Connection;

/// More rows than one call of `prune` deletes.
const EVENTS: u64 = 40_000;
const PER_STEP: u64 = 4_000;

const EVERYTHING: Prune =
    Prune { ended_before: Timestamp::from_millis(i64::MAX), limit: usize::MAX };

fn id(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

/// A step with many events and one of everything else. The last one ends the run.
fn step(run: &str, expected: u64, events: u64, active: bool) -> Step {
    let at = Timestamp::from_millis(1_000);
    let record = RunRecord {
        project: String::new(),
        session: None,
        machine: "test".to_owned(),
        driver: Driver::Server,
        title: String::new(),
        active,
        state: String::new(),
    };
    let event = |number: u64| NewEvent {
        kind: "said".to_owned(),
        body: "x".repeat(40),
        source: Some(Source::new(format!("{expected}.{number}"))),
        at,
    };
    let key = format!("{run}/{expected}");
    Step {
        events: (0..events).map(event).collect(),
        decisions: vec![NewDecision { body: "{}".to_owned(), at }],
        effects: vec![NewEffect {
            key: key.clone(),
            kind: "post".to_owned(),
            body: String::new(),
            due: at,
            lane: "lane".to_owned(),
            requires: Vec::new(),
        }],
        timers: vec![TimerChange::Set { key: key.clone(), due: at }],
        parts: vec![PartChange::Set { key, body: String::new() }],
        ..Step::new(id(run), Revision(expected), record, at)
    }
}

/// Commits a run that is long and over.
fn long_run(store: &dyn Store, run: &str) {
    let steps = EVENTS / PER_STEP;
    for expected in 0..steps {
        store.commit(&step(run, expected, PER_STEP, expected + 1 < steps)).unwrap();
    }
}

#[test]
fn a_long_run_is_gone_at_once_and_deleted_by_and_by() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    long_run(&store, "long");
    store.commit(&step("short", 0, 1, false)).unwrap();
    let gone = store.prune(&EVERYTHING).unwrap();
    assert_eq!(gone, [id("long")], "the first one has used up the call");
    assert_eq!(store.size().unwrap().unfinished, 1);
    assert_eq!(store.run(&id("long")).unwrap(), None);
    assert_eq!(store.count(&RunFilter::default()).unwrap(), 1);
    let timers = store.due_timers(Timestamp::from_millis(1_000), 10).unwrap();
    assert_eq!(timers.len(), 1, "nothing of it fires");
    assert_eq!(store.pending_count().unwrap()[0].count, 1, "nothing of it is handed out");

    assert_eq!(store.prune(&EVERYTHING).unwrap(), [id("short")]);
    assert_eq!(store.size().unwrap().unfinished, 0);
    assert_eq!(store.events(&id("long"), 0, 1).unwrap(), []);
    assert_eq!(rows(directory.path()), 0);
    store.check().unwrap();
}

/// How many rows there are in all tables with history.
fn rows(directory: &Path) -> i64 {
    let connection = Connection::open(directory.join("aldis.db")).unwrap();
    let tables = ["runs", "events", "decisions", "outbox", "timers", "parts", "doomed"];
    let count = |table| {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    tables.into_iter().map(count).sum()
}

#[test]
fn the_name_of_a_run_that_is_being_deleted_can_be_used_again() {
    let directory = tempfile::tempdir().unwrap();
    for grouped in [false, true] {
        let directory = directory.path().join(grouped.to_string());
        let store: Box<dyn Store> = match grouped {
            true => Box::new(GroupStore::open(&directory).unwrap()),
            false => Box::new(SqliteStore::open(&directory).unwrap()),
        };
        for callback in [false, true] {
            long_run(&*store, "long");
            assert_eq!(store.prune(&EVERYTHING).unwrap(), [id("long")]);
            assert_eq!(store.size().unwrap().unfinished, 1);
            // The same keys and sources as before, and nothing else is left of the old run.
            let mut first = step("long", 0, 3, false);
            first.events[1].source = Some(Source::new(format!("9.{}", PER_STEP - 1)));
            if callback {
                let (sender, results) = std::sync::mpsc::channel();
                let reply = move |_, result| sender.send(result).unwrap();
                store.commit_then(Box::new(first), Box::new(reply));
                results.recv().unwrap().unwrap();
            } else {
                store.commit(&first).unwrap();
            }
            assert_eq!(store.events(&id("long"), 0, usize::MAX).unwrap().len(), 3);
            assert!(store.effect("long/0").unwrap().is_some());
            assert_eq!(store.effect("long/1").unwrap(), None);
            assert_eq!(store.load(&id("long")).unwrap().unwrap().parts.len(), 1);
            assert_eq!(store.prune(&EVERYTHING).unwrap(), [id("long")]);
        }
        // A late step of the old run finds none, whatever is left of it.
        long_run(&*store, "long");
        assert_eq!(store.prune(&EVERYTHING).unwrap(), [id("long")]);
        let mut late = step("long", 10, 1, true);
        late.events[0].source = Some(Source::new(format!("9.{}", PER_STEP - 1)));
        let late = store.commit(&late).unwrap_err();
        assert!(matches!(late, CommitError::NoSuchRun { .. }), "{late}");
    }
}

#[test]
fn free_pages_are_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    long_run(&store, "long");
    let full = store.size().unwrap();
    while store.size().unwrap().runs + store.size().unwrap().unfinished > 0 {
        store.prune(&EVERYTHING).unwrap();
    }
    store.prune(&EVERYTHING).unwrap();
    let empty = store.size().unwrap();
    assert!(empty.bytes < full.bytes / 2, "{empty:?} after {full:?}");
    store.check().unwrap();
}
