//! What is missing when a delivery ends early, so that `why` on the ending names it.

use super::ledger::FindingStatus;
use super::state::State;
use super::task::{Task, Wait};
use crate::Evidence;
use crate::words::{counted, listed};

/// How many tasks are named.
const TASKS_MAX: usize = 3;

impl State {
    /// Returns how many tasks are complete and what the others lack, and the signals that did not
    /// count.
    pub(super) fn unfinished(&self) -> (String, Vec<Evidence>) {
        let all = counted(self.tasks.len(), "task");
        let mut open: Vec<&Task> =
            self.tasks.iter().filter(|task| task.wait != Wait::Complete).collect();
        // Those that say more come first; among them the plan's order stays.
        open.sort_by_key(|task| match task.wait {
            Wait::Failed | Wait::Human { .. } => 0,
            _ if task.last_failure.is_some() || task.last_refused.is_some() => 1,
            _ if task.dispatched > 0 => 2,
            _ => 3,
        });
        let complete = self.tasks.len() - open.len();
        let lacks: Vec<String> =
            open.iter().map(|task| format!("{} {}", task.name(), lack(task))).collect();
        let evidence = open.iter().take(TASKS_MAX).filter_map(|task| task.last_refused.clone());
        let text = match &*lacks {
            [] => format!("{complete} of {all} complete"),
            lacks => format!("{complete} of {all} complete; {}", listed(lacks, TASKS_MAX)),
        };
        (text, evidence.collect())
    }
}

/// What keeps a task from being complete, as the rest of a sentence.
fn lack(task: &Task) -> String {
    let open = task.ledger.with_status(FindingStatus::Open).count();
    match (&task.wait, &task.last_failure) {
        (Wait::Failed, _) => "was given up".to_owned(),
        (Wait::Human { question }, _) => format!("waits for the answer to {question}"),
        (_, Some(failure)) => format!("is not complete: {failure}"),
        (_, None) if open > 0 => format!("has {}", counted(open, "open finding")),
        (Wait::Needs, None) => "has not started".to_owned(),
        (Wait::Slot, None) if task.dispatched == 0 => "has not started".to_owned(),
        (_, None) => format!("is with the {}", task.role.label()),
    }
}
