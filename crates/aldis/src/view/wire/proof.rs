//! What checks said, as programs read it.

use aldis_machine::proof::{CheckResult, FileChange, Finding, Proof};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was checked for the last claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofForm {
    /// `accepted`, `refused` or `asks`; `null` while the checks run.
    pub acceptance: Option<String>,
    /// The commit in whose clean checkout they ran, if they did.
    pub clean: Option<String>,
    /// The checks, in the order in which they ran.
    pub checks: Vec<CheckForm>,
    /// Pinned files that are not what they were.
    pub changes: Vec<FileChangeForm>,
    /// The reasons.
    pub findings: Vec<ProofFindingForm>,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckForm {
    /// Its name; empty for the only one.
    pub name: String,
    /// Its command.
    pub command: String,
    /// `passed`, `failed`, `timed_out`, `not_started` or `not_run`.
    pub status: String,
    /// Its exit code, if it had one.
    pub exit_code: Option<i32>,
    /// How often it ran.
    pub runs: u32,
    /// Whether it failed and passed with the same files.
    pub flaky: bool,
    /// How many tests passed, failed and were skipped, where the output tells.
    pub tests: Option<TestsForm>,
    /// SHA-256 of what it printed.
    pub output_sha256: String,
    /// How many milliseconds it took.
    pub took_ms: u64,
}

/// Numbers of tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestsForm {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that did not run.
    pub skipped: u64,
}

/// A pinned file that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChangeForm {
    /// Its path below the project.
    pub path: String,
    /// The part of it that is pinned: `scripts.test`.
    pub part: Option<String>,
    /// Why it is pinned: `own`, `protected` or `test`.
    pub class: String,
    /// What happened: `changed`, `deleted`, `added`, `made_executable`, `not_executable`, `replaced`.
    pub change: String,
}

/// A reason of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofFindingForm {
    /// A stable code: `proof/own-file-changed`.
    pub rule: String,
    /// What it means to the claim: `named`, `asks` or `refuses`.
    pub weight: String,
    /// What was found.
    pub what: String,
}

impl ProofForm {
    /// Returns the form of the last claim's checks, if there were any.
    pub(crate) fn of(proof: &Proof) -> Option<Self> {
        let round = proof.round()?;
        let inspection = round.inspection.as_ref();
        let verdict = round.verdict.as_ref();
        let changes = inspection.into_iter().flat_map(|seen| &seen.changes);
        let findings = verdict.into_iter().flat_map(|verdict| &verdict.findings);
        Some(Self {
            acceptance: verdict.map(|verdict| verdict.acceptance.as_str().to_owned()),
            clean: inspection.and_then(|seen| seen.clean.clone()),
            checks: round.results.iter().map(CheckForm::of).collect(),
            changes: changes.map(FileChangeForm::of).collect(),
            findings: findings.map(ProofFindingForm::of).collect(),
        })
    }
}

impl CheckForm {
    fn of(result: &CheckResult) -> Self {
        Self {
            name: result.name.clone(),
            command: result.command.clone(),
            status: result.status.as_str().to_owned(),
            exit_code: result.exit_code,
            runs: result.runs,
            flaky: result.is_flaky(),
            tests: result.tests.map(|it| TestsForm {
                passed: it.passed,
                failed: it.failed,
                skipped: it.skipped,
            }),
            output_sha256: result.output.sha256.clone(),
            took_ms: result.took_ms,
        }
    }
}

impl FileChangeForm {
    fn of(change: &FileChange) -> Self {
        Self {
            path: change.path.clone(),
            part: change.part.clone(),
            class: change.class.as_str().to_owned(),
            change: change.kind.as_str().to_owned(),
        }
    }
}

impl ProofFindingForm {
    fn of(finding: &Finding) -> Self {
        let (rule, weight) = (finding.rule.as_str(), finding.weight.as_str());
        Self { rule: rule.to_owned(), weight: weight.to_owned(), what: finding.what.clone() }
    }
}
