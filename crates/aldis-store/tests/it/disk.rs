//! Failing disks: the kind of error is reported, nothing acknowledged is lost, and the store recovers.

#[cfg(target_os = "linux")]
use std::{io::Write as _, path::Path, process::Command};

#[cfg(target_os = "linux")]
use aldis_store::{SqliteStore, Store as _};

#[cfg(target_os = "linux")]
use crate::child;

/// Returns whether faults can be injected here, and prints a note if not.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
pub(crate) fn has_strace() -> bool {
    let works = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("skipped: strace is missing or not allowed here");
    }
    works
}

/// Lets the calls fail that `when` names, and returns the output of the writer.
#[cfg(target_os = "linux")]
fn fail_calls(call: &str, error: &str, when: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    // The store exists, so that it is writing which fails and not creating.
    let before = child::command(directory.path(), "before", 2).output().unwrap();
    let mut marks = child::acknowledged(&before.stdout);
    assert_eq!(marks.len(), 2);

    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:error={error}:when={when}"))
        .arg(std::env::current_exe().unwrap())
        .args(child::ARGUMENTS);
    child::configure(&mut strace, directory.path(), "during", 4);
    let output = strace.output().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    // One process, with errors on the way, which ends with all its steps acknowledged.
    assert!(output.status.success(), "{call} {error} {when}: {output_text}");
    let during = child::acknowledged(&output.stdout);
    assert_eq!(during.len(), 4, "{call} {error} {when}: {output_text}");
    marks.extend(during);
    assert_eq!(child::verify(directory.path(), &marks), 6);
    output_text
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_outlived() {
    if !has_strace() {
        return;
    }
    let mut named = 0;
    for when in ["1", "3", "9", "10", "14", "4..7", "9..20"] {
        let output_text = fail_calls("pwrite64", "ENOSPC", when);
        named += usize::from(output_text.contains("no space left for"));
    }
    assert!(named >= 6, "a full disk was named {named} times only");
}

#[cfg(target_os = "linux")]
#[test]
fn a_failing_sync_is_reported_and_outlived() {
    if !has_strace() {
        return;
    }
    let mut reported = 0;
    for when in ["1", "2", "3", "1..3"] {
        let output_text = fail_calls("fsync,fdatasync", "EIO", when);
        reported += usize::from(output_text.contains("failed to write a step"));
    }
    assert!(reported >= 2, "a failing sync was reported {reported} times only");
}

/// The child of the test below: prints how a probe and a commit end.
#[cfg(target_os = "linux")]
#[test]
fn prober() {
    let Some(directory) = std::env::var_os("ALDIS_TEST_PROBE") else { return };
    let store = SqliteStore::open(Path::new(&directory)).unwrap();
    let mut out = std::io::stdout();
    for number in 0..3 {
        let probed = store.probe().map_err(|error| error.to_string());
        writeln!(out, "\nprobed {probed:?}").unwrap();
        let committed = store.commit(&child::step(&store, &number.to_string()));
        let committed = committed.map(drop).map_err(|error| error.to_string());
        writeln!(out, "committed {committed:?}").unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_probe_fails_exactly_when_commits_do() {
    if !has_strace() {
        return;
    }
    for (inject, expected) in [
        ("pwrite64:error=ENOSPC:when=1+", "no space left"),
        ("pwrite64:error=EROFS:when=1+", "Err"),
        ("fsync,fdatasync:error=EIO:when=1+", "Err"),
        // Nothing fails that early.
        ("pwrite64:error=ENOSPC:when=9999+", "Ok"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        // Open all the time: the first one to open a database writes the index of its log.
        let store = SqliteStore::open(directory.path()).unwrap();
        child::count_once(&store, "first");
        let output = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e"])
            .arg(format!("inject={inject}"))
            .arg(std::env::current_exe().unwrap())
            .args(["disk::prober", "--exact", "--nocapture"])
            .env("ALDIS_TEST_PROBE", directory.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let results = |what: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(what));
            lines.map(str::to_owned).collect()
        };
        let (probed, committed) = (results("probed "), results("committed "));
        assert_eq!((probed.len(), committed.len()), (3, 3), "{inject}: {text}");
        for result in probed.iter().chain(&committed) {
            assert!(result.contains(expected), "{inject}: {text}");
        }
        store.check().unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_disk_is_named() {
    if !has_strace() {
        return;
    }
    let output_text = fail_calls("pwrite64", "EROFS", "1..3");
    assert!(output_text.contains("failed:"), "{output_text}");
}
