//! The durable side of a delivery: its state in parts, so that a step costs the same however many
//! tasks there are.

use std::collections::BTreeMap;

use aldis_machine::delivery::{DeliveryRun as Whole, Dispatch, Event, Outcome, State, Task};
use aldis_machine::run::Usage;
use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Driver, Loaded, Part, PartChange, Revision, Run, RunId, RunRecord, Step, Store,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::engine::driver::DriverError;
use crate::engine::stored;
use crate::settings::secret;

/// How the store names this machine.
pub(crate) const NAME: &str = "delivery";
/// How often a step is tried again because somebody else was first.
const TRIES_MAX: usize = 32;
/// Under which key it is kept how agents are started.
const LAUNCH: &str = "launch";
/// What the keys of tasks, of processes and of sessions begin with.
const TASK: &str = "task/";
const PROCESS: &str = "process/";
const SESSION: &str = "session/";

/// How a delivery began: the first event of its journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename = "start")]
pub(crate) struct Began<S> {
    /// What it was made of.
    pub(crate) start: S,
}

/// The last session that a role had about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    /// Whose it was.
    pub(crate) agent: u64,
    /// What the host calls it.
    pub(crate) name: String,
    /// What it had cost, in the host's words.
    pub(crate) spent: Usage,
}

/// A delivery and its place in the store.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) id: RunId,
    pub(crate) project: String,
    driver: Driver,
    pub(crate) revision: Revision,
    /// The fencing number under which steps are written, if any.
    pub(crate) fence: Option<u64>,
    pub(crate) state: State,
    /// How agents are started, in the shell's own words.
    pub(crate) launch: String,
    /// The processes of agents, by number, in the shell's own words.
    pub(crate) processes: Vec<(u64, String)>,
    /// The last sessions of hosts, by task and role.
    sessions: BTreeMap<String, Session>,
    /// Effects that were performed, and not yet recorded as such.
    done: Vec<String>,
}

/// What came of an event.
pub(crate) struct Taken {
    pub(crate) outcome: Outcome,
    /// The step that keeps the state.
    pub(crate) step: Step,
    /// Whether anything is different now. An event may change the state although nothing was decided,
    /// and must then be kept, or the journal would not lead to the state.
    pub(crate) changes: bool,
}

