//! What reports by calls are answered, and the tokens by which some of them come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer to a report: of the tools of `aldis mcp`, and `aldis signal --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallReply {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Whether the report counts, as far as that is known before the agent stops.
    pub accepted: bool,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The id of the report, by which a transcript vouches for it; missing where nothing was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The rule that refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do now.
    pub next: String,
}

/// A token: `aldis token new --json`, and a line of `aldis token list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// What it is called.
    pub id: String,
    /// What it may do: `signal`.
    pub scope: String,
    /// For which agent it was made.
    pub agent: String,
    /// For which run, if for one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Until when it is valid, in RFC 3339.
    pub expires: String,
    /// Whether it is valid now.
    pub valid: bool,
    /// The secret, said once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}
