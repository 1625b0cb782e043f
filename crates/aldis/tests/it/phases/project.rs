//! A project with its own home and state directory, and the hook calls of a host in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aldis_store::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::{ALDIS, Done};

/// When tests happen unless they say otherwise.
pub(crate) const NOW: &str = "2026-03-02T10:00:00Z";

pub(crate) struct Project {
    root: TempDir,
    pub(crate) now: String,
    deadline: &'static str,
}

impl Project {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        for directory in ["project", "home/.claude"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let command =
            json!({"type": "command", "command": "aldis", "args": ["hook", "claude-code"]});
        let hooks = json!({"hooks": {"Stop": [{"hooks": [command]}]}});
        fs::write(root.path().join("home/.claude/settings.json"), hooks.to_string()).unwrap();
        Self { root, now: NOW.to_owned(), deadline: "2" }
    }

    /// Where everything lies.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Its hooks may take long: so many run at once that the machine is the one who is late.
    pub(crate) fn patient(mut self) -> Self {
        self.deadline = "30";
        self
    }

    pub(crate) fn at(mut self, now: &str) -> Self {
        now.clone_into(&mut self.now);
        self
    }

    /// A command in this project, with nothing else in its environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("ALDIS_STATE_DIR", self.state_dir())
            .env("ALDIS_NOW", &self.now)
            .env("ALDIS_HOOK_DEADLINE", self.deadline)
            .current_dir(self.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.run_with(args, b"")
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> Done {
        let mut command = self.command(ALDIS);
        command.args(args);
        feed(command, stdin)
    }

    /// Starts a run that belongs to session S1.
    pub(crate) fn start(&self, more: &[&str]) -> Value {
        let args = ["auto", "start", "Add CSV export", "--session", "S1", "--json"];
        let done = self.run(&[&args, more].concat());
        assert_eq!(done.code, 0, "{}", done.text());
        done.json().remove(0)
    }

    /// Calls the hook of Claude Code at a stop with this final message.
    pub(crate) fn stop(&self, text: &str) -> Answer {
        self.hook(&self.payload(text))
    }

    pub(crate) fn payload(&self, text: &str) -> Value {
        json!({
            "session_id": "S1", "cwd": self.path(), "hook_event_name": "Stop",
            "stop_hook_active": false, "last_assistant_message": text,
        })
    }

    pub(crate) fn hook(&self, payload: &Value) -> Answer {
        self.hook_bytes("claude-code", payload.to_string().as_bytes())
    }

    /// Calls the hook. It must exit with 0, say nothing on standard error, and print one JSON
    /// object or nothing.
    pub(crate) fn hook_bytes(&self, host: &str, payload: &[u8]) -> Answer {
        let done = self.run_with(&["hook", host], payload);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
        if done.stdout.is_empty() {
            return Answer::Allow;
        }
        let answer: Value = serde_json::from_str(&done.stdout).unwrap();
        match answer["decision"].as_str() {
            Some("block") => Answer::Block(answer["reason"].as_str().unwrap().to_owned()),
            // The user is told something and nothing is decided.
            None if answer["hookSpecificOutput"].is_null()
                && answer["systemMessage"].is_string() =>
            {
                Answer::Allow
            }
            _ => Answer::Other(answer),
        }
    }

    /// Calls the hook of Claude Code at a stop and returns what the user is told.
    pub(crate) fn notice(&self, text: &str) -> String {
        let done =
            self.run_with(&["hook", "claude-code"], self.payload(text).to_string().as_bytes());
        assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
        let answer: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        answer["systemMessage"].as_str().unwrap_or_default().to_owned()
    }

    /// The state file.
    pub(crate) fn view(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.view_path()).unwrap()).unwrap()
    }

    pub(crate) fn view_path(&self) -> PathBuf {
        self.path().join(".caw/auto-state.json")
    }

    pub(crate) fn write_view(&self, text: &str) {
        fs::create_dir_all(self.path().join(".caw")).unwrap();
        fs::write(self.view_path(), text).unwrap();
    }

    /// What the store says about the project's run.
    pub(crate) fn status(&self) -> Value {
        let done = self.run(&["auto", "status", "--json"]);
        serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.text()))
    }

    /// The last decision that matters.
    pub(crate) fn why(&self) -> Value {
        let done = self.run(&["why", "--last", "--json"]);
        serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.text()))
    }

    /// What went wrong silently.
    pub(crate) fn alarms(&self) -> String {
        fs::read_to_string(self.state_dir().join("failures.jsonl")).unwrap_or_default()
    }

    /// Checks that the database is whole, that the journal leads to what is stored, and that the
    /// state file says the same.
    pub(crate) fn assert_sound(&self) {
        let store = SqliteStore::open(&self.state_dir()).unwrap();
        store.check().unwrap();
        store.abandon();
        let (status, view) = (self.status(), self.view());
        for member in ["phase", "iteration", "active"] {
            assert_eq!(view[member], status[member], "{member} in the state file");
        }
        assert_eq!(view["exit_reason"], status["exit_reason"]);
        let replay = self.run(&["replay", status["run"].as_str().unwrap()]);
        assert_eq!(replay.code, 0, "{}", replay.text());
        let names = fs::read_dir(self.path().join(".caw")).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["auto-state.json"], "something was left behind");
    }

    /// Writes a transcript where Claude Code would.
    pub(crate) fn transcript(&self, lines: &[Value]) -> PathBuf {
        let path = self.home().join(".claude/projects/p/S1.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).unwrap();
        path
    }
}

