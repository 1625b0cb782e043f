//! Drives any machine: decide, commit, then act.
//!
//! A machine takes an event; what it decided, the new state and the effects are written in one
//! transaction; only then the caller performs the effects. Events that change nothing worth keeping
//! are written with the next step, so that a journal can be replayed.

use aldis_machine::Decision;
use aldis_signal::time::Timestamp;
use aldis_store::{CommitError, Driver, Revision, Run, RunId, Source, Step, Store};
use serde::Serialize;

use crate::engine::driver::DriverError;
use crate::engine::stored::{self, Machine};
use crate::settings::secret;

/// How often a step is tried again because somebody else was first.
const TRIES_MAX: usize = 32;
/// How many events wait for the next step. Then they are a step of their own.
const PENDING_MAX: usize = 256;

/// How a run began: the first event of its journal.
#[derive(Debug, Serialize)]
struct Began<'s, S> {
    event: &'static str,
    start: &'s S,
}

/// A run and what its machine knows.
#[derive(Clone, Debug)]
pub(crate) struct Open<M: Machine> {
    pub(crate) id: RunId,
    pub(crate) project: String,
    driver: Driver,
    pub(crate) revision: Revision,
    /// The fencing number under which steps are written, if any.
    pub(crate) fence: Option<u64>,
    pub(crate) state: M,
    /// The key of the request that the next step comes from, if it has one.
    pub(crate) source: Option<String>,
    /// Events since the last step.
    pending: Vec<(Timestamp, M::Event)>,
}

impl<M: Machine> Open<M> {
    /// Begins a run in this state; `start` is what it was made of.
    pub(crate) fn create(
        store: &dyn Store,
        now: Timestamp,
        project: &str,
        start: &impl Serialize,
        state: M,
    ) -> Result<Self, DriverError> {
        let began = stored::event(&Began { event: "start", start }, None, now);
        for _ in 0..TRIES_MAX {
            let id = secret::run_id().map_err(DriverError::Random)?;
            let driven = (project, Driver::Process);
            let mut step = stored::step(id.clone(), Revision(0), driven, &state, now);
            step.events.push(began.clone());
            match store.commit(&step) {
                Ok(committed) => {
                    return Ok(Self {
                        id,
                        project: project.to_owned(),
                        driver: Driver::Process,
                        revision: committed.revision,
                        fence: None,
                        state,
                        source: None,
                        pending: Vec::new(),
                    });
                }
                // Another run has that name.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(DriverError::from_commit(error)),
            }
        }
        Err(DriverError::Contended)
    }

    /// Reads a run.
    pub(crate) fn load(run: Run) -> Result<Self, DriverError> {
        let state = stored::state(&run)?;
        let Run { id, revision, record, .. } = run;
        Ok(Self {
            id,
            project: record.project,
            driver: record.driver,
            revision,
            fence: None,
            state,
            source: None,
            pending: Vec::new(),
        })
    }

    /// Lets the machine take an event. Returns whether a step was written: then effects may be due.
    pub(crate) fn advance(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        event: M::Event,
    ) -> Result<bool, DriverError> {
        let (effects, decisions) = self.state.take(now, &event);
        self.remember(now, event);
        if decisions.is_empty() && effects.is_empty() && self.pending.len() < PENDING_MAX {
            return Ok(false);
        }
        self.write(store, now, (effects, decisions))
    }

    /// Writes the events since the last step, unless only time has passed: others, too, want to know
    /// that the work moves. Returns whether a step was written: then effects may be due.
    pub(crate) fn keep(&mut self, store: &dyn Store, now: Timestamp) -> Result<bool, DriverError> {
        let moved = self.pending.iter().any(|(_, event)| kind(event) != "tick");
        if moved { self.write(store, now, (Vec::new(), Vec::new())) } else { Ok(false) }
    }

    /// Takes over what somebody else decided. What the events since the last step mean now is
    /// written at once. Returns whether it means anything.
    pub(crate) fn refresh(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
    ) -> Result<bool, DriverError> {
        let (effects, decisions) = self.catch_up(store)?;
        if effects.is_empty() && decisions.is_empty() {
            return Ok(false);
        }
        self.write(store, now, (effects, decisions))
    }

    /// Writes the events since the last step and what came of them.
    fn write(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        (mut effects, mut decisions): (Vec<M::Effect>, Vec<Decision>),
    ) -> Result<bool, DriverError> {
        for _ in 0..TRIES_MAX {
            let step = self.step(now, &effects, &decisions);
            match store.commit(&step) {
                Ok(committed) => {
                    self.revision = committed.revision;
                    self.source = None;
                    self.pending.clear();
                    return Ok(true);
                }
                Err(CommitError::Conflict { .. }) => {
                    (effects, decisions) = self.catch_up(store)?;
                }
                Err(error) => return Err(DriverError::from_commit(error)),
            }
        }
        Err(DriverError::Contended)
    }

    /// Takes over what somebody else decided meanwhile, and takes the events since the last step
    /// again. Returns what comes of those.
    fn catch_up(
        &mut self,
        store: &dyn Store,
    ) -> Result<(Vec<M::Effect>, Vec<Decision>), DriverError> {
        let run = store.run(&self.id)?.ok_or(DriverError::Contended)?;
        let (fence, source) = (self.fence, self.source.take());
        let pending = std::mem::take(&mut self.pending);
        *self = Self { fence, source, pending, ..Self::load(run)? };
        let (mut effects, mut decisions) = (Vec::new(), Vec::new());
        for (at, event) in &self.pending {
            let (more, decided) = self.state.take(*at, event);
            effects.extend(more);
            decisions.extend(decided);
        }
        Ok((effects, decisions))
    }

    /// Keeps an event for the next step. A run of the same kind says no more than its first and its
    /// last.
    fn remember(&mut self, now: Timestamp, event: M::Event) {
        let new = kind(&event);
        let same = self.pending.iter().rev().take(2).filter(|(_, last)| kind(last) == new).count();
        if same == 2 && ["tick", "activity", "spent"].contains(&&*new) {
            self.pending.pop();
        }
        self.pending.push((now, event));
    }

    fn step(&self, now: Timestamp, effects: &[M::Effect], decisions: &[Decision]) -> Step {
        let driven = (&*self.project, self.driver);
        let mut step = stored::step(self.id.clone(), self.revision, driven, &self.state, now);
        step.fence = self.fence;
        step.events.extend(self.pending.iter().map(|(at, event)| stored::event(event, None, *at)));
        if let Some(last) = step.events.last_mut() {
            last.source = self.source.as_deref().map(Source::new);
        }
        step.decisions.extend(decisions.iter().map(|decision| stored::decision(decision, now)));
        let next = Revision(self.revision.0 + 1);
        let effects = effects.iter().enumerate();
        step.effects.extend(effects.map(|(number, wanted)| {
            stored::effect(M::NAME, (&self.id, next, number), wanted, now)
        }));
        step
    }
}

/// The name an event gives itself.
fn kind(event: &impl Serialize) -> String {
    stored::event(event, None, Timestamp::from_millis(0)).kind
}
