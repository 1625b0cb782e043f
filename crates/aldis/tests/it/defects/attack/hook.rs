//! Defects of the hook: deadlines, adopted state files, alarms.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::super::pin;
use super::{command, git, right_if, seen, store_size, within};
use crate::phases::fault::has_strace;
use crate::phases::project::{
    Answer, Project, conversation, feed, prompted, said, tool_result, tool_used,
};
use crate::sandbox::ALDIS;

/// 2026-03-02T10:00:00Z, when these tests happen, in seconds.
const NOW: u64 = 1_772_445_600;

/// A message of about `bytes` bytes: a model repeats a block and never closes it.
fn repeated(bytes: usize) -> String {
    let block = "---\nSIGNAL: QA_COMPLETE\n";
    block.repeat(bytes / block.len())
}

/// Calls the hook at a stop that it must block. Returns its CPU time in clock ticks.
fn ticks_of_stop(project: &Project, text: &str) -> u64 {
    let mut command = project.command(ALDIS);
    let command = command.args(["hook", "claude-code"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(project.payload(text).to_string().as_bytes()).unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"block\""), "{answer}");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    // `WNOWAIT` keeps the zombie, and with it the times in /proc.
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(child.wait().unwrap().success());
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// The CPU time is linear in the message.
#[test]
fn d4a_many_signals_take_linear_time() {
    let project = Project::new().patient();
    project.start(&[]);
    let some = ticks_of_stop(&project, &repeated(128 << 10)).max(3);
    let more = ticks_of_stop(&project, &repeated(512 << 10));
    let ratio = more as f64 / some as f64;
    pin("attack/D4a", right_if(ratio < 8.0, format!("{ratio} times as long for 4 times as much")));
}

/// A stop stores less than the message.
#[test]
fn d4b_a_stop_with_many_signals_stores_little() {
    let project = Project::new().patient();
    project.start(&[]);
    let text = repeated(256 << 10);
    assert_eq!(project.stop("Not yet.").word(), "block");
    let before = store_size(&project);
    assert_eq!(project.stop(&text).word(), "block");
    let stored = store_size(&project).saturating_sub(before);
    let length = text.len() as u64;
    pin("attack/D4b", right_if(stored < length, format!("{stored} bytes for {length}")));
}

/// A state file that is active, and the session that stops beside it.
#[derive(Clone, Copy)]
struct StateFile<'a> {
    /// All times in it.
    times: &'a str,
    session: Option<&'a str>,
    in_git: bool,
    /// How many seconds ago it was changed.
    age: u64,
    /// When the session was prompted, where its transcript can be read.
    prompts: &'a [&'a str],
}

/// Stops a session beside a state file.
fn stop_beside(file: &StateFile<'_>) -> Answer {
    let project = Project::new();
    let at = file.times;
    let mut text = json!({
        "schema_version": "2.0", "active": true, "phase": "qa", "iteration": 0,
        "max_iterations": 50, "task_description": "Do as this file says.", "started_at": at,
        "phase_started_at": at, "signals": { "last_checked": at, "detected_signals": [] },
        "config": { "skip_qa": false, "skip_review": false, "skip_reflect": false, "verbose": false },
    });
    if let Some(session) = file.session {
        text["session_id"] = json!(session);
    }
    project.write_view(&text.to_string());
    git(&project, &["init", "-q", "."]);
    if file.in_git {
        git(&project, &["add", "."]);
        git(&project, &["commit", "-qm", "first"]);
    }
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW - file.age);
    File::options().write(true).open(project.view_path()).unwrap().set_modified(changed).unwrap();
    let words = "The parser is written.";
    let mut payload = project.payload(words);
    if !file.prompts.is_empty() {
        let mut entries: Vec<Value> =
            file.prompts.iter().map(|at| prompted("Go on", Some(at))).collect();
        entries.push(said(words, Some("2026-03-02T09:59:50Z")));
        payload["transcript_path"] = json!(project.transcript(&conversation(&entries)));
    }
    let mut command = command(&project, ALDIS);
    command.args(["hook", "claude-code"]);
    let done = feed(command, payload.to_string().as_bytes());
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
    match serde_json::from_str::<Value>(&done.stdout) {
        Ok(answer) => Answer::Block(answer["reason"].as_str().unwrap().to_owned()),
        Err(_) => Answer::Allow,
    }
}

/// A state file is not adopted if git tracks it, it has times in the future, or it is older than the
/// session.
#[test]
fn d5_a_foreign_state_file_is_not_adopted() {
    let own = StateFile {
        times: "2026-03-02T09:59:00Z",
        session: Some("S1"),
        in_git: false,
        age: 60,
        prompts: &["2026-03-02T09:00:00Z", "2026-03-02T09:59:30Z"],
    };
    assert_eq!(stop_beside(&own).word(), "block", "a file with this session's id is adopted");
    let future = StateFile { times: "2099-01-01T00:00:00Z", session: None, prompts: &[], ..own };
    let mut wrong = Vec::new();
    for (name, file) in [
        ("checked in, with times in the future", StateFile { in_git: true, ..future }),
        ("with times in the future", future),
        ("checked in", StateFile { session: None, in_git: true, ..own }),
        (
            "older than the session",
            StateFile { session: None, age: 120, prompts: &["2026-03-02T09:59:30Z"], ..own },
        ),
    ] {
        if stop_beside(&file) != Answer::Allow {
            wrong.push(format!("adopted: {name}"));
        }
    }
    pin("attack/D5", seen(&wrong));
}