impl Book {
    /// Begins a delivery in this state; `start` is what it was made of.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub(crate) fn create(
        store: &dyn Store,
        now: Timestamp,
        project: &str,
        start: &impl Serialize,
        state: State,
        launch: String,
    ) -> Result<Self, DriverError> {
        let id = secret::run_id().map_err(DriverError::Random)?;
        let mut book = Self::new(id, (project, Driver::Process), state, launch);
        for _ in 0..TRIES_MAX {
            match store.commit(&book.first_step(now, start, None)) {
                Ok(committed) => {
                    book.revision = committed.revision;
                    return Ok(book);
                }
                // Another run has that name.
                Err(CommitError::Conflict { .. }) => {
                    book.id = secret::run_id().map_err(DriverError::Random)?;
                }
                Err(error) => return Err(DriverError::from_commit(error)),
            }
        }
        Err(DriverError::Contended)
    }

    /// Returns a delivery that no store has yet.
    pub(crate) fn new(
        id: RunId,
        (project, driver): (&str, Driver),
        mut state: State,
        launch: String,
    ) -> Self {
        // The first step writes all of them.
        state.take_changed();
        let (project, done, fence) = (project.to_owned(), Vec::new(), None);
        let (revision, processes, sessions) = (Revision(0), Vec::new(), BTreeMap::new());
        Self { id, project, driver, revision, fence, state, launch, processes, sessions, done }
    }

    /// Returns the step that begins it; `start` is what it was made of.
    pub(crate) fn first_step(
        &self,
        now: Timestamp,
        start: &impl Serialize,
        source: Option<&str>,
    ) -> Step {
        let mut step = self.step(now);
        step.events.push(stored::event(&Began { start }, source, now));
        step.parts.push(set(LAUNCH, &self.launch));
        let tasks = self.state.tasks().iter().enumerate();
        step.parts.extend(tasks.map(|(no, task)| set(&task_key(no), task)));
        step
    }

    /// Lets the machine take an event.
    pub(crate) fn take(&mut self, now: Timestamp, event: &Event, source: Option<&str>) -> Taken {
        let before = self.state.run().clone();
        let outcome = self.state.on_event(now, event);
        let mut step = self.step(now);
        step.events.push(stored::event(event, source, now));
        let changed = self.state.take_changed();
        let changes = !changed.is_empty() || *self.state.run() != before || !outcome.is_nothing();
        let tasks = self.state.tasks();
        let changed = changed.into_iter().filter_map(|no| Some((no, tasks.get(no)?)));
        step.parts.extend(changed.map(|(no, task)| set(&task_key(no), task)));
        let decided = outcome.decisions.iter();
        step.decisions.extend(decided.map(|noted| stored::decision(noted, now)));
        Taken { outcome, step, changes }
    }

    /// Reads a delivery.
    ///
    /// # Errors
    ///
    /// Fails if the store does, or if this version does not know the form.
    pub(crate) fn load(store: &dyn Store, id: &RunId) -> Result<Self, DriverError> {
        let Loaded { run, parts } = store.load(id)?.ok_or(DriverError::Contended)?;
        Self::from_parts(run, parts)
    }

    fn from_parts(run: Run, parts: Vec<Part>) -> Result<Self, DriverError> {
        let unreadable = |detail: String| DriverError::Unreadable { run: run.id.clone(), detail };
        let whole: Whole = stored::state(&run)?;
        let (mut tasks, mut processes, mut launch) = (Vec::new(), Vec::new(), String::new());
        let mut sessions = BTreeMap::new();
        for Part { key, body } in parts {
            if key.starts_with(TASK) {
                tasks.push(read::<Task>(&body).map_err(unreadable)?);
            } else if key == LAUNCH {
                launch = body;
            } else if let Some(agent) = key.strip_prefix(PROCESS).and_then(|no| no.parse().ok()) {
                processes.push((agent, read(&body).map_err(unreadable)?));
            } else if key.starts_with(SESSION) {
                sessions.insert(key, read(&body).map_err(unreadable)?);
            }
        }
        let state =
            State::from_parts(whole, tasks).map_err(|error| unreadable(error.to_string()))?;
        let Run { id, revision, record, .. } = run;
        let (project, driver, fence, done) = (record.project, record.driver, None, Vec::new());
        Ok(Self { id, project, driver, revision, fence, state, launch, processes, sessions, done })
    }

    /// Lets the machine take an event, and keeps what came of it.
    ///
    /// # Errors
    ///
    /// Fails if the store does, or if others were always first.
    pub(crate) fn advance(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        event: &Event,
    ) -> Result<Outcome, DriverError> {
        self.advance_for(store, now, event, None)
    }

    /// The same for a request that may come again: `source` is its key.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance), and if the request was taken before.
    pub(crate) fn advance_for(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        event: &Event,
        source: Option<&str>,
    ) -> Result<Outcome, DriverError> {
        for _ in 0..TRIES_MAX {
            let Taken { outcome, mut step, changes } = self.take(now, event, source);
            if !changes {
                return Ok(outcome);
            }
            let next = Revision(self.revision.0 + 1);
            let effects = outcome.effects.iter().enumerate();
            step.effects.extend(effects.map(|(number, wanted)| {
                stored::effect(NAME, (&self.id, next, number), wanted, now)
            }));
            if self.commit(store, step)? {
                return Ok(outcome);
            }
            self.catch_up(store)?;
        }
        Err(DriverError::Contended)
    }

    /// Takes over what others decided meanwhile.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub(crate) fn catch_up(&mut self, store: &dyn Store) -> Result<(), DriverError> {
        let (fence, done) = (self.fence, std::mem::take(&mut self.done));
        *self = Self { fence, done, ..Self::load(store, &self.id)? };
        Ok(())
    }

    /// Remembers the process of an agent. Without this a crash of ours and of its keeper at once would
    /// leave it running.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub(crate) fn note_process(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        agent: u64,
        identity: String,
    ) -> Result<(), DriverError> {
        self.change(store, now, &[set(&process_key(agent), &identity)])?;
        self.processes.push((agent, identity));
        Ok(())
    }

    /// Remembers that the process of an agent has gone, and the session of its host that can go on.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub(crate) fn note_gone(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        agent: u64,
        session: Option<(&Dispatch, Session)>,
    ) -> Result<(), DriverError> {
        let mut changes = vec![PartChange::Clear { key: process_key(agent) }];
        let session = session.map(|(dispatch, session)| (session_key(dispatch), session));
        changes.extend(session.iter().map(|(key, session)| set(key, session)));
        self.change(store, now, &changes)?;
        self.processes.retain(|(number, _)| *number != agent);
        self.sessions.extend(session);
        Ok(())
    }

    /// Returns the session that an agent is to go on with, if it is known.
    pub(crate) fn session(&self, dispatch: &Dispatch) -> Option<&Session> {
        let session = self.sessions.get(&session_key(dispatch));
        session.filter(|session| Some(session.agent) == dispatch.resume)
    }

    /// Changes parts that are no business of the machine's.
    fn change(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        changes: &[PartChange],
    ) -> Result<(), DriverError> {
        for _ in 0..TRIES_MAX {
            let mut step = self.step(now);
            step.parts.extend_from_slice(changes);
            if self.commit(store, step)? {
                return Ok(());
            }
            self.catch_up(store)?;
        }
        Err(DriverError::Contended)
    }

    /// Remembers that an effect was performed; the next step records it.
    pub(crate) fn performed(&mut self, key: String) {
        self.done.push(key);
    }

    /// Returns whether an effect was performed and only the record of it is missing.
    pub(crate) fn was_performed(&self, key: &str) -> bool {
        self.done.iter().any(|done| done == key)
    }

    /// Records what was performed.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub(crate) fn flush(&mut self, store: &dyn Store) -> Result<(), DriverError> {
        if !self.done.is_empty() {
            let closed = store.effects_done(&self.id, self.fence, &self.done);
            closed.map_err(DriverError::from_commit)?;
            self.done.clear();
        }
        Ok(())
    }

    /// Writes a step. Returns whether nobody else was first.
    fn commit(&mut self, store: &dyn Store, mut step: Step) -> Result<bool, DriverError> {
        step.done.clone_from(&self.done);
        match store.commit(&step) {
            Ok(committed) => {
                self.revision = committed.revision;
                self.done.clear();
                Ok(true)
            }
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(DriverError::from_commit(error)),
        }
    }

    fn step(&self, now: Timestamp) -> Step {
        let run = self.state.run();
        let record = RunRecord {
            project: self.project.clone(),
            session: None,
            machine: NAME.to_owned(),
            driver: self.driver,
            title: run.title.clone(),
            active: run.ending.is_none(),
            state: stored::encode(run),
        };
        let mut step = Step::new(self.id.clone(), self.revision, record, now);
        step.fence = self.fence;
        step
    }
}

/// Sorted by key, tasks are in the plan's order.
fn task_key(no: usize) -> String {
    format!("{TASK}{no:08}")
}

fn process_key(agent: u64) -> String {
    format!("{PROCESS}{agent}")
}

/// No role's name holds a slash, so keys differ whatever tasks are called.
fn session_key(dispatch: &Dispatch) -> String {
    let task = dispatch.task.as_deref().unwrap_or_default();
    format!("{SESSION}{}/{task}", dispatch.role.as_str())
}

fn set(key: &str, value: &impl Serialize) -> PartChange {
    PartChange::Set { key: key.to_owned(), body: serde_json::to_string(value).unwrap_or_default() }
}

fn read<T: DeserializeOwned>(body: &str) -> Result<T, String> {
    serde_json::from_str(body).map_err(|error| error.to_string())
}
