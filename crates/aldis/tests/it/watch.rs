//! `aldis watch` on a real terminal: it follows a real run, does what the keys say, and gives the
//! terminal back.

mod tmux;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use nix::unistd::Pid;

use crate::phases::project::Project;
use crate::sandbox::{ALDIS, scripted_agent};

/// How often a screen is looked at before it counts as broken.
const LOOKS_MAX: usize = 1_200;

/// A terminal with the view on it.
pub(crate) struct Watched {
    child: Child,
    keyboard: File,
    /// Our side of the cable; the settings of a terminal can be read from it.
    line: OwnedFd,
    before: Termios,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Watched {
    pub(crate) fn start(mut command: Command, (rows, columns): (u16, u16)) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = openpty(&size, None).unwrap();
        let before = tcgetattr(&ends.slave).unwrap();
        let side = || Stdio::from(ends.slave.try_clone().unwrap());
        command.env("TERM", "xterm-256color").stdin(side()).stdout(side()).stderr(side());
        let child = command.spawn().unwrap();
        drop(command);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(side_of(rows), side_of(columns), 0)));
        let (mut output, shown) = (File::from(ends.master.try_clone().unwrap()), screen.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..length]);
            }
        });
        let keyboard = File::from(ends.master.try_clone().unwrap());
        Self { child, keyboard, line: ends.slave, before, screen }
    }

    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Whether anything on the screen has a colour or is bold.
    pub(crate) fn is_coloured(&self) -> bool {
        let parser = self.screen.lock().unwrap();
        let screen = parser.screen();
        let (rows, columns) = screen.size();
        (0..rows.get()).any(|row| {
            (0..columns.get())
                .filter_map(|column| screen.cell(row, column))
                .any(|cell| cell.fgcolor() != vt100::Color::Default || cell.bold() || cell.dim())
        })
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the terminal, as a window does that is dragged.
    fn resize(&self, rows: u16, columns: u16) {
        let mut parser = self.screen.lock().unwrap();
        parser.screen_mut().set_size(side_of(rows), side_of(columns));
        let size =
            rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.line, size).unwrap();
    }

    /// Looks at the screen until it shows all of these.
    #[track_caller]
    fn wait_for(&self, wanted: &[&str]) {
        let all = |text: &str| wanted.iter().all(|words| text.contains(words));
        self.wait_until(&format!("{wanted:?}"), all);
    }

    /// Looks at the screen until it is so.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, so: impl Fn(&str) -> bool) {
        for _ in 0..LOOKS_MAX {
            if so(&self.text()) {
                return;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("{what} does not come up in:\n{}", self.text());
    }

    /// Waits for the end; the terminal must be as it was.
    #[track_caller]
    fn assert_restored(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.text());
        let after = tcgetattr(&self.line).unwrap();
        assert_eq!(after, self.before, "the terminal is as it was");
        assert!(after.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO));
        for _ in 0..LOOKS_MAX {
            let parser = self.screen.lock().unwrap();
            let screen = parser.screen();
            if !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste() {
                return;
            }
            drop(parser);
            thread::sleep(Duration::from_millis(25));
        }
        panic!("the screen was not given back:\n{}", self.text());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A project with a scripted agent.
fn stage(rounds: &[&str]) -> Project {
    let project = Project::new();
    let rounds: Vec<_> =
        rounds.iter().map(|steps| format!("[[round]]\ndo = [{steps}]\n")).collect();
    let script = format!("voice = \"claude-stream\"\n{}", rounds.concat());
    fs::write(project.path().join("script.toml"), script).unwrap();
    project
}

