//! `aldis watch` where many people have it: in tmux, with its sizes, its colours and its hangups.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use tempfile::TempDir;

use super::{LOOKS_MAX, stage, start_run};
use crate::phases::project::Project;
use crate::sandbox::ALDIS;

/// A server of tmux with one session, in which the view is all there is.
struct Tmux<'p> {
    project: &'p Project,
    socket: PathBuf,
    /// Of its own: a server that was asked to leave answers for a moment still.
    _directory: TempDir,
}

impl<'p> Tmux<'p> {
    /// Starts the view, with more in its environment; nothing if there is no tmux.
    fn watch(project: &'p Project, environment: &[(&str, &str)]) -> Option<Self> {
        if !Path::new("/usr/bin/tmux").exists() {
            skip();
            return None;
        }
        let directory = TempDir::new_in(project.root()).unwrap();
        let tmux = Self { project, socket: directory.path().join("tmux"), _directory: directory };
        let mut command = tmux.command(&["new-session", "-d", "-x", "80", "-y", "24"]);
        command.args([ALDIS, "watch"]).envs(environment.iter().copied());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(tmux)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command("/usr/bin/tmux");
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket).args(args);
        command
    }

    fn ask(&self, args: &[&str]) -> String {
        let done = self.command(args).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    /// Looks at the screen until it is so. With `styled` colours and weights are in the text.
    #[track_caller]
    fn wait_until(&self, what: &str, styled: bool, so: impl Fn(&str) -> bool) {
        let look = if styled { &["capture-pane", "-p", "-e"][..] } else { &["capture-pane", "-p"] };
        for _ in 0..LOOKS_MAX {
            if so(&self.ask(look)) {
                return;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("{what} does not come up in:\n{}", self.ask(look));
    }

    #[track_caller]
    fn wait_for(&self, wanted: &[&str]) {
        let all = |text: &str| wanted.iter().all(|words| text.contains(words));
        self.wait_until(&format!("{wanted:?}"), false, all);
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}

#[expect(clippy::print_stderr, reason = "a test that was skipped must say so")]
fn skip() {
    assert!(std::env::var_os("CI").is_none(), "tmux is not installed");
    eprintln!("skipped: tmux is not installed");
}

#[test]
fn keys_and_sizes_come_through() {
    let project = stage(&[
        "{ say = '<chorus>PROGRESS: 40</chorus>' }, { say = '<chorus>NEEDS_HUMAN: keep or drop?</chorus>' }",
        "{ say = '<chorus>COMPLETE</chorus>' }",
    ]);
    let Some(tmux) = Tmux::watch(&project, &[]) else { return };
    let mut run = start_run(&project);
    tmux.wait_for(&["1 needs you", "keep or drop?", "Runs", "Journal"]);
    // Wide enough, the chosen run stands beside the others; small, there is one pane.
    tmux.ask(&["resize-window", "-x", "140", "-y", "40"]);
    tmux.wait_for(&["question q1", "status    waiting for your answer"]);
    tmux.ask(&["resize-window", "-x", "44", "-y", "12"]);
    tmux.wait_until("one pane", false, |text| text.contains("Runs") && !text.contains("Journal"));
    tmux.ask(&["resize-window", "-x", "80", "-y", "24"]);
    tmux.wait_for(&["Needs you", "Runs", "Journal"]);
    // Arrows, letters, words and Enter are keys of tmux's terminal, too.
    tmux.press(&["Up", "a", "Drop it.", "Enter"]);
    tmux.wait_for(&["Answered q1"]);
    tmux.wait_for(&["done (iteration", "Nothing needs you"]);
    assert!(run.wait().unwrap().success());
    // The mouse is the terminal's until somebody wants it here.
    assert_eq!(tmux.ask(&["display-message", "-p", "#{mouse_any_flag}"]).trim(), "0");
    tmux.press(&["m"]);
    tmux.wait_for(&["Mouse on"]);
    assert_eq!(tmux.ask(&["display-message", "-p", "#{mouse_any_flag}"]).trim(), "1");
    tmux.press(&["q"]);
    tmux.wait_until("the end of the session", false, str::is_empty);
}

/// A terminal that is closed, with its window or its whole server, takes the view with it.
#[test]
fn it_ends_when_its_terminal_goes_away() {
    let project = Project::new();
    for way in ["kill-window", "kill-session", "kill-server"] {
        let Some(tmux) = Tmux::watch(&project, &[]) else { return };
        tmux.wait_for(&["Nothing is running"]);
        let process = tmux.ask(&["display-message", "-p", "#{pane_pid}"]);
        let process = Path::new("/proc").join(process.trim());
        let name = fs::read_to_string(process.join("comm")).unwrap();
        assert_eq!(name.trim(), "aldis");
        tmux.ask(&[way]);
        let mut looks = 0..LOOKS_MAX;
        while is_alive(&process) {
            assert!(looks.next().is_some(), "{way}: it is still there");
            thread::sleep(Duration::from_millis(25));
        }
    }
}

/// Whether a process is there, and not only its exit status.
fn is_alive(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn colours_are_seen_unless_nobody_wants_them() {
    let project = stage(&["{ say = '<chorus>NEEDS_HUMAN: keep or drop?</chorus>' }"]);
    let mut run = start_run(&project);
    for (environment, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let Some(tmux) = Tmux::watch(&project, environment) else { break };
        tmux.wait_for(&["Add CSV export", "Question", "keep or drop?"]);
        // As one of eight colours, or as one of 256.
        let has_colour = |text: &str| {
            (1..=7).any(|code| text.contains(&format!("[3{code}m"))) || text.contains("38;5;")
        };
        tmux.wait_until("the colour", true, |text| {
            text.contains("keep or drop?") && has_colour(text) == coloured
        });
    }
    run.kill().unwrap();
    run.wait().unwrap();
}
