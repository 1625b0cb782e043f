//! Runs a registered command the way a host would, in a place where it can do no harm.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aldis_process::{BoundedError, run_bounded_with_input};

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
) -> ProbeOutcome {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder)
        .env("ALDIS_STATE_DIR", folder.join("state"))
        .current_dir(folder);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match run_bounded_with_input(command, stdin.into(), DEADLINE, OUTPUT_MAX) {
        Ok(ended) => ProbeOutcome::Ended {
            code: ended.status.code(),
            stdout: text(&ended.stdout),
            stderr: text(&ended.stderr),
        },
        Err(BoundedError::TimedOut { .. }) => ProbeOutcome::TimedOut,
        Err(BoundedError::Start { error, .. }) => ProbeOutcome::NotStarted(error.to_string()),
        Err(error) => ProbeOutcome::NotStarted(error.to_string()),
    }
}

/// Runs something in a directory that goes away afterwards.
pub(crate) fn in_scratch(run: impl FnOnce(&Path) -> ProbeOutcome) -> ProbeOutcome {
    match tempfile::tempdir() {
        Ok(folder) => run(folder.path()),
        Err(error) => ProbeOutcome::NotStarted(format!("no temporary directory: {error}")),
    }
}

/// How long a registered command may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
const OUTPUT_MAX: usize = 64 * 1024;
