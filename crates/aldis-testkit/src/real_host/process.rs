//! A process with a time limit, in a group of its own.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How it ended and what it wrote.
pub(super) struct HostOutcome {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) status: ExitStatus,
    pub(super) timed_out: bool,
}

/// Runs a command to its end. Its streams are files below `root`: no pipe can fill up, and what a
/// process left behind keeps open delays nobody.
pub(super) fn run(
    command: &mut Command,
    root: &Path,
    stdin: &str,
    time_max: Duration,
) -> io::Result<HostOutcome> {
    let [input, output, errors] = ["stdin", "stdout", "stderr"].map(|name| root.join(name));
    fs::write(&input, stdin)?;
    let mut child = command
        .stdin(File::open(&input)?)
        .stdout(File::create(&output)?)
        .stderr(File::create(&errors)?)
        .process_group(0)
        .spawn()?;
    let started = Instant::now();
    let mut timed_out = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() >= time_max {
            timed_out = true;
            // Not waited for yet, so its number, which is the group's, cannot be another's.
            killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL)?;
            break child.wait()?;
        }
        thread::sleep(PAUSE);
    };
    let read = |path: &Path| fs::read(path).map(|read| String::from_utf8_lossy(&read).into_owned());
    Ok(HostOutcome { stdout: read(&output)?, stderr: read(&errors)?, status, timed_out })
}

const PAUSE: Duration = Duration::from_millis(20);
