//! What a host's agents may do and which model they use: the same options for `run` and `deliver`.

use std::io::Write as _;

use aldis_transcript::Input;
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::agents::command::AgentCommand;
use crate::error::CommandError;
use crate::hosts::Host;
use crate::hosts::headless::{Headless, HostOptions};
use crate::hosts::install::locations::Locations;
use crate::io::Io;

/// Options of a host that is started by what we know of it.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct HostFlags {
    /// Allow the agent this tool as well (repeatable)
    ///
    /// By the host's name for it: `Bash` or `Bash(npm test:*)` for Claude Code, `shell` for Copilot.
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,

    /// Allow the agent everything, without asking
    ///
    /// All commands, all files that you can read and write, the network. Use it only on a machine that
    /// holds nothing to lose and no secret.
    #[arg(long, conflicts_with = "allow")]
    yolo: bool,

    /// The model, by the host's name for it
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

impl HostFlags {
    /// Returns an option that was given, if any was.
    pub(super) fn given(&self) -> Option<&'static str> {
        let all = [
            ("--allow", !self.allow.is_empty()),
            ("--yolo", self.yolo),
            ("--model", self.model.is_some()),
        ];
        all.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// Adds them to what was asked of the host before.
    fn lay_over(&self, options: &mut HostOptions) {
        for tool in &self.allow {
            if !options.allow.contains(tool) {
                options.allow.push(tool.clone());
            }
        }
        options.yolo |= self.yolo;
        if self.model.is_some() {
            options.model.clone_from(&self.model);
        }
    }
}

/// A host that is started by what we know of it, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostLaunch {
    name: String,
    #[serde(flatten)]
    options: HostOptions,
    /// Whether each iteration begins a new session.
    #[serde(default)]
    pub(super) fresh: bool,
}

impl HostLaunch {
    pub(super) fn of(host: Host) -> Self {
        Self { name: host.name().to_owned(), options: HostOptions::default(), fresh: false }
    }

    pub(super) fn is_of(&self, host: Host) -> bool {
        self.name == host.name()
    }

    /// Adds what is asked for now: options of ours, and further arguments of the host.
    ///
    /// # Errors
    ///
    /// Fails if the host cannot be asked for it on its command line.
    pub(super) fn change(
        &mut self,
        flags: &HostFlags,
        extra: &[String],
    ) -> Result<(), CommandError> {
        self.options.extra.extend(extra.iter().cloned());
        flags.lay_over(&mut self.options);
        let host = self.host()?.0;
        self.options.calls = Locations::new()?.has_server(host);
        host.check_options(&self.options)
    }

    /// Whether its agents report by calls: our MCP server is registered with the host.
    pub(super) fn reports_by_call(&self) -> bool {
        self.options.calls
    }

    pub(super) fn host(&self) -> Result<(Host, Headless), CommandError> {
        Host::headless(&self.name)
    }

    /// Returns the command for a new session, and the one that continues a session.
    pub(super) fn commands(&self) -> Result<(Vec<String>, Option<Vec<String>>), CommandError> {
        let (_, headless) = self.host()?;
        let resume = headless.resume(&self.options).filter(|_| !self.fresh);
        Ok((headless.command(&self.options), resume))
    }

    pub(super) fn command(&self, pty: bool) -> Result<AgentCommand, CommandError> {
        let words = |words: Vec<String>| words.into_iter().map(Into::into).collect();
        let ((_, headless), (command, resume)) = (self.host()?, self.commands()?);
        Ok(AgentCommand {
            command: words(command),
            prompt: headless.prompt_by,
            pty,
            input: Input::Format(headless.output),
            resume: resume.map(words),
        })
    }
}

/// Says that options of a host were given where there is none.
///
/// # Errors
///
/// Fails if there is such an option.
pub(super) fn refuse_without_host(given: Option<&'static str>) -> Result<(), CommandError> {
    given.map_or(Ok(()), |option| {
        Err(CommandError::new(format!("{option} needs --host HOST"))
            .with_help("or write the agent's own option into its command after `--`"))
    })
}

/// The host where none was named: the one of the settings, else the only one that is installed, which
/// is said unless `quiet`.
///
/// # Errors
///
/// Fails if none is installed, or several are.
pub(super) fn usual_host(
    io: &mut Io,
    quiet: bool,
    set: Option<&str>,
    instead: &str,
) -> Result<Host, CommandError> {
    if let Some(name) = set {
        return Ok(Host::headless(name)?.0);
    }
    match &*Host::installed()? {
        [only] => {
            if !quiet {
                writeln!(io.stderr, "using {}, the only agent found here", only.title())?;
            }
            Ok(*only)
        }
        [] => {
            let (usual, get) = (Host::original(), Host::original().spec().get_program);
            let help = format!(
                "install one, such as {} ({get}), or write a command: {instead} -- COMMAND",
                usual.title()
            );
            Err(CommandError::new("no agent is installed that aldis knows").with_help(help))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|host| host.name()).collect();
            Err(CommandError::new(format!("several agents are installed: {}", names.join(", ")))
                .with_help("name one with --host, or set `host` in [run] of aldis.toml"))
        }
    }
}
