//! External programs with a deadline.

use std::fs;
use std::process::Command;
use std::time::Duration;

use aldis_process::{
    BoundedError, Cancellation, Mark, run_bounded, run_bounded_with_input, run_cancellable,
};

use crate::{PATIENCE, marked, wait_until};

const LIMIT: usize = 1 << 20;
/// Long enough for a shell to start on a busy machine.
const SHORT: Duration = Duration::from_millis(500);

fn shell(text: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", text]);
    command
}

#[test]
fn output_errors_and_status_are_returned() {
    let done = run_bounded(shell("echo out; echo err >&2; exit 3"), PATIENCE, LIMIT).unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert_eq!((&*done.stdout, &*done.stderr), (&b"out\n"[..], &b"err\n"[..]));
    assert!(!done.truncated);
}

#[test]
fn input_is_empty_or_what_was_given() {
    let done = run_bounded(shell("cat; echo end"), PATIENCE, LIMIT).unwrap();
    assert_eq!(done.stdout, b"end\n");
    let text = "line\n".repeat(100_000).into_bytes();
    let done = run_bounded_with_input(shell("cat"), text.clone(), PATIENCE, LIMIT).unwrap();
    assert_eq!(done.stdout, text);
    // One that does not read it does not wait for anything.
    let done = run_bounded_with_input(shell("exit 4"), text, PATIENCE, LIMIT).unwrap();
    assert_eq!(done.status.code(), Some(4));
}

#[test]
fn output_beyond_the_limit_is_read_and_dropped() {
    let text = "head -c 5000000 /dev/zero; head -c 10 /dev/zero >&2; echo done >&2";
    let done = run_bounded(shell(text), PATIENCE, 1000).unwrap();
    assert_eq!((done.stdout.len(), done.stderr.len()), (1000, 15));
    assert!(done.truncated);
    let done = run_bounded(shell("printf 1234"), PATIENCE, 4).unwrap();
    assert_eq!((done.stdout.len(), done.truncated), (4, false));
}

#[test]
fn a_program_that_does_not_end_is_killed_with_its_group() {
    let mark = Mark::random().unwrap();
    let text = "trap '' TERM INT HUP; sleep 60 & (sleep 60; :) & echo ready; sleep 60";
    let mut command = shell(text);
    command.env("ALDIS_SUPERVISED", mark.as_str());
    let error = run_bounded(command, SHORT, LIMIT).unwrap_err();
    assert_eq!(error.to_string(), "`/bin/sh` was killed: it did not end within 0.5 s");
    let BoundedError::TimedOut { stdout, .. } = error else { panic!("{error}") };
    assert_eq!(stdout, b"ready\n");
    wait_until("the end of the group", || marked(&mark).is_empty());
}

#[test]
fn a_program_that_nobody_waits_for_any_more_can_clean_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        shell("trap 'rm lock; exit 1' TERM; touch lock; while :; do sleep 0.05; done");
    command.current_dir(folder.path());
    let (cancellation, lock) = (Cancellation::default(), folder.path().join("lock"));
    let other = cancellation.clone();
    let running = std::thread::spawn(move || run_cancellable(command, PATIENCE, LIMIT, &other));
    wait_until("it works", || lock.exists());
    cancellation.cancel();
    let ended = running.join().unwrap();
    assert!(matches!(ended, Err(BoundedError::Cancelled { .. })), "{ended:?}");
    assert!(!lock.exists());
    let again = run_cancellable(shell("true"), PATIENCE, LIMIT, &cancellation);
    assert!(matches!(again, Err(BoundedError::Cancelled { .. })), "{again:?}");
}

#[test]
fn a_descendant_that_holds_the_pipe_does_not_hold_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = shell("setsid sh -c 'echo $$ >pid; exec sleep 61' & echo done; exit 5");
    command.current_dir(folder.path());
    let done = run_bounded(command, PATIENCE, LIMIT).unwrap();
    assert_eq!((done.status.code(), &*done.stdout), (Some(5), &b"done\n"[..]));
    // It was left alone: a notice command may want that.
    let pid = || fs::read_to_string(folder.path().join("pid")).unwrap_or_default();
    wait_until("its number", || pid().ends_with('\n'));
    let kill = shell(&format!("kill -9 {}", pid()));
    assert!(run_bounded(kill, PATIENCE, LIMIT).unwrap().status.success(), "it had gone");
}

#[test]
fn a_descendant_that_floods_the_pipe_does_not_hold_the_end() {
    let text = "head -c 60000 /dev/zero; (setsid timeout 20 yes) & exit 6";
    let done = run_bounded(shell(text), PATIENCE, LIMIT).unwrap();
    assert_eq!(done.status.code(), Some(6));
    assert_eq!(done.stdout.iter().filter(|byte| **byte == 0).count(), 60_000);
}

#[test]
fn none_of_our_terminal_is_inherited() {
    let text = "(: </dev/tty) 2>/dev/null || echo none; \
                [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo leader";
    let done = run_bounded(shell(text), PATIENCE, LIMIT).unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "none\nleader\n");
}

#[test]
fn what_cannot_be_started_says_so() {
    let error = run_bounded(Command::new("no-such-program"), PATIENCE, LIMIT).unwrap_err();
    assert!(error.to_string().starts_with("failed to start `no-such-program`: "), "{error}");
    assert!(matches!(error, BoundedError::Start { .. }));
}
