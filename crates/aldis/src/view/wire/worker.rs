//! Workers, as programs read of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A worker: a line of `aldis worker list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// What it is called.
    pub name: String,
    /// The machine it is on.
    pub machine: String,
    /// `ready`, `draining` while it takes no more agents, or `gone` when it was not heard of in time.
    pub state: String,
    /// How many agents it runs at the same time.
    pub slots: usize,
    /// What agents find there.
    pub labels: Vec<String>,
    /// The roles whose agents it runs; all where there are none.
    pub roles: Vec<String>,
    /// When it was started, in RFC 3339.
    pub started: String,
    /// When it was heard of last, in RFC 3339.
    pub seen: String,
    /// What it runs; what it ran last, if it is gone.
    pub agents: Vec<WorkerAgent>,
}

/// An agent that a worker runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerAgent {
    /// The delivery.
    pub run: String,
    /// The agent's number in it.
    pub agent: u64,
    /// What it is for.
    pub role: String,
    /// The task it works on, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Since when, in RFC 3339.
    pub since: String,
}
