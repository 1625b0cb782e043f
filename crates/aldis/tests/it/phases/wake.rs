//! A session that was let go is woken by a human's word, once, and never kept.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::project::{Answer, Project, block};
use crate::sandbox::{ALDIS, Done};

/// How long a waiter may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(30);

const ASKS: &str = "---\nSIGNAL: PHASE_ERROR\nPHASE: expansion\nSTATUS: error\nERROR: which branch?\n\
                    RECOVERABLE: true\n---\n";

/// What Claude Code starts beside a stop. Ends with the test.
struct Waiter(Child);

impl Waiter {
    fn start(project: &Project, payload: &Value, attended: bool) -> Self {
        let mut command = project.command(ALDIS);
        if attended {
            command.env("CLAUDE_CODE_ENTRYPOINT", "cli");
        }
        command.args(["hook", "claude-code", "--wake"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        Self(child)
    }

    fn is_waiting(&mut self) -> bool {
        thread::sleep(Duration::from_millis(700));
        self.0.try_wait().unwrap().is_none()
    }

    fn end(mut self) -> Done {
        let began = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "it still waits");
            thread::sleep(Duration::from_millis(20));
        }
        let read = |stream: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            stream.unwrap().read_to_string(&mut text).unwrap();
            text
        };
        let stdout = read(self.0.stdout.as_mut().map(|it| it as _));
        let stderr = read(self.0.stderr.as_mut().map(|it| it as _));
        Done { code: self.0.wait().unwrap().code().unwrap_or(-1), stdout, stderr }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A run whose agent waits for a human, with a waiter beside it.
fn parked(attended: bool) -> (Project, String, Waiter) {
    let project = Project::new();
    // Without a person nobody waits unless that is wanted.
    std::fs::write(project.path().join("aldis.toml"), "phases.wake_headless = \"1h\"\n").unwrap();
    let run = project.start(&[])["run"].as_str().unwrap().to_owned();
    assert_eq!(project.stop(ASKS), Answer::Allow);
    let waiter = Waiter::start(&project, &project.payload(ASKS), attended);
    (project, run, waiter)
}

#[test]
fn an_answer_reaches_the_session_that_asked() {
    for attended in [true, false] {
        let (project, run, mut waiter) = parked(attended);
        assert!(waiter.is_waiting());
        let status = project.run(&["status"]).stdout;
        assert!(status.contains("needs you in phase expansion"), "{status}");
        let status = project.run(&["auto", "status"]).stdout;
        assert!(status.contains("q1: which branch?"), "{status}");
        let none = project.run(&["answer", "q7", "main"]);
        assert_eq!(none.code, 1, "{}", none.text());
        let answered = project.run(&["answer", "q1", "Use \u{1b}main."]);
        assert_eq!(answered.code, 0, "{}", answered.text());
        let woken = waiter.end();
        assert_eq!((woken.code, &*woken.stdout), (2, ""), "{}", woken.text());
        let starts = format!("aldis woke this session for run {run}.\n\n");
        assert!(woken.stderr.starts_with(&starts), "{}", woken.stderr);
        assert!(woken.stderr.contains("main.") && !woken.stderr.contains('\u{1b}'));
        assert_eq!(project.why()["rule"], "phases/woken");
        // The words are given once.
        let late = Waiter::start(&project, &project.payload(ASKS), attended).end();
        assert_eq!((late.code, &*late.stderr), (0, ""), "{}", late.text());
        // It goes on where it was.
        assert!(project.stop(&block("expansion")).reason().contains("phase init"));
        project.assert_sound();
    }
}

#[test]
fn only_one_of_many_waiters_wakes() {
    let (project, run, first) = parked(true);
    let more = (0..3).map(|_| Waiter::start(&project, &project.payload(ASKS), true));
    let mut all: Vec<Waiter> = more.chain([first]).collect();
    assert!(all.iter_mut().all(Waiter::is_waiting));
    assert_eq!(project.run(&["tell", &run, "Use tabs."]).code, 0);
    let codes: Vec<i32> = all.into_iter().map(|waiter| waiter.end().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 2).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 3, "{codes:?}");
}

