//! Begins, opens, steps and commands runs.

use std::fmt;
use std::sync::Arc;

use aldis_machine::{Begun, Decision, HumanCommand, Machine, Outcome};
use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, DecisionFilter, Driver, PartChange, Revision, RunId, Source, Store, StoreError,
    Timer, TimerChange,
};
use serde_json::Value;

use crate::any::{AnyHandle, with_machine};
use crate::call_queue::CallQueue;
use crate::effects::{Direct, Route};
use crate::error::EngineError;
use crate::handle::{self, Handle, TRIES_MAX, Taken};
use crate::ids;
use crate::json::{Dialects, JsonEdge as _, Members};
use crate::record::{self, Began};
use crate::upcast;

/// The machines with their store. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    route: Arc<dyn Route>,
    /// Calls that wait to be written, whoever records them.
    calls: Arc<CallQueue>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("route", &self.route).finish_non_exhaustive()
    }
}

/// A run that is to begin.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its name; one that nobody has where there is none.
    pub id: Option<RunId>,
    /// The project it works on; empty where there is none.
    pub project: String,
    /// Who takes its steps.
    pub driver: Driver,
    /// The request it comes from, if that can come again.
    pub source: Option<Source>,
    /// What its driver must know after a crash.
    pub notes: Vec<PartChange>,
}

impl NewRun {
    /// A run of this project, under a name of its own.
    pub fn of(project: impl Into<String>, driver: Driver) -> Self {
        Self { id: None, project: project.into(), driver, source: None, notes: Vec::new() }
    }
}

/// What a request came to, for whoever asked.
#[derive(Clone, Debug)]
pub struct RequestOutcome {
    /// The run after it.
    pub run: AnyHandle,
    /// What must now be done, as JSON.
    pub effects: Vec<Value>,
    /// What was decided; nothing when nothing changed.
    pub decisions: Vec<Decision>,
    /// Whether this is the answer to an earlier delivery of the same request.
    pub repeated: bool,
}

