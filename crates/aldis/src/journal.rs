//! Drives any machine: decide, commit, then act.
//!
//! A machine takes an event; what it decided, the new state and the effects are written in one
//! transaction; only then the caller performs the effects. Events that change nothing worth keeping
//! are written with the next step, so that a journal can be replayed.

use aldis_core::machine::Decision;
use aldis_core::machine::run;
use aldis_core::time::Timestamp;
use aldis_store::{
    CommitError, NewDecision, NewEffect, NewEvent, Revision, Run, RunId, RunRecord, Step, Store,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::driver::DriverError;
use crate::secret;

/// The version of what is stored.
const VERSION: u32 = 1;
/// How often a step is tried again because somebody else was first.
const TRIES_MAX: usize = 32;
/// How many events wait for the next step. Then they are a step of their own.
const PENDING_MAX: usize = 256;

/// What the journal needs of a machine.
pub(crate) trait Machine: Clone + Serialize + DeserializeOwned {
    /// How the store names it.
    const NAME: &'static str;
    /// How a run begins.
    type Start: Clone + Serialize + DeserializeOwned;
    /// What happens.
    type Event: Clone + Serialize + DeserializeOwned;
    /// What must be done.
    type Effect: Serialize + DeserializeOwned;

    fn begin(now: Timestamp, start: Self::Start) -> Self;
    fn take(
        &mut self,
        now: Timestamp,
        event: &Self::Event,
    ) -> (Vec<Self::Effect>, Option<Decision>);
    fn title(&self) -> &str;
    fn is_active(&self) -> bool;
}

impl Machine for run::State {
    const NAME: &'static str = "run";
    type Start = run::Start;
    type Event = run::Event;
    type Effect = run::Effect;

    fn begin(now: Timestamp, start: run::Start) -> Self {
        Self::start(now, start)
    }

    fn take(&mut self, now: Timestamp, event: &run::Event) -> (Vec<run::Effect>, Option<Decision>) {
        let run::Outcome { effects, decision } = self.on_event(now, event);
        (effects, decision)
    }

    fn title(&self) -> &str {
        &self.task
    }

    fn is_active(&self) -> bool {
        self.ending().is_none()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored<T> {
    v: u32,
    state: T,
}

/// A run and what its machine knows.
#[derive(Clone, Debug)]
pub(crate) struct Open<M: Machine> {
    pub(crate) id: RunId,
    pub(crate) project: String,
    pub(crate) revision: Revision,
    /// The fencing number under which steps are written, if any.
    pub(crate) fence: Option<u64>,
    pub(crate) state: M,
    /// Events since the last step.
    pending: Vec<(Timestamp, M::Event)>,
}

impl<M: Machine> Open<M> {
    /// Begins a run.
    pub(crate) fn create(
        store: &dyn Store,
        now: Timestamp,
        project: &str,
        start: M::Start,
    ) -> Result<Self, DriverError> {
        let body = serde_json::json!({ "event": "start", "start": start }).to_string();
        let state = M::begin(now, start);
        for _ in 0..TRIES_MAX {
            let id = secret::run_id().map_err(DriverError::Random)?;
            let (project, pending) = (project.to_owned(), Vec::new());
            let mut open = Self {
                id,
                project,
                revision: Revision(0),
                fence: None,
                state: state.clone(),
                pending,
            };
            let mut step = open.step(now);
            step.events.push(event(now, "start", body.clone()));
            match store.commit(&step) {
                Ok(committed) => {
                    open.revision = committed.revision;
                    return Ok(open);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(DriverError::from_commit(error)),
            }
        }
        Err(DriverError::Contended)
    }

    /// Reads a run.
    pub(crate) fn load(run: Run) -> Result<Self, DriverError> {
        let unreadable = |detail: String| DriverError::Unreadable { run: run.id.clone(), detail };
        let stored: Stored<M> = serde_json::from_str(&run.record.state)
            .map_err(|error| unreadable(error.to_string()))?;
        if stored.v != VERSION {
            return Err(unreadable(format!("version {}, this one knows {VERSION}", stored.v)));
        }
        let Run { id, revision, record, .. } = run;
        let (project, state) = (record.project, stored.state);
        Ok(Self { id, project, revision, fence: None, state, pending: Vec::new() })
    }

    /// Lets the machine take an event. Returns whether a step was written: then effects may be due.
    pub(crate) fn advance(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        event: M::Event,
    ) -> Result<bool, DriverError> {
        let (effects, decision) = self.state.take(now, &event);
        self.remember(now, event);
        if decision.is_none() && effects.is_empty() && self.pending.len() < PENDING_MAX {
            return Ok(false);
        }
        self.write(store, now, (effects, decision.into_iter().collect()))
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
            let step = self.full_step(now, &effects, &decisions);
            match store.commit(&step) {
                Ok(committed) => {
                    self.revision = committed.revision;
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
        let (fence, pending) = (self.fence, std::mem::take(&mut self.pending));
        *self = Self { fence, pending, ..Self::load(run)? };
        let (mut effects, mut decisions) = (Vec::new(), Vec::new());
        for (at, event) in &self.pending {
            let (more, decision) = self.state.take(*at, event);
            effects.extend(more);
            decisions.extend(decision);
        }
        Ok((effects, decisions))
    }

    /// Keeps an event for the next step. A run of the same kind says no more than its first and its
    /// last.
    fn remember(&mut self, now: Timestamp, event: M::Event) {
        let kind = |event: &M::Event| kind(&serde_json::to_value(event).unwrap_or_default());
        let new = kind(&event);
        let same = self.pending.iter().rev().take(2).filter(|(_, last)| kind(last) == new).count();
        if same == 2 && ["tick", "worked", "spent"].contains(&&*new) {
            self.pending.pop();
        }
        self.pending.push((now, event));
    }

    fn full_step(&self, now: Timestamp, effects: &[M::Effect], decisions: &[Decision]) -> Step {
        let mut step = self.step(now);
        for (at, taken) in &self.pending {
            let body = serde_json::to_value(taken).unwrap_or_default();
            step.events.push(event(*at, &kind(&body), body.to_string()));
        }
        let json = |value: &dyn erased::Json| value.json();
        step.decisions
            .extend(decisions.iter().map(|decision| NewDecision { body: json(decision), at: now }));
        let next = Revision(self.revision.0 + 1);
        step.effects.extend(effects.iter().enumerate().map(|(number, effect)| NewEffect {
            key: format!("{}/{next}/{number}", self.id),
            kind: M::NAME.to_owned(),
            body: json(effect),
            due: now,
        }));
        step
    }

    fn step(&self, now: Timestamp) -> Step {
        let record = RunRecord {
            project: self.project.clone(),
            session: None,
            machine: M::NAME.to_owned(),
            title: self.state.title().to_owned(),
            active: self.state.is_active(),
            state: serde_json::to_string(&Stored { v: VERSION, state: &self.state })
                .unwrap_or_default(),
        };
        let mut step = Step::new(self.id.clone(), self.revision, record, now);
        step.fence = self.fence;
        step
    }
}

fn event(at: Timestamp, kind: &str, body: String) -> NewEvent {
    NewEvent { kind: kind.to_owned(), body, source: None, at }
}

fn kind(body: &serde_json::Value) -> String {
    body.get("event").and_then(|kind| kind.as_str()).unwrap_or("event").to_owned()
}

mod erased {
    //! Anything that becomes JSON.

    use serde::Serialize;

    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).unwrap_or_default()
        }
    }
}
