//! Files that only one task changes at a time, and the merge of what was changed.

use super::event::{Effect, Notice, Severity};
use super::human;
use super::judge::{Accepted, evidence};
use super::signal::Role;
use super::state::{State, StepOutput, decision};
use super::task::{Wait, field};
use super::workflow;
use crate::Evidence;

/// A path in the form in which it is compared; `None` if it is none of the project.
pub(super) fn normal(path: &str) -> Option<String> {
    let path = path.trim().trim_matches(['`', '"', '\'']).replace('\\', "/");
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let inside = !path.starts_with(['/', '~']) && !path.contains(':') && !parts.contains(&"..");
    (inside && !parts.is_empty()).then(|| parts.join("/"))
}

/// The files that a task takes when its developer is started, as they are compared.
pub(super) fn wanted(state: &State, no: usize) -> Vec<String> {
    let task = state.at(no);
    if task.role != Role::Developer {
        return Vec::new();
    }
    let files = task.spec.files.iter().filter_map(|file| normal(file));
    files.filter(|file| !task.holds.contains(file)).collect()
}

/// Takes a file for a task.
pub(super) fn take(state: &mut State, no: usize, path: &str) {
    state.index.lock(path, no);
    state.at_mut(no).holds.insert(path.to_owned());
}

/// Gives back all files of a task: the next one in line gets each.
pub(super) fn release(state: &mut State, out: &mut StepOutput, no: usize) {
    for path in std::mem::take(&mut state.at_mut(no).holds) {
        if state.index.unlock(&path, no) {
            match state.index.first_waiting(&path) {
                Some(next) => grant(state, out, next, &path, "the other task gave it back"),
                None => state.index.undefer(&path),
            }
        }
    }
}

/// Gives a file to the task whose agent asked for it.
fn grant(state: &mut State, out: &mut StepOutput, no: usize, path: &str, because: &str) {
    take(state, no, path);
    state.at_mut(no).counters.conflicts = 0;
    state.at_mut(no).note(format!("The file you asked for is yours now ({because}):"), path);
    state.set_wait(no, Wait::Slot);
    let decision = decision("conflict", format!("Gave {path} to the task"))
        .because(because)
        .next("its agent is started again and told");
    out.decided(Some(state.at(no)), decision);
}

/// An agent needs a file that may be somebody else's.
pub(super) fn conflict(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    let fields = &accepted.signal.fields;
    let Some(path) = accepted.signal.subject.as_deref().and_then(normal) else {
        let why = "it names no file inside the project".to_owned();
        return workflow::refuse(state, out, no, accepted, "bad_path", why);
    };
    state.at_mut(no).resume = Some(accepted.agent);
    let holders = state.index.holders(&path, no);
    if holders.is_empty() {
        return grant(state, out, no, &path, "nobody else has it");
    }
    let who: Vec<String> = holders.iter().map(|no| state.at(*no).spec.id.clone()).collect();
    let who = who.join(", ");
    let seen = evidence(accepted.signal, accepted.agent, None);
    let text = format!("{} needs {path}, which {who} has.", state.at(no).spec.id);
    out.notice((Notice::FileConflict, Severity::Warning), Some(state.at(no)), text);
    if !field(fields, "can_wait").eq_ignore_ascii_case("NO") {
        let since = out.now;
        state.set_wait(no, Wait::File { path: path.clone(), since });
        let decision = decision("conflict", format!("Queued the task for {path}"))
            .because(format!("{who} has the file, and the task can wait"))
            .seen([seen])
            .next("its agent is told when the file is free");
        return out.decided(Some(state.at(no)), decision);
    }
    for holder in holders {
        let about = format!(
            "Another task ({}) must change a file of yours at the same time. Keep your changes to it \
             small and apart, and expect its own:",
            state.at(no).spec.id
        );
        state.at_mut(holder).note(about, &path);
    }
    take(state, no, &path);
    let about = format!(
        "You may change the file although {who} works on it too. Keep your change small and apart, \
         and expect theirs:"
    );
    state.at_mut(no).note(about, &path);
    state.set_wait(no, Wait::Slot);
    let decision = decision("conflict", format!("Lets two tasks change {path}"))
        .because(format!("{who} has the file, and the task cannot wait"))
        .seen([seen])
        .next("both are told");
    out.decided(Some(state.at(no)), decision);
}

/// A file was waited for in vain.
pub(super) fn waited(state: &mut State, out: &mut StepOutput, no: usize) {
    let Wait::File { path, .. } = state.at(no).wait.clone() else { return };
    let most = state.run.config.conflict_retries;
    let task = state.at_mut(no);
    task.counters.conflicts += 1;
    let times = task.counters.conflicts;
    if times > most {
        let why = format!("{path} is still taken after {times} waits");
        return human::ask_about(state, out, no, &why, &why, None);
    }
    task.note(
        "The file you asked for is still taken. Find a way without it, or ask for it again:",
        &path,
    );
    state.set_wait(no, Wait::Slot);
    let decision = decision("conflict", "Stopped waiting for the file")
        .because(format!("{path} was not free in time"))
        .next("the agent is started again and told");
    out.decided(Some(state.at(no)), decision);
}

/// The work was accepted and must be merged before it is complete.
pub(super) fn merge(state: &mut State, out: &mut StepOutput, no: usize, seen: Evidence) {
    state.set_wait(no, Wait::Merge);
    let task = state.at(no);
    out.effects.push(Effect::Merge { task: task.spec.id.clone() });
    let decision = decision("merge", "Merges the work")
        .because("the auditor accepts it")
        .seen([seen])
        .next("the task is complete once it is merged");
    out.decided(Some(task), decision);
}

/// How the merge went.
pub(super) fn merged(state: &mut State, out: &mut StepOutput, id: &str, ok: bool, detail: &str) {
    let Some(no) = state.index.number(id).filter(|no| state.at(*no).wait == Wait::Merge) else {
        return;
    };
    if ok {
        return workflow::complete(
            state,
            out,
            no,
            "the auditor accepted it and it is merged",
            vec![],
        );
    }
    let limit = state.run.config.failure_limit;
    let task = state.at_mut(no);
    task.counters.merge_failures += 1;
    let times = task.counters.merge_failures;
    (task.reviewed_by, task.audited_by) = (None, None);
    task.note("Your work was accepted but cannot be merged. Bring it up to date:", detail);
    state.set(no, Role::Developer, Wait::Slot);
    let text = format!("The work of {} cannot be merged: {detail}", state.at(no).spec.id);
    out.notice((Notice::FileConflict, Severity::Warning), Some(state.at(no)), text);
    if times >= limit {
        let why = format!("{times} failed merges");
        let text = format!("{why}; the last one says:\n{detail}");
        return human::ask_about(state, out, no, &why, &text, None);
    }
    let decision = decision("merge-failed", "Sent the work back to the developer")
        .because("it cannot be merged")
        .next("critic and auditor look again after that");
    out.decided(Some(state.at(no)), decision);
}