impl Engine {
    /// Takes steps in this store. Effects go to whoever drives the run.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, route: Arc::new(Direct), calls: Arc::default() }
    }

    /// Sends effects where `route` says.
    #[must_use]
    pub fn with_route(self, route: Arc<dyn Route>) -> Self {
        Self { route, ..self }
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Returns the store, to be shared.
    pub fn shared_store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    pub(crate) fn call_queue(&self) -> &CallQueue {
        &self.calls
    }

    pub(crate) fn route(&self) -> &dyn Route {
        &*self.route
    }

    /// Begins a run, and takes a first event with it where there is one.
    ///
    /// # Errors
    ///
    /// [`EngineError::Invalid`] if the start cannot be meant, [`EngineError::Exists`] if the name is
    /// taken, and what the store says.
    pub fn begin<M: Machine>(
        &self,
        now: Timestamp,
        new: &NewRun,
        start: M::Start,
    ) -> Result<(Handle<M>, Outcome<M::Effect>), EngineError> {
        let began = Began::Start { start: start.clone() };
        let begun = M::start(now, start)?;
        self.begin_as(now, new, &began, begun, None)
    }

    /// Takes over a run that another program began, with the event that made us notice it.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn adopt<M: Machine>(
        &self,
        now: Timestamp,
        new: &NewRun,
        state: M,
        event: Option<M::Event>,
    ) -> Result<(Handle<M>, Outcome<M::Effect>), EngineError> {
        let invalid = |error: serde_json::Error| EngineError::Invalid(error.to_string());
        let stored = serde_json::from_str(&state.to_stored().map_err(invalid)?).map_err(invalid)?;
        let began: Began<M::Start> = Began::Adopt { state: stored };
        let begun = M::adopt(now, state)?;
        self.begin_as(now, new, &began, begun, event)
    }

    fn begin_as<M: Machine>(
        &self,
        now: Timestamp,
        new: &NewRun,
        began: &impl serde::Serialize,
        begun: Begun<M>,
        event: Option<M::Event>,
    ) -> Result<(Handle<M>, Outcome<M::Effect>), EngineError> {
        for _ in 0..TRIES_MAX {
            let id = new.id.clone().map_or_else(ids::run_id, Ok)?;
            let Begun { state, mut outcome } = begun.clone();
            let mut handle = Handle::new(id.clone(), &new.project, new.driver, now, state);
            handle.keep_notes(&new.notes);
            if let Some(event) = event.clone() {
                handle::append(&mut outcome, handle.take(now, event));
            }
            let mut step = handle.step(self, now, &outcome, new.source.as_ref())?;
            let source = new.source.clone().filter(|_| step.events.is_empty());
            step.events.insert(0, record::event(&id, began, source, now)?);
            step.parts.extend_from_slice(&new.notes);
            match self.store.commit(&step) {
                Ok(committed) => {
                    handle.committed(&step, committed);
                    handle.enqueue(&step, &outcome);
                    tracing::debug!(run = %id, machine = M::NAME, "run begun");
                    return Ok((handle, outcome));
                }
                // Another run has that name.
                Err(CommitError::Conflict { .. }) if new.id.is_none() => {}
                Err(CommitError::Conflict { .. } | CommitError::Duplicate { .. }) => {
                    return Err(EngineError::Exists(id));
                }
                Err(error) => return Err(EngineError::from_commit(&id, error)),
            }
        }
        Err(EngineError::Exists(new.id.clone().map_or_else(ids::run_id, Ok)?))
    }

    /// Opens a run of a machine that is known by type.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSuchRun`], [`EngineError::Unreadable`], and what the store says.
    pub fn open<M: Machine>(&self, id: &RunId) -> Result<Handle<M>, EngineError> {
        let loaded = self.store.load(id)?.ok_or_else(|| EngineError::NoSuchRun(id.clone()))?;
        Handle::from_stored(loaded)
    }

    /// Opens a run of any machine.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_any(&self, id: &RunId) -> Result<AnyHandle, EngineError> {
        let loaded = self.store.load(id)?.ok_or_else(|| EngineError::NoSuchRun(id.clone()))?;
        AnyHandle::from_stored(loaded)
    }

    /// Lets a run take an event of its machine. Nothing is written for an event that is none of its
    /// business.
    ///
    /// # Errors
    ///
    /// As [`Handle::advance`]; [`EngineError::Repeated`] if the source was taken before, and
    /// [`EngineError::KeyReused`] if it named another request then.
    pub fn step<M: Machine>(
        &self,
        now: Timestamp,
        handle: &mut Handle<M>,
        event: M::Event,
        source: Option<&Source>,
    ) -> Result<Outcome<M::Effect>, EngineError> {
        match handle.take_if_meant(now, event, source) {
            Taken::Refused(outcome) => Ok(handle.tell(false, outcome).outcome),
            Taken::Meant(outcome) => Ok(handle.write(self, now, outcome, &[], source)?.outcome),
        }
    }

    /// Begins a run as a program asks for it, in JSON.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin), and [`EngineError::NoSuchMachine`].
    pub fn begin_json(
        &self,
        now: Timestamp,
        machine: &str,
        new: &NewRun,
        start: Members,
        dialects: &dyn Dialects,
    ) -> Result<RequestOutcome, EngineError> {
        if let (Some(id), Some(source)) = (&new.id, &new.source)
            && let Some(known) = self.answered(id, source)?
        {
            return Ok(known);
        }
        let begun = with_machine!(machine, M => {
            let start = M::start_from_json(start, dialects).map_err(EngineError::Invalid)?;
            let begun = self.begin::<M>(now, new, start);
            begun.and_then(|(handle, outcome)| RequestOutcome::new(handle, outcome))
        });
        match (begun, &new.source) {
            // Two deliveries of one request at once: the other was first.
            (Err(EngineError::Exists(id)), Some(source)) => {
                self.answered(&id, source)?.ok_or(EngineError::Exists(id))
            }
            (begun, _) => begun,
        }
    }

    /// Lets a run take an event that a program reports, in JSON. The run must be driven by a server.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step), and [`EngineError::DrivenElsewhere`].
    pub fn step_json(
        &self,
        now: Timestamp,
        id: &RunId,
        event: &Members,
        source: Option<&Source>,
        dialects: &dyn Dialects,
    ) -> Result<RequestOutcome, EngineError> {
        self.attempt(id, source, |run| {
            if run.driver() != Driver::Server {
                return Err(EngineError::driven_elsewhere(id, run.driver()));
            }
            run.step_json(self, now, event.clone(), source, dialects)
        })
    }

    /// Does what a human wants of a run, whoever drives it; `by` says by what means it came.
    ///
    /// # Errors
    ///
    /// [`EngineError::NotPossible`] if the command means nothing to the run as it stands, and as
    /// [`step`](Self::step).
    pub fn command(
        &self,
        now: Timestamp,
        id: &RunId,
        command: &HumanCommand,
        by: &str,
        source: Option<&Source>,
    ) -> Result<RequestOutcome, EngineError> {
        self.attempt(id, source, |run| run.command(self, now, command, by, source))
    }

    /// Fires a timer that is due; `missed` when it was due while nobody watched.
    ///
    /// # Errors
    ///
    /// What the store says. A timer of a run that has gone is no error.
    pub fn fire(&self, now: Timestamp, timer: &Timer, missed: bool) -> Result<(), EngineError> {
        if timer.key != handle::WAKE {
            return self.disarm(now, timer);
        }
        let fired = self.attempt(&timer.run, None, |run| {
            // Another server may have been first: then the timer is set anew, together with the state.
            let is_due = run.next_wake().is_some_and(|due| due <= now);
            if !is_due && !self.is_due(now, timer)? {
                return Err(EngineError::Contended(timer.run.clone()));
            }
            run.fire(self, now, missed)
        });
        match fired {
            // Others change the run all the time: it is fired again while it is due.
            Ok(_) | Err(EngineError::Contended(_)) => Ok(()),
            // One that wakes nobody would be due for ever, before all others.
            Err(
                EngineError::NotPossible(_)
                | EngineError::NoSuchMachine(_)
                | EngineError::NoSuchRun(_)
                | EngineError::Unreadable { .. },
            ) => self.disarm(now, timer),
            Err(error) => Err(error),
        }
    }

    /// Clears a timer that wakes nobody, unless it was set anew meanwhile.
    fn disarm(&self, now: Timestamp, timer: &Timer) -> Result<(), EngineError> {
        let Some(run) = self.store.run(&timer.run)? else { return Ok(()) };
        if !self.is_due(now, timer)? {
            return Ok(());
        }
        let mut step = aldis_store::Step::new(run.id, run.revision, run.record, now);
        step.timers.push(TimerChange::Clear { key: timer.key.clone() });
        match self.store.commit(&step) {
            // Whoever was first has set the timer anew, or will.
            Ok(_) | Err(CommitError::Conflict { .. } | CommitError::NoSuchRun { .. }) => Ok(()),
            Err(error) => Err(EngineError::from_commit(&timer.run, error)),
        }
    }

    /// Returns whether a timer is still due, as it is stored.
    fn is_due(&self, now: Timestamp, timer: &Timer) -> Result<bool, EngineError> {
        let due = self.store.due_timers(now, usize::MAX)?;
        Ok(due.iter().any(|due| due.run == timer.run && due.key == timer.key))
    }

    /// Opens a run and does something with it, again while somebody else is first: what is asked may
    /// mean something else then. A request that was taken before gets its first answer.
    fn attempt(
        &self,
        id: &RunId,
        source: Option<&Source>,
        act: impl Fn(AnyHandle) -> Result<Option<RequestOutcome>, EngineError>,
    ) -> Result<RequestOutcome, EngineError> {
        for _ in 0..TRIES_MAX {
            if let Some(source) = source
                && let Some(known) = self.answered(id, source)?
            {
                return Ok(known);
            }
            match act(self.open_any(id)?) {
                Ok(Some(answer)) => return Ok(answer),
                // Two deliveries of one request at once: the other was first.
                Ok(None) | Err(EngineError::Repeated(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Contended(id.clone()))
    }

    /// Finds what an earlier delivery of the same request led to.
    ///
    /// # Errors
    ///
    /// [`EngineError::KeyReused`] if the key was used for another request.
    pub fn answered(
        &self,
        id: &RunId,
        source: &Source,
    ) -> Result<Option<RequestOutcome>, EngineError> {
        let Some(event) = self.store.event_by_source(id, &source.key)? else { return Ok(None) };
        if event.digest.is_some_and(|known| known != source.digest) {
            return Err(EngineError::KeyReused);
        }
        let run = self.open_any(id)?;
        let (mut decisions, mut effects) = (Vec::new(), Vec::new());
        for body in self.bodies_of(id, event.revision, &source.key)? {
            effects.extend(upcast::effects(&body));
            let decision = serde_json::from_value::<Decision>(body);
            decisions.extend(decision.map(|it| upcast::decision(run.machine(), it)));
        }
        if let Some(revision) = event.revision
            && let Some(kept) = self.store.effect(&handle::answer_key(id, revision))?
        {
            effects = serde_json::from_str(&kept.body).unwrap_or_default();
        }
        Ok(Some(RequestOutcome { run, effects, decisions, repeated: true }))
    }

    /// Returns what was decided about a request, as it is stored.
    fn bodies_of(
        &self,
        id: &RunId,
        revision: Option<Revision>,
        key: &str,
    ) -> Result<Vec<Value>, StoreError> {
        let body = |decision: aldis_store::Decision| serde_json::from_str(&decision.body).ok();
        if let Some(revision) = revision {
            return Ok(self
                .store
                .decisions_of(id, revision)?
                .into_iter()
                .filter_map(body)
                .collect());
        }
        // 0.1.0 did not say which step took an event, but whose request a decision answers.
        let filter = DecisionFilter { run: Some(id.clone()), ..DecisionFilter::default() };
        let bodies = self.store.decisions(&filter)?.into_iter().filter_map(body);
        Ok(bodies.filter(|body: &Value| body["source"] == key).collect())
    }

    /// Returns the timers that are due, the earliest first.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
        self.store.due_timers(now, limit)
    }
}

impl RequestOutcome {
    /// What a step came to.
    pub(crate) fn new<M: Machine>(
        handle: Handle<M>,
        outcome: Outcome<M::Effect>,
    ) -> Result<Self, EngineError>
    where
        AnyHandle: From<Handle<M>>,
    {
        let effects = handle.effect_values(&outcome)?;
        Ok(Self { run: handle.into(), effects, decisions: outcome.decisions, repeated: false })
    }
}
