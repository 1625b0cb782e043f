//! Takes steps of runs without a thread that waits until they are durable.
//!
//! One path for every event: lock the run, take it as its last step left it or read it, let it decide,
//! write, remember, tell whoever waits. Deciding takes microseconds and happens where the request is;
//! reading, scanning long texts and whatever else may wait happens on threads that may.
//!
//! Other processes step the same runs. What is remembered may be old: then the store refuses the
//! step, or nothing comes of the event, and the run is read.

mod slots;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use aldis_engine::{
    AnyHandle, Engine, EngineError, Members, NewRun, Preparation, Prepared, RequestOutcome,
};
use aldis_machine::{Decision, HumanCommand};
use aldis_signal::time::Timestamp;
use aldis_store::{CommitError, Committed, RunId, Source, Step, Timer};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task;

use self::slots::{SlotGuard, Slots};
use super::app::Commits;
use super::error::ApiError;
use crate::app::control::{self, Commanded};
use crate::settings::catalog::Catalog;

/// How often a step is computed again because another process was first.
const TRIES_MAX: usize = 32;
/// The longest text that is scanned by a thread that others wait for.
const SHORT: usize = 16 << 10;

/// Steps runs.
pub(super) struct Runs {
    engine: Engine,
    dialects: Arc<Catalog>,
    commits: Arc<Commits>,
    slots: Slots,
}

/// What a request came to.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// The run after it.
    pub(super) run: Arc<AnyHandle>,
    /// What must now be done, and answers to whoever asked.
    pub(super) effects: Vec<Value>,
    /// What was decided; nothing when nothing changed.
    pub(super) decisions: Vec<Decision>,
    /// What could not be done.
    pub(super) warnings: Vec<String>,
    /// Whether this is the answer to an earlier delivery of the same request.
    pub(super) repeated: bool,
}

impl From<RequestOutcome> for Taken {
    fn from(answer: RequestOutcome) -> Self {
        let RequestOutcome { run, effects, decisions, repeated } = answer;
        Self { run: Arc::new(run), effects, decisions, warnings: Vec::new(), repeated }
    }
}

/// An event for a run.
#[derive(Clone, Debug)]
pub(super) struct RunInput {
    /// When it happens.
    pub(super) now: Timestamp,
    /// Which run.
    pub(super) run: RunId,
    /// Of which machine; one of another is not there.
    pub(super) machine: Option<&'static str>,
    /// What happens.
    pub(super) event: Members,
    /// The request it comes from.
    pub(super) source: Option<Source>,
}

/// What became of a step that was computed.
enum Written {
    /// It is durable.
    Done(Taken),
    /// It was refused, and nobody else steps the run here until this is dropped.
    Refused(SlotGuard, CommitError),
}

impl Runs {
    pub(super) fn new(engine: Engine, commits: Arc<Commits>) -> Self {
        let dialects = Arc::new(Catalog::builtin());
        Self { engine, dialects, commits, slots: Slots::default() }
    }

    /// Returns what takes steps, for whoever waits on threads of its own.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Does something that may wait for the disk.
    pub(super) async fn with_engine<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError> {
        let engine = self.engine.clone();
        blocking(move || work(&engine)).await
    }

    /// Begins a run.
    pub(super) async fn begin(
        &self,
        now: Timestamp,
        machine: String,
        new: NewRun,
        start: Members,
    ) -> Result<Taken, ApiError> {
        let dialects = Arc::clone(&self.dialects);
        let begin =
            move |engine: &Engine| engine.begin_json(now, &machine, &new, start, &*dialects);
        let begun = self.with_engine(begin).await?;
        self.commits.notify_of(&begun);
        Ok(begun.into())
    }

    /// Does what a human wants of a run, whoever drives it; `by` is for the journal.
    pub(super) async fn command(
        &self,
        now: Timestamp,
        id: RunId,
        command: HumanCommand,
        (by, source): (&str, Option<Source>),
    ) -> Result<Taken, ApiError> {
        let by = by.to_owned();
        let mut slot = self.slots.lock(&id).await;
        // Whatever comes of it, what is remembered will be old.
        slot.take();
        let act = move |engine: &Engine| {
            control::command(engine, now, &id, &command, &by, source.as_ref())
        };
        let Commanded { answer, warnings, .. } = self.with_engine(act).await?;
        self.commits.notify_of(&answer);
        Ok(Taken { warnings, ..answer.into() })
    }

