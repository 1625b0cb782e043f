//! What `store prune` says to programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The line of `store prune --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PruneLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `prune`.
    #[schemars(extend("const" = "prune"))]
    pub kind: String,
    /// Whether nothing was deleted because only the plan was asked for.
    pub dry_run: bool,
    /// How many runs.
    pub runs: u64,
    /// How much of what agents wrote, in bytes.
    pub output_bytes: u64,
    /// How many work trees.
    pub worktrees: u64,
    /// Work trees that could not be removed, and why.
    pub kept: Vec<String>,
}
