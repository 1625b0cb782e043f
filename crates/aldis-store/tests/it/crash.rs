//! `kill -9` at any point: what was acknowledged is there, once, and the database is sound.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Command;

use crate::child;

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

/// Kills a writer at its `nth` call of one kind, counted from the start of a fresh directory:
/// creation and migration are hit as well. Returns whether it got that far.
#[cfg(target_os = "linux")]
fn kill_at_call(call: &str, nth: usize) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:signal=KILL:when={nth}"))
        .arg(std::env::current_exe().unwrap())
        .args(child::ARGUMENTS);
    child::configure(&mut strace, &state, "s", 4);
    let output = strace.output().unwrap();
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
