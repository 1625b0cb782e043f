//! What was checked for the last claim of a run, or of each task of a delivery, as the dashboard shows it.

use aldis_engine::State;
use aldis_machine::proof::Proof;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::card::{clean, clean_lines};
use super::wire::proof::ProofForm;
use super::wire::task::TaskLine;

/// How many files and findings of one claim are shown.
const LISTED_MAX: usize = 50;

/// The checks of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ClaimProof {
    /// The task of a delivery that was claimed.
    pub(crate) task: Option<String>,
    /// What people call the task.
    pub(crate) title: Option<String>,
    /// What was checked.
    #[serde(flatten)]
    pub(crate) proof: ProofForm,
}

/// Returns the checks of a run, or of each task of a delivery, in the order of the plan. `lines` are the
/// tasks as lists have them.
pub(crate) fn proofs(state: &State, lines: &[TaskLine]) -> Vec<ClaimProof> {
    match state {
        State::Run(state) => whole(state.proof()),
        State::Phases(state) => whole(&state.checks().proof),
        State::Delivery(state) => {
            let proofs = lines.iter().zip(state.tasks()).filter_map(|(line, task)| {
                let proof = shown(&task.proof)?;
                let title = Some(clean(&line.title)).filter(|title| !title.is_empty());
                Some(ClaimProof { task: Some(line.task.clone()), title, proof })
            });
            proofs.collect()
        }
        State::Turns(_) | State::Unreadable(_) => Vec::new(),
    }
}

fn whole(proof: &Proof) -> Vec<ClaimProof> {
    let proof = shown(proof).map(|proof| ClaimProof { task: None, title: None, proof });
    proof.into_iter().collect()
}

/// The form of what was checked, if anything was, with harmless words.
fn shown(proof: &Proof) -> Option<ProofForm> {
    let mut form = ProofForm::of(proof)?;
    for check in &mut form.checks {
        check.name = clean(&check.name);
        check.command = clean(&check.command);
    }
    form.changes.truncate(LISTED_MAX);
    for change in &mut form.changes {
        change.path = clean(&change.path);
        change.part = change.part.as_deref().map(clean);
    }
    form.findings.truncate(LISTED_MAX);
    for finding in &mut form.findings {
        finding.what = clean_lines(&finding.what);
    }
    (!form.checks.is_empty() || form.acceptance.is_some()).then_some(form)
}
