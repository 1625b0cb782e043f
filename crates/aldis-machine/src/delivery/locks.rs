//! Files that only one task changes at a time, and the merge of what was changed.

use super::event::{Effect, Notice, Severity};
use super::human::NewQuestion;
use super::judge::Accepted;
use super::rule::Rule;
use super::signal::Role;
use super::state::State;
use super::task::{FILES_MAX, Task, Wait};
use crate::Evidence;
use crate::words::{counted, listed};

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

/// The files that a task names, as they are compared.
pub(super) fn files_of(task: &Task) -> impl Iterator<Item = String> + use<'_> {
    task.spec.files.iter().filter_map(|file| normal(file))
}

impl State {
    /// The files that a task takes when its developer is started.
    pub(super) fn files_wanted(&self, no: usize) -> Vec<String> {
        let task = self.at(no);
        if task.role != Role::Developer {
            return Vec::new();
        }
        files_of(task).filter(|file| !task.holds.contains(file)).collect()
    }

    /// Takes a file for a task.
    pub(super) fn hold_file(&mut self, no: usize, path: &str) {
        self.index.lock(path, no);
        self.at_mut(no).holds.insert(path.to_owned());
    }

    /// Gives back all files of a task: the next one in line gets each.
    pub(super) fn release_files(&mut self, no: usize) {
        let from = self.at(no).name();
        for path in std::mem::take(&mut self.at_mut(no).holds) {
            if self.index.unlock(&path, no) {
                match self.index.first_waiting(&path) {
                    Some(next) => self.grant_file(next, &path, &format!("{from} released it")),
                    None => self.index.undefer(&path),
                }
            }
        }
    }

    /// Gives a file to the task whose agent asked for it.
    fn grant_file(&mut self, no: usize, path: &str, because: &str) {
        self.hold_file(no, path);
        self.at_mut(no).counters.conflicts = 0;
        self.at_mut(no).note("The file you asked for is yours now:", path);
        self.set_wait(no, Wait::Slot);
        let role = self.at(no).role.label();
        self.decide(Some(no), Rule::FileGranted, format!("Gave {path} to the task"))
            .because(because)
            .next(format!("the {role} starts again with the file"));
    }

    /// An agent needs a file that another task may hold.
    pub(super) fn file_conflict(&mut self, no: usize, accepted: Accepted<'_>) {
        let Some(path) = accepted.signal.subject.as_deref().and_then(normal) else {
            let why = "it names no file inside the project";
            return self.refuse_signal(no, accepted, "bad_path", why);
        };
        if self.at(no).holds.len() >= FILES_MAX {
            let why = format!("the task holds {FILES_MAX} files already, the most it may");
            return self.refuse_signal(no, accepted, "too_many_files", why);
        }
        self.at_mut(no).hands.resume = Some(accepted.agent);
        let holders = self.index.holders(&path, no);
        if holders.is_empty() {
            return self.grant_file(no, &path, "no other task holds it");
        }
        let names: Vec<String> = holders.iter().map(|no| self.at(*no).name()).collect();
        let (who, verb) =
            (listed(&names, NAMES_MAX), if names.len() == 1 { "holds" } else { "hold" });
        let (name, role) = (self.at(no).name(), self.at(no).role.label());
        let text = format!("{name} needs {path}, which {who} {verb}.");
        self.notice((Notice::FileConflict, Severity::Warning), Some(no), text);
        if !accepted.signal.field("can_wait").eq_ignore_ascii_case("NO") {
            let since = self.out.now;
            self.set_wait(no, Wait::File { path: path.clone(), since });
            self.decide(Some(no), Rule::FileQueued, format!("Queued the task for {path}"))
                .because(format!("{who} {verb} the file, and the task can wait"))
                .seen([accepted.evidence()])
                .next(format!("the {role} starts again when the file is free"));
            return;
        }
        for holder in holders {
            let about = format!(
                "{name} must change a file of yours at the same time. Keep your changes to it small \
             and separate, and expect changes by that task:"
            );
            self.at_mut(holder).note(about, &path);
        }
        self.hold_file(no, &path);
        let about = format!(
            "You may change the file although {who} {verb} it, too. Keep your changes small and \
         separate, and expect others:"
        );
        self.at_mut(no).note(about, &path);
        self.set_wait(no, Wait::Slot);
        self.decide(Some(no), Rule::FileShared, format!("Let a second task change {path}"))
            .because(format!("{who} {verb} the file, and the task cannot wait"))
            .seen([accepted.evidence()])
            .next("the next agents of both tasks are told");
    }

