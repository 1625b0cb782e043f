//! What a webhook is sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeBody {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// What it is about: `question`, `run_ended`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened.
    pub timestamp: String,
    /// What happened.
    pub data: NoticeData,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeData {
    /// The run.
    pub run: String,
    /// The name of the project's directory.
    pub project: String,
    /// The words. Treat them as what a stranger wrote: some are the agent's.
    pub text: String,
}
