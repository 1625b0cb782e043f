//! Drives the phases machine: decide, commit, then act.
//!
//! Everything that changes a run goes through [`Driver::advance`] or `Driver::create`: the machine
//! takes the event, one transaction keeps the event, the new state, the decision and the effects,
//! and only then the caller performs them.
//!
//! Public so that the simulator and programs with a store of their own take the very same steps.

use std::fmt;

use aldis_machine::Decision;
use aldis_machine::phases::{Effect, Event, Outcome, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Driver as DrivenBy, NewEffect, Revision, Run, RunFilter, RunId, Step, Store,
    StoreError, Turn,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::engine::stored::{self, Machine as _};
use crate::settings::project::{self, Place};
use crate::settings::secret;

/// How often a step is tried again because somebody else was first.
const TRIES_MAX: usize = 32;

/// How a run came to be: the first event of its journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Origin {
    /// Somebody started it.
    Start(Box<Start>),
    /// A state file told of it.
    Adopt {
        /// What the file said.
        state: Box<State>,
    },
}

impl Origin {
    /// Returns the state in which the run begins.
    pub fn state(self, now: Timestamp) -> State {
        match self {
            Self::Start(start) => State::start(now, *start),
            Self::Adopt { state } => *state,
        }
    }
}

/// A run and what its machine knows.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The run as it is stored.
    pub run: Run,
    /// Its state, understood.
    pub state: State,
}

/// What one step came to.
#[derive(Debug)]
pub struct Stepped {
    /// Whose step it was.
    pub run: RunId,
    /// The project it works on.
    pub project: String,
    /// The run's revision after the step; as before when nothing was written.
    pub revision: Revision,
    /// The state after the step.
    pub state: State,
    /// What must now be done, and why.
    pub outcome: Outcome,
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The event was delivered before.
    #[error("the event was delivered before")]
    Duplicate,
    /// Others were always first.
    #[error("too many processes change the run at once")]
    Contended,
    /// What is stored cannot be understood.
    #[error("run {run} is stored in a form this version does not know ({detail})")]
    Unreadable {
        /// Which run.
        run: RunId,
        /// What is wrong.
        detail: String,
    },
    /// The system gave no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// The machine with its store and its clock.
#[derive(Clone, Copy)]
pub struct Driver<'s> {
    /// Where runs are kept.
    pub store: &'s dyn Store,
    /// When the step is taken.
    pub now: Timestamp,
}

impl fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'s> Driver<'s> {
    /// Waits until nobody else changes the runs of this project. The turn of a run would not do:
    /// there may be none yet, and the project has one state file.
    pub(crate) fn turn(&self, project: &str) -> Result<Box<dyn Turn + 's>, DriverError> {
        let digest = Sha256::digest(project.as_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        // Hexadecimal digits can always name a run.
        let id = RunId::new(name).map_err(|_| DriverError::Contended)?;
        Ok(self.store.turn(&id)?)
    }

    /// Returns the live run that this session or place belongs to: the session's own before any
    /// other, the nearest before the farther.
    pub(crate) fn live(
        &self,
        place: &Place,
        session: Option<&str>,
    ) -> Result<Option<Loaded>, DriverError> {
        let around: Vec<String> = place.around().map(project::name).collect();
        self.live_in(&around, session)
    }

    /// Returns the live run of this session, else that of the first of these projects that has one.
    ///
    /// # Errors
    ///
    /// Fails if the store does, or if what it has cannot be understood.
    pub fn live_in(
        &self,
        projects: &[String],
        session: Option<&str>,
    ) -> Result<Option<Loaded>, DriverError> {
        if let Some(session) = session {
            let bound = RunFilter { session: Some(session.to_owned()), ..active(1) };
            if let Some(bound) = self.store.loaded(&bound)?.into_iter().next() {
                return load(bound.run).map(Some);
            }
        }
        let runs =
            self.store.loaded(&RunFilter { projects: projects.to_vec(), ..active(usize::MAX) })?;
        let distance = |run: &Run| projects.iter().position(|name| *name == run.record.project);
        runs.into_iter().map(|it| it.run).min_by_key(distance).map(load).transpose()
    }

    /// Returns the latest run of exactly this project, ended or not.
    ///
    /// # Errors
    ///
    /// As [`live_in`](Self::live_in).
    pub fn latest(&self, project: &str) -> Result<Option<Loaded>, DriverError> {
        let projects = vec![project.to_owned()];
        let filter = RunFilter { projects, machine: machine(), limit: 1, ..RunFilter::default() };
        self.store.loaded(&filter)?.into_iter().next().map(|it| load(it.run)).transpose()
    }

    /// Begins a run, and takes its first event with it where there is one.
    pub(crate) fn create(
        &self,
        project: &str,
        origin: &Origin,
        event: Option<&Event>,
    ) -> Result<Stepped, DriverError> {
        for _ in 0..TRIES_MAX {
            let run = secret::run_id().map_err(DriverError::Random)?;
            match self.create_as(&run, project, origin, event) {
                // Another run has that name.
                Err(DriverError::Contended) => {}
                result => return result,
            }
        }
        Err(DriverError::Contended)
    }

