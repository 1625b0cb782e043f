//! Files that only one task changes at a time, and the merge of what was changed.

use super::event::{Effect, Notice, Severity};
use super::human::{self, NewQuestion};
use super::judge::Accepted;
use super::rule::Rule;
use super::sentences::{counted, listed};
use super::signal::Role;
use super::state::{State, StepOutput, decision};
use super::task::{FILES_MAX, Wait};
use super::workflow;
use crate::Evidence;

/// How many names a sentence holds.
const NAMES_MAX: usize = 3;

/// A path in the form in which it is compared; `None` if it leads out of the project.
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
    let from = state.at(no).name();
    for path in std::mem::take(&mut state.at_mut(no).holds) {
        if state.index.unlock(&path, no) {
            match state.index.first_waiting(&path) {
                Some(next) => grant(state, out, next, &path, &format!("{from} released it")),
                None => state.index.undefer(&path),
            }
        }
    }
}

/// Gives a file to the task whose agent asked for it.
fn grant(state: &mut State, out: &mut StepOutput, no: usize, path: &str, because: &str) {
    take(state, no, path);
    state.at_mut(no).counters.conflicts = 0;
    state.at_mut(no).note("The file you asked for is yours now:", path);
    state.set_wait(no, Wait::Slot);
    let task = state.at(no);
    let decision = decision(Rule::FileGranted, format!("Gave {path} to the task"))
        .because(because)
        .next(format!("the {} starts again with the file", task.role.label()));
    out.decided(Some(task), decision);
}

/// An agent needs a file that another task may hold.
pub(super) fn conflict(state: &mut State, out: &mut StepOutput, no: usize, accepted: Accepted<'_>) {
    let Some(path) = accepted.signal.subject.as_deref().and_then(normal) else {
        let why = "it names no file inside the project".to_owned();
        return workflow::refuse(state, out, no, accepted, "bad_path", why);
    };
    if state.at(no).holds.len() >= FILES_MAX {
        let why = format!("the task holds {FILES_MAX} files already, the most it may");
        return workflow::refuse(state, out, no, accepted, "too_many_files", why);
    }
    state.at_mut(no).resume = Some(accepted.agent);
    let holders = state.index.holders(&path, no);
    if holders.is_empty() {
        return grant(state, out, no, &path, "no other task holds it");
    }
    let names: Vec<String> = holders.iter().map(|no| state.at(*no).name()).collect();
    let (who, verb) = (listed(&names, NAMES_MAX), if names.len() == 1 { "holds" } else { "hold" });
    let (name, role) = (state.at(no).name(), state.at(no).role.label());
    let text = format!("{name} needs {path}, which {who} {verb}.");
    out.notice((Notice::FileConflict, Severity::Warning), Some(state.at(no)), text);
    if !accepted.signal.field("can_wait").eq_ignore_ascii_case("NO") {
        let since = out.now;
        state.set_wait(no, Wait::File { path: path.clone(), since });
        let decision = decision(Rule::FileQueued, format!("Queued the task for {path}"))
            .because(format!("{who} {verb} the file, and the task can wait"))
            .seen([accepted.evidence()])
            .next(format!("the {role} starts again when the file is free"));
        return out.decided(Some(state.at(no)), decision);
    }
    for holder in holders {
        let about = format!(
            "{name} must change a file of yours at the same time. Keep your changes to it small \
             and separate, and expect changes by that task:"
        );
        state.at_mut(holder).note(about, &path);
    }
    take(state, no, &path);
    let about = format!(
        "You may change the file although {who} {verb} it, too. Keep your changes small and \
         separate, and expect others:"
    );
    state.at_mut(no).note(about, &path);
    state.set_wait(no, Wait::Slot);
    let decision = decision(Rule::FileShared, format!("Let a second task change {path}"))
        .because(format!("{who} {verb} the file, and the task cannot wait"))
        .seen([accepted.evidence()])
        .next("the next agents of both tasks are told");
    out.decided(Some(state.at(no)), decision);
}

/// A file was not free in time.
pub(super) fn waited(state: &mut State, out: &mut StepOutput, no: usize) {
    let Wait::File { path, .. } = state.at(no).wait.clone() else { return };
    let most = state.run.config.conflict_retries;
    let task = state.at_mut(no);
    task.counters.conflicts += 1;
    let times = task.counters.conflicts;
    if times > most {
        let why = format!("another task still holds {path} after {}", counted(times, "wait"));
        return human::ask_about(state, out, no, NewQuestion::new(Rule::FileWaitLimit, why));
    }
    task.note(
        "Another task still holds the file you asked for. Find a way without it, or ask for it \
         again:",
        &path,
    );
    state.set_wait(no, Wait::Slot);
    let task = state.at(no);
    let decision = decision(Rule::FileWaitOver, format!("Stopped waiting for {path}"))
        .because("another task held it for too long")
        .next(format!("the {} starts again without the file", task.role.label()));
    out.decided(Some(task), decision);
}

/// The auditor passed the work, which must be merged before the task is complete.
pub(super) fn merge(state: &mut State, out: &mut StepOutput, no: usize, seen: Evidence) {
    state.set_wait(no, Wait::Merge);
    let task = state.at(no);
    out.effects.push(Effect::Merge { task: task.spec.id.clone() });
    let decision = decision(Rule::MergeStarted, "Started to merge the work")
        .because("the auditor passed it")
        .seen([seen])
        .next("the task is complete once its work is merged");
    out.decided(Some(task), decision);
}

/// The merges that were under way when the coordinator was lost are done again. Where there are no
/// work trees any more, there is nothing to merge.
pub(super) fn merge_again(state: &mut State, out: &mut StepOutput) {
    for no in state.index.merging().collect::<Vec<_>>() {
        if state.run.config.worktrees {
            out.effects.push(Effect::Merge { task: state.at(no).spec.id.clone() });
        } else {
            workflow::complete(state, out, no, "the auditor passed it", Vec::new());
        }
    }
}

/// How the merge went.
pub(super) fn merged(state: &mut State, out: &mut StepOutput, id: &str, ok: bool, detail: &str) {
    let Some(no) = state.index.number(id).filter(|no| state.at(*no).wait == Wait::Merge) else {
        return;
    };
    if ok {
        let because = "the auditor passed it, and it is merged";
        return workflow::complete(state, out, no, because, Vec::new());
    }
    let limit = state.run.config.failure_limit;
    let task = state.at_mut(no);
    task.counters.merge_failures += 1;
    let times = task.counters.merge_failures;
    (task.reviewed_by, task.audited_by) = (None, None);
    task.note("Your work passed the audit but cannot be merged. Bring it up to date:", detail);
    task.last_failure = Some("its work cannot be merged".to_owned());
    let text = format!("{} cannot be merged: {detail}", task.name());
    state.set(no, Role::Developer, Wait::Slot);
    out.notice((Notice::FileConflict, Severity::Warning), Some(state.at(no)), text);
    if times >= limit {
        let why = format!("{} failed", counted(times, "merge"));
        let new = NewQuestion::new(Rule::MergeLimit, why)
            .knowing(format!("The last merge failed with:\n{detail}"));
        return human::ask_about(state, out, no, new);
    }
    let because = match detail.lines().next().map(str::trim) {
        None | Some("") => "it cannot be merged".to_owned(),
        Some(detail) => format!("it cannot be merged: {detail}"),
    };
    let decision = decision(Rule::MergeFailed, "Sent the work back to the developer")
        .because(because)
        .next("the critic and the auditor check the result again");
    out.decided(Some(state.at(no)), decision);
}
