//! What a second opinion is asked, and how it answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::receipt::{ReceiptChange, ReceiptCheck};

/// What `[proof] judge` reads from standard input: one JSON document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeQuestion {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `judge`.
    #[schemars(extend("const" = "judge"))]
    pub kind: String,
    /// The run.
    pub run: String,
    /// What was asked of the agent, without secrets.
    pub task: String,
    /// What the agent claims, as a clause.
    pub claim: String,
    /// The project, which is also the working directory.
    pub project: String,
    /// The commit that is judged; `null` without git.
    pub commit: Option<String>,
    /// The checks, which have all passed.
    pub checks: Vec<JudgedCheck>,
    /// Pinned files that are not what they were.
    pub changes: Vec<ReceiptChange>,
    /// The last tools that the agent used and what they printed, oldest first; empty where the host
    /// writes no transcript.
    pub tool_results: Vec<JudgedTool>,
}

/// A check with the end of what it printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedCheck {
    /// The check.
    #[serde(flatten)]
    pub check: ReceiptCheck,
    /// The end of what it printed, without secrets.
    pub output: String,
}

/// A tool that the agent used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedTool {
    /// The tool, as the host calls it.
    pub tool: String,
    /// The command, path or question.
    pub what: String,
    /// Whether the host reports an error.
    pub failed: bool,
    /// The exit code of a command, where the host tells.
    pub exit_code: Option<i64>,
    /// The end of what it printed, without secrets.
    pub output: String,
}

/// What `[proof] judge` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeAnswer {
    /// `accept` or `refuse`. Accepting alone proves nothing: the checks have the last word.
    pub verdict: JudgeWord,
    /// Why.
    pub reason: String,
    /// What it cost, in dollars.
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

/// The verdict of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeWord {
    /// It has nothing against the claim.
    Accept,
    /// It is against the claim.
    Refuse,
}
