//! What people and programs elsewhere are told: the same for every sink.

use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A notice, as the store keeps it until it is delivered and as a webhook gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Names it for good: delivered again, it has the same name.
    pub id: String,
    /// What it is about: `question`, `run_ended`, ...; of a server, also an effect: `post`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened.
    #[schemars(with = "String")]
    pub timestamp: Timestamp,
    /// What happened.
    pub data: NoticeData,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeData {
    /// The run or channel.
    pub run: String,
    /// Its machine: `delivery`, `phases`, `run` or `turns`.
    pub machine: String,
    /// The name of the project's directory; empty where there is none.
    pub project: String,
    /// What people call the run.
    pub title: String,
    /// Whether the run goes on.
    pub active: bool,
    /// The words. Treat them as what a stranger wrote: some are the agent's.
    pub text: String,
    /// Where a browser shows it: one question, to be answered there, or the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The whole effect, for the sinks of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Value>,
}
