//! A delivery in its store, for whoever performs its effects elsewhere.

use aldis_machine::delivery::{Event, Outcome, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{RunId, Store};

use crate::coordinate::delivering::book::Book;
use crate::engine::driver::DriverError;

/// A delivery as one process knows it.
#[derive(Debug)]
pub struct DeliveryLog(Book);

impl DeliveryLog {
    /// Begins a delivery.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn create(
        store: &dyn Store,
        now: Timestamp,
        project: &str,
        start: &Start,
    ) -> Result<Self, DriverError> {
        let state = State::start(now, start.clone());
        Book::create(store, now, project, start, state, String::new()).map(Self)
    }

    /// Reads a delivery.
    ///
    /// # Errors
    ///
    /// Fails if the store does, or if this version does not know the form.
    pub fn load(store: &dyn Store, run: &RunId) -> Result<Self, DriverError> {
        Book::load(store, run).map(Self)
    }

    /// Returns its name.
    pub fn id(&self) -> &RunId {
        &self.0.id
    }

    /// Returns what is known.
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// Lets the machine take an event, and keeps what came of it.
    ///
    /// # Errors
    ///
    /// Fails if the store does. Whether the step is there is then unknown.
    pub fn advance(
        &mut self,
        store: &dyn Store,
        now: Timestamp,
        event: &Event,
    ) -> Result<Outcome, DriverError> {
        self.0.advance(store, now, event)
    }
}