#[test]
fn a_paused_run_wakes_when_it_is_resumed() {
    let project = Project::new();
    let run = project.start(&[])["run"].as_str().unwrap().to_owned();
    project.stop("Not yet.");
    assert_eq!(project.run(&["pause", &run]).code, 0);
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    let mut waiter = Waiter::start(&project, &project.payload("Not yet."), true);
    assert_eq!(project.run(&["tell", &run, "Use tabs."]).code, 0);
    assert!(waiter.is_waiting(), "a paused run is left alone");
    assert_eq!(project.run(&["resume", &run]).code, 0);
    let woken = waiter.end();
    assert_eq!(woken.code, 2, "{}", woken.text());
    assert!(woken.stderr.contains("Use tabs.") && woken.stderr.contains("EXPANSION_COMPLETE"));
}

/// The service refused: the session goes on when it does not any more, and says so meanwhile.
#[test]
fn the_end_of_a_limit_wakes_an_attended_session() {
    for (error, text, later, wakes) in [
        ("rate_limit", "You've hit your limit. Try again in 2h.", "2026-03-02T12:00:01Z", true),
        ("rate_limit", "You've hit your limit. Try again in 2h.", "2026-03-02T11:59:00Z", false),
        // Nobody says how long.
        ("overloaded", "Overloaded", "2026-03-02T10:15:01Z", true),
        ("overloaded", "Overloaded", "2026-03-02T10:14:00Z", false),
        // Waiting does not help.
        ("authentication_failed", "Log in", "2026-03-09T10:00:00Z", false),
    ] {
        let mut project = Project::new();
        project.start(&[]);
        let failed = json!({
            "session_id": "S1", "cwd": project.path(), "hook_event_name": "StopFailure",
            "error": error, "last_assistant_message": text,
        });
        assert_eq!(project.hook(&failed), Answer::Allow);
        let waits =
            project.run(&["status"]).stdout.contains("waits for a limit in phase expansion");
        assert_eq!(waits, error != "authentication_failed", "{error}");
        later.clone_into(&mut project.now);
        let mut waiter = Waiter::start(&project, &failed, true);
        if !wakes && waits {
            assert!(waiter.is_waiting(), "{error} {later}");
            continue;
        }
        let ended = waiter.end();
        assert_eq!(ended.code, if wakes { 2 } else { 0 }, "{error} {later}: {}", ended.text());
        assert_eq!(ended.stderr.contains("is over"), wakes, "{}", ended.text());
        // Without a person the host is gone by then.
        assert_eq!(Waiter::start(&project, &failed, false).end().code, 0);
    }
}

