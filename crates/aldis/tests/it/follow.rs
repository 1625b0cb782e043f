//! `aldis scan --follow`: findings come out while the input grows.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::sandbox::{ALDIS, Sandbox};

/// A running `aldis scan --follow` that ends with the test.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(directory: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(ALDIS)
            .env_clear()
            .current_dir(directory)
            .args(["scan", "--follow"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for the next line. The limit only ends a test that would fail anyway.
    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn text_is_followed_as_it_grows() {
    let sandbox = Sandbox::new();
    let log = sandbox.write("log.txt", "starting\n");
    let follower = Follower::start(sandbox.path(), &["--dialect", "delivery", "log.txt"]);
    append(&log, "READY_FOR_REVIEW: task-1\n");
    assert!(follower.line().starts_with("log.txt:2:1: delivery READY_FOR_REVIEW task-1"));
    append(&log, "more\nREADY_FOR_REVIEW: task-2\n");
    assert!(follower.line().starts_with("log.txt:4:1: delivery READY_FOR_REVIEW task-2"));
}

#[test]
fn a_file_that_is_replaced_starts_again() {
    let sandbox = Sandbox::new();
    let log = sandbox.write("log.txt", "READY_FOR_REVIEW: old\n");
    let follower = Follower::start(sandbox.path(), &["--dialect", "delivery", "log.txt"]);
    assert!(follower.line().starts_with("log.txt:1:1: delivery READY_FOR_REVIEW old"));
    let new = sandbox.write("new.txt", "READY_FOR_REVIEW: new\nand more\n");
    fs::rename(new, &log).unwrap();
    assert!(follower.line().starts_with("log.txt:1:1: delivery READY_FOR_REVIEW new"));
    sandbox.write("log.txt", "READY_FOR_REVIEW: cut\n");
    assert!(follower.line().starts_with("log.txt:1:1: delivery READY_FOR_REVIEW cut"));
}

#[test]
fn a_pause_on_standard_input_ends_a_message() {
    let sandbox = Sandbox::new();
    let mut follower = Follower::start(sandbox.path(), &["--dialect", "turn"]);
    let mut stdin = follower.child.stdin.take().unwrap();
    stdin.write_all(b"My turn is over.\n\nTURN_COMPLETE\n").unwrap();
    assert!(follower.line().starts_with("-:3:1: turn TURN_COMPLETE"));
    drop(stdin);
    assert_eq!(follower.child.wait().unwrap().code(), Some(0));
}

#[test]
fn transcripts_are_followed_entry_by_entry() {
    let sandbox = Sandbox::new();
    let entry = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"{id}\",\"sessionId\":\"s\",\"message\":{{\"id\":\"{id}\",\
             \"role\":\"assistant\",\"stop_reason\":\"end_turn\",\"content\":[{{\"type\":\"text\",\
             \"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let log = sandbox.write("session.jsonl", entry("a", "Working."));
    let args = ["--json", "--dialect", "chorus", "session.jsonl"];
    let follower = Follower::start(sandbox.path(), &args);
    append(&log, &entry("b", "<chorus>PROGRESS: 40</chorus>"));
    let first = follower.line();
    assert!(first.contains("\"progress\":40") && first.contains("\"entry\":2"), "{first}");
    append(&log, &entry("c", "<chorus>COMPLETE</chorus>"));
    assert!(follower.line().contains("\"meaning\":\"done\""));
}
