//! What happened in a run, as programs read it: `report --json`.

use std::collections::BTreeMap;

use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::DecisionForm;
use super::task::TaskLine;

/// What happened in a run. What a machine has none of is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `report`.
    #[schemars(extend("const" = "report"))]
    pub kind: String,
    /// The run.
    pub run: String,
    /// Which machine drives it: `run`, `delivery`, `phases` or `turns`.
    pub machine: String,
    /// The project's directory.
    pub project: String,
    /// What people call it.
    pub title: String,
    /// What was asked for, in full.
    pub asked: String,
    /// How it is, in one line for people.
    pub outcome: String,
    /// How good that is: `good`, `neutral`, `warn` or `bad`.
    pub tone: String,
    /// Whether it goes on.
    pub active: bool,
    /// The last claim that did not count, and why, unless it ended well.
    pub refused: Option<String>,
    /// What a human can do about it.
    pub next: Option<String>,
    /// When it began.
    #[schemars(with = "String")]
    pub began: Timestamp,
    /// When the last thing happened in it.
    #[schemars(with = "String")]
    pub ended: Timestamp,
    /// How many seconds of it somebody worked, as far as that is known.
    pub worked_seconds: u64,
    /// How many seconds of it were waits: limits, crashes, questions, pauses.
    pub waited_seconds: u64,
    /// How many iterations a supervised run or a phase took.
    pub iterations: Option<u32>,
    /// Tokens in and out, as far as hosts report them.
    pub tokens: u64,
    /// Millionths of a dollar, as far as hosts report them.
    pub micro_dollars: u64,
    /// The tasks of a delivery.
    pub tasks: Vec<TaskLine>,
    /// Who worked, in the order of their starts.
    pub agents: Vec<ReportAgent>,
    /// Claims, and what became of each.
    pub claims: Vec<ReportClaim>,
    /// Questions, and their answers.
    pub questions: Vec<ReportQuestion>,
    /// What was waited for.
    pub waits: Vec<ReportWait>,
    /// Commits in the project's repository since the run began, the newest first.
    pub commits: Vec<ReportCommit>,
    /// Files that changed since then, committed or not.
    pub files: Vec<ReportFile>,
    /// How many receipts it has; `aldis proof show RUN` shows them.
    #[serde(default)]
    pub receipts: u64,
    /// Decisions that matter, oldest first; `aldis why RUN --all` has all of them.
    pub decisions: Vec<DecisionForm>,
}

/// What one agent did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportAgent {
    /// Its number; a run with one agent has none.
    pub agent: Option<u64>,
    /// Its role in a delivery.
    pub role: Option<String>,
    /// Its task in a delivery.
    pub task: Option<String>,
    /// How often it used which tool.
    pub tools: BTreeMap<String, u64>,
    /// How many of these calls failed.
    pub failed: u64,
    /// The last thing that it said.
    pub last_words: Option<String>,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimFate {
    /// It held.
    Held,
    /// It did not count.
    Refused,
    /// Nobody has judged it.
    Open,
}

/// Something that an agent claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportClaim {
    /// When it was made.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The task of a delivery.
    pub task: Option<String>,
    /// The agent's words.
    pub quote: String,
    /// How it came: `said`, `token`, `receipt` or `call`; empty where that is not known.
    pub via: String,
    /// What became of it.
    pub fate: ClaimFate,
    /// Why.
    pub because: String,
    /// The end of what the check printed, where one failed.
    pub output: Option<String>,
    /// The decision that says what became of it: its `seq`.
    #[serde(default)]
    pub decision: Option<u64>,
}

/// A question to a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportQuestion {
    /// Its id, while it is open.
    pub id: Option<String>,
    /// The task of a delivery.
    pub task: Option<String>,
    /// When it was asked.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The question.
    pub text: String,
    /// When it was answered.
    #[schemars(with = "Option<String>")]
    pub answered: Option<Timestamp>,
    /// The answer, where it is kept.
    pub answer: Option<String>,
}

/// Something that was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportWait {
    /// From when.
    #[schemars(with = "String")]
    pub from: Timestamp,
    /// Until when.
    #[schemars(with = "String")]
    pub until: Timestamp,
    /// The task of a delivery.
    pub task: Option<String>,
    /// What for.
    pub what: String,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportCommit {
    /// Its short id.
    pub id: String,
    /// When it was made.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The first line of its message.
    pub subject: String,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportFile {
    /// Where it is in the repository.
    pub path: String,
    /// How many lines were added; `null` for a file that is no text.
    pub added: Option<u64>,
    /// How many were removed.
    pub removed: Option<u64>,
}
