//! The receipt of something that is done: what `proof show --json` prints and the state directory keeps.

use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A receipt as it is kept: one line of canonical JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SealedReceipt {
    /// HMAC-SHA256 of the line 'aldis receipt 1' and the receipt in its canonical form, in hexadecimal.
    pub mac: String,
    /// What it vouches for.
    pub receipt: Receipt,
}

/// What was done, and what that rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `receipt`.
    #[schemars(extend("const" = "receipt"))]
    pub kind: String,
    /// Which key signed it: a digest of the key.
    pub key: String,
    /// Its place among the receipts of the run, from 1.
    pub number: u64,
    /// The MAC of the receipt before it; `null` for the first.
    pub previous: Option<String>,
    /// The version of Aldis that wrote it.
    pub aldis: String,
    /// The run.
    pub run: String,
    /// Its machine: `run`, `phases` or `delivery`.
    pub machine: String,
    /// The step that decided it.
    pub revision: u64,
    /// The task of a delivery; not there if the whole run is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What people call the run or the task.
    pub title: String,
    /// What was asked for, without secrets.
    pub asked: String,
    /// The project it worked on.
    pub project: String,
    /// The rule that decided it.
    pub rule: String,
    /// What was decided.
    pub summary: String,
    /// Why the rule applied.
    pub because: String,
    /// When the run began.
    #[schemars(with = "String")]
    pub began: Timestamp,
    /// When it was decided.
    #[schemars(with = "String")]
    pub ended: Timestamp,
    /// When the receipt was written.
    #[schemars(with = "String")]
    pub written: Timestamp,
    /// The commit that was judged; `null` without git.
    pub repository: Option<ReceiptRepository>,
    /// The checks that ran, in order.
    pub checks: Vec<ReceiptCheck>,
    /// What the checks and the policy amount to; `null` without checks.
    pub verdict: Option<ReceiptVerdict>,
    /// The files that were pinned when the work began; `null` if none were.
    pub protected: Option<ReceiptPins>,
    /// What second opinions said.
    pub opinions: Vec<ReceiptOpinion>,
    /// What agents reported, and how it came.
    pub signals: Vec<ReceiptSignal>,
    /// The decisions that led to it; at most the last 1,000.
    pub decisions: Vec<ReceiptDecision>,
    /// All decisions of the run until then.
    pub journal: ReceiptJournal,
}

/// How the repository stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptRepository {
    /// The work tree.
    pub root: String,
    /// The commit; `null` before the first one.
    pub commit: Option<String>,
    /// Whether there were no uncommitted changes.
    pub clean: bool,
    /// When that was looked at. If it is later than the end, other work may have been committed since.
    #[schemars(with = "String")]
    pub seen: Timestamp,
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptCheck {
    /// Its name; empty for the only check.
    pub name: String,
    /// The command, without secrets.
    pub command: String,
    /// How it ended: `passed`, `failed`, `timed_out`, `not_started` or `not_run`.
    pub status: String,
    /// Its exit code, if it exited by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How often it ran.
    pub runs: u32,
    /// How often it did not pass: it is flaky if it passed, too.
    pub failures: u32,
    /// How many tests passed, failed and were skipped, where the runner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<ReceiptTests>,
    /// SHA-256 of what it printed.
    pub output_sha256: Option<String>,
    /// How many bytes it printed.
    pub output_bytes: u64,
    /// How many milliseconds it took.
    pub took_ms: u64,
}

/// Counted tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptTests {
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were skipped.
    pub skipped: u64,
}

/// What checks, changed files and the policy amount to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptVerdict {
    /// `accepted`, or `asks` until a human accepted it.
    pub acceptance: String,
    /// Who accepted it, if a human did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_by: Option<String>,
    /// What was found beside: each a rule and a clause.
    pub remarks: Vec<ReceiptRemark>,
    /// The commit whose clean checkout the checks ran in; not there if they ran in the work tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<String>,
    /// SHA-256 of the environment of the checks: of its names and values.
    pub environment_sha256: String,
    /// The operating system and the processor.
    pub system: String,
}

