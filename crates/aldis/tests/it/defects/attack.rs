//! Defects that attacks on the program found, and the helpers of their tests.
//!
//! A number with several claims that can be fixed separately has one letter per claim. Not here: D1
//! and D25 (secrets, pinned elsewhere), and D3c (the queue of a dead sink hardly shrinks), for which
//! no right behaviour is specified.

mod hook;
mod processes;
mod server;
mod store;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::Seen;
use crate::phases::project::Project;
use crate::sandbox::ALDIS;

/// Upper bound for everything that must happen in any case, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// So far in the future that every ended run is past its retention.
const FAR: &str = "2099-01-01T00:00:00Z";
/// An agent that reports done at once.
const DONE: &str = "cat > /dev/null; echo '<chorus>COMPLETE</chorus>'";

/// Right, unless something is wrong.
fn seen(wrong: &[String]) -> Seen {
    if wrong.is_empty() { Seen::Right } else { Seen::Wrong(wrong.join("; ")) }
}

fn right_if(right: bool, otherwise: impl Into<String>) -> Seen {
    if right { Seen::Right } else { Seen::Wrong(otherwise.into()) }
}

/// Polls a condition. Returns whether it held within the limit.
fn within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Polls a condition that must hold sooner or later.
#[track_caller]
fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(PATIENCE, condition), "never: {what}");
}

/// A command in a project, with `PATH`.
fn command(project: &Project, program: &str) -> Command {
    let mut command = project.command(program);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Writes the agent of a project.
fn agent(project: &Project, text: &str) {
    script(&project.path().join("agent.sh"), text);
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn git(project: &Project, args: &[&str]) -> String {
    let mut command = command(project, "git");
    let output =
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All runs there are.
fn runs(project: &Project) -> Vec<Value> {
    let done = project.run(&["status", "--all", "--json"]);
    if done.code == 0 { done.json() } else { Vec::new() }
}

fn has_run(project: &Project, id: &str) -> bool {
    runs(project).iter().any(|run| run["run"] == id)
}

/// Starts a run at [`FAR`], which prunes the ended ones.
fn start_far_ahead(project: &Project) {
    let mut command = project.command(ALDIS);
    command.env("ALDIS_NOW", FAR).args(["auto", "start", "Later"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The size of all files below a directory.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let size_of = |path: PathBuf| match fs::symlink_metadata(&path) {
        Ok(data) if data.is_dir() => size(&path),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(|entry| size_of(entry.path())).sum()
}

/// The size of the store, without the agents' logs.
fn store_size(project: &Project) -> u64 {
    size(&project.state_dir()) - size(&project.state_dir().join("logs"))
}

/// The processes whose working directory is below a directory.
fn living_in(directory: &Path) -> Vec<(i32, String)> {
    let directory = fs::canonicalize(directory).unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if cwd.starts_with(&directory) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim().to_owned()));
        }
    }
    found
}

/// Kills the processes that a defect leaves below a directory.
struct Cleanup(PathBuf);

impl Drop for Cleanup {
    fn drop(&mut self) {
        for (pid, _) in living_in(&self.0) {
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        }
    }
}

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).ok();
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// A command of ours under strace, which delays certain system calls: race windows become long enough
/// to hit.
struct Slowed {
    strace: Child,
    /// The delayed process, a child of strace.
    pid: u32,
}

impl Slowed {
    fn start(project: &Project, calls: &str, pause: &str, args: &[&str]) -> Self {
        let pid_file = project.root().join("slowed.pid");
        fs::remove_file(&pid_file).unwrap_or_default();
        let mut command = command(project, "strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e"]);
        command.arg(format!("inject={calls}:delay_enter={pause}"));
        command.args(["sh", "-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(&pid_file).arg(ALDIS);
        let null = std::process::Stdio::null;
        let strace = command.args(args).stdin(null()).stdout(null()).stderr(null());
        let strace = strace.spawn().unwrap();
        let mut pid = None;
        wait_until("the start under strace", || {
            let text = fs::read_to_string(&pid_file).unwrap_or_default();
            pid = text.strip_suffix('\n').and_then(|text| text.parse().ok());
            pid.is_some()
        });
        Self { strace, pid: pid.unwrap() }
    }

    fn has_ended(&self) -> bool {
        is_gone(self.pid)
    }

    /// Kills the command; its descendants go on without delay.
    fn kill(self) {
        drop(self);
    }
}

impl Drop for Slowed {
    fn drop(&mut self) {
        if !self.has_ended() {
            send(self.pid, Signal::SIGKILL);
            // strace is its parent and must reap it.
            within(PATIENCE, || self.has_ended());
        }
        self.strace.kill().ok();
        self.strace.wait().ok();
    }
}