/// Codex has a queue of its own: whoever passes a word on gives it to that, and nobody waits.
#[test]
fn a_word_reaches_a_session_of_codex_by_its_queue() {
    for (originator, works, woken) in
        [("codex-tui", true, true), ("codex-tui", false, false), ("codex_exec", true, false)]
    {
        let project = Project::new();
        let run = project.start(&[])["run"].as_str().unwrap().to_owned();
        let transcript = project.home().join(".codex/sessions/rollout.jsonl");
        std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        let meta =
            json!({"type": "session_meta", "payload": {"id": "S1", "originator": originator}});
        std::fs::write(&transcript, format!("{meta}\n")).unwrap();
        let stop = json!({
            "session_id": "S1", "turn_id": "t1", "model": "none", "cwd": project.path(),
            "hook_event_name": "Stop", "stop_hook_active": false, "permission_mode": "default",
            "transcript_path": transcript, "last_assistant_message": ASKS,
        });
        assert_eq!(project.hook_bytes("codex", stop.to_string().as_bytes()), Answer::Allow);
        let bin = project.root().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let end = if works { "" } else { "echo 'no such thread' >&2; exit 1" };
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$HOME/queued\"\n{end}\n");
        std::fs::write(bin.join("codex"), script).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bin.join("codex"), executable).unwrap();
        let mut command = project.command(ALDIS);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command.args(["answer", "q1", "Use main."]);
        let done = crate::phases::project::feed(command, b"");
        assert_eq!(done.code, 0, "{}", done.text());
        let queued = std::fs::read_to_string(project.home().join("queued")).unwrap_or_default();
        assert_eq!(queued.contains("Use main."), originator == "codex-tui", "{queued}");
        let rule = project.why()["rule"].as_str().unwrap().to_owned();
        assert_eq!(rule == "phases/woken", woken, "{originator} {works}: {rule}");
        assert_eq!(done.stderr.contains("no such thread"), !works, "{}", done.text());
        let prompt = json!({
            "session_id": "S1", "turn_id": "t2", "model": "none", "cwd": project.path(),
            "hook_event_name": "UserPromptSubmit", "prompt": "Go on.", "transcript_path": transcript,
        });
        // What was not given is still there, and what was is not given twice.
        let next = project.hook_bytes("codex", prompt.to_string().as_bytes());
        let given =
            matches!(&next, Answer::Other(answer) if answer.to_string().contains("Use main."));
        assert_eq!(given, !woken, "{next:?}");
        if woken {
            assert!(queued.starts_with("queue\n--thread\nS1\n--message\naldis woke"), "{queued}");
            assert!(queued.contains(&run), "{queued}");
        }
    }
}

/// Whatever else happens, nobody is kept.
#[test]
fn a_session_is_never_kept() {
    // Nothing to wait for: no store, no run, another's run, a stop that was blocked, a run that ended.
    let project = Project::new();
    let wait = |project: &Project, payload: &Value| {
        let ended = Waiter::start(project, payload, true).end();
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (0, "", ""), "{payload}");
    };
    wait(&project, &project.payload("Hello."));
    project.start(&[]);
    let mut stranger = project.payload("Hello.");
    stranger["session_id"] = json!("S2");
    wait(&project, &stranger);
    assert_eq!(project.stop("Not yet.").word(), "block");
    wait(&project, &project.payload("Not yet."));
    let mut prompt = project.payload("");
    prompt["hook_event_name"] = json!("UserPromptSubmit");
    wait(&project, &prompt);
    wait(&project, &json!([]));

    // Something to wait for, which goes away: the user's own prompt, the end of the run.
    for ends in [true, false] {
        let (project, _, mut waiter) = parked(true);
        assert!(waiter.is_waiting());
        if ends {
            project.run(&["auto", "stop"]);
        } else {
            let prompt = json!({
                "session_id": "S1", "cwd": project.path(), "hook_event_name": "UserPromptSubmit",
                "prompt": "Use main.", "prompt_id": "p9",
            });
            project.hook(&prompt);
        }
        let ended = waiter.end();
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{}", ended.text());
    }
}

#[test]
fn waiting_is_a_setting() {
    for (attended, setting) in [(true, "wake"), (false, "wake_headless")] {
        for (value, waits) in [("never", false), ("1s", false), ("1h", true)] {
            let (project, run, waiter) = parked(attended);
            drop(waiter);
            let text = format!("[phases]\n{setting} = \"{value}\"\n");
            std::fs::write(project.path().join("aldis.toml"), text).unwrap();
            let waiter = Waiter::start(&project, &project.payload(ASKS), attended);
            if waits {
                assert_eq!(project.run(&["tell", &run, "Go on."]).code, 0);
            }
            let ended = waiter.end();
            assert_eq!(
                ended.code,
                if waits { 2 } else { 0 },
                "{setting} {value}: {}",
                ended.text()
            );
        }
    }
}