    /// A file was not free in time.
    pub(super) fn file_wait_over(&mut self, no: usize) {
        let Wait::File { path, .. } = self.at(no).wait.clone() else { return };
        let most = self.run.config.conflict_retries;
        let task = self.at_mut(no);
        task.counters.conflicts += 1;
        let times = task.counters.conflicts;
        if times > most {
            let why = format!("another task still holds {path} after {}", counted(times, "wait"));
            return self.ask_about(no, NewQuestion::new(Rule::FileWaitLimit, why));
        }
        task.note(
            "Another task still holds the file you asked for. Find a way without it, or ask for it \
         again:",
            &path,
        );
        self.set_wait(no, Wait::Slot);
        let role = self.at(no).role.label();
        self.decide(Some(no), Rule::FileWaitOver, format!("Stopped waiting for {path}"))
            .because("another task held it for too long")
            .next(format!("the {role} starts again without the file"));
    }

    /// The auditor passed the work, which must be merged before the task is complete.
    pub(super) fn start_merge(&mut self, no: usize, seen: Evidence) {
        self.set_wait(no, Wait::Merge);
        let task = self.at(no);
        self.out.effects.push(Effect::Merge { task: task.spec.id.clone() });
        self.decide(Some(no), Rule::MergeStarted, "Started to merge the work")
            .because("the auditor passed it")
            .seen([seen])
            .next("the task is complete once its work is merged");
    }

    /// The merges that were under way when the coordinator was lost are done again. Where there are no
    /// work trees any more, there is nothing to merge.
    pub(super) fn merge_again(&mut self) {
        for no in self.index.merging().collect::<Vec<_>>() {
            if self.run.config.worktrees {
                self.out.effects.push(Effect::Merge { task: self.at(no).spec.id.clone() });
            } else {
                self.complete_task(no, "the auditor passed it", Vec::new());
            }
        }
    }

    /// How the merge went.
    pub(super) fn merged(&mut self, id: &str, ok: bool, detail: &str) {
        let Some(no) = self.index.number(id).filter(|no| self.at(*no).wait == Wait::Merge) else {
            return;
        };
        if ok {
            let because = "the auditor passed it, and it is merged";
            return self.complete_task(no, because, Vec::new());
        }
        let limit = self.run.config.failure_limit;
        let task = self.at_mut(no);
        task.counters.merge_failures += 1;
        let times = task.counters.merge_failures;
        (task.hands.reviewed_by, task.hands.audited_by) = (None, None);
        task.note("Your work passed the audit but cannot be merged. Bring it up to date:", detail);
        task.last_failure = Some("its work cannot be merged".to_owned());
        let text = format!("{} cannot be merged: {detail}", task.name());
        self.set(no, Role::Developer, Wait::Slot);
        self.notice((Notice::FileConflict, Severity::Warning), Some(no), text);
        if times >= limit {
            let why = format!("{} failed", counted(times, "merge"));
            let new = NewQuestion::new(Rule::MergeLimit, why)
                .knowing(format!("The last merge failed with:\n{detail}"));
            return self.ask_about(no, new);
        }
        let because = match detail.lines().next().map(str::trim) {
            None | Some("") => "it cannot be merged".to_owned(),
            Some(detail) => format!("it cannot be merged: {detail}"),
        };
        self.decide(Some(no), Rule::MergeFailed, "Sent the work back to the developer")
            .because(because)
            .next("the critic and the auditor check the result again");
    }
}
