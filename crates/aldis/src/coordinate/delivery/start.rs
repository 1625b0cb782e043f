//! Starts and ends the agents of a delivery, and notes what must be known of them after a crash.

use std::path::PathBuf;
use std::time::Duration;

use aldis_engine::note;
use aldis_machine::delivery::{AgentReply, Dispatch, Event, State};
use aldis_machine::run::{Exit, Usage};
use serde::{Deserialize, Serialize};

use super::agent::AgentAtWork;
use super::{Asked, DeliveryConduct, number};
use crate::agents::command::{JobLaunch, Program, StartFailure};
use crate::agents::output_log::{LoggedAgent, OutputLog};
use crate::agents::session::Session;
use crate::coordinate::conduct::{Awaited, Performed};
use crate::coordinate::coordinator::{Core, heed_others};
use crate::coordinate::world::{Control, RepositoryRequest};
use crate::error::CommandError;
use crate::hosts::calls;

/// How long an agent has to stop by itself.
const GRACE: Duration = Duration::from_secs(5);
/// How an agent counts as having ended that could not be started.
const NOT_STARTED: Exit = Exit { code: Some(127), signal: None };
/// What the keys of our notes begin with: processes by agent, sessions by role and task.
pub(super) const PROCESS: &str = "process/";
const SESSION: &str = "session/";

/// The last session that a role had about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostSession {
    /// Whose it was.
    pub(super) agent: u64,
    /// Its name at the host.
    pub(super) name: String,
    /// What it had cost, by the host's figures.
    pub(super) spent: Usage,
}

impl DeliveryConduct<'_> {
    /// Starts an agent, unless the machine has given it up meanwhile.
    pub(super) fn dispatch(
        &mut self,
        core: &mut Core<'_, State>,
        dispatch: Dispatch,
    ) -> Result<Performed, CommandError> {
        let agent = dispatch.agent;
        let works = self.agents.values().any(|it| it.dispatch.agent == agent);
        if core.state().agent(agent).is_none() || works {
            return Ok(Performed::Done);
        }
        let task = dispatch.task.as_deref().and_then(|task| number(core.state(), task));
        if let Some(task) = task.filter(|_| core.state().run().config.worktrees) {
            let start = Asked::Start(Box::new(dispatch));
            return Ok(self.ask(core, start, RepositoryRequest::AddWorktree { task }));
        }
        self.start(core, dispatch, self.plan.project.clone())?;
        Ok(Performed::Done)
    }

    pub(super) fn start(
        &mut self,
        core: &mut Core<'_, State>,
        dispatch: Dispatch,
        directory: PathBuf,
    ) -> Result<(), CommandError> {
        let (agent, plan) = (dispatch.agent, self.plan);
        // Somebody may have ended the delivery, or this agent, since it was decided to start it.
        heed_others(core, self)?;
        if core.state().agent(agent).is_none() {
            return Ok(());
        }
        let (command, preface) = plan.of_role(dispatch.role);
        let session: Option<HostSession> = core.run().note(&session_key(&dispatch))?;
        let session = session.filter(|session| Some(session.agent) == dispatch.resume);
        let resumed = session.as_ref().and_then(|session| command.resuming(&session.name));
        let before = session.filter(|_| resumed.is_some()).map(|session| session.spent);
        let command = resumed.unwrap_or_else(|| command.clone());
        let input = command.input;
        let launch = JobLaunch {
            what: Program::Agent { command, prompt: format!("{preface}{}", dispatch.prompt) },
            directory: directory.clone(),
            variables: vec![
                (calls::RUN, core.id().to_string()),
                (calls::AGENT, agent.to_string()),
                ("ALDIS_ROLE", dispatch.role.as_str().to_owned()),
                ("ALDIS_TASK", dispatch.task.clone().unwrap_or_default()),
            ],
            run: core.id().clone(),
        };
        let job = core.new_job();
        match core.world().start(job, &launch) {
            Err(StartFailure { what }) => self.not_started(core, agent, &what),
            Ok(identity) => {
                let (role, task) = (dispatch.role.as_str().to_owned(), dispatch.task.clone());
                let logged = LoggedAgent { agent: Some(agent), role, task };
                let log = OutputLog::of_agent(&plan.state, core.id(), &logged);
                let session = Session::new(&plan.rules, input, &plan.zone, true, log);
                let before = before.unwrap_or_default();
                let at_work = AgentAtWork::new(dispatch, directory, session, before);
                self.agents.insert(job, at_work);
                core.set_notes(&[note(&process_key(agent), &identity)?])
            }
        }
    }

    /// Counted as a crash: the machine knows when that is enough.
    pub(super) fn not_started(
        &mut self,
        core: &mut Core<'_, State>,
        agent: u64,
        what: &str,
    ) -> Result<(), CommandError> {
        self.board.problem(core.now(), what);
        let reply = AgentReply { preview: what.to_owned(), ..AgentReply::default() };
        self.advance(core, Event::Finished { agent, exit: Some(NOT_STARTED), reply })
    }

    /// Ends an agent. Nobody else starts before it is gone: they may share a directory.
    pub(super) fn end_agent(&mut self, core: &mut Core<'_, State>, agent: u64) -> Performed {
        self.limited.remove(&agent);
        self.asked.retain(|_, it| !matches!(it, Asked::Start(it) if it.agent == agent));
        let found = self.agents.iter_mut().find(|(_, it)| it.dispatch.agent == agent);
        let Some((job, at_work)) = found else { return Performed::Done };
        at_work.given_up = true;
        core.world().control(*job, Control::End(GRACE));
        Performed::After(Awaited::End(*job))
    }
}

pub(super) fn process_key(agent: u64) -> String {
    format!("{PROCESS}{agent}")
}

/// No role's name holds a slash, so keys differ whatever tasks are called.
pub(super) fn session_key(dispatch: &Dispatch) -> String {
    let task = dispatch.task.as_deref().unwrap_or_default();
    format!("{SESSION}{}/{task}", dispatch.role.as_str())
}
