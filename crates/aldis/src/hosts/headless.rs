//! How a host runs without a person: its command, what it may do, and how it goes on with a session.
//! `aldis run` and `aldis deliver` start every host from these facts.

use std::ffi::OsStr;
use std::path::Path;

use aldis_machine::run::Usage;
use aldis_process::{Launch, StartError};
use aldis_transcript::Format;
use serde::{Deserialize, Serialize};

use super::install::locations::Locations;
use super::{Host, spec::HostSpec};
use crate::agents::command::StartFailure;
use crate::error::CommandError;
use crate::settings::prompt_by::PromptBy;

/// A host that runs without a person.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headless {
    /// The program and the arguments of every session.
    pub(crate) command: &'static [&'static str],
    /// What lets it edit the files of the project.
    pub(crate) edits: &'static [&'static str],
    /// What lets it do everything, in the place of that.
    pub(crate) everything: &'static [&'static str],
    /// The tools that `edits` is about.
    pub(crate) edit_tools: &'static [&'static str],
    /// How it is told to allow a tool.
    pub(crate) allow: HostOption,
    /// What its tools of our MCP server are called for that option. Its own settings may not count
    /// where nobody ever trusted the folder.
    pub(crate) calls: &'static [&'static str],
    /// How it is told which model to use.
    pub(crate) model: HostOption,
    /// What follows to continue an earlier session.
    pub(crate) resume: Option<&'static [&'static str]>,
    /// The last arguments.
    pub(crate) last: &'static [&'static str],
    /// How it gets its prompt.
    pub(crate) prompt_by: PromptBy,
    /// What it writes.
    pub(crate) output: Format,
    /// Whether its figures are those of a whole session, also of what went before this process.
    pub(crate) counts_sessions: bool,
}

/// How a host is told something.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostOption {
    /// By this option, once for each value.
    Named(&'static str),
    /// Not on its command line; what to do instead.
    Instead(&'static str),
}

/// What a user wants of a host beside the task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostOptions {
    /// Further tools that it may use.
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    /// Whether it may do everything.
    #[serde(default)]
    pub(crate) yolo: bool,
    /// Whether our MCP server is registered with it, so that it may call its tools.
    #[serde(default)]
    pub(crate) calls: bool,
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// Further arguments.
    #[serde(default)]
    pub(crate) extra: Vec<String>,
}

impl Headless {
    /// Returns its program.
    pub(crate) fn program(&self) -> &'static str {
        self.command.first().copied().unwrap_or_default()
    }

    /// Returns the command for a new session.
    pub(crate) fn command(&self, options: &HostOptions) -> Vec<String> {
        self.words(options, &[])
    }

    /// Returns the command that continues a session, where the host has one.
    pub(crate) fn resume(&self, options: &HostOptions) -> Option<Vec<String>> {
        self.resume.map(|resume| self.words(options, resume))
    }

    fn words(&self, options: &HostOptions, resume: &[&str]) -> Vec<String> {
        let rights = if options.yolo { self.everything } else { self.edits };
        let owned =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut words = owned(&[self.command, rights].concat());
        let calls = if options.calls && !options.yolo { self.calls } else { &[] };
        for (told, values) in [
            (self.model, options.model.iter().map(String::as_str).collect::<Vec<_>>()),
            (self.allow, options.allow.iter().map(String::as_str).collect()),
            (self.allow, calls.to_vec()),
        ] {
            if let HostOption::Named(option) = told {
                // As one word: some hosts take everything behind such an option for a value of it.
                words.extend(values.iter().map(|value| format!("{option}={value}")));
            }
        }
        words.extend(options.extra.iter().cloned());
        words.extend(owned(&[resume, self.last].concat()));
        words
    }

    /// Returns the option of the host that allows a tool; nothing where that is not known.
    pub(crate) fn permit(&self, tool: &str) -> Option<String> {
        let edits = (!self.edits.is_empty()).then(|| format!("`{}`", self.edits.join(" ")));
        match self.allow {
            HostOption::Named(option) if !self.edit_tools.contains(&tool) => {
                Some(format!("`{option}={}`", quoted(tool)))
            }
            HostOption::Named(_) | HostOption::Instead(_) => edits,
        }
    }

    /// Returns the option of `aldis run --host` that allows a tool; nothing where none does.
    pub(crate) fn cure(&self, tool: &str) -> Option<String> {
        match self.allow {
            HostOption::Named(_) => Some(format!("--allow {}", quoted(tool))),
            HostOption::Instead(_) if self.everything != self.edits => Some("--yolo".to_owned()),
            HostOption::Instead(_) => None,
        }
    }
}