/// What the hook answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Allow,
    Block(String),
    Other(Value),
}

impl Answer {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block(_) => "block",
            Self::Other(_) => "other",
        }
    }

    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Block(reason) => reason,
            Self::Allow | Self::Other(_) => panic!("not blocked: {self:?}"),
        }
    }
}

/// The block that completes a phase.
pub(crate) fn block(phase: &str) -> String {
    let name = phase.to_ascii_uppercase();
    format!(
        "Done.\n\n---\nSIGNAL: {name}_COMPLETE\nPHASE: {phase}\nSTATUS: complete\n\
         TIMESTAMP: {NOW}\n---\n"
    )
}

/// A transcript of Claude Code: each entry follows the one before.
pub(crate) fn conversation(entries: &[Value]) -> Vec<Value> {
    let mut lines = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let mut line = json!({
            "uuid": format!("u{number}"),
            "parentUuid": number.checked_sub(1).map(|parent| format!("u{parent}")),
            "sessionId": "S1", "isSidechain": false,
        });
        for (name, value) in entry.as_object().unwrap() {
            line[name] = value.clone();
        }
        lines.push(line);
    }
    lines
}

pub(crate) fn said(text: &str, at: Option<&str>) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    let message = json!({"id": format!("m{}", text.len()), "role": "assistant", "content": content, "stop_reason": "end_turn"});
    json!({"type": "assistant", "timestamp": at, "message": message})
}

pub(crate) fn prompted(text: &str, at: Option<&str>) -> Value {
    json!({"type": "user", "timestamp": at, "message": {"role": "user", "content": text}})
}

pub(crate) fn tool_used(tool: &str) -> Value {
    let content = json!([{"type": "tool_use", "id": "t1", "name": tool, "input": {}}]);
    json!({"type": "assistant", "message": {"id": "mt", "role": "assistant", "content": content}})
}

pub(crate) fn tool_result(text: &str) -> Value {
    let content = json!([{"type": "tool_result", "tool_use_id": "t1", "content": text}]);
    json!({"type": "user", "message": {"role": "user", "content": content}})
}

/// Runs a command with this on its standard input.
pub(crate) fn feed(mut command: Command, stdin: &[u8]) -> Done {
    use std::io::Write as _;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A command that does not read its input is no failure of the test.
    let _written = input.write_all(stdin);
    drop(input);
    let output = child.wait_with_output().unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A file of the shared test data.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}
