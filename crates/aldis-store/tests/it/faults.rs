//! Faults of the memory store: as commanded, before or after, and never a lie about what happened.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{
    ClaimRequest, CommitError, Driver, Fault, FaultKind, MemoryStore, Prune, Revision, RunId,
    RunRecord, Step, Store, StoreError, When,
};

fn step(expected: u64) -> Step {
    let record = RunRecord {
        project: String::new(),
        session: None,
        machine: String::new(),
        driver: Driver::Process,
        title: String::new(),
        active: true,
        state: String::new(),
    };
    let run = RunId::new("r").unwrap();
    Step::new(run, Revision(expected), record, Timestamp::from_millis(0))
}

fn revision(store: &MemoryStore) -> u64 {
    store.run(&step(0).run).unwrap().map_or(0, |run| run.revision.0)
}

#[test]
fn a_fault_before_leaves_nothing_and_one_after_leaves_everything() {
    let store = MemoryStore::new();
    store.fail_next(Fault { when: When::Before, kind: FaultKind::Full });
    let error = store.commit(&step(0)).unwrap_err();
    assert!(matches!(error, CommitError::Store(StoreError::Full { .. })), "{error}");
    assert_eq!(revision(&store), 0);

    store.fail_next(Fault { when: When::After, kind: FaultKind::Io });
    let error = store.commit(&step(0)).unwrap_err();
    assert!(matches!(error, CommitError::Store(StoreError::Io { .. })), "{error}");
    assert_eq!(revision(&store), 1);
    // A second try shows that it had been written.
    let error = store.commit(&step(0)).unwrap_err();
    assert!(matches!(error, CommitError::Conflict { found: Revision(1) }), "{error}");
}

#[test]
fn the_nth_write_fails_and_no_other() {
    let store = MemoryStore::new();
    store.fail_nth(3, Fault { when: When::Before, kind: FaultKind::Busy });
    store.fail_nth(4, Fault { when: When::Before, kind: FaultKind::ReadOnly });
    store.commit(&step(0)).unwrap();
    let nothing = ClaimRequest::new(&[], "me", Timestamp::from_millis(0), Duration::ZERO);
    assert_eq!(store.claim(&nothing).unwrap(), []);
    let error = store.commit(&step(1)).unwrap_err();
    assert!(matches!(error, CommitError::Store(StoreError::Busy { .. })), "{error}");
    let error =
        store.prune(&Prune { ended_before: Timestamp::from_millis(0), limit: 1 }).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    store.commit(&step(1)).unwrap();
    assert_eq!(revision(&store), 2);
    store.fail_next(Fault { when: When::Before, kind: FaultKind::Full });
    assert!(matches!(store.probe(), Err(StoreError::Full { .. })));
    store.probe().unwrap();
}
