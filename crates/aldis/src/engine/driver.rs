//! What is left of the old way to take steps, for those who still read or write its forms: the server's
//! machines and the replay of journals.

use aldis_machine::Decision;
use aldis_machine::phases::{Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{CommitError, Run, RunId, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::stored;

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
    /// Reads the first event of a journal, in the form of the engine or in the flat one of 0.1.0.
    ///
    /// # Errors
    ///
    /// Fails if it is neither.
    pub fn read(body: &str) -> Result<Self, serde_json::Error> {
        let mut event: Value = serde_json::from_str(body)?;
        match event.get_mut("start").map(Value::take) {
            Some(start) => serde_json::from_value(start).map(Self::Start),
            None => serde_json::from_value(event),
        }
    }

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

/// Reads what is stored about a run.
///
/// # Errors
///
/// [`DriverError::Unreadable`] if another version wrote it, or if it is damaged.
pub fn load(run: Run) -> Result<Loaded, DriverError> {
    let state = stored::state(&run)?;
    Ok(Loaded { run, state })
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
