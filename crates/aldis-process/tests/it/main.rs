//! Agents as real processes, the hostile ones of `testdata/hostile` among them.

// They look at what is left through /proc.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounded;
mod cycles;
mod hostile;
mod lease;
mod orphans;
mod starting;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use aldis_process::{Agent, Exit, Identity, Input, Launch, Mark, Output, Supervision};

/// The program that becomes the reaper.
const REAPER: &str = env!("CARGO_BIN_EXE_aldis-agent-reaper");
/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);
/// Set in a process that this test binary has started with one of its own tests.
const PART: &str = "TEST_PART";

/// Prepares a shell script.
fn script(text: &str) -> Launch {
    let mut launch = Launch::new("sh");
    launch.args = vec!["-c".into(), text.into()];
    launch.reaper = Some(REAPER.into());
    launch
}

/// Prepares a stand-in agent.
fn hostile(name: &str) -> Launch {
    let mut launch = Launch::new("sh");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hostile");
    launch.args = vec![fs::canonicalize(folder.join(name)).unwrap().into()];
    launch.reaper = Some(REAPER.into());
    launch
}

/// Runs a case on every implementation that this system can run: what all of them promise.
fn everywhere(case: impl Fn(&dyn Fn(Launch) -> Launch)) {
    natively(&case);
    case(&|launch| Launch { supervision: Supervision::Portable, ..launch });
}

/// Runs a case on the implementation for Linux alone, with a control group, where there can be one,
/// and without.
fn natively(case: impl Fn(&dyn Fn(Launch) -> Launch)) {
    for control_group in [true, false] {
        case(&|launch| Launch { control_group, ..launch });
    }
}

/// What an agent has done.
#[derive(Debug, Default)]
struct Record {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: Option<Exit>,
    closed: bool,
    stopped: bool,
    order: Vec<&'static str>,
}

impl Record {
    fn add(&mut self, output: Output) {
        let name = match output {
            Output::Stdout(bytes) => {
                self.stdout.extend(bytes);
                "stdout"
            }
            Output::Stderr(bytes) => {
                self.stderr.extend(bytes);
                "stderr"
            }
            Output::Closed => {
                assert!(!self.closed, "closed twice");
                self.closed = true;
                "closed"
            }
            Output::Exited(exit) => {
                assert_eq!(self.exit, None, "exited twice");
                self.exit = Some(exit);
                "exited"
            }
            Output::Stopped => {
                self.stopped = true;
                "stopped"
            }
        };
        if self.order.last() != Some(&name) {
            self.order.push(name);
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }
}

/// Reads until a condition holds.
fn read_until(agent: &Agent, done: impl Fn(&Record) -> bool) -> Record {
    let mut record = Record::default();
    let start = Instant::now();
    while !done(&record) {
        assert!(start.elapsed() < PATIENCE, "{:?}", record.order);
        if let Some(output) = agent.next(PAUSE) {
            record.add(output);
        }
    }
    record
}

/// Reads until the output is closed and the agent has exited.
fn read_to_end(agent: &Agent) -> Record {
    read_until(agent, |record| record.closed && record.exit.is_some())
}

/// Starts an agent, reads to its end and checks that nothing is left.
fn run(launch: &Launch) -> Record {
    let agent = Agent::start(launch).unwrap();
    let record = read_to_end(&agent);
    end(agent);
    record
}

/// Ends an agent at once and checks that nothing is left. Returns how it ended.
fn end(agent: Agent) -> Option<Exit> {
    end_within(agent, Duration::ZERO)
}

fn end_within(agent: Agent, grace: Duration) -> Option<Exit> {
    let identity = agent.identity().clone();
    let ended = agent.end(grace);
    assert_eq!(ended.survivors, []);
    assert_nothing_left(&identity);
    ended.exit
}

/// There is no process with the mark of the agent, and no control group.
fn assert_nothing_left(identity: &Identity) {
    assert_eq!(marked(&identity.mark), [""; 0]);
    if let Some(group) = &identity.cgroup {
        assert!(!group.exists(), "{group:?}");
    }
}

/// Returns the processes that carry a mark in their environment.
fn marked(mark: &Mark) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let is_marked = |path: &PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(mark.as_str())
    };
    let name = |path: PathBuf| {
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        format!("{} {}", path.display(), name.trim())
    };
    entries.map(|entry| entry.path()).filter(is_marked).map(name).collect()
}

/// Waits until a condition holds.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(PAUSE);
    }
}

/// Runs one test of this binary in a process of its own, so that it can count what it has. Returns
/// nothing in that process.
fn in_own_process(test: &str) -> Option<Command> {
    if env::var_os(PART).is_some_and(|part| part == test) {
        return None;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads=1", "--nocapture"]);
    command.env(PART, test);
    Some(command)
}

#[track_caller]
fn assert_passes(mut command: Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

fn exited(code: i32) -> Option<Exit> {
    Some(Exit { code: Some(code), signal: None })
}

fn killed(signal: i32) -> Option<Exit> {
    Some(Exit { code: None, signal: Some(signal) })
}

fn input(text: &str) -> Input {
    Input::Text(text.as_bytes().to_vec())
}
