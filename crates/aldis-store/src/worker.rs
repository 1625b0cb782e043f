//! The registry of workers: who offers to run agents, and whether it still does.

use std::time::Duration;

use aldis_signal::time::Timestamp;

/// How long a worker that is gone stays in the registry, so that people can see that it is.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A worker as it announced itself last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Its name, unique in the store.
    pub name: String,
    /// What it says about itself, as JSON.
    pub body: String,
    /// When it announced itself last.
    pub seen: Timestamp,
    /// Until when that holds: a worker that is not heard of any more is taken to be gone then.
    pub until: Timestamp,
}
