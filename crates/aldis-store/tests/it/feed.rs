//! Commits of other processes wake whoever waits here.

use std::time::Duration;

use aldis_store::{SqliteStore, Store as _};

use crate::child;

#[test]
fn another_process_ends_the_wait() {
    const STEPS: u64 = 5;
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let before = store.change().unwrap();
    let mut writer = child::command(directory.path(), "w", STEPS).spawn().unwrap();
    let (mut stamp, mut seen) = (before, 0);
    while seen < STEPS {
        // The test runner limits how long this may take.
        stamp = store.wait_for_change(&stamp, Duration::from_secs(600)).unwrap();
        seen = store.run(&child::run()).unwrap().map_or(0, |run| run.revision.0);
    }
    assert_ne!(stamp, before);
    assert!(writer.wait().unwrap().success());
}

#[test]
fn copying_the_log_back_hides_no_change() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = [0, 1].map(|_| SqliteStore::open(directory.path()).unwrap());
    let mut stamp = one.change().unwrap();
    // Enough to start the log anew several times.
    for number in 0..400 {
        child::count_once(&other, &number.to_string());
        let next = one.wait_for_change(&stamp, Duration::from_secs(600)).unwrap();
        assert_ne!(next, stamp);
        stamp = next;
    }
}
