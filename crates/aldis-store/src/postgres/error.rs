//! Sorts the errors of PostgreSQL into those that people can do something about.
//!
//! Messages are those of the server, never its details: these may hold what was written.

use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// Why a call failed.
#[derive(Debug)]
pub(super) enum CallError {
    /// No connection within the time.
    Pool(deadpool_postgres::PoolError),
    /// The database, or the connection to it.
    Database(tokio_postgres::Error),
    /// No answer in time.
    TimedOut,
    /// The store is closing.
    Closed,
}

impl CallError {
    /// Whether nothing was written for certain, and the same call may succeed now.
    pub(super) fn was_rolled_back(&self) -> bool {
        let Self::Database(error) = self else { return false };
        [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE]
            .iter()
            .any(|state| error.code() == Some(state))
    }

    /// Whether the connection broke, so that another one may work.
    pub(super) fn lost_connection(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_closed() || error.code().is_none())
    }

    pub(super) fn sort(&self, location: &str, doing: &'static str) -> StoreError {
        let location = location.to_owned();
        match self {
            Self::Pool(deadpool_postgres::PoolError::Backend(error)) | Self::Database(error) => {
                sort(error, location, doing)
            }
            Self::Pool(deadpool_postgres::PoolError::Timeout(kind)) => {
                let detail = match kind {
                    deadpool_postgres::TimeoutType::Wait => "all connections are in use",
                    _ => "the server does not answer",
                };
                StoreError::Unreachable { location, doing, detail: detail.to_owned() }
            }
            Self::Pool(error) => StoreError::Other { location, doing, detail: error.to_string() },
            Self::TimedOut => {
                let detail = "the server does not answer".to_owned();
                StoreError::Unreachable { location, doing, detail }
            }
            Self::Closed => {
                let detail = "the store is being closed".to_owned();
                StoreError::Other { location, doing, detail }
            }
        }
    }
}

fn sort(error: &tokio_postgres::Error, location: String, doing: &'static str) -> StoreError {
    let detail = message(error);
    let Some(state) = error.code() else {
        return StoreError::Unreachable { location, doing, detail };
    };
    if *state == SqlState::DISK_FULL {
        return StoreError::Full { location };
    }
    if [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE].contains(state) {
        return StoreError::NotAllowed { location, detail };
    }
    if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(state) {
        return StoreError::Corrupt { location, detail };
    }
    // Too many connections, shutting down, starting up, cancelled: the class says it.
    let class = &state.code()[..2];
    if ["08", "53", "57", "55"].contains(&class) {
        return StoreError::Unreachable { location, doing, detail };
    }
    StoreError::Other { location, doing, detail }
}

/// Returns what went wrong, without what was written.
fn message(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} ({})", error.message(), error.code().code());
    }
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words = format!("{words}: {cause_words}");
        }
        source = cause.source();
    }
    words
}