    /// Lets a run take an event.
    pub(super) async fn step(&self, input: RunInput) -> Result<Taken, ApiError> {
        let input = Arc::new(input);
        let mut slot = self.slots.lock(&input.run).await;
        let mut remembered = slot.take();
        for _ in 0..TRIES_MAX {
            let may_be_old = remembered.is_some();
            let run = match remembered.take() {
                Some(run) => run,
                None => self.open(&input.run).await?,
            };
            let answer = match self.prepare(run, &input).await? {
                Ok(Preparation::Step(step, prepared)) => {
                    match self.write(slot, step, prepared).await? {
                        Written::Done(taken) => return Ok(taken),
                        Written::Refused(_, CommitError::Duplicate { .. }) => {
                            return self.answered(&input).await?.ok_or_else(|| contended(&input));
                        }
                        Written::Refused(back, CommitError::Conflict { .. }) => slot = back,
                        Written::Refused(_, error) => return Err(error.into()),
                    }
                    continue;
                }
                // Only of what is stored now can be said that it changes nothing.
                _ if may_be_old => continue,
                Ok(Preparation::Nothing(answer)) => Ok(Taken::from(*answer)),
                Err(error) => Err(error.into()),
            };
            return self.answered(&input).await?.map_or(answer, Ok);
        }
        Err(contended(&input))
    }

    /// Fires a timer that is due; `missed` when it was due while nobody watched.
    pub(super) async fn fire(
        &self,
        now: Timestamp,
        timer: Timer,
        missed: bool,
    ) -> Result<(), ApiError> {
        let mut slot = self.slots.lock(&timer.run).await;
        if let Some(run) = slot.take()
            && run.next_wake().is_some_and(|due| due <= now)
            && let Ok(Preparation::Step(step, prepared)) =
                run.prepare_wake(&self.engine, now, missed)
        {
            match self.write(slot, step, prepared).await? {
                Written::Done(taken) if taken.run.next_wake().is_none_or(|due| due > now) => {
                    return Ok(());
                }
                // Whether it is written is unknown.
                Written::Refused(_, CommitError::Store(error)) => return Err(error.into()),
                Written::Done(_) | Written::Refused(..) => {}
            }
        }
        // What is stored decides, and a timer that wakes nobody is cleared.
        self.with_engine(move |engine| engine.fire(now, &timer, missed)).await?;
        self.commits.notify_all();
        Ok(())
    }

    async fn open(&self, id: &RunId) -> Result<AnyHandle, ApiError> {
        let id = id.clone();
        self.with_engine(move |engine| engine.open_any(&id)).await
    }

    /// Finds what an earlier delivery of the same request led to.
    async fn answered(&self, input: &Arc<RunInput>) -> Result<Option<Taken>, ApiError> {
        let Some(source) = input.source.clone() else { return Ok(None) };
        let id = input.run.clone();
        let known = self.with_engine(move |engine| engine.answered(&id, &source)).await?;
        Ok(known.map(Taken::from))
    }

    /// Lets a run decide about an event.
    async fn prepare(
        &self,
        run: AnyHandle,
        input: &Arc<RunInput>,
    ) -> Result<Result<Preparation, EngineError>, ApiError> {
        if input.machine.is_some_and(|machine| machine != run.machine()) {
            return Ok(Err(EngineError::NoSuchRun(input.run.clone())));
        }
        let (engine, dialects) = (self.engine.clone(), Arc::clone(&self.dialects));
        let is_long = input.event.values().map(length).sum::<usize>() > SHORT;
        let input = Arc::clone(input);
        let prepare = move || {
            let RunInput { now, event, source, .. } = &*input;
            run.prepare_json(&engine, *now, event.clone(), source.as_ref(), &*dialects)
        };
        if is_long { blocking(move || Ok::<_, ApiError>(prepare())).await } else { Ok(prepare()) }
    }

    /// Writes a step. Also when nobody waits for it any more: what is stored has to be remembered and
    /// performed.
    async fn write(
        &self,
        mut slot: SlotGuard,
        step: Box<Step>,
        prepared: Box<Prepared>,
    ) -> Result<Written, ApiError> {
        let (tell, told) = oneshot::channel();
        let commits = Arc::clone(&self.commits);
        // Without the engine: it holds the store, which must not end in a thread of its own.
        let then = move |step: Box<Step>, result: Result<Committed, CommitError>| {
            let written = match result {
                Ok(committed) => {
                    let taken = Taken::from(prepared.settled(&step, committed));
                    slot.remember(&step, &taken.run);
                    drop(slot);
                    commits.notify(&step);
                    Written::Done(taken)
                }
                Err(error) => Written::Refused(slot, error),
            };
            tell.send(written).ok();
        };
        self.engine.store().commit_then(step, Box::new(then));
        told.await.map_err(|_| ApiError::internal("the store has stopped"))
    }
}

/// Runs work that may wait on a thread of its own.
async fn blocking<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, ApiError> {
    let span = tracing::Span::current();
    match task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(ApiError::internal("internal error while handling the request")),
    }
}

fn contended(input: &RunInput) -> ApiError {
    EngineError::Contended(input.run.clone()).into()
}

/// How much text there is in a value.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(length).sum(),
        Value::Object(members) => members.values().map(length).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
