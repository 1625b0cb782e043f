//! What the machines know of checks, the files they are made of, and second opinions.

use aldis_engine::{Snapshot, State};
use aldis_machine::proof::{CheckResult, FileChange, Finding, Opinion, Pinned, Proof, Round};
use aldis_signal::redact::redact;
use aldis_store::Part;

use crate::proof::pins::{PINS, Pins, pins_of_task};
use crate::view::wire::receipt::{
    ReceiptChange, ReceiptCheck, ReceiptFile, ReceiptOpinion, ReceiptPins, ReceiptRemark,
    ReceiptTests, ReceiptVerdict,
};

/// How many pinned files are listed; the digest of all covers the rest.
const FILES_MAX: usize = 2_000;

/// What a receipt lists beside decisions.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) checks: Vec<ReceiptCheck>,
    pub(super) verdict: Option<ReceiptVerdict>,
    pub(super) protected: Option<ReceiptPins>,
    pub(super) opinions: Vec<ReceiptOpinion>,
}

/// Collects it for a run, or for a task of a delivery. `parts` are those that are stored with it.
pub(super) fn of(run: &Snapshot, task: Option<&str>, parts: &[Part]) -> Facts {
    let pins = |key: &str| -> Option<Pins> {
        let part = parts.iter().find(|part| part.key == key)?;
        serde_json::from_str(&part.body).ok()
    };
    match &run.state {
        State::Phases(state) => of_proof(&state.checks().proof, pins(PINS)),
        State::Run(state) => of_proof(state.proof(), pins(PINS)),
        State::Delivery(state) => {
            let task = task.and_then(|task| Some((state.number(task)?, state.task(task)?)));
            task.map(|(no, task)| of_proof(&task.proof, pins(&pins_of_task(no))))
                .unwrap_or_default()
        }
        State::Turns(_) | State::Unreadable(_) => Facts::default(),
    }
}

fn of_proof(proof: &Proof, pins: Option<Pins>) -> Facts {
    let round = proof.round();
    let results = round.map(|round| &*round.results).unwrap_or_default();
    Facts {
        checks: results.iter().map(check).collect(),
        verdict: round.and_then(verdict),
        protected: proof.pinned().map(|pinned| protected(pinned, round, pins.as_ref())),
        opinions: round.and_then(|round| round.opinion.as_ref()).map(said).into_iter().collect(),
    }
}

/// The checks of the last round.
pub(crate) fn judged_checks(proof: &Proof) -> Vec<ReceiptCheck> {
    proof.round().into_iter().flat_map(|round| &round.results).map(check).collect()
}

/// The pinned files that changed, as the last round saw them.
pub(crate) fn judged_changes(proof: &Proof) -> Vec<ReceiptChange> {
    let seen = proof.round().and_then(|round| round.inspection.as_ref());
    seen.into_iter().flat_map(|seen| &seen.changes).map(change).collect()
}

fn check(result: &CheckResult) -> ReceiptCheck {
    let tests = result.tests.map(|tests| ReceiptTests {
        passed: tests.passed,
        failed: tests.failed,
        skipped: tests.skipped,
    });
    ReceiptCheck {
        name: result.name.clone(),
        command: redact(&result.command).into_owned(),
        status: result.status.as_str().to_owned(),
        exit_code: result.exit_code,
        signal: result.signal,
        runs: result.runs,
        failures: result.failures,
        tests,
        output_sha256: Some(result.output.sha256.clone()).filter(|digest| !digest.is_empty()),
        output_bytes: result.output.bytes,
        took_ms: result.took_ms,
    }
}

fn verdict(round: &Round) -> Option<ReceiptVerdict> {
    let verdict = round.verdict.as_ref()?;
    let inspection = round.inspection.as_ref();
    let environment = inspection.map(|it| it.environment.clone()).unwrap_or_default();
    let remark = |finding: &Finding| ReceiptRemark {
        rule: finding.rule.as_str().to_owned(),
        what: finding.what.clone(),
    };
    Some(ReceiptVerdict {
        acceptance: verdict.acceptance.as_str().to_owned(),
        accepted_by: verdict.accepted_by.clone(),
        remarks: verdict.findings.iter().map(remark).collect(),
        clean: inspection.and_then(|it| it.clean.clone()),
        environment_sha256: environment.sha256,
        system: environment.system,
    })
}

fn protected(pinned: &Pinned, round: Option<&Round>, pins: Option<&Pins>) -> ReceiptPins {
    let inspection = round.and_then(|round| round.inspection.as_ref());
    let changes = inspection.map(|it| &*it.changes).unwrap_or_default();
    ReceiptPins {
        sha256: pinned.sha256.clone(),
        count: pinned.files,
        own: pinned.own.clone(),
        files: pins.map(|pins| files(pins, changes)).unwrap_or_default(),
        changes: changes.iter().map(change).collect(),
        more_changes: inspection.map_or(0, |it| it.more_changes),
    }
}

/// The pinned files as they were when the claim was judged.
fn files(pins: &Pins, changes: &[FileChange]) -> Vec<ReceiptFile> {
    let file = |(path, pinned): (&str, &str)| {
        let changed = changes.iter().find(|it| it.path == path && it.part.is_none());
        let sha256 = match changed {
            Some(change) => change.after.clone()?,
            None => pinned.to_owned(),
        };
        Some(ReceiptFile { path: path.to_owned(), sha256 })
    };
    pins.files().filter_map(file).take(FILES_MAX).collect()
}

fn change(change: &FileChange) -> ReceiptChange {
    ReceiptChange {
        path: change.path.clone(),
        part: change.part.clone(),
        class: change.class.as_str().to_owned(),
        change: change.kind.as_str().to_owned(),
        before: change.before.clone(),
        after: change.after.clone(),
    }
}

fn said(opinion: &Opinion) -> ReceiptOpinion {
    ReceiptOpinion {
        command: redact(&opinion.command).into_owned(),
        verdict: opinion.verdict.as_str().to_owned(),
        reason: redact(&opinion.reason).into_owned(),
        micro_dollars: opinion.micro_dollars,
    }
}
