//! Starts and ends the agents of a delivery, and notes what must be known of them after a crash.

use std::path::PathBuf;
use std::time::Duration;

use aldis_engine::{Handle, note};
use aldis_machine::delivery::{AgentReply, Dispatch, Event, State};
use aldis_machine::run::{Exit, Usage};
use aldis_store::RunId;
use serde::{Deserialize, Serialize};

use super::agent::AgentAtWork;
use super::{Asked, DeliveryConduct, DeliveryPlan, number};
use crate::agents::command::{JobLaunch, Program, StartFailure};
use crate::agents::output_log::{LoggedAgent, OutputLog};
use crate::agents::session::Session;
use crate::coordinate::conduct::{Awaited, Conduct as _, Performed};
use crate::coordinate::coordinator::{Core, heed_others};
use crate::coordinate::world::{Control, RepositoryRequest};
use crate::error::CommandError;
use crate::hosts::{calls, receipt};

/// How long an agent has to stop by itself.
pub(in crate::coordinate) const GRACE: Duration = Duration::from_secs(5);
/// How an agent counts as having ended that could not be started.
pub(in crate::coordinate) const NOT_STARTED: Exit = Exit { code: Some(127), signal: None };
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
    /// The worker that has it, where workers run agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) worker: Option<String>,
}

/// How an agent is started.
pub(in crate::coordinate) struct AgentStart {
    /// The process.
    pub(in crate::coordinate) launch: JobLaunch,
    /// What the session that it continues had cost.
    pub(in crate::coordinate) spent_before: Usage,
}

/// Returns the worker that has the session which an agent is to continue.
pub(in crate::coordinate) fn session_worker(
    run: &Handle<State>,
    dispatch: &Dispatch,
) -> Result<Option<String>, CommandError> {
    Ok(session_of(run, dispatch)?.and_then(|session| session.worker))
}

fn session_of(
    run: &Handle<State>,
    dispatch: &Dispatch,
) -> Result<Option<HostSession>, CommandError> {
    let session: Option<HostSession> = run.note(&session_key(dispatch))?;
    Ok(session.filter(|session| Some(session.agent) == dispatch.resume))
}

/// Returns how an agent is started in a directory, by this worker if one runs it. A session goes on
/// where it is.
pub(in crate::coordinate) fn agent_start(
    run: &Handle<State>,
    (plan, worker): (&DeliveryPlan, Option<&str>),
    dispatch: &Dispatch,
    directory: PathBuf,
) -> Result<AgentStart, CommandError> {
    let (command, preface) = plan.of_role(dispatch.role);
    let session = session_of(run, dispatch)?.filter(|it| it.worker.as_deref() == worker);
    let resumed = session.as_ref().and_then(|session| command.resuming(&session.name));
    let before = session.filter(|_| resumed.is_some()).map(|session| session.spent);
    let command = resumed.unwrap_or_else(|| command.clone());
    let mut variables = vec![
        (calls::RUN, run.id().to_string()),
        (calls::AGENT, dispatch.agent.to_string()),
        ("ALDIS_ROLE", dispatch.role.as_str().to_owned()),
        ("ALDIS_TASK", dispatch.task.clone().unwrap_or_default()),
    ];
    // Without a key its receipts are worth less, and it works all the same.
    let key = receipt::key_of(&plan.state, run.id(), Some(dispatch.agent)).ok();
    variables.extend(key.map(|key| (receipt::VARIABLE, key)));
    let launch = JobLaunch {
        what: Program::Agent { command, prompt: format!("{preface}{}", dispatch.prompt) },
        directory,
        variables,
        run: run.id().clone(),
        worker: worker.map(str::to_owned),
    };
    Ok(AgentStart { launch, spent_before: before.unwrap_or_default() })
}

/// Returns an agent that was started, as it is followed from now on.
pub(in crate::coordinate) fn at_work<'p>(
    run: &RunId,
    plan: &'p DeliveryPlan,
    dispatch: Dispatch,
    start: AgentStart,
) -> AgentAtWork<'p> {
    let (role, task) = (dispatch.role.as_str().to_owned(), dispatch.task.clone());
    let logged = LoggedAgent { agent: Some(dispatch.agent), role, task };
    let log = OutputLog::of_agent(&plan.state, run, &logged);
    let input = plan.of_role(dispatch.role).0.input;
    let session = Session::new(&plan.rules, input, &plan.zone, true, log);
    AgentAtWork::new(dispatch, start.launch.directory, session, start.spent_before)
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
        let mut start = agent_start(core.run(), (plan, None), &dispatch, directory)?;
        start.launch.variables.extend(core.tracing.iter().map(|tracing| tracing.agent(agent)));
        let job = core.new_job();
        match core.world().start(job, &start.launch) {
            Err(StartFailure { what }) => self.not_started(core, agent, &what),
            Ok(identity) => {
                self.agents.insert(job, at_work(core.id(), plan, dispatch, start));
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
        match core.state().ending() {
            // Nobody starts any more: all of them end at the same time.
            Some(_) => Performed::Until(Awaited::End(*job)),
            None => Performed::After(Awaited::End(*job)),
        }
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
