//! Runs a registered command the way a host would, in a place where it can do no harm.

use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeOutcome {
    /// It ended.
    Ended {
        /// Its exit code, or nothing if a signal ended it.
        code: Option<i32>,
        /// Standard output, cut at a limit.
        stdout: String,
        /// Standard error, cut at a limit.
        stderr: String,
    },
    /// It was still running at the deadline.
    TimedOut,
    /// It could not be started.
    NotStarted(String),
}

/// Runs a program with nothing of our environment but PATH.
pub(crate) fn run(
    program: &Path,
    args: &[&str],
    stdin: &str,
    folder: &Path,
    path: &OsStr,
    deadline: Duration,
) -> ProbeOutcome {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder)
        .env("ALDIS_STATE_DIR", folder.join("state"))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match command.spawn() {
        Ok(child) => watch(child, stdin, deadline),
        Err(error) => ProbeOutcome::NotStarted(error.to_string()),
    }
}

fn watch(mut child: Child, stdin: &str, deadline: Duration) -> ProbeOutcome {
    let input = child.stdin.take();
    let text = stdin.to_owned();
    // A program need not read what it is told; it shows in its answer.
    thread::spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
    let (sender, receiver) = mpsc::channel();
    let out = child.stdout.take().map(|pipe| collect(pipe, sender.clone()));
    let err = child.stderr.take().map(|pipe| collect(pipe, sender));
    // Both pipes close when the program ends.
    let timer = crate::settings::clock::Stopwatch::start();
    for _ in 0..2 {
        if receiver.recv_timeout(deadline.saturating_sub(timer.elapsed())).is_err() {
            // It may have ended in this moment, which is as good.
            let _killed = child.kill();
            let _status = child.wait();
            return ProbeOutcome::TimedOut;
        }
    }
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let code = child.wait().ok().and_then(|status| status.code());
    ProbeOutcome::Ended { code, stdout: text(out), stderr: text(err) }
}

fn collect(pipe: impl Read + Send + 'static, done: mpsc::Sender<()>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until the error counts.
        let _read = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes);
        // Nobody waits any more once the deadline has passed.
        let _sent = done.send(());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// How long a registered command may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
const OUTPUT_MAX: u64 = 64 * 1024;
