//! How the agent of a run is started: what was asked for, as the store keeps it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use aldis_engine::{Engine, Handle, note};
use aldis_machine::run::State;
use aldis_signal::Rules;
use aldis_transcript::Input;
use serde::{Deserialize, Serialize};

use super::{RunArgs, input_format};
use crate::agents::command::AgentCommand;
use crate::coordinate::run::RunPlan;
use crate::error::CommandError;
use crate::hosts::Host;
use crate::hosts::headless::{Headless, HostOptions, check_program};
use crate::io::Io;
use crate::settings::clock;
use crate::settings::config::{Node, Supervision, decode};

/// The note that keeps what was changed since the run began.
const LAUNCH: &str = "launch";

/// How a run's agent is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunLaunch {
    /// The user's own command; empty where there is a host.
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<HostLaunch>,
    pub(super) settings: Supervision,
}

/// A host that is started by what we know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HostLaunch {
    name: String,
    #[serde(flatten)]
    options: HostOptions,
    /// Whether each iteration begins a new session.
    #[serde(default)]
    fresh: bool,
}

impl RunLaunch {
    /// What a new run goes by. A host that nobody named is told.
    pub(super) fn new(
        io: &mut Io,
        args: &RunArgs,
        settings: Supervision,
    ) -> Result<Self, CommandError> {
        let mut launch = Self { command: Vec::new(), host: None, settings };
        if args.host.is_none() && args.command.is_empty() {
            let host = usual_host(io, args, launch.settings.run.host.as_deref())?;
            launch.host = Some(HostLaunch::of(host));
        }
        launch.change_agent(args)?;
        Ok(launch)
    }

    /// What a run goes by that is continued: what it began with, changed by what is asked for now.
    pub(super) fn of(run: &Handle<State>, args: &RunArgs) -> Result<Self, CommandError> {
        let stored = match run.note(LAUNCH)? {
            Some(changed) => Ok(changed),
            None => serde_json::from_str(&run.state().setup().launch),
        };
        let mut launch: Self =
            stored.map_err(|error| CommandError::new(format!("the stored command: {error}")))?;
        let mut tree = Node::of(&launch.settings)?;
        tree.overlay(args.flags.layer());
        launch.settings = decode(&tree)?;
        launch.change_agent(args)?;
        Ok(launch)
    }

    /// Keeps it: whoever continues the run later goes by it, too.
    pub(super) fn keep(
        &self,
        engine: &Engine,
        run: &mut Handle<State>,
    ) -> Result<(), CommandError> {
        Ok(run.set_notes(engine, clock::wall(), vec![note(LAUNCH, self)?])?)
    }

    fn change_agent(&mut self, args: &RunArgs) -> Result<(), CommandError> {
        match (args.host, &*args.command) {
            (Some(host), extra) => {
                let known = self.host.take().filter(|known| known.name == host.name());
                let mut known = known.unwrap_or_else(|| HostLaunch::of(host));
                known.options.extra.extend(extra.iter().cloned());
                (self.command, self.host) = (Vec::new(), Some(known));
            }
            (None, []) => {}
            (None, command) => (self.command, self.host) = (command.to_vec(), None),
        }
        let asked = [
            ("--allow", !args.allow.is_empty()),
            ("--yolo", args.yolo),
            ("--model", args.model.is_some()),
            ("--fresh", args.fresh),
        ];
        let Some(launch) = &mut self.host else {
            return match asked.into_iter().find(|(_, asked)| *asked) {
                Some((option, _)) => Err(CommandError::new(format!("{option} needs --host HOST"))
                    .with_help("or write the agent's own option into its command after `--`")),
                None => Ok(()),
            };
        };
        let known = &mut launch.options.allow;
        for tool in &args.allow {
            if !known.contains(tool) {
                known.push(tool.clone());
            }
        }
        launch.options.yolo |= args.yolo;
        if args.model.is_some() {
            launch.options.model.clone_from(&args.model);
        }
        launch.fresh |= args.fresh;
        Host::headless(&launch.name)?.0.check_options(&launch.options)
    }

    /// Returns the host, if there is one, and how the agent is started. One that cannot be started is
    /// refused here.
    pub(super) fn agent(
        &self,
        directory: &Path,
    ) -> Result<(Option<Host>, AgentCommand), CommandError> {
        let run = &self.settings.run;
        let (host, command) = match &self.host {
            Some(launch) => {
                let (host, headless) = Host::headless(&launch.name)?;
                (Some(host), launch.command(&headless, run.pty))
            }
            None => {
                let command = AgentCommand {
                    command: self.command.iter().map(OsString::from).collect(),
                    prompt: run.prompt_by,
                    pty: run.pty,
                    input: input_format(&run.input)?,
                    resume: None,
                };
                (None, command)
            }
        };
        if let Some(program) = command.command.first() {
            check_program(program, directory)?;
        }
        Ok((host, command))
    }

    /// Returns how the run is driven.
    pub(super) fn plan(
        &self,
        (directory, state): (PathBuf, PathBuf),
        rules: Rules,
    ) -> Result<RunPlan, CommandError> {
        let (host, command) = self.agent(&directory)?;
        Ok(RunPlan {
            host,
            command,
            verify: self.settings.run.verify.clone(),
            directory,
            state,
            rules,
            zone: clock::local_zone(),
            ask_here: false,
        })
    }
}

impl HostLaunch {
    fn of(host: Host) -> Self {
        Self { name: host.name().to_owned(), options: HostOptions::default(), fresh: false }
    }

    fn command(&self, headless: &Headless, pty: bool) -> AgentCommand {
        let words = |words: Vec<String>| words.into_iter().map(OsString::from).collect();
        let resume = headless.resume(&self.options).filter(|_| !self.fresh);
        AgentCommand {
            command: words(headless.command(&self.options)),
            prompt: headless.prompt_by,
            pty,
            input: Input::Format(headless.output),
            resume: resume.map(words),
        }
    }
}

/// The host of a run for which none was named: the one of the settings, else the only one that is
/// installed.
fn usual_host(io: &mut Io, args: &RunArgs, set: Option<&str>) -> Result<Host, CommandError> {
    if let Some(name) = set {
        return Ok(Host::headless(name)?.0);
    }
    match &*Host::installed()? {
        [only] => {
            if !args.quiet {
                writeln!(io.stderr, "using {}, the only agent found here", only.title())?;
            }
            Ok(*only)
        }
        [] => {
            let (usual, get) = (Host::original(), Host::original().spec().get_program);
            let help = format!(
                "install one, such as {} ({get}), or write a command: aldis run TASK -- COMMAND",
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
