//! Faults in the real binary, injected with strace: killed, or lied to by the system, at the Nth call
//! of one kind.

use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};
use std::process::Command;

use aldis_store::{RunFilter, SqliteStore, Store as _};
use serde_json::{Value, json};

use super::project::{Project, block, feed};
use crate::sandbox::{ALDIS, Done};

/// Returns whether faults can be injected here, and says so if not.
///
/// # Panics
///
/// In CI: there, a test that does not run must not look like one that passed.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
pub(crate) fn has_strace() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let works = tried.as_ref().is_ok_and(|output| output.status.success());
    if !works {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "strace does not work, and faults must be tested in CI: {tried:?}");
        eprintln!("skipped: strace is missing or not allowed here");
    }
    works
}

/// What happens at which call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault<'a> {
    /// The system calls, as strace names them.
    pub(crate) calls: &'a str,
    /// `signal=KILL` or `error=ENOSPC`.
    pub(crate) what: &'a str,
    /// Which of the calls: `3`, or `3+` for the third and all after it.
    pub(crate) when: &'a str,
}

/// One thing that happens in a workflow.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A command of ours.
    Run(&'static [&'static str]),
    /// A call of the hook.
    Hook(Value),
}

impl Act {
    fn args(&self) -> &'static [&'static str] {
        match self {
            Self::Run(args) => args,
            Self::Hook(_) => &["hook", "claude-code"],
        }
    }

    fn input(&self) -> Vec<u8> {
        match self {
            Self::Run(_) => Vec::new(),
            Self::Hook(payload) => payload.to_string().into_bytes(),
        }
    }
}

/// Three phases.
pub(crate) const START: Act = Act::Run(&[
    "auto",
    "start",
    "Add CSV export",
    "--session",
    "S1",
    "--skip-expansion",
    "--skip-qa",
    "--skip-review",
    "--skip-reflect",
    "--json",
]);

impl Project {
    pub(crate) fn act(&self, act: &Act) -> Done {
        self.run_with(act.args(), &act.input())
    }

    /// Does the same with a fault.
    pub(crate) fn act_with(&self, act: &Act, fault: Fault<'_>) -> Done {
        self.act_under(act, fault, &[])
    }

    /// Does the same, and one of these paths cannot be opened.
    pub(crate) fn act_opening(&self, act: &Act, paths: &[&str], error: &str, when: &str) -> Done {
        let fault = Fault { calls: "openat", what: &format!("error={error}"), when };
        self.act_under(act, fault, paths)
    }

    fn act_under(&self, act: &Act, fault: Fault<'_>, paths: &[&str]) -> Done {
        let Fault { calls, what, when } = fault;
        let mut command = self.command("strace");
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e"])
            .arg(format!("inject={calls}:{what}:when={when}"))
            .args(paths.iter().flat_map(|path| ["-P", path]))
            .arg(ALDIS)
            .args(act.args());
        feed(command, &act.input())
    }

    /// A stop with this final message.
    pub(crate) fn stopping(&self, text: &str) -> Act {
        Act::Hook(self.payload(text))
    }

    pub(crate) fn prompting(&self) -> Act {
        Act::Hook(json!({
            "session_id": "S1", "cwd": self.path(), "hook_event_name": "UserPromptSubmit",
            "prompt": "go", "prompt_id": "p1",
        }))
    }

    /// A sub-agent that completes a phase.
    pub(crate) fn delegating(&self, phase: &str) -> Act {
        Act::Hook(json!({
            "session_id": "S1", "cwd": self.path(), "hook_event_name": "SubagentStop",
            "stop_hook_active": false, "agent_id": "a1", "last_assistant_message": block(phase),
        }))
    }

    /// A whole run: refused, advanced, prompted, delegated, resumed and completed; then one that
    /// is ended by hand.
    pub(crate) fn workflow(&self) -> Vec<(&'static str, Act)> {
        vec![
            ("start", START),
            ("refuse", self.stopping("Not yet.")),
            ("advance", self.stopping(&block("init"))),
            ("prompt", self.prompting()),
            ("delegate", self.delegating("planning")),
            ("hand over", self.stopping("The agent is through.")),
            ("resume", Act::Run(&["auto", "resume", "--json"])),
            ("complete", self.stopping(&block("execution"))),
            ("start again", Act::Run(&["auto", "start", "Add TSV export", "--session", "S1"])),
            ("stop", Act::Run(&["auto", "stop", "--json"])),
        ]
    }

    /// Looks at what is there, without a process of ours.
    pub(crate) fn look(&self) -> Sight {
        let view = fs::read(self.view_path()).ok();
        if !SqliteStore::exists(&self.state_dir()) {
            return Sight { view, runs: 0, events: 0, state: Value::Null, id: String::new() };
        }
        let store = SqliteStore::open(&self.state_dir()).unwrap();
        store.check().unwrap();
        let runs = store.loaded(&RunFilter::default()).unwrap();
        let runs: Vec<_> = runs.into_iter().map(|loaded| loaded.run).collect();
        let events = |run: &aldis_store::Run| store.events(&run.id, 0, usize::MAX).unwrap().len();
        let events = runs.iter().map(events).sum();
        let last = runs.first();
        let state = last.map(|run| serde_json::from_str(&run.record.state).unwrap());
        let state: Value = state.unwrap_or_default();
        let id = last.map(|run| run.id.to_string()).unwrap_or_default();
        store.abandon();
        Sight { view, runs: runs.len(), events, state: state["state"].clone(), id }
    }
}

/// What the disk says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sight {
    pub(crate) view: Option<Vec<u8>>,
    pub(crate) runs: usize,
    /// In all journals.
    pub(crate) events: usize,
    /// Of the latest run.
    pub(crate) state: Value,
    pub(crate) id: String,
}

impl Sight {
    pub(crate) fn iteration(&self) -> u64 {
        self.state["iteration"].as_u64().unwrap_or(0)
    }

    /// How far the latest run has come.
    pub(crate) fn progress(&self) -> usize {
        let phases = ["expansion", "init", "planning", "execution", "complete"];
        let phase = self.state["phase"].as_str();
        phases.iter().position(|name| Some(*name) == phase).map_or(0, |at| at + 1)
    }
}

/// Everything in a directory, to put it back.
#[derive(Debug)]
pub(crate) struct Snapshot {
    place: PathBuf,
    directories: Vec<(PathBuf, Permissions)>,
    files: Vec<(PathBuf, Permissions, Vec<u8>)>,
}

impl Snapshot {
    pub(crate) fn of(place: &Path) -> Self {
        let mut snapshot =
            Self { place: place.to_owned(), directories: Vec::new(), files: Vec::new() };
        snapshot.take(place);
        snapshot
    }

    fn take(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let permissions = fs::metadata(&path).unwrap().permissions();
            if path.is_dir() {
                self.directories.push((path.clone(), permissions));
                self.take(&path);
            } else {
                let bytes = fs::read(&path).unwrap();
                self.files.push((path, permissions, bytes));
            }
        }
    }

    pub(crate) fn restore(&self) {
        for entry in fs::read_dir(&self.place).unwrap() {
            let path = entry.unwrap().path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.unwrap();
        }
        for (path, permissions) in &self.directories {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, permissions.clone()).unwrap();
        }
        for (path, permissions, bytes) in &self.files {
            fs::write(path, bytes).unwrap();
            fs::set_permissions(path, permissions.clone()).unwrap();
        }
    }
}
