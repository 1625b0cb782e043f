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
    /// The check of the claim, where one decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckForm>,
    /// What to do now.
    pub next: String,
}

/// The check of a claim that was made by a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckForm {
    /// `passed`, `failed`, `refused` because the work tree contradicts the claim, or `running`.
    pub status: String,
    /// The last lines that it printed, or what the work tree lacks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// A token: `aldis token new --json`, and a line of `aldis token list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// What it is called.
    pub id: String,
    /// What it may do: `observe`, `signal`, `work`, `coordinate` or `admin`.
    pub scope: String,
    /// For which agent it was made, if for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// For which run, if for one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// For which project; for every one where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Until when it is valid, in RFC 3339.
    pub expires: String,
    /// Whether it is valid now.
    pub valid: bool,
    /// The secret, said once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}
