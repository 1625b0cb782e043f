//! Defects of the four machines against their specification, driven through the real binary.
//!
//! Only ids, roles, JSON members, exit codes and words that the test itself brought in are looked
//! at, because sentences and internals may change before a defect is fixed. What must hold in any
//! case is asserted: a situation that does not come about is a broken test, not a defect.

mod delivery;
mod phases;
mod run;
mod turns;

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Seen, pin};
use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done, Sandbox};

/// Pins a defect of several symptoms. It is gone when none of them is left.
fn pin_all(number: &str, symptoms: &[String]) {
    let seen = if symptoms.is_empty() { Seen::Right } else { Seen::Wrong(symptoms.join("\n")) };
    pin(number, seen);
}

/// The time of an event, in seconds since the test's ten o'clock.
fn clock(second: u32) -> String {
    format!("2026-03-02T{:02}:{:02}:{:02}Z", 10 + second / 3600, second / 60 % 60, second % 60)
}

/// `aldis step MACHINE` as a process that gets one event at a time, so that the test can use the ids
/// that the machine gives out.
struct Stepper {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Seconds since ten o'clock.
    now: u32,
    _directory: Sandbox,
}

impl Stepper {
    fn new(machine: &str) -> Self {
        let directory = Sandbox::new();
        let mut command = Command::new(ALDIS);
        command.env_clear().current_dir(directory.path()).args(["step", machine]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output, now: 0, _directory: directory }
    }

    /// Lets time pass.
    fn later(&mut self, seconds: u32) -> &mut Self {
        self.now += seconds;
        self
    }

    /// Sends an event; returns the answer to it.
    #[track_caller]
    fn send(&mut self, event: &str, members: &Value) -> Value {
        let mut line = members.clone();
        line["at"] = clock(self.now).into();
        line["event"] = event.into();
        writeln!(self.input, "{line}").unwrap();
        let answer = self.output.next().unwrap_or_else(|| panic!("refused: {line}")).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The first effect of this kind in an answer.
fn effect<'a>(answer: &'a Value, kind: &str) -> Option<&'a Value> {
    answer["effects"].as_array().unwrap().iter().find(|effect| effect["effect"] == kind)
}

/// A real project, and an agent that keeps what it was told outside of it.
struct Stage(Project);

impl Stage {
    /// An agent that runs this script in its `$n`th start.
    fn new(script: &str) -> Self {
        let stage = Self(Project::new());
        let kept = stage.0.root().display().to_string();
        let head = "#!/bin/sh\nn=$(($(cat KEPT/count 2>/dev/null || echo 0) + 1))\n\
            echo $n > KEPT/count\ncat > KEPT/prompt.$n\n";
        let agent = stage.agent();
        fs::write(&agent, format!("{}{script}\n", head.replace("KEPT", &kept))).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        stage
    }

    fn agent(&self) -> PathBuf {
        self.0.root().join("agent.sh")
    }

    /// The user's own settings.
    fn settings(&self, text: &str) {
        let directory = self.0.home().join(".config/aldis");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("aldis.toml"), text).unwrap();
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.0.command(program);
        command.env("PATH", std::env::var_os("PATH").unwrap()).args(args);
        command
    }

    fn aldis(&self, args: &[&str]) -> Done {
        feed(self.command(ALDIS, args), b"")
    }

    /// Runs `aldis` with the agent as its command.
    fn supervise(&self, args: &[&str]) -> Done {
        let agent = self.agent().display().to_string();
        self.aldis(&[args, &["--", &agent]].concat())
    }

    fn status(&self) -> Value {
        let done = self.aldis(&["status", "--json"]);
        assert_eq!(done.code, 0, "{}", done.text());
        done.json().remove(0)
    }

    /// Waits until the run asks something; returns the question's id.
    fn question(&self) -> String {
        for _ in 0..600 {
            let done = self.aldis(&["status", "--json"]);
            let shown = if done.code == 0 { done.json().remove(0) } else { json!({}) };
            if let Some(id) = shown["question"]["id"].as_str() {
                return id.to_owned();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("nothing was asked: {}", self.aldis(&["status"]).text());
    }

    /// What the agent was told at its nth start.
    fn prompt(&self, start: u32) -> String {
        fs::read_to_string(self.0.root().join(format!("prompt.{start}"))).unwrap()
    }

    fn git(&self, args: &[&str]) -> Output {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
        self.command("git", &[&identity, args].concat()).output().unwrap()
    }
}
