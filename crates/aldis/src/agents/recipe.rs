//! How an agent is started: its program, how it gets its prompt, what it writes.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use aldis_transcript::Input as Written;
use tempfile::NamedTempFile;

use crate::error::CommandError;
pub(crate) use crate::settings::prompt_by::PromptBy;
use aldis_process::{Agent, Input, Launch, Mark, StartError};

/// How to start an agent.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// How it gets its prompt.
    pub(crate) prompt: PromptBy,
    /// Whether it runs on a terminal.
    pub(crate) pty: bool,
    /// What kind of output it writes.
    pub(crate) input: Written,
    /// The command that goes on with an earlier session of its host, with [`SESSION`] where that is
    /// named.
    pub(crate) resume: Option<Vec<OsString>>,
}

/// What stands for the name of a session in a command.
pub(crate) const SESSION: &str = "{session}";
/// How long the name of a session may be.
const SESSION_MAX: usize = 128;

/// An agent that was started, with what it needs for as long as it runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) agent: Agent,
    /// Holds the prompt for as long as the agent may read it.
    pub(crate) prompt: Option<NamedTempFile>,
}

impl Recipe {
    /// Returns how the agent goes on with this session, if that is known. The name comes from the
    /// host's output: one that could be taken for an option or a path is none.
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

    /// Starts the agent with a prompt, in a directory, with these variables beside ours. `owner` marks
    /// all agents of a run.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be started, with what to do about it.
    pub(crate) fn start(
        &self,
        prompt: &str,
        directory: &Path,
        variables: &[(&str, &str)],
        owner: Mark,
    ) -> Result<Started, CommandError> {
        let mut words = self.command.iter().cloned();
        let mut launch = Launch::new(words.next().unwrap_or_default());
        launch.args = words.collect();
        directory.clone_into(&mut launch.cwd);
        launch.terminal = self.pty;
        launch.owner = Some(owner);
        launch.environment.set =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let mut file = None;
        match self.prompt {
            PromptBy::Stdin => launch.input = Input::Text(prompt.as_bytes().to_vec()),
            PromptBy::Argument => launch.args.push(prompt.into()),
            PromptBy::File => {
                let written = written(prompt)?;
                launch.args.push(written.path().into());
                file = Some(written);
            }
        }
        Ok(Started { agent: start(&launch)?, prompt: file })
    }
}

/// Starts a process, in words for people if that fails.
///
/// # Errors
///
/// Fails with what to do about it.
pub(crate) fn start(launch: &Launch) -> Result<Agent, CommandError> {
    Agent::start(launch).map_err(|error: StartError| {
        let failed = CommandError::new(error.to_string());
        match error.help() {
            Some(help) => failed.with_help(help),
            None => failed,
        }
    })
}

fn written(prompt: &str) -> Result<NamedTempFile, CommandError> {
    let failed = |error| CommandError::new(format!("writing the prompt to a file: {error}"));
    let mut file = NamedTempFile::with_prefix("aldis-prompt-").map_err(failed)?;
    file.write_all(prompt.as_bytes()).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    //! Sessions that go on.

    use super::*;

    #[test]
    fn only_plain_names_of_sessions_become_arguments() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let recipe = Recipe {
            command: words(&["agent"]),
            prompt: PromptBy::Stdin,
            pty: false,
            input: Written::Auto,
            resume: Some(words(&["agent", "--resume={session}", "-"])),
        };
        let resumed = recipe.resuming("0198-ab_C").map(|recipe| recipe.command);
        assert_eq!(resumed, Some(words(&["agent", "--resume=0198-ab_C", "-"])));
        for hostile in ["", "-rf", "a b", "../x", "a\n", "ä", &"x".repeat(129)] {
            assert!(recipe.resuming(hostile).is_none(), "{hostile}");
        }
        assert!(Recipe { resume: None, ..recipe }.resuming("a").is_none());
    }
}
