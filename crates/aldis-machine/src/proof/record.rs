//! What was seen: results of checks, changes of files, and the place where the checks ran.
//!
//! Everything here is stored in journals and receipts. New members have a default.

use serde::{Deserialize, Serialize};

use super::config;
use crate::words::is_zero;
use aldis_signal::codes;

codes! {
    /// How a check ended.
    pub enum CheckStatus {
        /// With exit code 0, in time.
        Passed = "passed",
        /// With another exit code, or by a signal.
        Failed = "failed",
        /// It was ended because it took too long.
        TimedOut = "timed_out",
        /// It could not be started.
        NotStarted = "not_started",
        /// It did not run, because a check that it needs did not pass.
        NotRun = "not_run",
    }
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Its name; empty for the only check.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its command.
    #[serde(default)]
    pub command: String,
    /// How it ended, the last time it ran.
    pub status: CheckStatus,
    /// The exit code, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How often it ran.
    #[serde(default = "once")]
    pub runs: u32,
    /// How often it did not pass.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// The checks that it needs and that did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Its tests, where the output or a report tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// What it printed, the last time it ran.
    #[serde(default)]
    pub output: CheckOutput,
    /// How many milliseconds it took, the last time it ran.
    #[serde(default)]
    pub took_ms: u64,
}

fn once() -> u32 {
    1
}

impl CheckResult {
    /// A result without details.
    pub fn new(name: &str, command: &str, status: CheckStatus) -> Self {
        Self {
            name: name.to_owned(),
            command: command.to_owned(),
            status,
            exit_code: None,
            signal: None,
            runs: u32::from(status != CheckStatus::NotRun),
            failures: u32::from(!matches!(status, CheckStatus::Passed | CheckStatus::NotRun)),
            missing: Vec::new(),
            tests: None,
            output: CheckOutput::default(),
            took_ms: 0,
        }
    }

    /// Whether it passed, the last time it ran.
    pub fn passed(&self) -> bool {
        self.status == CheckStatus::Passed
    }

    /// Whether it passed once and failed once, with the same files.
    pub fn is_flaky(&self) -> bool {
        self.failures > 0 && self.failures < self.runs
    }

    /// How sentences call it.
    pub fn title(&self) -> String {
        config::title(&self.name)
    }

    /// How it ended, as a clause without its subject: `failed with exit code 1`.
    pub fn clause(&self) -> String {
        match (self.status, self.exit_code, self.signal) {
            (CheckStatus::Passed, ..) => "passed".to_owned(),
            (CheckStatus::TimedOut, ..) => "took too long and was ended".to_owned(),
            (CheckStatus::NotStarted, ..) => "could not be started".to_owned(),
            (CheckStatus::NotRun, ..) => "did not run".to_owned(),
            (CheckStatus::Failed, Some(code), _) => format!("failed with exit code {code}"),
            (CheckStatus::Failed, None, Some(signal)) => format!("was killed by signal {signal}"),
            (CheckStatus::Failed, None, None) => "failed".to_owned(),
        }
    }
}

/// What a check printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckOutput {
    /// SHA-256 of every byte of it, in hexadecimal digits.
    pub sha256: String,
    /// How many bytes there were.
    pub bytes: u64,
    /// Its last lines, without secrets.
    pub tail: String,
}

/// How many tests a check ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestCounts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, or broke down.
    pub failed: u64,
    /// Tests that did not run: skipped, ignored, pending.
    pub skipped: u64,
}

impl TestCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.passed.saturating_add(self.failed).saturating_add(self.skipped)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(more.passed),
            failed: self.failed.saturating_add(more.failed),
            skipped: self.skipped.saturating_add(more.skipped),
        }
    }
}

/// What a check depends on beside its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The operating system and the processor: `linux x86_64`.
    pub system: String,
    /// Where programs are looked for.
    pub path: String,
    /// The names of all variables. Their values may be secrets.
    pub variables: Vec<String>,
    /// SHA-256 of names and values, in hexadecimal digits.
    pub sha256: String,
}

codes! {
    /// Why a file is pinned.
    pub enum FileClass {
        /// A check runs it: a script, a `Makefile`, the `test` script of a `package.json`.
        Own = "own",
        /// It fits a pattern of `protect`.
        Protected = "protected",
        /// Its name says that it holds tests, or configures them.
        Test = "test",
    }
}

codes! {
    /// What happened to a pinned file.
    pub enum ChangeKind {
        /// Its content is another.
        Changed = "changed",
        /// It is gone.
        Deleted = "deleted",
        /// It was not there when the work began.
        Added = "added",
        /// It can be run now, and could not.
        MadeExecutable = "made_executable",
        /// It cannot be run any more.
        NotExecutable = "not_executable",
        /// It is something else now: a link, a directory.
        Replaced = "replaced",
    }
}

/// A pinned file that is not what it was when the work began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path below the project, with `/`.
    pub path: String,
    /// The part of it that is pinned, where the rest may change: `scripts.test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Why it is pinned.
    pub class: FileClass,
    /// What happened to it.
    pub kind: ChangeKind,
    /// SHA-256 of what it was, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// SHA-256 of what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl FileChange {
    /// What changed, for a sentence: `package.json (scripts.test)`.
    pub fn place(&self) -> String {
        match &self.part {
            Some(part) => format!("{} ({part})", self.path),
            None => self.path.clone(),
        }
    }
}

/// What was pinned when the work began. The hashes themselves are kept beside the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pinned {
    /// SHA-256 of all pins together, in hexadecimal digits.
    pub sha256: String,
    /// How many files there are.
    pub files: u64,
    /// Those that the checks run, with the part that is pinned.
    pub own: Vec<String>,
    /// The commit of which they are, if a clean checkout was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// How the project stands before the checks run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inspection {
    /// What was pinned just now: when the work began, or if nothing had been pinned before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// Which pinned files are not what they were; the first ones, where there are very many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// How many more changed.
    pub more_changes: u64,
    /// The commit whose clean checkout the checks run in; `None` for the work tree as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clean: Option<String>,
    /// What the checks depend on beside the files.
    pub environment: Environment,
    /// Why it could not be inspected. Then nothing is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
