//! A run as it was read once: the model of every view.

use aldis_machine::{Machine, delivery, phases, run, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{Loaded, Run, RunFilter, RunId, RunRecord, StoreError};

use crate::any::AnyHandle;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::handle::Handle;

/// The key of the driver's note that says how the agents of a run are started now.
pub const LAUNCH: &str = "launch";

/// A run, read once. Whatever is shown of it comes from here, so that every view says the same.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The run as it is stored: name, project, driver, title, times, lease.
    pub run: Run,
    /// What its machine knows.
    pub state: State,
    /// How its agents are started, in the driver's own form, where the driver keeps that beside the state.
    pub launch: Option<String>,
    /// Whether the lease in `run` was read, too: a handle knows nothing of leases.
    pub lease_read: bool,
}

/// What a run's machine knows. Exhaustive: each is shown in its own way.
#[derive(Clone, Debug)]
pub enum State {
    /// A plan that is delivered.
    Delivery(Box<delivery::State>),
    /// Phases under a Stop hook.
    Phases(Box<phases::State>),
    /// A supervised agent.
    Run(Box<run::State>),
    /// A channel in which agents take turns.
    Turns(Box<turns::State>),
    /// What is stored cannot be understood, and why.
    Unreadable(String),
}

/// A question that waits for a human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its name in its run.
    pub id: String,
    /// The task it is about, where there are several.
    pub task: Option<String>,
    /// The question, with all that was said about it.
    pub text: String,
    /// Answers that are suggested, or mean something of their own.
    pub options: Vec<String>,
    /// What whoever asks would do without an answer.
    pub default: Option<String>,
    /// When it was asked.
    pub asked_at: Timestamp,
}

impl OpenQuestion {
    /// Says in one line which answers are suggested, if any are.
    pub fn suggestion(&self) -> Option<String> {
        run::suggestion(&self.options, self.default.as_deref())
    }
}

/// The question of a machine that asks one at a time.
fn single(asked: &run::Question) -> OpenQuestion {
    OpenQuestion {
        id: asked.id.clone(),
        task: None,
        text: asked.text.clone(),
        options: asked.options.clone(),
        default: asked.default.clone(),
        asked_at: asked.asked_at,
    }
}

/// What was read.
impl From<Loaded> for Snapshot {
    fn from(loaded: Loaded) -> Self {
        let mut run = loaded.run.clone();
        // It is here in a form that can be understood.
        run.record.state.clear();
        let launch = loaded.parts.iter().find(|part| part.key == LAUNCH);
        let launch = launch.map(|part| part.body.clone());
        let state = match AnyHandle::from_stored(loaded) {
            Ok(AnyHandle::Delivery(handle)) => State::Delivery(Box::new(handle.into_state())),
            Ok(AnyHandle::Phases(handle)) => State::Phases(Box::new(handle.into_state())),
            Ok(AnyHandle::Run(handle)) => State::Run(Box::new(handle.into_state())),
            Ok(AnyHandle::Turns(handle)) => State::Turns(Box::new(handle.into_state())),
            Err(EngineError::Unreadable { detail, .. }) => State::Unreadable(detail),
            Err(error) => State::Unreadable(error.to_string()),
        };
        Self { run, state, launch, lease_read: true }
    }
}

/// What a handle knows. Of leases it knows nothing, nor how many events there are.
impl From<&AnyHandle> for Snapshot {
    fn from(handle: &AnyHandle) -> Self {
        match handle {
            AnyHandle::Delivery(handle) => known(handle, State::Delivery),
            AnyHandle::Phases(handle) => known(handle, State::Phases),
            AnyHandle::Run(handle) => known(handle, State::Run),
            AnyHandle::Turns(handle) => known(handle, State::Turns),
        }
    }
}

fn known<M: Machine>(handle: &Handle<M>, state: impl FnOnce(Box<M>) -> State) -> Snapshot {
    let summary = handle.state().summary();
    let record = RunRecord {
        project: handle.project().to_owned(),
        session: summary.session.map(str::to_owned),
        machine: M::NAME.to_owned(),
        driver: handle.driver(),
        title: summary.title.to_owned(),
        active: summary.active,
        state: String::new(),
    };
    let run = Run {
        id: handle.id().clone(),
        revision: handle.revision(),
        last_event: 0,
        created: handle.created(),
        updated: handle.updated(),
        fence: 0,
        lease: None,
        record,
    };
    let launch = handle.note::<serde_json::Value>(LAUNCH).ok().flatten();
    let launch = launch.map(|launch| launch.to_string());
    Snapshot { run, state: state(Box::new(handle.state().clone())), launch, lease_read: false }
}

impl Snapshot {
    /// Returns the run's name.
    pub fn id(&self) -> &RunId {
        &self.run.id
    }

    /// Returns the questions that wait for a human, the oldest first.
    pub fn questions(&self) -> Vec<OpenQuestion> {
        let mut questions: Vec<OpenQuestion> = match &self.state {
            State::Run(state) => state.question().map(single).into_iter().collect(),
            State::Phases(state) => state.question().map(single).into_iter().collect(),
            State::Delivery(state) if state.takes_answers() => {
                let asked = state.run().questions.iter();
                asked
                    .map(|(id, asked)| OpenQuestion {
                        id: id.clone(),
                        task: state.task_of(asked.about).map(|task| task.spec.id.clone()),
                        text: asked.text.clone(),
                        options: asked.options.clone(),
                        default: None,
                        asked_at: asked.asked_at,
                    })
                    .collect()
            }
            State::Delivery(_) | State::Turns(_) | State::Unreadable(_) => Vec::new(),
        };
        // `q10` was asked after `q9`.
        questions.sort_by_cached_key(|it| (it.asked_at, it.id.len(), it.id.clone()));
        questions
    }
}

impl Engine {
    /// Reads a run.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn snapshot(&self, id: &RunId) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.store().load(id)?.map(Snapshot::from))
    }

    /// Reads the runs that pass a filter, the latest created first.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn snapshots(&self, filter: &RunFilter) -> Result<Vec<Snapshot>, StoreError> {
        Ok(self.store().loaded(filter)?.into_iter().map(Snapshot::from).collect())
    }
}
