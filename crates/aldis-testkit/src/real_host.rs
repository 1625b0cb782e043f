//! The hosts themselves, run headless in a place of their own.
//!
//! A [`RealHost`] has a scratch home, a scratch project and a cleared environment, and talks to a
//! [`ModelServer`] with a dummy key. Its process gets a group of its own and a time limit, and the
//! whole group goes when the limit is reached.

mod installed;
mod process;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use serde_json::{Value, json};

use crate::model_server::ModelServer;

pub use self::installed::Installed;

/// Which host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

/// Which conversation a run is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one, named by the host.
    New,
    /// A new one with this UUID for a name. Only Claude Code can.
    Named(String),
    /// One that exists.
    Resumed(String),
}

/// A host and where it lives.
#[derive(Clone, Debug)]
pub struct RealHost {
    kind: HostKind,
    program: PathBuf,
    root: PathBuf,
    path: Vec<PathBuf>,
    env: Vec<(OsString, OsString)>,
    arguments: Vec<String>,
    time_max: Duration,
}

/// What a run did.
#[derive(Debug)]
pub struct HostRun {
    /// Standard output: one JSON object a line.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How it ended; by a signal if it took too long.
    pub status: ExitStatus,
    /// The conversation, to be resumed.
    pub session_id: Option<String>,
    /// Whether it took too long.
    pub timed_out: bool,
}

impl RealHost {
    /// Claude Code, living below `root`.
    ///
    /// # Errors
    ///
    /// If the directories cannot be made.
    pub fn claude(program: &Path, root: &Path) -> io::Result<Self> {
        Self::new(HostKind::Claude, program, root)
    }

    /// Codex, living below `root`.
    ///
    /// It runs hooks that nobody has reviewed (`--dangerously-bypass-hook-trust`), because nobody is
    /// there to review them; [`Self::reviewing_hooks`] takes that back.
    ///
    /// # Errors
    ///
    /// If the directories cannot be made.
    pub fn codex(program: &Path, root: &Path) -> io::Result<Self> {
        let host = Self::new(HostKind::Codex, program, root)?;
        Ok(host.with_argument(BYPASS_HOOK_TRUST))
    }

    fn new(kind: HostKind, program: &Path, root: &Path) -> io::Result<Self> {
        // Hosts resolve links before they compare directories or report them.
        let root = root.canonicalize()?;
        let host = Self {
            kind,
            program: program.to_owned(),
            root,
            path: Vec::new(),
            env: Vec::new(),
            arguments: Vec::new(),
            time_max: TIME_MAX,
        };
        for directory in [host.home(), host.project(), host.config(), host.temporary()] {
            fs::create_dir_all(directory)?;
        }
        Ok(host)
    }

    /// Puts a directory in front of the `PATH`.
    #[must_use]
    pub fn with_path(mut self, directory: &Path) -> Self {
        self.path.insert(0, directory.to_owned());
        self
    }

    /// Sets a variable for the host and for its hooks.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Adds an argument of the host.
    #[must_use]
    pub fn with_argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Changes the time limit of a run.
    #[must_use]
    pub fn with_time_max(mut self, time_max: Duration) -> Self {
        self.time_max = time_max;
        self
    }

    /// Lets Codex skip hooks that were not reviewed, as it does by default.
    #[must_use]
    pub fn reviewing_hooks(mut self) -> Self {
        self.arguments.retain(|argument| argument != BYPASS_HOOK_TRUST);
        self
    }

    /// Which host it is.
    pub fn kind(&self) -> HostKind {
        self.kind
    }

    /// The user's home.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The directory the host works in.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The host's own directory in the user's home.
    pub fn config(&self) -> PathBuf {
        self.home().join(match self.kind {
            HostKind::Claude => ".claude",
            HostKind::Codex => ".codex",
        })
    }

    fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The environment of the host, for commands that a user would type beside it.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = self.path.iter().cloned().chain(std::env::split_paths(&inherited));
        // A directory with a colon in its name cannot be on a PATH; then the inherited one must do.
        let path = std::env::join_paths(path).unwrap_or(inherited);
        let config = match self.kind {
            HostKind::Claude => "CLAUDE_CONFIG_DIR",
            HostKind::Codex => "CODEX_HOME",
        };
        let mut env = vec![
            ("PATH".into(), path),
            ("HOME".into(), self.home().into()),
            (config.into(), self.config().into()),
            ("TMPDIR".into(), self.temporary().into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("TZ".into(), "UTC".into()),
        ];
        env.extend(self.env.iter().cloned());
        env
    }

    /// Gives the host a prompt and waits until it is done.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or not with such a session. A host that fails, or takes too long, is
    /// not an error: [`HostRun`] says so.
    pub fn run(
        &self,
        model: &ModelServer,
        prompt: &str,
        session: &SessionChoice,
    ) -> io::Result<HostRun> {
        let mut command = self.command(model, session)?;
        let outcome = process::run(&mut command, &self.root, prompt, self.time_max)?;
        let process::HostOutcome { stdout, stderr, status, timed_out } = outcome;
        let session_id = events(&stdout).find_map(|event| {
            let id = event["session_id"].as_str().or_else(|| event["thread_id"].as_str());
            id.map(str::to_owned)
        });
        Ok(HostRun { stdout, stderr, status, session_id, timed_out })
    }

