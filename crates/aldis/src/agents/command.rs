//! How a process is started: an agent with its prompt, a check, or a judge with its question.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use aldis_process::{Agent, Input, Launch, Mark, StartError};
use aldis_store::RunId;
use aldis_transcript::Input as OutputFormat;
use tempfile::NamedTempFile;

use crate::settings::prompt_by::PromptBy;
use crate::settings::remote::{SERVER, TOKEN};
use crate::settings::system::System;

/// How to start an agent.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// How it gets its prompt.
    pub(crate) prompt: PromptBy,
    /// Whether it runs on a terminal.
    pub(crate) pty: bool,
    /// What kind of output it writes.
    pub(crate) input: OutputFormat,
    /// The command that resumes an earlier session of its host, with [`SESSION`] where that is named.
    pub(crate) resume: Option<Vec<OsString>>,
}

/// What stands for the name of a session in a command.
pub(crate) const SESSION: &str = "{session}";
/// How long the name of a session may be.
const SESSION_MAX: usize = 128;

/// A process to be started.
#[derive(Clone, Debug)]
pub struct JobLaunch {
    /// What to run.
    pub what: Program,
    /// Where.
    pub directory: PathBuf,
    /// Variables beside our own.
    pub variables: Vec<(&'static str, String)>,
    /// The run it belongs to: it can be found by that if we crash before its identity is stored.
    pub run: RunId,
    /// The worker that runs it, if one does: others leave it alone.
    pub worker: Option<String>,
}

/// What to run.
#[derive(Clone, Debug)]
pub enum Program {
    /// An agent, with its prompt.
    Agent {
        /// How it is started.
        command: AgentCommand,
        /// What it is told.
        prompt: String,
    },
    /// A check, for a shell.
    Check(String),
    /// A program that gives a second opinion, for a shell, with the question that it reads.
    Judge {
        /// The command.
        command: String,
        /// The question.
        question: Vec<u8>,
    },
}

/// Why a process could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// What is wrong, and what to do about it.
    pub what: String,
}

/// A process that was started, with what it needs for as long as it runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) agent: Agent,
    /// Holds the prompt for as long as the agent may read it.
    pub(crate) prompt: Option<NamedTempFile>,
}

/// Returns what marks every process of a run.
pub(crate) fn owner_mark(run: &RunId) -> Mark {
    Mark::derive(&format!("run {run}"))
}

/// Returns what marks every process of a worker.
pub(crate) fn worker_mark(worker: &str) -> Mark {
    Mark::derive(&format!("worker {worker}"))
}

impl JobLaunch {
    /// Starts the process.
    ///
    /// # Errors
    ///
    /// [`StartFailure`] if it cannot be started; then nothing of it runs.
    pub(crate) fn start(&self) -> Result<Started, StartFailure> {
        let mut words = match &self.what {
            Program::Agent { command, .. } => command.command.clone(),
            Program::Check(check) | Program::Judge { command: check, .. } => {
                let [shell, option] = System::CURRENT.shell();
                [shell, option, check].map(OsString::from).to_vec()
            }
        }
        .into_iter();
        let mut launch = Launch::new(words.next().unwrap_or_default());
        launch.args = words.collect();
        launch.cwd.clone_from(&self.directory);
        launch.owner = Some(match &self.worker {
            Some(worker) => worker_mark(worker),
            None => owner_mark(&self.run),
        });
        // What it reports is for the run here, whatever server is named for other sessions.
        let here = [SERVER, TOKEN].map(|name| (name.into(), OsString::new()));
        let own = self.variables.iter().map(|(name, value)| (name.into(), value.into()));
        launch.environment.set = here.into_iter().chain(own).collect();
        let mut file = None;
        if let Program::Agent { command, prompt } = &self.what {
            launch.terminal = command.pty;
            match command.prompt {
                PromptBy::Stdin => launch.input = Input::Text(prompt.as_bytes().to_vec()),
                PromptBy::Argument => launch.args.push(prompt.into()),
                PromptBy::File => {
                    let written = write_prompt(prompt)?;
                    launch.args.push(written.path().into());
                    file = Some(written);
                }
            }
        }
        if let Program::Judge { question, .. } = &self.what {
            launch.input = Input::Text(question.clone());
        }
        let agent = Agent::start(&launch).map_err(|error| StartFailure::new(&error))?;
        Ok(Started { agent, prompt: file })
    }
}

impl StartFailure {
    pub(crate) fn new(error: &StartError) -> Self {
        let what = match error.help() {
            Some(help) => format!("{error}; {help}"),
            None => error.to_string(),
        };
        Self { what }
    }
}

impl AgentCommand {
    /// Returns how the agent resumes this session, if that is known. The name comes from the host's
    /// output: one that could be taken for an option or a path is none.
    pub(crate) fn resuming(&self, session: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let named = session.len() <= SESSION_MAX
            && session.bytes().all(plain)
            && session.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        let resume = self.resume.as_ref().filter(|_| named)?;
        let named = |word: &OsString| match word.to_str() {
            Some(text) => text.replace(SESSION, session).into(),
            None => word.clone(),
        };
        Some(Self { command: resume.iter().map(named).collect(), ..self.clone() })
    }
}

fn write_prompt(prompt: &str) -> Result<NamedTempFile, StartFailure> {
    let failed = |error| StartFailure { what: format!("writing the prompt to a file: {error}") };
    let mut file = NamedTempFile::with_prefix("aldis-prompt-").map_err(failed)?;
    file.write_all(prompt.as_bytes()).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    //! Sessions that are resumed.

    use super::*;

    #[test]
    fn only_plain_names_of_sessions_become_arguments() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let command = AgentCommand {
            command: words(&["agent"]),
            prompt: PromptBy::Stdin,
            pty: false,
            input: OutputFormat::Auto,
            resume: Some(words(&["agent", "--resume={session}", "-"])),
        };
        let resumed = command.resuming("0198-ab_C").map(|command| command.command);
        assert_eq!(resumed, Some(words(&["agent", "--resume=0198-ab_C", "-"])));
        for hostile in ["", "-rf", "a b", "../x", "a\n", "ä", &"x".repeat(129)] {
            assert!(command.resuming(hostile).is_none(), "{hostile}");
        }
        assert!(AgentCommand { resume: None, ..command }.resuming("a").is_none());
    }
}
