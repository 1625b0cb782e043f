//! Taking whole runs from one store to another.

use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::record::{Decision, Effect, Event, Part, Run, Timer};
use crate::step::RunId;
use crate::store::Store;

/// A run with everything that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCopy {
    /// The run. A lease that somebody holds stays behind, its fencing number does not.
    pub run: Run,
    /// The parts of its state.
    pub parts: Vec<Part>,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// Its decisions, in order. Their positions are those of the store they come from.
    pub decisions: Vec<Decision>,
    /// Its effects, performed or not, in the order they were enqueued.
    pub effects: Vec<CopiedEffect>,
    /// Its timers.
    pub timers: Vec<Timer>,
}

/// An effect, and the fencing number of its last claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedEffect {
    /// The effect.
    pub effect: Effect,
    /// The fencing number.
    pub fence: u64,
}

impl RunCopy {
    /// Returns whether both say the same. Positions of decisions and leases belong to their store.
    pub fn is_same(&self, other: &Self) -> bool {
        let plain = |copy: &Self| {
            let mut copy = copy.clone();
            copy.run.lease = None;
            for decision in &mut copy.decisions {
                decision.cursor = Cursor::START;
            }
            copy
        };
        plain(self) == plain(other)
    }

    /// Returns whether this is what the other one was some steps ago.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.run.revision < other.run.revision
            && self.run.created == other.run.created
            && other.events.starts_with(&self.events)
    }
}

/// A store whose runs can be taken to another one.
pub trait Transfer: Store {
    /// Returns everything that is kept of a run, as of one moment.
    ///
    /// # Errors
    ///
    /// If the store fails, or others write to the run all the time.
    fn export(&self, run: &RunId) -> Result<Option<RunCopy>, StoreError>;

    /// Takes over a run, in place of one of that name if there is one: all of it or nothing.
    ///
    /// # Errors
    ///
    /// If the store fails, or one of its effects has the key of an effect of another run.
    fn import(&self, copy: &RunCopy) -> Result<(), StoreError>;
}
