//! Who calls: which run a call belongs to, and whether its caller may report for it.

use std::path::PathBuf;

use aldis_engine::{AnyHandle, Engine, EngineError};
use aldis_signal::signal::Via;
use aldis_store::{Driver, RunFilter, RunId, RunSummary};

use super::answer::{RefusalRule, Refused};
use crate::settings::project::{self, Place};
use crate::settings::tokens::Grant;

/// What is known of whoever calls, by what the host says and what we told the agent.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Where it works.
    pub(crate) directory: PathBuf,
    /// How its call counts if its transcript has it.
    pub(crate) via: Via,
    /// The host's session.
    pub(crate) session: Option<String>,
    /// Whether the host passes the environment on to tools: then an agent of ours knows its run.
    pub(crate) inherits: bool,
    /// The host's id of the call.
    pub(crate) call_id: Option<String>,
    /// Whether the host says that a sub-agent calls.
    pub(crate) subagent: bool,
    /// The run that the agent was started for.
    pub(crate) run: Option<String>,
    /// Its number there.
    pub(crate) agent: Option<u64>,
    /// Its name in a channel.
    pub(crate) name: Option<String>,
    /// Which runs it may report for.
    pub(crate) grant: Grant,
}

impl Caller {
    /// Somebody in this directory of whom nothing else is known.
    pub(crate) fn at(directory: PathBuf, via: Via) -> Self {
        Self {
            directory,
            via,
            session: None,
            inherits: false,
            call_id: None,
            subagent: false,
            run: None,
            agent: None,
            name: None,
            grant: Grant::ADMIN,
        }
    }

    /// The same caller, who may report only where a token reaches.
    pub(crate) fn within(self, grant: Grant) -> Self {
        Self { grant, ..self }
    }

    /// Whether it may report for this run at all.
    pub(super) fn reaches(&self, run: &str, project: &str) -> bool {
        self.grant.reaches(run, project)
    }

    /// Finds the run that a call belongs to.
    pub(crate) fn run(&self, engine: &Engine) -> Result<AnyHandle, CallerError> {
        let id = match &self.run {
            Some(name) => RunId::new(name.clone()).map_err(|_| Refused::unknown_run(name))?,
            None => self.found(engine)?,
        };
        let run = match engine.open_any(&id) {
            Err(EngineError::NoSuchRun(id)) => return Err(Refused::unknown_run(id.as_str()).into()),
            run => run?,
        };
        if !self.reaches(run.id().as_str(), run.project()) {
            return Err(Refused::unknown_run(id.as_str()).into());
        }
        self.may_report(&run)?;
        Ok(run)
    }

    /// The run of the session, else the only one of the project.
    fn found(&self, engine: &Engine) -> Result<RunId, CallerError> {
        let store = engine.store();
        let active = RunFilter { active: Some(true), ..RunFilter::default() };
        if let Some(session) = &self.session {
            let bound = RunFilter { session: Some(session.clone()), limit: 1, ..active.clone() };
            if let Some(run) = store.list(&bound)?.pop() {
                return Ok(run.id);
            }
        }
        let place = Place::of(&self.directory, None);
        let projects: Vec<String> = match &self.grant.project {
            // A token knows its project better than the machine that it is used on.
            Some(project) => vec![project.clone()],
            None => place.around().map(project::name).collect(),
        };
        let runs = store.list(&RunFilter { projects: projects.clone(), ..active })?;
        let far = |run: &RunSummary| projects.iter().position(|name| *name == run.project);
        let mut runs: Vec<RunSummary> =
            runs.into_iter().filter(|run| run.driver != Driver::Server).collect();
        let nearest = runs.iter().map(far).min().flatten();
        runs.retain(|run| far(run) == nearest);
        match &*runs {
            [] => Err(Refused::no_run().into()),
            [run] => Ok(run.id.clone()),
            runs => {
                let names: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
                Err(Refused::ambiguous(&names).into())
            }
        }
    }

    /// Refuses callers of other sessions.
    fn may_report(&self, run: &AnyHandle) -> Result<(), CallerError> {
        let bound = match run {
            AnyHandle::Phases(run) => run.state().session(),
            _ => None,
        };
        let is_other = match (bound, &self.session) {
            (Some(bound), Some(session)) => bound != session,
            _ => false,
        };
        // An agent that a supervisor started knows its run, where its host lets it.
        let supervised = matches!(run.driver(), Driver::Process | Driver::Worker);
        let is_stranger = supervised && self.run.is_none() && self.inherits;
        if is_other || is_stranger {
            return Err(Refused::other_session(run.id().as_str()).into());
        }
        if run.is_active() { Ok(()) } else { Err(Refused::ended(run.id().as_str()).into()) }
    }
}

/// Why a call led to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallerError {
    /// By a rule, and the caller is told which.
    #[error("refused by {}", .0.rule)]
    Refused(Box<Refused>),
    /// The store failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<Refused> for CallerError {
    fn from(refused: Refused) -> Self {
        Self::Refused(Box::new(refused))
    }
}

impl From<aldis_store::StoreError> for CallerError {
    fn from(error: aldis_store::StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl Refused {
    fn unknown_run(name: &str) -> Self {
        let reason = format!("there is no run `{name}`");
        Self::new(RefusalRule::NoRun, reason, "report in your final message, as your prompt shows")
    }

    fn no_run() -> Self {
        Self::new(
            RefusalRule::NoRun,
            "no run is active in this project, so there is nothing to report to",
            "continue as your prompt says; `aldis run` or `aldis auto start` begins a run",
        )
    }

    fn ambiguous(names: &[&str]) -> Self {
        Self::new(
            RefusalRule::NoRun,
            format!("several runs are active in this project: {}", names.join(", ")),
            "report in your final message, as your prompt shows; or set ALDIS_RUN to the run",
        )
    }

    fn other_session(run: &str) -> Self {
        Self::new(
            RefusalRule::OtherSession,
            format!("run {run} belongs to another session"),
            "do not report to it; continue with your own task",
        )
    }

    fn ended(run: &str) -> Self {
        let reason = format!("run {run} has ended");
        Self::new(RefusalRule::RunEnded, reason, "nothing more is needed: end your turn")
    }
}