fn start_run(project: &Project) -> Child {
    let mut command = project.command(ALDIS);
    command.args(["run", "--task", "Add CSV export", "--", &scripted_agent(), "script.toml"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn watch(project: &Project, args: &[&str], size: (u16, u16)) -> Watched {
    let mut command = project.command(ALDIS);
    command.arg("watch").args(args);
    Watched::start(command, size)
}

#[test]
fn a_run_is_followed_answered_and_seen_to_its_end() {
    let project = stage(&[
        "{ say = '<chorus>PROGRESS: 40</chorus>' }, { tool = { name = 'Bash' } }, { run = 'while [ ! -e go ]; do sleep 0.05; done' }, { say = '<chorus>NEEDS_HUMAN: keep or drop?</chorus>' }",
        "{ say = '<chorus>PROGRESS: 90</chorus>' }, { say = '<chorus>COMPLETE</chorus>' }",
    ]);
    let mut watched = watch(&project, &[], (24, 80));
    watched.wait_for(&["Nothing is running", "Nothing needs you"]);
    let mut run = start_run(&project);
    watched.wait_for(&["Add CSV export", "1 running", "working, iteration 1", "40 %"]);
    fs::write(project.path().join("go"), "").unwrap();
    watched.wait_for(&["1 needs you", "keep or drop?", "waiting for your answer"]);
    watched.press("aDrop it.\r");
    watched.wait_for(&["Answered q1"]);
    watched.wait_for(&["done (iteration", "0 running", "Nothing needs you"]);
    assert!(run.wait().unwrap().success());
    // The journal, and why.
    watched.press("\t\r");
    watched.wait_for(&["Why", "rule", "next"]);
    watched.press("q");
    watched.press("q");
    watched.assert_restored();
}

#[test]
fn a_run_is_paused_and_aborted_from_a_small_terminal() {
    let project = stage(&["{ say = '<chorus>PROGRESS: 10</chorus>' }, { hang = true }"]);
    let mut run = start_run(&project);
    let mut watched = watch(&project, &[], (10, 40));
    watched.wait_for(&["Add CSV export", "working"]);
    watched.press("p");
    watched.wait_for(&["Sure?", "Pause"]);
    watched.press("y");
    watched.wait_for(&[": paused"]);
    watched.wait_for(&["paused, iteration"]);
    watched.press("xn");
    watched.press("r");
    watched.wait_for(&["Resume"]);
    watched.press("y");
    watched.wait_for(&["working, iteration"]);
    watched.press("xy");
    watched.wait_for(&["aborted"]);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    watched.press("\x03");
    watched.assert_restored();
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let project = Project::new();
    let mut watched = watch(&project, &[], (24, 80));
    watched.wait_for(&["Runs", "Needs you", "Journal"]);
    watched.resize(10, 40);
    watched.wait_until("one pane only", |text| text.contains("Runs") && !text.contains("Journal"));
    watched.press("\t");
    watched.wait_until("the next one", |text| text.contains("Journal") && !text.contains("Runs"));
    watched.resize(30, 120);
    watched.wait_for(&["Runs", "Needs you", "Journal", "x abort"]);
    watched.press("q");
    watched.assert_restored();
}

/// The run that is open has its timeline, what became of its claims, and what its agent writes.
#[test]
fn a_run_is_opened_with_its_timeline_and_its_output() {
    let project = stage(&[
        "{ say = 'I begin with the export.' }, { say = '<chorus>COMPLETE</chorus>' }",
        "{ say = 'The header was missing.' }, { tool = { name = 'Bash' } }, { run = 'while [ ! -e go ]; do sleep 0.05; done' }, { say = '<chorus>COMPLETE</chorus>' }",
    ]);
    fs::write(project.path().join("aldis.toml"), "[run]\nverify = \"test -e go\"\n").unwrap();
    assert_eq!(project.run(&["trust"]).code, 0);
    let mut run = start_run(&project);
    let mut watched = watch(&project, &[], (40, 120));
    // A claim did not hold: somebody may want to know.
    watched.wait_for(&["Add CSV export", "iteration 2", "Check failed"]);
    watched.press("\r");
    watched.wait_for(&["█ work", "✘", "did not hold", "the check failed"]);
    watched.press("o");
    watched.wait_for(&["Output", "I begin with the export.", "The header was missing."]);
    watched.press("o");
    watched.wait_for(&["█ work"]);
    watched.press("q\x1b[Zd");
    watched.wait_for(&["Dismissed", "Nothing needs you."]);
    fs::write(project.path().join("go"), "").unwrap();
    watched.wait_for(&["done (iteration 2 of"]);
    assert!(run.wait().unwrap().success());
    watched.press("q");
    watched.assert_restored();
}

/// Without colours every word is there, and nothing is said by colour alone.
#[test]
fn colours_are_off_where_nobody_wants_them() {
    let project = stage(&["{ say = '<chorus>NEEDS_HUMAN: keep or drop?</chorus>' }"]);
    let mut run = start_run(&project);
    for (arguments, variable) in [(vec!["--color", "never"], None), (vec![], Some("NO_COLOR"))] {
        let mut command = project.command(ALDIS);
        command.args(arguments).arg("watch");
        command.envs(variable.map(|name| (name, "1")));
        let mut watched = Watched::start(command, (24, 80));
        watched.wait_for(&["? Add CSV export", "Question", "keep or drop?"]);
        let parser = watched.screen.lock().unwrap();
        let screen = parser.screen();
        let tinted = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
        let tinted = tinted.filter_map(|(row, column)| screen.cell(row, column));
        assert_eq!(tinted.filter(|cell| cell.fgcolor() != vt100::Color::Default).count(), 0);
        drop(parser);
        watched.press("q");
        watched.assert_restored();
    }
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn signals_give_the_terminal_back() {
    let project = Project::new();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let watched = watch(&project, &[], (24, 80));
        watched.wait_for(&["Nothing is running"]);
        kill(Pid::from_raw(i32::try_from(watched.child.id()).unwrap()), signal).unwrap();
        watched.assert_restored();
    }
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let project = Project::new();
    let done = project.run(&["watch"]);
    insta::assert_snapshot!(done.text(), @r"
    exit 2
    -- stdout
    -- stderr
    error: standard output is not a terminal
     help: `aldis status --json` and `aldis log --follow --json` are for programs
    ");
    let mut watched = watch(&project, &["none"], (24, 80));
    watched.wait_for(&["error: there is no run `none`"]);
    assert_eq!(watched.child.wait().unwrap().code(), Some(2));
}

#[test]
fn the_journal_is_followed_without_a_terminal() {
    let project = stage(&["{ say = '<chorus>COMPLETE</chorus>' }"]);
    let mut command = project.command(ALDIS);
    command.args(["log", "--follow", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut follower = command.spawn().unwrap();
    assert!(start_run(&project).wait().unwrap().success());
    let wanted = project.run(&["log", "--json"]).stdout;
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    for line in wanted.lines() {
        assert_eq!(lines.next().unwrap().unwrap(), line);
    }
    assert!(wanted.lines().count() > 2, "{wanted}");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

fn side_of(length: u16) -> NonZero<u16> {
    NonZero::new(length).unwrap()
}