/// Something that was found and named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptRemark {
    /// The rule: a stable code.
    pub rule: String,
    /// What was found, as a clause.
    pub what: String,
}

/// The files that were pinned when the work began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptPins {
    /// SHA-256 of all pins together.
    pub sha256: String,
    /// How many files there were.
    pub count: u64,
    /// Those that the checks run, with the part that is pinned.
    pub own: Vec<String>,
    /// The files with their digests, as far as they are kept.
    pub files: Vec<ReceiptFile>,
    /// Which of them are not what they were.
    pub changes: Vec<ReceiptChange>,
    /// How many more changed.
    pub more_changes: u64,
}

/// A pinned file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptFile {
    /// Its path in the project.
    pub path: String,
    /// SHA-256 of its content when the claim was judged.
    pub sha256: String,
}

/// A pinned file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptChange {
    /// Its path in the project.
    pub path: String,
    /// The part of it that is pinned, where the rest may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Why it is pinned: `own`, `protected` or `test`.
    pub class: String,
    /// What happened to it: `changed`, `deleted`, `added`, ...
    pub change: String,
    /// SHA-256 of what it was.
    pub before: Option<String>,
    /// SHA-256 of what it is.
    pub after: Option<String>,
}

/// What a second opinion said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptOpinion {
    /// The command that was asked.
    pub command: String,
    /// `accept`, `refuse`, or `none` if it gave no answer that counts.
    pub verdict: String,
    /// Why.
    pub reason: String,
    /// What it cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_dollars: Option<u64>,
}

/// Something an agent reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptSignal {
    /// Its name.
    pub name: String,
    /// How it came: `said`, `token`, `receipt` or `call`.
    pub via: String,
    /// The sub-agent that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The decision that rests on it: its place in the run.
    pub decision: u64,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptDecision {
    /// Its place among the decisions of the run, from 1.
    pub seq: u64,
    /// The step that made it.
    pub revision: u64,
    /// The rule.
    pub rule: String,
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// SHA-256 of the decision in its canonical form.
    pub sha256: String,
}

/// All decisions of a run, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptJournal {
    /// How many there were.
    pub decisions: u64,
    /// SHA-256 of their digests, one line each.
    pub sha256: String,
}

/// What `proof verify --json` says: one line for each receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `verified`.
    #[schemars(extend("const" = "verified"))]
    pub kind: String,
    /// The run, as far as the receipt can be read.
    pub run: Option<String>,
    /// Its place among the receipts of the run.
    pub number: Option<u64>,
    /// Where the receipt is.
    pub file: String,
    /// Whether nothing differs.
    pub ok: bool,
    /// What was compared.
    pub findings: Vec<VerifiedPart>,
}

/// One thing that was compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedPart {
    /// `form`, `mac`, `chain`, `commit`, `protected` or `decisions`.
    pub part: String,
    /// `ok`, `differs`, or `unknown` if there is nothing left to compare with.
    pub result: String,
    /// What was found, in a sentence.
    pub detail: String,
}

/// One line of `proof list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `receipt_summary`.
    #[schemars(extend("const" = "receipt_summary"))]
    pub kind: String,
    /// The run.
    pub run: String,
    /// Its place among the receipts of the run.
    pub number: u64,
    /// The task of a delivery.
    pub task: Option<String>,
    /// What people call the run or the task.
    pub title: String,
    /// The project.
    pub project: String,
    /// When it was decided.
    #[schemars(with = "String")]
    pub ended: Timestamp,
    /// The commit.
    pub commit: Option<String>,
    /// Whether there were no uncommitted changes.
    pub clean: Option<bool>,
    /// How many checks passed, and how many ran.
    pub checks_passed: u64,
    /// How many checks ran.
    pub checks: u64,
    /// Where the receipt is.
    pub file: String,
}
