//! The writer for many: every step counts once, those that are refused spoil nothing for the others.

use std::sync::Barrier;
use std::thread;

use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Driver, GroupStore, NewEffect, NewEvent, Revision, RunId, RunRecord, Source,
    SqliteStore, Step, Store as _,
};

const WRITERS: u64 = 32;
const STEPS: u64 = 40;

fn step(run: &str, expected: u64, source: &str) -> Step {
    let record = RunRecord {
        project: String::new(),
        session: None,
        machine: "test".to_owned(),
        driver: Driver::Server,
        title: String::new(),
        active: true,
        state: expected.to_string(),
    };
    let at = Timestamp::from_millis(0);
    let mut step = Step::new(RunId::new(run).unwrap(), Revision(expected), record, at);
    step.events.push(NewEvent {
        kind: "count".to_owned(),
        body: "{}".to_owned(),
        source: Some(Source::new(source)),
        at,
    });
    let (key, kind, body) = (source.to_owned(), "post".to_owned(), "{}".to_owned());
    let (lane, requires) = (run.to_owned(), Vec::new());
    step.effects.push(NewEffect { key, kind, body, due: at, lane, requires });
    step
}

#[test]
fn refused_steps_spoil_nothing_for_their_group() {
    let directory = tempfile::tempdir().unwrap();
    let store = GroupStore::open(directory.path()).unwrap();
    let start = Barrier::new(WRITERS as usize);
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let (store, start) = (&store, &start);
            scope.spawn(move || {
                start.wait();
                let run = format!("r{number}");
                for count in 0..STEPS {
                    let source = format!("{run}.{count}");
                    assert_eq!(
                        store.commit(&step(&run, count, &source)).unwrap().revision.0,
                        count + 1
                    );
                    // Stale, known, and of a run that is not there: in the same groups as the others.
                    let stale = store.commit(&step(&run, count, "new")).unwrap_err();
                    assert!(
                        matches!(stale, CommitError::Conflict { found } if found.0 == count + 1)
                    );
                    let known = store.commit(&step(&run, count + 1, &source)).unwrap_err();
                    assert!(matches!(known, CommitError::Duplicate { .. }));
                    let missing = store.commit(&step("missing", 7, "x")).unwrap_err();
                    assert!(matches!(missing, CommitError::NoSuchRun { .. }));
                    let done = store.effects_done(&RunId::new(&*run).unwrap(), None, &[source]);
                    assert_eq!(done.unwrap(), 1);
                }
            });
        }
    });
    drop(store);
    let store = SqliteStore::open(directory.path()).unwrap();
    for number in 0..WRITERS {
        let run = RunId::new(format!("r{number}")).unwrap();
        let found = store.run(&run).unwrap().unwrap();
        assert_eq!((found.revision.0, found.last_event), (STEPS, STEPS));
        assert_eq!(store.events(&run, 0, usize::MAX).unwrap().len() as u64, STEPS);
    }
    store.check().unwrap();
}

#[test]
fn a_callback_gets_the_result_and_the_step_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = GroupStore::open(directory.path()).unwrap();
    let (sender, results) = std::sync::mpsc::channel();
    let hand_over = |run: &str, source: &str| {
        let sender = sender.clone();
        let step = Box::new(step(run, 0, source));
        store.commit_then(step, Box::new(move |step, result| sender.send((step, result)).unwrap()));
    };
    for number in 0..WRITERS {
        // The second of each is late, whether or not it is in the group of the first.
        hand_over(&format!("r{number}"), "first");
        hand_over(&format!("r{number}"), "second");
    }
    for (step, result) in results.iter().take(2 * WRITERS as usize) {
        match step.events[0].source.as_ref().map(|source| &*source.key) {
            Some("first") => assert_eq!(result.unwrap().revision.0, 1),
            _ => assert!(matches!(result, Err(CommitError::Conflict { found }) if found.0 == 1)),
        }
        assert_eq!(store.run(&step.run).unwrap().unwrap().revision.0, 1);
    }
}

#[test]
fn other_processes_write_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let group = GroupStore::open(directory.path()).unwrap();
    // A second store on the same files behaves like another process.
    let other = SqliteStore::open(directory.path()).unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let (group, other) = (&group, &other);
            scope.spawn(move || {
                for count in 0..STEPS {
                    let run = format!("r{number}");
                    let step = step(&run, count, &format!("{run}.{count}"));
                    let revision =
                        if count % 2 == 0 { group.commit(&step) } else { other.commit(&step) };
                    assert_eq!(revision.unwrap().revision.0, count + 1);
                }
            });
        }
    });
    assert_eq!(group.count(&aldis_store::RunFilter::default()).unwrap(), 8);
}

#[test]
fn the_log_is_short_again_when_nobody_writes() {
    let directory = tempfile::tempdir().unwrap();
    let store = GroupStore::open(directory.path()).unwrap();
    let long = "x".repeat(40_000);
    for count in 0..40 {
        let mut step = step("r", count, &count.to_string());
        step.record.state.clone_from(&long);
        store.commit(&step).unwrap();
    }
    let log = directory.path().join("aldis.db-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    // The writer needs a moment without work; the test runner limits how long this may take.
    while length() > 512 << 10 {
        thread::yield_now();
    }
    assert_eq!(store.run(&RunId::new("r").unwrap()).unwrap().unwrap().revision.0, 40);
}
