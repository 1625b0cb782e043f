//! A host, a project with the hook installed, and the commands a user would type beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use aldis_testkit::model_server::{ModelServer, Script, ScriptedReply};
use aldis_testkit::real_host::{HostKind, HostRun, Installed, RealHost, SessionChoice};
use serde_json::Value;
use tempfile::TempDir;

use crate::sandbox::ALDIS;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One host in a scratch home, with a run to look after.
pub(super) struct Stage {
    host: RealHost,
    _root: TempDir,
}

/// The conversation the run belongs to.
#[derive(Clone)]
pub(super) struct Conversation {
    id: String,
    next: SessionChoice,
}

impl Conversation {
    /// Its name.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// How the host is told of it.
    pub(super) fn next(&self) -> &SessionChoice {
        &self.next
    }

    /// The same, after the host has had it once.
    pub(super) fn resumed(&self) -> Self {
        Self { id: self.id.clone(), next: SessionChoice::Resumed(self.id.clone()) }
    }
}

impl Stage {
    /// Sets up a host with the hook installed in its project; nothing where there can be none.
    pub(super) fn new(kind: HostKind) -> Option<Self> {
        Self::installed(kind, "--project")
    }

    /// Sets up a host with what `aldis install` writes, in the files of this scope.
    pub(super) fn installed(kind: HostKind, scope: &str) -> Option<Self> {
        let stage = Self::without_registration(kind)?;
        let name = match kind {
            HostKind::Claude => "claude-code",
            HostKind::Codex => "codex",
        };
        stage.aldis(&["install", name, scope]);
        Some(stage)
    }

    /// Sets up a host that was never told of us.
    pub(super) fn without_registration(kind: HostKind) -> Option<Self> {
        let installed = Installed::find()?;
        let root = TempDir::new().unwrap();
        let host = match kind {
            HostKind::Claude => RealHost::claude(&installed.claude, root.path()),
            HostKind::Codex => RealHost::codex(&installed.codex, root.path()),
        };
        let host = host
            .unwrap()
            .with_path(Path::new(ALDIS).parent().unwrap())
            .with_env("ALDIS_STATE_DIR", root.path().join("state"))
            .with_env("ALDIS_HOOK_DEADLINE", "30");
        Some(Self { host, _root: root })
    }

    /// Starts the host with further arguments.
    pub(super) fn with_arguments<S: Into<String> + Clone>(mut self, arguments: &[S]) -> Self {
        for argument in arguments {
            self.host = self.host.with_argument(argument.clone());
        }
        self
    }

    /// Sets a variable for the host.
    pub(super) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.host = self.host.with_env(name, value);
        self
    }

    /// Puts the host itself on the `PATH`, where commands beside it find it.
    pub(super) fn with_host_on_path(mut self) -> Self {
        let Some(Installed { claude, codex }) = Installed::find() else { return self };
        let program = if self.host.kind() == HostKind::Claude { claude } else { codex };
        self.host = self.host.with_path(program.parent().unwrap());
        self
    }

    pub(super) fn host(&self) -> &RealHost {
        &self.host
    }

    /// Begins a conversation whose name is known before the run starts. Codex tells the name only
    /// when asked something, so there it is asked.
    pub(super) fn open_session(&self) -> Conversation {
        match self.host.kind() {
            HostKind::Claude => {
                let id = "0f4a8c52-6f0e-4d4c-9a51-3b1f6a3f2c11".to_owned();
                Conversation { next: SessionChoice::Named(id.clone()), id }
            }
            HostKind::Codex => {
                let model =
                    ModelServer::start(Script::new([ScriptedReply::says("Hello.")])).unwrap();
                let hello = self.host.run(&model, "Hello.", &SessionChoice::New).unwrap();
                let id = hello.session_id.clone();
                let id = id.unwrap_or_else(|| panic!("no session: {}", hello.text()));
                assert_eq!(model.main_requests().len(), 1, "a stop was blocked without a run");
                Conversation { next: SessionChoice::Resumed(id.clone()), id }
            }
        }
    }

    /// Starts a run that belongs to a conversation.
    pub(super) fn start(&self, conversation: &Conversation, options: &[&str]) {
        let arguments = ["auto", "start", "write a parser", "--session", &conversation.id];
        self.aldis(&[&arguments, options].concat());
    }

    /// Gives the host a prompt and waits until it is done.
    pub(super) fn run(&self, model: &ModelServer, conversation: &Conversation) -> HostRun {
        let run = self.host.run(model, "Begin.", &conversation.next).unwrap();
        assert!(run.status.success(), "{}", run.text());
        assert_eq!(run.session_id.as_deref(), Some(conversation.id.as_str()), "{}", run.text());
        run
    }

    pub(super) fn status(&self) -> Value {
        self.json(&["auto", "status", "--json"])
    }

    /// The name of the run.
    pub(super) fn run_name(&self) -> String {
        self.status()["run"].as_str().unwrap().to_owned()
    }

    pub(super) fn assert_complete(&self) {
        let status = self.status();
        assert_eq!(status["phase"], "complete", "{status}");
        assert_eq!(status["active"], false, "{status}");
        assert_eq!(status["exit_reason"], "all_phases_complete", "{status}");
    }

    /// Checks that the host took a message for the user. Claude Code keeps it in its transcript; Codex
    /// shows it to people only, and keeps nothing of it.
    pub(super) fn assert_user_told(&self, what: &str) {
        if self.host.kind() == HostKind::Claude {
            let files = files_below(&self.host.config());
            let told = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|it| it.contains(what));
            assert!(files.iter().any(told), "`{what}` is in none of {files:?}");
        }
    }

    /// Runs a command of ours in the project and returns what it prints.
    pub(super) fn aldis(&self, arguments: &[&str]) -> String {
        let output = Command::new(ALDIS)
            .args(arguments)
            .current_dir(self.host.project())
            .env_clear()
            .envs(self.host.environment())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}\n{errors}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until a command prints this.
    pub(super) fn wait_until(&self, arguments: &[&str], text: &str) {
        let began = Instant::now();
        while !self.aldis(arguments).contains(text) {
            assert!(began.elapsed() < PATIENCE, "`{text}` is not in {}", self.aldis(arguments));
            thread::sleep(Duration::from_millis(200));
        }
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.aldis(arguments)).unwrap()
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
