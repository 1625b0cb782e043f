//! `kill -9` at any point: what was acknowledged is there, once, and the database is sound.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Command;

use aldis_store::SqliteStore;

use crate::child;
use crate::versions::{VERSION_2, check_version_2, database};

/// Kills a writer after it acknowledged `acknowledgements` steps, while it works on the next one.
fn kill_after(directory: &Path, name: &str, acknowledgements: usize) -> Vec<String> {
    let mut writer = child::command(directory, name, u64::MAX).spawn().unwrap();
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let mut printed = Vec::new();
    while child::acknowledged(&printed).len() < acknowledgements {
        assert!(output.read_until(b'\n', &mut printed).unwrap() > 0, "the writer left by itself");
    }
    writer.kill().unwrap();
    // What it printed before it died counts as well.
    output.read_to_end(&mut printed).unwrap();
    writer.wait().unwrap();
    child::acknowledged(&printed)
}

#[test]
fn killed_between_any_two_steps() {
    let directory = tempfile::tempdir().unwrap();
    let mut marks = Vec::new();
    let mut least = 0;
    for round in 0..60_usize {
        // Two at a time every now and then, so that one dies while the other waits or writes.
        let count = (round * 7) % 5;
        let other = (round % 4 == 0)
            .then(|| child::command(directory.path(), &format!("x{round}"), 3).spawn().unwrap());
        marks.extend(kill_after(directory.path(), &format!("k{round}"), count));
        if let Some(other) = other {
            let output = other.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            marks.extend(child::acknowledged(&output.stdout));
        }
        let count = child::verify(directory.path(), &marks);
        assert!(count >= marks.len() as u64 && count >= least);
        least = count;
    }
}

/// Runs a writer of so many steps that is killed at its `nth` call of one kind.
#[cfg(target_os = "linux")]
fn killed_at(call: &str, nth: usize, state: &Path, steps: u64) -> std::process::Output {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:signal=KILL:when={nth}"))
        .arg(std::env::current_exe().unwrap())
        .args(child::ARGUMENTS);
    child::configure(&mut strace, state, "s", steps);
    strace.output().unwrap()
}

/// Kills a writer at its `nth` call of one kind, counted from the start of a fresh directory:
/// creation and migration are hit as well. Returns whether it got that far.
#[cfg(target_os = "linux")]
fn kill_at_call(call: &str, nth: usize) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let output = killed_at(call, nth, &state, 4);
    let marks = child::acknowledged(&output.stdout);
    // The successor has no trouble with what was left behind.
    let next = child::command(&state, "next", 2).output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stdout));
    let all: Vec<String> = marks.into_iter().chain(child::acknowledged(&next.stdout)).collect();
    child::verify(&state, &all);
    !output.status.success()
}

#[cfg(target_os = "linux")]
#[test]
fn killed_at_any_call_that_changes_a_file() {
    if !crate::disk::has_strace() {
        return;
    }
    let mut killed = 0;
    for call in ["pwrite64", "fsync,fdatasync", "ftruncate,unlink", "flock"] {
        // Close together at first, where files are created, then further apart.
        for nth in (1..8).chain((8..60).step_by(9)) {
            if !kill_at_call(call, nth) {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed >= 20, "only {killed} writers were killed; was anything injected?");
}

#[cfg(target_os = "linux")]
#[test]
fn killed_while_it_migrates() {
    if !crate::disk::has_strace() {
        return;
    }
    let mut killed = 0;
    for call in ["pwrite64", "fsync,fdatasync", "ftruncate,unlink", "flock"] {
        for nth in (1..6).chain((6..90).step_by(4)) {
            let directory = tempfile::tempdir().unwrap();
            database(directory.path(), VERSION_2);
            let output = killed_at(call, nth, directory.path(), 0);
            // Whoever comes next finds the old version or the new one, and goes on.
            let store = SqliteStore::open(directory.path()).unwrap();
            check_version_2(&store);
            store.check().unwrap();
            if output.status.success() {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed >= 15, "only {killed} were killed; was anything injected?");
}

#[test]
fn several_processes_migrate_at_once() {
    for _ in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        database(directory.path(), VERSION_2);
        let opened: Vec<_> = (0..8)
            .map(|number| child::command(directory.path(), &number.to_string(), 0).spawn().unwrap())
            .collect();
        for child in opened {
            let output = child.wait_with_output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && !printed.contains("failed:"), "{printed}");
        }
        let store = SqliteStore::open(directory.path()).unwrap();
        check_version_2(&store);
        store.check().unwrap();
    }
}