/// A word for a shell. Tools are named by hosts, and a line that people copy must mean one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Host {
    /// Returns all hosts, those too that have no hooks.
    pub(crate) fn known() -> impl Iterator<Item = Self> {
        Self::all().iter().chain(&super::HEADLESS_ONLY).copied()
    }

    /// Returns the hosts that run without a person, by name.
    pub(crate) fn all_headless() -> Vec<Self> {
        let mut all: Vec<Self> = Self::known().collect();
        all.retain(|host| host.spec().headless.is_some());
        all.sort_by_key(|host| host.name());
        all
    }

    /// Returns the host of this name or second name that runs without a person, and how.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    pub(crate) fn headless(name: &str) -> Result<(Self, Headless), CommandError> {
        let is_it = |spec: &HostSpec| spec.name == name || spec.alias == Some(name);
        let mut all = Self::all_headless().into_iter();
        let found = all.find(|host| is_it(host.spec()));
        found.and_then(|host| Some((host, host.spec().headless?))).ok_or_else(|| {
            let names: Vec<_> = Self::all_headless().iter().map(|host| host.name()).collect();
            CommandError::new(format!("unknown host `{name}`"))
                .with_help(format!("the hosts are {}", names.join(", ")))
        })
    }

    /// Returns the host that is started by this program.
    pub(crate) fn of_program(program: &str) -> Option<Self> {
        Self::all_headless().into_iter().find(|host| host.spec().programs.contains(&program))
    }

    /// Returns the hosts that run without a person and whose program is on the `PATH`.
    ///
    /// # Errors
    ///
    /// Fails if the current directory is not known.
    pub(crate) fn installed() -> Result<Vec<Self>, CommandError> {
        let (locations, mut all) = (Locations::new()?, Self::all_headless());
        all.retain(|host| {
            let program = host.spec().headless.map(|it| it.program());
            program.is_some_and(|program| locations.find_program(program).is_some())
        });
        Ok(all)
    }

    /// Refuses what the host cannot be asked on its command line.
    ///
    /// # Errors
    ///
    /// Fails with what to do instead.
    pub(crate) fn check_options(self, options: &HostOptions) -> Result<(), CommandError> {
        let Some(headless) = self.spec().headless else { return Ok(()) };
        for (told, wanted, what) in [
            (headless.allow, !options.allow.is_empty(), "allows a single tool"),
            (headless.model, options.model.is_some(), "names a model"),
        ] {
            if let (HostOption::Instead(help), true) = (told, wanted) {
                let what = format!("{} has no option that {what}", self.title());
                return Err(CommandError::new(what).with_help(help));
            }
        }
        Ok(())
    }
}

/// Refuses a command whose program cannot be started, before anything is begun.
///
/// # Errors
///
/// Fails with how to get the program, where that is known.
pub(crate) fn check_program(
    program: impl AsRef<OsStr>,
    directory: &Path,
) -> Result<(), CommandError> {
    let mut launch = Launch::new(program.as_ref());
    directory.clone_into(&mut launch.cwd);
    let Err(error) = launch.find_program() else { return Ok(()) };
    let own = match &error {
        StartError::NotFound { program, searched: true } => Host::of_program(program),
        _ => None,
    };
    let Some(host) = own else {
        let StartFailure { what } = StartFailure::new(&error);
        return Err(CommandError::new(what));
    };
    let program = program.as_ref().to_string_lossy();
    let what = format!("{} is not installed (no `{program}` on the PATH)", host.title());
    let get = host.spec().get_program;
    Err(CommandError::new(what)
        .with_help(format!("get it: {get}; or write another command after `--`")))
}

/// Returns the host that writes this when it runs without a person.
pub(crate) fn writer(format: Format) -> Option<Headless> {
    let mut all = Host::known().filter_map(|host| host.spec().headless);
    all.find(|host| host.output == format)
}

/// Returns what its host counts of an agent although it was spent `before`, where that counts whole
/// sessions.
pub(crate) fn counted_before(format: Option<Format>, before: Usage) -> Usage {
    let host = format.and_then(writer);
    if host.is_some_and(|host| host.counts_sessions) { before } else { Usage::default() }
}

/// Returns what is left of a cost without a part of it.
pub(crate) fn less(all: Usage, part: Usage) -> Usage {
    Usage {
        tokens: all.tokens.saturating_sub(part.tokens),
        micro_dollars: all.micro_dollars.saturating_sub(part.micro_dollars),
    }
}
