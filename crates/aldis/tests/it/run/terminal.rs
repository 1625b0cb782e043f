//! `aldis run` with somebody at a terminal: asked on the spot, and stopped with Ctrl-C.

use std::fs;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Stdio};
use std::thread::{self, JoinHandle};

use super::{Stage, assert_nothing_runs_in, wait_until};
use crate::sandbox::ALDIS;

/// A run in a terminal of its own, at which this test types.
pub(super) struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: JoinHandle<String>,
}

impl Terminal {
    fn start(stage: &Stage, options: &str) -> Self {
        Self::open(stage, &format!("'{ALDIS}' run --task 'Add CSV export' {options} -- ./agent.sh"))
    }

    /// Opens a terminal with this command line in it.
    pub(super) fn open(stage: &Stage, line: &str) -> Self {
        let mut command = stage.0.command("/usr/bin/script");
        command.args(["--quiet", "--return", "--flush", "--command", line, "/dev/null"]);
        command.env("SHELL", "/bin/sh").env("TERM", "xterm").env("NO_COLOR", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let mut screen = child.stdout.take().unwrap();
        let shown = thread::spawn(move || {
            let mut bytes = Vec::new();
            screen.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Self { child, keys, shown }
    }

    /// Closes the window: whatever runs in it gets a hangup.
    pub(super) fn close(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Returns how it ended, and all that was shown.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        drop(self.keys);
        (status.code(), self.shown.join().unwrap())
    }
}

#[test]
fn whoever_sits_there_is_asked() {
    let stage = Stage::new(
        "if [ $n = 1 ]; then echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>'; else echo '<chorus>COMPLETE</chorus>'; fi",
    );
    let mut terminal = Terminal::start(&stage, "");
    stage.wait_for("asking");
    terminal.types("Drop it.\n");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("keep or drop?"), "{shown}");
    assert!(stage.prompt(2).contains("> Drop it."), "{}", stage.prompt(2));
}

#[test]
fn a_stalled_run_is_resumed_or_given_up_on_the_spot() {
    for (typed, code, ending) in [("resume\n", 0, "done"), ("abort\n", 130, "aborted")] {
        let stage = Stage::new(
            "touch here; while [ ! -e go ]; do sleep 0.05; done; echo '<chorus>COMPLETE</chorus>'",
        );
        fs::write(
            stage.0.path().join("aldis.toml"),
            "[stagnation]\nwarn_timeout = 1\npause_timeout = 2\nabort_timeout = 600\n",
        )
        .unwrap();
        let mut terminal = Terminal::start(&stage, "");
        stage.wait_for("paused");
        fs::write(stage.0.path().join("go"), "").unwrap();
        terminal.types(typed);
        let (got, shown) = terminal.end();
        assert_eq!(got, Some(code), "{typed}: {shown}");
        assert_eq!(stage.status()["exit_reason"], ending, "{shown}");
    }
}

/// The window is closed: the agent ends with it, and what to do is said to whoever asks.
#[test]
fn a_hangup_ends_a_run_at_a_terminal() {
    let stage = Stage::new("touch here; while :; do sleep 0.05; done");
    let terminal = Terminal::start(&stage, "--grace 1");
    wait_until("the agent works", || stage.0.path().join("here").exists());
    terminal.close();
    wait_until("the run is over", || stage.status()["exit_reason"] == "aborted");
    let status = stage.0.run(&["status"]).stdout;
    assert!(status.contains("aldis run --continue"), "{status}");
    let why = stage.0.run(&["why"]).stdout;
    assert!(!why.contains("Ctrl-C"), "nobody typed anything: {why}");
    wait_until("everything has ended", || {
        let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == stage.0.path())
        });
        left.count() == 0
    });
}

/// An agent that does not care about being asked is ended by the second Ctrl-C, long before the
/// grace period is over.
#[test]
fn the_second_interrupt_ends_what_the_first_asked_to_stop() {
    let stage =
        Stage::new("trap 'echo >> asked' INT TERM; touch here; while :; do sleep 0.05; done");
    let mut terminal = Terminal::start(&stage, "--grace 3600");
    wait_until("the agent works", || stage.0.path().join("here").exists());
    terminal.types("\x03");
    wait_until("it is asked", || stage.0.path().join("asked").exists());
    terminal.types("\x03");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(130), "{shown}");
    assert_eq!(stage.status()["exit_reason"], "aborted");
    assert_nothing_runs_in(&stage.0.path(), "Ctrl-C");
}

/// What an agent says while it is ended is heard; it is in the log, too.
#[test]
fn last_words_are_in_the_log() {
    let stage = Stage::new(
        "trap '' INT; trap 'echo last words; exit 1' TERM; touch here; while :; do sleep 0.05; done",
    );
    let mut terminal = Terminal::start(&stage, "--grace 1");
    wait_until("the agent works", || stage.0.path().join("here").exists());
    terminal.types("\x03");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(130), "{shown}");
    let logs = fs::read_dir(stage.0.state_dir().join("logs")).unwrap();
    let log = logs.flatten().next().unwrap().path().join("agent.log");
    let kept = fs::read_to_string(log).unwrap();
    // The shell may say on its own, before or after, that something was ended.
    assert!(kept.lines().any(|line| line == "last words"), "{kept}");
}

/// Log lines go above what is drawn at the bottom, each on a line of its own.
#[test]
fn log_lines_do_not_garble_the_live_view() {
    let stage = Stage::new("sleep 1.2; echo '<chorus>COMPLETE</chorus>'");
    let (code, shown) = Terminal::start(&stage, "-vv").end();
    assert_eq!(code, Some(0), "{shown}");
    let size = |cells: u16| NonZeroU16::new(cells).unwrap();
    let mut screen = vt100::Parser::new(size(500), size(400), 0);
    screen.process(shown.as_bytes());
    let lines: Vec<String> = screen.screen().rows(0, 400).collect();
    let logged: Vec<&String> =
        lines.iter().filter(|line| line.contains("INFO") || line.contains("DEBUG")).collect();
    assert!(logged.iter().any(|line| line.contains("agent ended")), "{lines:#?}");
    for line in logged {
        assert!(line.starts_with("20"), "{line}\n{lines:#?}");
    }
}