    /// Returns how the host is started: program, arguments, directory, environment. Its prompt comes
    /// on standard input.
    ///
    /// # Errors
    ///
    /// If it cannot be started with such a session.
    pub fn command(&self, model: &ModelServer, session: &SessionChoice) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.current_dir(self.project()).env_clear().envs(self.environment());
        match self.kind {
            HostKind::Claude => self.prepare_claude(&mut command, model, session),
            HostKind::Codex => self.prepare_codex(&mut command, model, session)?,
        }
        Ok(command)
    }

    /// Returns how the host is started for a person at a terminal, who has used it before and trusts the
    /// project.
    ///
    /// # Errors
    ///
    /// If what it keeps of its user cannot be written.
    pub fn interactive(&self, model: &ModelServer) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.current_dir(self.project()).env_clear().envs(self.environment());
        let project = self.project().display().to_string();
        match self.kind {
            HostKind::Claude => {
                command.envs(claude_variables(&model.url()));
                let file = self.config().join(".claude.json");
                let known = fs::read(&file).unwrap_or_default();
                let mut known: Value = serde_json::from_slice(&known).unwrap_or_else(|_| json!({}));
                known["hasCompletedOnboarding"] = json!(true);
                known["theme"] = json!("dark");
                known["customApiKeyResponses"] = json!({"approved": ["dummy"], "rejected": []});
                known["projects"][&project]["hasTrustDialogAccepted"] = json!(true);
                fs::write(file, known.to_string())?;
            }
            HostKind::Codex => {
                command.env(CODEX_KEY, "dummy");
                let trust = format!("projects.{}.trust_level=\"trusted\"", json!(project));
                for setting in codex_settings(&model.url()).iter().chain([&trust]) {
                    command.args(["-c", setting]);
                }
            }
        }
        command.args(&self.arguments);
        Ok(command)
    }

    fn prepare_claude(&self, command: &mut Command, model: &ModelServer, session: &SessionChoice) {
        command.envs(claude_variables(&model.url()));
        // Not `--dangerously-skip-permissions`: it is refused to root, and the tests may run as root.
        command.args(["-p", "--output-format", "stream-json", "--verbose", "--allowedTools=Bash"]);
        match session {
            SessionChoice::New => {}
            SessionChoice::Named(id) => drop(command.args(["--session-id", id])),
            SessionChoice::Resumed(id) => drop(command.args(["--resume", id])),
        }
        command.args(&self.arguments);
    }

    fn prepare_codex(
        &self,
        command: &mut Command,
        model: &ModelServer,
        session: &SessionChoice,
    ) -> io::Result<()> {
        command.env(CODEX_KEY, "dummy");
        command.args(["exec", "--json", "--skip-git-repo-check"]);
        // As arguments, not in the file: the file belongs to the user, and to the installer under test.
        for setting in codex_settings(&model.url()) {
            command.args(["-c", &setting]);
        }
        command.args(&self.arguments);
        match session {
            SessionChoice::New => {}
            SessionChoice::Named(_) => return Err(io::ErrorKind::Unsupported.into()),
            SessionChoice::Resumed(id) => drop(command.args(["resume", id])),
        }
        command.arg("-");
        Ok(())
    }
}

impl HostRun {
    /// The lines of standard output that are JSON.
    pub fn events(&self) -> impl Iterator<Item = Value> {
        events(&self.stdout)
    }

    /// Everything at once, for the message of a failed assertion.
    pub fn text(&self) -> String {
        let Self { stdout, stderr, status, timed_out, .. } = self;
        format!("{status}, timed out: {timed_out}\n-- stdout\n{stdout}\n-- stderr\n{stderr}")
    }
}

fn events(stdout: &str) -> impl Iterator<Item = Value> {
    stdout.lines().filter_map(|line| serde_json::from_str(line).ok())
}

fn claude_variables(url: &str) -> [(&'static str, &str); 5] {
    [
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_API_KEY", "dummy"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
    ]
}

fn codex_settings(url: &str) -> [String; 11] {
    let provider = |key: &str, value: &str| format!("model_providers.scripted.{key}={value}");
    [
        "model=\"scripted\"".to_owned(),
        "model_provider=\"scripted\"".to_owned(),
        "approval_policy=\"never\"".to_owned(),
        "sandbox_mode=\"danger-full-access\"".to_owned(),
        "analytics.enabled=false".to_owned(),
        provider("name", "\"scripted\""),
        provider("base_url", &format!("\"{url}/v1\"")),
        provider("wire_api", "\"responses\""),
        provider("env_key", &format!("\"{CODEX_KEY}\"")),
        provider("request_max_retries", "0"),
        provider("stream_max_retries", "0"),
    ]
}

const BYPASS_HOOK_TRUST: &str = "--dangerously-bypass-hook-trust";
const CODEX_KEY: &str = "SCRIPTED_API_KEY";
const TIME_MAX: Duration = Duration::from_secs(120);
