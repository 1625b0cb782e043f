//! Failing disks: the kind of error is reported, nothing acknowledged is lost, and the store recovers.

#[cfg(target_os = "linux")]
use std::process::Command;

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

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_disk_is_named() {
    if !has_strace() {
        return;
    }
    let output_text = fail_calls("pwrite64", "EROFS", "1..3");
    assert!(output_text.contains("failed:"), "{output_text}");
}
