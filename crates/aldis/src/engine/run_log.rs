//! A supervised run in its store, for whoever performs its effects: the simulator does.

use aldis_machine::run::{Event, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Run, RunId, Store};

use crate::coordinate::running;
use crate::engine::driver::DriverError;
use crate::engine::journal::Open;

/// A run as one process knows it.
#[derive(Clone, Debug)]
pub struct RunLog(Open<State>);

impl RunLog {
    /// Begins a run.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn create(
        store: &dyn Store,
        now: Timestamp,
        project: &str,
        start: Start,
    ) -> Result<Self, DriverError> {
        let state = State::start(now, start.clone());
        Open::create(store, now, project, &start, state).map(Self)
    }

    /// Reads a run.
    ///
    /// # Errors
    ///
    /// Fails if this version does not know the form.
    pub fn load(run: Run) -> Result<Self, DriverError> {
        Open::load(run).map(Self)
    }

    /// Returns the run's name.
    pub fn id(&self) -> &RunId {
        &self.0.id
    }

    /// Returns what is known.
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// Lets the machine take an event. Returns whether a step was written: then effects may be due.
    ///
    /// # Errors
    ///
    /// Fails if the store does. Whether the step is there is then unknown.
    pub fn advance(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        event: Event,
    ) -> Result<bool, DriverError> {
        self.0.advance(store, now, event)
    }

    /// Takes over what somebody else decided since, if anybody did. Returns whether.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn refresh(&mut self, store: &dyn Store, now: Timestamp) -> Result<bool, DriverError> {
        let stored = store.run(&self.0.id)?;
        let behind = stored.is_some_and(|run| run.revision != self.0.revision);
        if behind {
            self.0.refresh(store, now)?;
        }
        Ok(behind)
    }

    /// Forgets what a supervisor that has gone was about to do with its agent.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn forget_hands(&self, store: &dyn Store) -> Result<(), DriverError> {
        running::forget_hands(store, &self.0.id, self.0.fence)
    }
}
