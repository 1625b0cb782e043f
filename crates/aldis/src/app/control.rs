//! What a human wants of a run: the one way for all who pass it on.
//!
//! Commands, requests, the live view and calls all come here. The engine takes the step; what is left
//! is what only this machine can see: the state file of a run under a hook, and a supervisor that has
//! gone without ending its run.

use std::fmt;
use std::time::Duration;

use aldis_engine::{Answer, AnyHandle, Engine, EngineError};
use aldis_machine::turns::TurnHolder;
use aldis_machine::{HumanCommand, Machine as _, delivery, run};
use aldis_process::{Found, Liveness, find_marked};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, EffectFilter, Lease, Run, RunId, Source, StoreError};

use crate::agents::command::owner_mark;
use crate::coordinate::lease;
use crate::hosts::state_file;

/// How long an agent that was left behind has to stop.
const GRACE: Duration = Duration::from_secs(5);

/// What a command came to.
#[derive(Clone, Debug)]
pub(crate) struct Commanded {
    /// The run after it, what was decided, and what must be done.
    pub(crate) answer: Answer,
    /// How the run stands now.
    pub(crate) status: RunStatus,
    /// What could not be done beside the command.
    pub(crate) warnings: Vec<String>,
}

/// How a run stands, whatever its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunStatus {
    /// It has ended.
    Ended,
    /// It ends as soon as its agent has stopped.
    Ending,
    /// It rests until somebody resumes it.
    Paused,
    /// It goes on.
    Running,
}

/// Why a command was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Nobody is there to do it.
    #[error(
        "no process supervises run `{run}`, so there is nothing to {command}; continue it with \
         `aldis {continues} --continue`, or end it with `aldis abort {run}`"
    )]
    Unsupervised {
        /// Which run.
        run: RunId,
        /// What was wanted.
        command: &'static str,
        /// The command that continues such a run.
        continues: &'static str,
    },
    /// The run does not take it.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl RunStatus {
    fn of(run: &AnyHandle) -> Self {
        let (ended, paused) = match run {
            AnyHandle::Delivery(it) => (it.state().ending().is_some(), it.state().run().paused),
            AnyHandle::Phases(it) => (!it.state().is_live(), it.state().paused),
            AnyHandle::Run(it) => match it.state().status() {
                run::Status::Ending { .. } => return Self::Ending,
                run::Status::Paused { .. } => (false, true),
                _ => (it.state().ending().is_some(), false),
            },
            AnyHandle::Turns(it) => {
                (it.state().closed, matches!(it.state().holder, TurnHolder::Paused { .. }))
            }
        };
        match (ended, paused) {
            (true, _) => Self::Ended,
            (false, true) => Self::Paused,
            (false, false) => Self::Running,
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "ended",
            Self::Ending => "ending",
            Self::Paused => "paused",
            Self::Running => "running",
        })
    }
}

/// Does what a human wants of a run, whoever drives it. `by` says by what means it came; `source`
/// makes a second delivery of the same request recognisable. May wait for the disk, and for an agent
/// that was left behind to stop.
///
/// # Errors
///
/// [`ControlError::Unsupervised`] if the process that would have to do it is gone, and as
/// [`Engine::command`].
pub(crate) fn command(
    engine: &Engine,
    now: Timestamp,
    id: &RunId,
    command: &HumanCommand,
    by: &str,
    source: Option<&Source>,
) -> Result<Commanded, ControlError> {
    let store = engine.store();
    let run = store.run(id)?.ok_or_else(|| EngineError::NoSuchRun(id.clone()))?;
    let take = || engine.command(now, id, command, by, source);
    let mut warnings = Vec::new();
    let answer = match run.record.driver {
        Driver::Hook => {
            let mut answer = take()?;
            if let AnyHandle::Phases(handle) = &mut answer.run {
                warnings.extend(state_file::refresh(engine, now, handle).err());
            }
            answer
        }
        Driver::Process if run.record.active && !is_supervised(&run, now) => match command {
            HumanCommand::Pause | HumanCommand::Resume => {
                let command = command.as_str();
                return Err(ControlError::Unsupervised {
                    command,
                    continues: continues(&run),
                    run: id.clone(),
                });
            }
            HumanCommand::Abort => match lease::acquire(store, id, now) {
                Ok(lease) => abort_abandoned(engine, now, &lease, take)?,
                // Somebody supervises it again.
                Err(_) => take()?,
            },
            // Kept until somebody supervises it again.
            HumanCommand::Answer { .. } | HumanCommand::Tell { .. } => take()?,
        },
        Driver::Process | Driver::Server | Driver::Worker => take()?,
    };
    Ok(Commanded { status: RunStatus::of(&answer.run), answer, warnings })
}

/// The command that continues a run of a process.
pub(crate) fn continues(run: &Run) -> &'static str {
    if run.record.machine == delivery::State::NAME { "deliver" } else { "run" }
}

/// Whether somebody coordinates a run that a process drives: whoever does holds its lease.
fn is_supervised(run: &Run, now: Timestamp) -> bool {
    run.lease.as_ref().is_some_and(|held| {
        match lease::liveness(&held.holder) {
            Liveness::Alive => true,
            Liveness::Gone => false,
            // Of a process that cannot be seen from here only the time of its lease tells.
            Liveness::Unknown => held.until > now,
        }
    })
}

/// Ends a run whose supervisor has gone: nobody else ends its agents or hears of their end.
fn abort_abandoned(
    engine: &Engine,
    now: Timestamp,
    lease: &Lease,
    take: impl FnOnce() -> Result<Answer, EngineError>,
) -> Result<Answer, EngineError> {
    let (store, id) = (engine.store(), &lease.run);
    let mut answer = take()?;
    if let Found::Alive(left) = find_marked(&owner_mark(id)) {
        left.end(GRACE);
    }
    if let AnyHandle::Run(handle) = &mut answer.run
        && handle.state().ending().is_none()
    {
        handle.set_fence(lease.fence);
        let nobody = run::Event::Exited(run::AgentExit::default());
        handle.advance(engine, now, nobody)?;
    }
    // What was to be done with the agents is done; who aborted it need not be told.
    let ever = Timestamp::from_millis(i64::MAX);
    let left = EffectFilter { run: Some(id.clone()), ..EffectFilter::due_by(ever) };
    let left: Vec<String> = store.pending_effects(&left)?.into_iter().map(|it| it.key).collect();
    store.effects_done(id, Some(lease.fence), &left).map_err(|error| match error {
        aldis_store::CommitError::Store(error) => EngineError::Store(error),
        _ => EngineError::Fenced(id.clone()),
    })?;
    store.release_lease(lease)?;
    Ok(answer)
}
