//! What `postmortem` says to programs about one session; people's sentences are made from it, too.

use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line of `postmortem --json`: one session, the worst first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostmortemLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `postmortem`.
    #[schemars(extend("const" = "postmortem"))]
    pub kind: String,
    /// The host, as people call it; where it is not known, the form of the file.
    pub host: String,
    /// The host's name for the session.
    pub session: Option<String>,
    /// The file.
    pub file: String,
    /// Where the agent worked.
    pub directory: Option<String>,
    /// The first words of the first prompt.
    pub asked: Option<String>,
    /// The last words of the agent.
    pub said: Option<String>,
    /// The first moment in the window that was asked for.
    #[schemars(with = "Option<String>")]
    pub began: Option<Timestamp>,
    /// The last one.
    #[schemars(with = "Option<String>")]
    pub ended: Option<Timestamp>,
    /// How long the agent waited for people and limits.
    pub waited_seconds: u64,
    /// Prompts.
    pub prompts: u64,
    /// Calls of tools, those of sub-agents too.
    pub tools: u64,
    /// Files that the agent wrote with its tools.
    pub files_written: u64,
    /// Tokens, as far as the host tells.
    pub tokens: u64,
    /// The price in dollars; `null` where the host names none.
    pub dollars: Option<f64>,
    /// How often the host replaced the conversation by a summary.
    pub compactions: u64,
    /// How often the host met an error and tried again by itself.
    pub retries: u64,
    /// Lines that could not be read.
    pub skipped_lines: u64,
    /// Claims that the work is done, with what the checks before them say. At most 100 of each verdict.
    pub claims: Vec<JudgedClaim>,
    /// How many claims there are of each verdict, those that are not listed too.
    #[serde(default)]
    pub claim_counts: ClaimCounts,
    /// What somebody should look at, the worst first. At most 100 of each kind.
    pub findings: Vec<Incident>,
    /// How many findings there are beside those that are listed.
    #[serde(default)]
    pub findings_unlisted: u64,
    /// Waits of a minute or more. At most 100, the longest.
    #[serde(default)]
    pub waits: Vec<Waited>,
}

/// How many claims there are, by what the checks before them say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimCounts {
    /// A check had failed.
    pub contradicted: u64,
    /// There was no check.
    pub unchecked: u64,
    /// Files were written after the checks.
    pub outdated: u64,
    /// The checks had passed.
    pub confirmed: u64,
}

impl ClaimCounts {
    /// Counts a claim, and returns how many there are now of this verdict.
    pub(crate) fn add(&mut self, verdict: ClaimVerdict) -> u64 {
        let count = match verdict {
            ClaimVerdict::Contradicted => &mut self.contradicted,
            ClaimVerdict::Unchecked => &mut self.unchecked,
            ClaimVerdict::Outdated => &mut self.outdated,
            ClaimVerdict::Confirmed => &mut self.confirmed,
        };
        *count += 1;
        *count
    }
}

/// A time in which the agent waited for people or limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waited {
    /// Since when.
    #[schemars(with = "String")]
    pub from: Timestamp,
    /// Until when.
    #[schemars(with = "String")]
    pub until: Timestamp,
}

/// The agent says that the work is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedClaim {
    /// The line of the file.
    pub line: u64,
    /// When.
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    /// The signal and what it is about, or the tool that was called.
    pub words: String,
    /// What the checks say about it.
    pub verdict: ClaimVerdict,
    /// The check that decided.
    pub check: Option<Check>,
}

/// What the checks before a claim say about it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// The last run of a test, build or lint command before it failed.
    Contradicted,
    /// No such command was run before it.
    Unchecked,
    /// The last ones passed, but files were written since.
    Outdated,
    /// The last ones passed, and no tool wrote a file since.
    Confirmed,
}

/// One run of a test, build or lint command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The command as it was run.
    pub command: String,
    /// Whether it passed.
    pub passed: bool,
    /// Its exit code, where the host tells; a pipe or a list hides it.
    pub exit: Option<i64>,
    /// The line of the file.
    pub line: u64,
    /// When it ended.
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    /// Whether files were written afterwards.
    pub outdated: bool,
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Incident {
    /// What it is.
    pub kind: IncidentKind,
    /// Whether it is a failure: the work stopped there or is not what it was said to be.
    pub failure: bool,
    /// The line of the file.
    pub line: u64,
    /// When.
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    /// The command, the tool and what it was for, or the host's words.
    pub what: String,
    /// The exit code, where there is one.
    pub exit: Option<i64>,
    /// How long it took or was waited for.
    pub seconds: Option<u64>,
    /// When the service works again, where the host says so.
    #[schemars(with = "Option<String>")]
    pub until: Option<Timestamp>,
    /// How often it happened; `line` and `at` are those of the first time.
    pub count: u64,
}

/// What can have happened, the worst first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// The session ended with an error of the service or the host.
    Error,
    /// A rate or usage limit; the session ended there if it is a failure.
    Limit,
    /// The session ended while a check failed, without a claim.
    FailingCheck,
    /// The session ended in the middle of a call.
    Unanswered,
    /// The session ended when somebody interrupted it.
    Interrupted,
    /// A permission was denied.
    Denied,
    /// The agent waited for a permission.
    PermissionWait,
    /// The agent waited for the answer to a question.
    QuestionWait,
    /// A call took long: it ran, or it waited for a permission. The host does not tell which.
    LongCall,
}
