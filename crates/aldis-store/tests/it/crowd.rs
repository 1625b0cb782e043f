//! Many writers at once, as threads and as processes: none fails, and every step counts.

use std::process::Child;
use std::thread;

use aldis_store::SqliteStore;

use crate::child;

const CROWD: u64 = 16;
const STEPS: u64 = 8;

#[test]
fn threads_with_one_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    thread::scope(|scope| {
        for number in 0..CROWD {
            let store = &store;
            scope.spawn(move || {
                for step in 0..STEPS {
                    child::count_once(store, &format!("{number}.{step}"));
                }
            });
        }
    });
    assert_eq!(child::verify(directory.path(), &[]), CROWD * STEPS);
}

#[test]
fn threads_with_stores_of_their_own_in_a_fresh_directory() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("not/yet");
    thread::scope(|scope| {
        for number in 0..CROWD {
            let state = &state;
            scope.spawn(move || {
                let store = SqliteStore::open(state).unwrap();
                for step in 0..STEPS {
                    child::count_once(&store, &format!("{number}.{step}"));
                }
            });
        }
    });
    assert_eq!(child::verify(&state, &[]), CROWD * STEPS);
}

#[test]
fn processes_in_a_fresh_directory() {
    for _ in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let children: Vec<Child> = (0..CROWD)
            .map(|number| child::command(&state, &number.to_string(), STEPS).spawn().unwrap())
            .collect();
        let mut marks = Vec::new();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let output_text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && !output_text.contains("failed:"), "{output_text}");
            marks.extend(child::acknowledged(&output.stdout));
        }
        assert_eq!(marks.len() as u64, CROWD * STEPS);
        assert_eq!(child::verify(&state, &marks), CROWD * STEPS);
    }
}
