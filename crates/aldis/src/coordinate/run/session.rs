//! The session of the agent's host that the next iteration continues: what the agent has learned stays
//! with it, and what a human says reaches the one that asked.
//!
//! A session that crashed or that makes no progress is left: it may itself be what is wrong.

use aldis_engine::note;
use aldis_machine::run::{Exit, State, Status, Usage};
use aldis_machine::stagnation::Level;
use aldis_store::{PartChange, RunId};
use aldis_transcript::Format;
use serde::{Deserialize, Serialize};

use super::RunConduct;
use crate::agents::command::AgentCommand;
use crate::agents::session::Session;
use crate::coordinate::coordinator::Core;
use crate::error::CommandError;
use crate::hosts::headless::{self, counted_before, less};

/// The note that keeps it.
const SESSION: &str = "session";

/// The session of the last agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostSession {
    /// The program whose session it is.
    program: String,
    /// Its name at the host.
    name: String,
    /// What it has cost, by the host's figures.
    spent: Usage,
}

/// What is known of the session of the agent at work.
#[derive(Debug, Default)]
pub(super) struct CurrentSession {
    name: Option<String>,
    /// What it had cost before, and has cost now, by the host's figures.
    before: Usage,
    spent: Usage,
    /// Whether the service refused to work, and whether the host failed.
    limited: bool,
    failed: bool,
}

impl CurrentSession {
    /// Returns its name, once the host has told it.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn limited(&mut self) {
        self.limited = true;
    }

    pub(super) fn failed(&mut self) {
        self.failed = true;
    }

    /// Takes what the host counts. Returns what of it is this agent's.
    pub(super) fn spent(&mut self, agent: Option<&Session<'_>>, counted: Usage) -> Usage {
        self.spent = counted;
        less(counted, counted_before(agent.and_then(Session::format), self.before))
    }
}

impl RunConduct<'_> {
    fn program(&self) -> String {
        let program = self.plan.command.command.first();
        program.map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Returns how the agent is started now: in its last session if that can and should be continued.
    pub(super) fn next_command(
        &mut self,
        core: &Core<'_, State>,
    ) -> Result<AgentCommand, CommandError> {
        self.session = CurrentSession::default();
        let command = &self.plan.command;
        let last: Option<HostSession> = core.run().note(SESSION)?;
        let moves = core.state().monitor().level() == Level::None;
        let last = last.filter(|last| moves && last.program == self.program());
        let resumed = last.and_then(|last| Some((command.resuming(&last.name)?, last.spent)));
        Ok(match resumed {
            Some((resumed, before)) => {
                (self.session.before, self.session.spent) = (before, before);
                resumed
            }
            None => command.clone(),
        })
    }

    /// Keeps the name as soon as it is known: whoever continues the run after a crash of ours goes on
    /// with that session.
    pub(super) fn session_named(
        &mut self,
        core: &mut Core<'_, State>,
        name: String,
    ) -> Result<(), CommandError> {
        if self.session.name.as_ref() == Some(&name) {
            return Ok(());
        }
        self.session.name = Some(name);
        let kept = self.kept_session()?;
        core.set_notes(kept.as_slice())
    }

    fn kept_session(&self) -> Result<Option<PartChange>, CommandError> {
        let name = self.session.name.clone().filter(|_| self.plan.command.resume.is_some());
        let Some(name) = name else { return Ok(None) };
        let session = HostSession { program: self.program(), name, spent: self.session.spent };
        Ok(Some(note(SESSION, &session)?))
    }

    /// The agent has ended: keeps its session for the next one, or leaves it.
    pub(super) fn session_over(
        &self,
        core: &Core<'_, State>,
        exit: Exit,
    ) -> Result<Option<PartChange>, CommandError> {
        let asked_to_stop = matches!(core.state().status(), Status::Ending { .. });
        let well = exit.is_clean() || asked_to_stop || self.session.limited;
        if self.session.failed || !well {
            return Ok(Some(PartChange::Clear { key: SESSION.to_owned() }));
        }
        self.kept_session()
    }
}

impl RunConduct<'_> {
    /// How a human allows a tool that the host denied, as a clause.
    pub(super) fn how_to_allow(
        &self,
        run: &RunId,
        format: Option<Format>,
        tool: &str,
    ) -> Option<String> {
        if let Some(host) = self.plan.host {
            let option = host.spec().headless?.cure(tool)?;
            return Some(format!("allow it: `aldis run --continue {run} {option}`"));
        }
        let option = headless::writer(format?)?.permit(tool)?;
        let again = format!("`aldis run --continue {run} -- COMMAND`");
        Some(format!("add {option} to the agent's command: {again}"))
    }
}
