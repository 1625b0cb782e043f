//! What a human wants of a run: the one way for all who pass it on.
//!
//! Commands, requests, the live view and calls all come here. The engine takes the step; what is left
//! is what only this machine can see: the state file of a run under a hook, and a supervisor that has
//! gone without ending its run.

use std::path::Path;
use std::time::Duration;

use aldis_engine::{
    AnyHandle, Engine, EngineError, NOTICE, OpenQuestion, RequestOutcome, SINK, Snapshot,
};
use aldis_machine::{HumanCommand, run};
use aldis_process::{Found, find_marked};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, EffectFilter, Lease, Run, RunId, Source, StoreError};

use crate::agents::command::owner_mark;
use crate::coordinate::{lease, repository};
use crate::hosts::{queue, state_file};
use crate::view::run_view::{RunView, continue_command, is_supervised};

/// How long an agent that was left behind has to stop.
const GRACE: Duration = Duration::from_secs(5);

/// What a command came to.
#[derive(Clone, Debug)]
pub(crate) struct Commanded {
    /// The run after it, what was decided, and what must be done.
    pub(crate) answer: RequestOutcome,
    /// What could not be done beside the command.
    pub(crate) warnings: Vec<String>,
    /// What came of it, in words.
    pub(crate) report: CommandReport,
}

/// What came of a command, in words.
#[derive(Clone, Debug)]
pub(crate) struct CommandReport {
    /// The sentence.
    pub(crate) text: String,
    /// The command that continues the run, where nobody supervises it.
    pub(crate) continues: Option<String>,
}

/// Why a command was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Nobody is there to do it.
    #[error(
        "no process supervises run `{run}`, so there is nothing to {command}; continue it with \
         `{continues}`, or end it with `aldis abort {run}`"
    )]
    Unsupervised {
        /// Which run.
        run: RunId,
        /// What was wanted.
        command: &'static str,
        /// The command that continues such a run.
        continues: String,
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
    let before = engine.snapshot(id)?.ok_or_else(|| EngineError::NoSuchRun(id.clone()))?;
    let run = &before.run;
    let take = || engine.command(now, id, command, by, source);
    let mut warnings = Vec::new();
    let answer = match run.record.driver {
        Driver::Hook => {
            let mut answer = take()?;
            if let AnyHandle::Phases(handle) = &mut answer.run {
                match queue::wake(engine, now, handle) {
                    Ok(woken) => answer.decisions.extend(woken),
                    Err(why) => warnings.push(why),
                }
                warnings.extend(state_file::refresh(engine, now, handle).err());
            }
            answer
        }
        Driver::Process if run.record.active && !is_supervised(run, now) => match command {
            HumanCommand::Pause | HumanCommand::Resume => {
                let command = command.as_str();
                return Err(ControlError::Unsupervised {
                    command,
                    continues: continue_command(run),
                    run: id.clone(),
                });
            }
            HumanCommand::Abort => match lease::acquire(store, id, now) {
                Ok(lease) => {
                    let answer = abort_abandoned(engine, now, &lease, take)?;
                    warnings.extend(finish_abandoned(engine, run, &lease)?);
                    answer
                }
                // Somebody supervises it again.
                Err(_) => take()?,
            },
            // Kept until somebody supervises it again.
            HumanCommand::Answer { .. } | HumanCommand::Tell { .. } => take()?,
        },
        Driver::Process | Driver::Server | Driver::Worker => take()?,
    };
    let report = report(&before, now, command, &answer);
    Ok(Commanded { answer, warnings, report })
}

/// Says what came of a command. A message may answer the open question, and an answer may end the run.
fn report(
    before: &Snapshot,
    now: Timestamp,
    command: &HumanCommand,
    done: &RequestOutcome,
) -> CommandReport {
    let after = Snapshot::from(&done.run);
    let view = RunView::new(&after, now);
    let (name, run, open) = (view.name(), &before.run, after.questions());
    let is_answered = |asked: &OpenQuestion| open.iter().all(|it| it.id != asked.id);
    let answered = before.questions().into_iter().find(is_answered).map(|asked| asked.id);
    let supervised = run.record.active && is_supervised(run, now);
    let text = match (command, answered) {
        (HumanCommand::Abort | HumanCommand::Pause | HumanCommand::Resume, _) => {
            format!("Run {name}: {}", view.summary())
        }
        (_, answered) if run.record.driver == Driver::Hook => {
            let next = done.decisions.last().map_or("", |decision| &decision.remedy);
            match answered {
                Some(id) => format!("Answered {id} of run {name}: {next}"),
                None => format!("Message sent to run {name}: {next}"),
            }
        }
        (_, Some(id)) if !supervised => {
            let text = format!("Saved the answer to {id} for run {name}");
            return CommandReport { text, continues: Some(continue_command(run)) };
        }
        (_, Some(id)) if view.live => format!("Answered {id}; run {name} continues"),
        (_, Some(id)) => format!("Answered {id}; run {name}: {}", view.summary()),
        (_, None) if !supervised => {
            let text = format!("Saved the message for run {name}: no process supervises it");
            return CommandReport { text, continues: Some(continue_command(run)) };
        }
        (_, None) => format!("Message sent to run {name}"),
    };
    CommandReport { text, continues: None }
}

/// Ends a run whose supervisor has gone: nobody else ends its agents or hears of their end.
fn abort_abandoned(
    engine: &Engine,
    now: Timestamp,
    lease: &Lease,
    take: impl FnOnce() -> Result<RequestOutcome, EngineError>,
) -> Result<RequestOutcome, EngineError> {
    let mut answer = take()?;
    if let Found::Alive(left) = find_marked(&owner_mark(&lease.run)) {
        left.end(GRACE);
    }
    if let AnyHandle::Run(handle) = &mut answer.run
        && handle.state().ending().is_none()
    {
        handle.set_fence(lease.fence);
        let nobody = run::Event::Exited(run::AgentExit::default());
        handle.advance(engine, now, nobody)?;
    }
    Ok(answer)
}

/// Does what is left to do for a run that was aborted without a supervisor: its work is kept, and its
/// agents are gone. Notices are for whoever delivers them. Returns what went wrong.
fn finish_abandoned(engine: &Engine, run: &Run, lease: &Lease) -> Result<Vec<String>, EngineError> {
    let (store, mut warnings, mut done) = (engine.store(), Vec::new(), Vec::new());
    let ever = Timestamp::from_millis(i64::MAX);
    let left = EffectFilter { run: Some(run.id.clone()), ..EffectFilter::due_by(ever) };
    for effect in store.pending_effects(&left)? {
        if [NOTICE, SINK].contains(&&*effect.kind) {
            continue;
        }
        if let Ok(run::Effect::KeepWork { base }) = serde_json::from_str(&effect.body) {
            let project = Path::new(&run.record.project);
            warnings.extend(repository::keep_work(project, &run.id, base).err());
        }
        done.push(effect.key);
    }
    store.effects_done(&run.id, Some(lease.fence), &done).map_err(|error| match error {
        aldis_store::CommitError::Store(error) => EngineError::Store(error),
        _ => EngineError::Fenced(run.id.clone()),
    })?;
    store.release_lease(lease)?;
    Ok(warnings)
}
