//! What a worker says about itself in the registry. Stored as it is, under a version of its own.

use aldis_machine::delivery::Role;
use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A worker, as it announces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnnouncedWorker {
    /// The version of this form.
    pub(crate) v: u32,
    /// The machine it is on.
    pub(crate) machine: String,
    /// How many agents it runs at the same time.
    pub(crate) slots: usize,
    /// What its agents find there.
    pub(crate) labels: Vec<String>,
    /// The roles whose agents it runs; all where there are none.
    pub(crate) roles: Vec<Role>,
    /// Whether it takes more agents.
    pub(crate) state: WorkerState,
    /// When it was started.
    pub(crate) started: Timestamp,
    /// What it runs.
    pub(crate) agents: Vec<AnnouncedAgent>,
}

/// Whether a worker takes more agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerState {
    /// It does.
    Ready,
    /// It leaves once those at work have finished.
    Draining,
}

/// An agent that a worker runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnnouncedAgent {
    /// The delivery.
    pub(crate) run: String,
    /// The agent's number in it.
    pub(crate) agent: u64,
    /// What it is for.
    pub(crate) role: Role,
    /// The task it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// Since when.
    pub(crate) since: Timestamp,
}