    /// Begins a run under a name that the caller chose.
    ///
    /// # Errors
    ///
    /// [`DriverError::Contended`] if the name is taken, and what the store says.
    pub fn create_as(
        &self,
        run: &RunId,
        project: &str,
        origin: &Origin,
        event: Option<&Event>,
    ) -> Result<Stepped, DriverError> {
        let mut state = origin.clone().state(self.now);
        let outcome = match event {
            Some(event) => state.on_event(self.now, event),
            None => Outcome::decided([Effect::WriteView], begun(&state)),
        };
        let mut step =
            self.step(run.clone(), Revision(0), (project, DrivenBy::Hook), &state, &outcome);
        step.events.push(stored::event(origin, None, self.now));
        step.events.extend(event.map(|event| stored::event(event, None, self.now)));
        let committed = self.store.commit(&step).map_err(DriverError::from_commit)?;
        let (run, project) = (run.clone(), project.to_owned());
        Ok(Stepped { run, project, revision: committed.revision, state, outcome })
    }

    /// Lets a run take an event. Nothing is written for an event that is none of its business.
    ///
    /// # Errors
    ///
    /// [`DriverError::Duplicate`] if the source is known, [`DriverError::Contended`] if others were
    /// always first, and what the store says: whether the step is there is unknown then.
    pub fn advance(
        &self,
        loaded: Loaded,
        event: &Event,
        source: Option<&str>,
    ) -> Result<Stepped, DriverError> {
        let Loaded { mut run, mut state } = loaded;
        for _ in 0..TRIES_MAX {
            let outcome = state.on_event(self.now, event);
            let project = run.record.project.clone();
            if outcome.decisions.is_empty() {
                return Ok(Stepped {
                    run: run.id,
                    project,
                    revision: run.revision,
                    state,
                    outcome,
                });
            }
            let driven = (&*project, run.record.driver);
            let mut step = self.step(run.id.clone(), run.revision, driven, &state, &outcome);
            step.events.push(stored::event(event, source, self.now));
            match self.store.commit(&step) {
                Ok(committed) => {
                    let revision = committed.revision;
                    return Ok(Stepped { run: run.id, project, revision, state, outcome });
                }
                Err(CommitError::Conflict { .. }) => {
                    let again = self.store.run(&run.id)?;
                    let again = again.map(load).transpose()?.ok_or(DriverError::Contended)?;
                    (run, state) = (again.run, again.state);
                }
                Err(error) => return Err(DriverError::from_commit(error)),
            }
        }
        Err(DriverError::Contended)
    }

    fn step(
        &self,
        run: RunId,
        expected: Revision,
        (project, driver): (&str, DrivenBy),
        state: &State,
        outcome: &Outcome,
    ) -> Step {
        let mut step = stored::step(run, expected, (project, driver), state, self.now);
        let decided = outcome.decisions.iter();
        step.decisions.extend(decided.map(|decision| stored::decision(decision, self.now)));
        if outcome.effects.contains(&Effect::WriteView) {
            // The new view replaces whatever an earlier step wanted written. Of the very first one
            // it must stay known whether it was: see `state_file::was_written`.
            if expected != Revision(1) || state.adopted {
                step.done.push(view_key(&step.run, expected));
            }
            step.effects.push(NewEffect {
                key: view_key(&step.run, Revision(expected.0 + 1)),
                kind: "view".to_owned(),
                body: serde_json::json!({ "project": project }).to_string(),
                due: self.now,
                lane: String::new(),
                requires: Vec::new(),
            });
        }
        step
    }
}

/// Returns the key under which a step's view is written.
pub fn view_key(run: &RunId, revision: Revision) -> String {
    format!("{run}/view/{revision}")
}

/// Reads what is stored about a run.
///
/// # Errors
///
/// [`DriverError::Unreadable`] if another version wrote it, or if it is damaged.
pub fn load(run: Run) -> Result<Loaded, DriverError> {
    let state = stored::state(&run)?;
    Ok(Loaded { run, state })
}

fn active(limit: usize) -> RunFilter {
    RunFilter { machine: machine(), active: Some(true), limit, ..RunFilter::default() }
}

fn machine() -> Option<String> {
    Some(State::NAME.to_owned())
}

/// Returns the decision with which a run begins that somebody started.
pub fn begun(state: &State) -> Decision {
    aldis_machine::phases::started(state)
}

impl DriverError {
    /// Says why a step was refused.
    pub(crate) fn from_commit(error: CommitError) -> Self {
        match error {
            CommitError::Duplicate { .. } => Self::Duplicate,
            CommitError::Store(error) => Self::Store(error),
            _ => Self::Contended,
        }
    }
}
