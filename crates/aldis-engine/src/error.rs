//! Why a step was not taken.

use aldis_machine::{NotPossible, StartError};
use aldis_store::{CommitError, Driver, RunId, StoreError};

use crate::ids::RandomError;

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The request cannot be meant.
    #[error("{0}")]
    Invalid(String),
    /// A human's command means nothing to the run as it stands.
    #[error(transparent)]
    NotPossible(#[from] NotPossible),
    /// There is no such machine.
    #[error("there is no machine `{0}`; there are {names}", names = crate::MACHINES.join(", "))]
    NoSuchMachine(String),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// The name is taken.
    #[error("run `{0}` already exists")]
    Exists(RunId),
    /// The run takes its steps from somebody else.
    #[error("run `{run}` is driven by {driver}; it takes commands, but no events from outside")]
    DrivenElsewhere {
        /// Which run.
        run: RunId,
        /// By whom.
        driver: &'static str,
    },
    /// The key of the request was used for another request.
    #[error("this Idempotency-Key was already used for another request")]
    KeyReused,
    /// Another process has taken the run over.
    #[error("another process has taken over run `{0}`")]
    Fenced(RunId),
    /// This delivery has been taken before; [`Engine::answered`](crate::Engine::answered) says what
    /// came of it.
    #[error("run `{0}` has already handled this request")]
    Repeated(RunId),
    /// Others were always first.
    #[error("run `{0}` is being changed by too many processes; try again")]
    Contended(RunId),
    /// What is stored cannot be understood.
    #[error("run `{run}` is stored in a form that this version does not know: {detail}")]
    Unreadable {
        /// Which run.
        run: RunId,
        /// What is wrong.
        detail: String,
    },
    /// What is to be stored cannot be written.
    #[error("writing the state of run `{run}`: {error}")]
    Unwritable {
        /// Which run.
        run: RunId,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The operating system returned no random bytes.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// The store failed. Whether a step was written is unknown.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EngineError {
    /// Says why a commit was refused, for whoever cannot try again.
    pub(crate) fn from_commit(run: &RunId, error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => Self::Store(error),
            CommitError::NoSuchRun { .. } => Self::NoSuchRun(run.clone()),
            CommitError::Fenced { .. } => Self::Fenced(run.clone()),
            _ => Self::Contended(run.clone()),
        }
    }

    pub(crate) fn driven_elsewhere(run: &RunId, driver: Driver) -> Self {
        let driver = match driver {
            Driver::Hook => "a host's hook",
            Driver::Process => "a process of its own",
            Driver::Server => "a server",
            Driver::Worker => "workers",
        };
        Self::DrivenElsewhere { run: run.clone(), driver }
    }
}

impl From<StartError> for EngineError {
    fn from(error: StartError) -> Self {
        Self::Invalid(error.to_string())
    }
}
