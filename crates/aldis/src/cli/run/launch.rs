//! How the agent of a run is started: what was asked for, as the store keeps it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use aldis_engine::{Engine, Handle, LAUNCH, note};
use aldis_machine::run::State;
use aldis_signal::Rules;
use serde::{Deserialize, Serialize};

use super::{RunArgs, input_format};
use crate::agents::command::AgentCommand;
use crate::cli::host_flags::{HostLaunch, refuse_without_host, usual_host};
use crate::coordinate::run::RunPlan;
use crate::error::CommandError;
use crate::hosts::Host;
use crate::hosts::headless::check_program;
use crate::io::Io;
use crate::settings::clock;
use crate::settings::config::{Node, Supervision, decode};
use crate::settings::project;

/// How a run's agent is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunLaunch {
    /// The user's own command; empty where there is a host.
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<HostLaunch>,
    /// Where the agent works; the root of the project where nothing is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    pub(super) settings: Supervision,
}

impl RunLaunch {
    /// What a new run goes by. A host that nobody named is told.
    pub(super) fn new(
        io: &mut Io,
        args: &RunArgs,
        settings: Supervision,
    ) -> Result<Self, CommandError> {
        let directory = Some(project::current()?);
        let mut launch = Self { command: Vec::new(), host: None, directory, settings };
        if args.host.is_none() && args.command.is_empty() {
            let set = launch.settings.run.host.as_deref();
            let host = usual_host(io, args.quiet, set, "aldis run TASK")?;
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

    /// Returns where the agent works, wherever the run is continued from.
    ///
    /// # Errors
    ///
    /// Fails if that directory is gone.
    pub(super) fn directory(&self, project: &str) -> Result<PathBuf, CommandError> {
        project::still_there(self.directory.as_deref(), project)
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
        let extra = match (args.host, &*args.command) {
            (Some(host), extra) => {
                let known = self.host.take().filter(|known| known.is_of(host));
                self.host = Some(known.unwrap_or_else(|| HostLaunch::of(host)));
                self.command.clear();
                extra
            }
            (None, []) => &[],
            (None, command) => {
                (self.command, self.host) = (command.to_vec(), None);
                &[]
            }
        };
        let Some(launch) = &mut self.host else {
            let given = args.may.given().or_else(|| args.fresh.then_some("--fresh"));
            return refuse_without_host(given);
        };
        launch.fresh |= args.fresh;
        launch.change(&args.may, extra)
    }

    /// Whether the agent reports by calls: our MCP server is registered with its host.
    pub(super) fn reports_by_call(&self) -> bool {
        self.host.as_ref().is_some_and(HostLaunch::reports_by_call)
    }

    /// Returns the host, if there is one, and how the agent is started. One that cannot be started is
    /// refused here.
    pub(super) fn agent(
        &self,
        directory: &Path,
    ) -> Result<(Option<Host>, AgentCommand), CommandError> {
        let run = &self.settings.run;
        let (host, command) = match &self.host {
            Some(launch) => (Some(launch.host()?.0), launch.command(run.pty)?),
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