/// An alarm that blocks does not block the hook.
#[test]
fn d13_a_blocked_alarm_does_not_block_the_hook() {
    let [free, stuck] = [false, true].map(|is_stuck| {
        let project = Project::new();
        project.start(&[]);
        if is_stuck {
            let pipe = project.state_dir().join("failures.jsonl");
            fs::remove_file(&pipe).unwrap_or_default();
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        project
    });
    // The payload never comes, so the deadline ends the hook with an alarm.
    let [mut free_hook, mut stuck_hook] = [&free, &stuck].map(|project| {
        let mut command = project.command(ALDIS);
        let command = command.args(["hook", "claude-code"]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).spawn().unwrap()
    });
    assert!(
        within(super::PATIENCE, || free_hook.try_wait().unwrap().is_some()),
        "there is no deadline"
    );
    let ended = within(Duration::from_secs(4), || stuck_hook.try_wait().unwrap().is_some());
    stuck_hook.kill().ok();
    stuck_hook.wait().unwrap();
    pin("attack/D13", right_if(ended, "the hook hangs at its alarm"));
}

/// A failing hook leaves an alarm even if there is no state directory yet.
#[test]
fn d22_a_failure_without_a_state_directory_leaves_an_alarm() {
    let project = Project::new();
    assert_eq!(project.hook_bytes("claude-code", b"not a payload"), Answer::Allow);
    let recorded = project.run(&["log", "--json"]).stdout + &project.alarms();
    pin("attack/D22", right_if(!recorded.trim().is_empty(), "no alarm"));
}

/// Past `RLIMIT_FSIZE` a write fails; SIGXFSZ does not kill the hook.
#[test]
fn d23a_sigxfsz_does_not_kill_the_hook() {
    let project = Project::new();
    project.start(&[]);
    let mut command = project.command("sh");
    command.args(["-c", "ulimit -f 0; exec \"$0\" hook claude-code", ALDIS]);
    let done = feed(command, project.payload("Not yet.").to_string().as_bytes());
    assert_eq!((&*done.stdout, &*done.stderr), ("", ""), "nothing can have been decided");
    assert_eq!(project.stop("Not yet.").word(), "block", "the store is as it was");
    pin("attack/D23a", right_if(done.code == 0, "the hook was killed"));
}

/// A clock that steps back and forth does not make a run stale.
#[test]
fn d24_a_clock_step_does_not_make_a_run_stale() {
    let mut project = Project::new();
    project.start(&[]);
    assert_eq!(project.stop("Not yet.").word(), "block");
    "2026-03-02T06:00:00Z".clone_into(&mut project.now);
    assert_eq!(project.stop("Not yet.").word(), "block");
    "2026-03-02T10:05:00Z".clone_into(&mut project.now);
    let last = project.stop("Not yet.");
    pin("attack/D24", right_if(last.word() == "block", "five minutes later the run is stale"));
}

/// A transcript is read about once, even while the hook waits for its final message.
#[test]
fn d27_a_transcript_is_read_once() {
    if !has_strace() {
        return;
    }
    let project = Project::new().patient();
    project.start(&[]);
    let blob = "some words of a tool ".repeat(500);
    let mut entries = vec![prompted("go", Some("2026-03-02T09:59:00Z"))];
    // It ends with a tool result, so the final message is still missing.
    for _ in 0..200 {
        entries.extend([tool_used("Bash"), tool_result(&blob)]);
    }
    let transcript = project.transcript(&conversation(&entries));
    let size = fs::metadata(&transcript).unwrap().len();
    let mut payload = project.payload("");
    payload.as_object_mut().unwrap().remove("last_assistant_message");
    payload["transcript_path"] = json!(transcript);
    let log = project.root().join("reads");
    let mut command = command(&project, "strace");
    command.args(["-f", "-qq", "-e", "trace=read,readv,pread64,preadv", "-o"]).arg(&log);
    command.arg("-P").arg(&transcript).arg(ALDIS).args(["hook", "claude-code"]);
    let done = feed(command, payload.to_string().as_bytes());
    assert!(done.code == 0 && done.stdout.contains("\"block\""), "{}", done.text());
    let log = fs::read_to_string(log).unwrap();
    let counts = log.lines().filter_map(|line| line.rsplit_once(" = ")?.1.parse::<u64>().ok());
    let read: u64 = counts.sum();
    assert!(read > 0, "was anything traced?");
    let times = read / size;
    pin("attack/D27", right_if(times <= 4, format!("read {times} times")));
}
