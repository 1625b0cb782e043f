//! What is looked up about tasks, so that no step has to look at all of them.
//!
//! Everything here follows from the tasks and is never stored.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::locks::files_of;
use super::plan::Priority;
use super::signal::Role;
use super::task::{Task, Wait};
use aldis_signal::time::Timestamp;

/// The order in which slots are filled: critics, auditors, developers; then the task that most
/// others need, the more important one, the earlier one.
pub(super) type Rank = (u8, Reverse<usize>, Priority, usize);

/// Lookups over the tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    by_id: HashMap<String, usize>,
    /// The tasks that need each task.
    dependents: Vec<Vec<usize>>,
    /// Needs that are not complete.
    unmet: Vec<usize>,
    /// Tasks that wait for a slot, in the order they get one.
    ready: BTreeSet<Rank>,
    /// Tasks that wait for a slot and cannot use one, by the file they lack.
    deferred: HashMap<String, BTreeSet<Rank>>,
    deferred_at: HashMap<usize, String>,
    /// Which tasks hold which file.
    locks: HashMap<String, BTreeSet<usize>>,
    /// Tasks whose agent asked for a file, by age; never many, because an agent of each asked.
    waiting: BTreeMap<(Timestamp, usize), String>,
    /// Tasks that wait for something to change.
    later: BTreeSet<usize>,
    merging: BTreeSet<usize>,
    checking: BTreeSet<usize>,
    complete: BTreeSet<usize>,
    failed: BTreeSet<usize>,
    /// Tasks that differ from how the last step left them.
    pub(super) changed: BTreeSet<usize>,
}

impl Index {
    pub(super) fn new(tasks: &[Task]) -> Self {
        let numbers = || tasks.iter().enumerate();
        let mut index = Self {
            by_id: numbers().map(|(no, task)| (task.spec.id.clone(), no)).collect(),
            dependents: vec![Vec::new(); tasks.len()],
            unmet: vec![0; tasks.len()],
            ..Self::default()
        };
        for (no, task) in numbers() {
            for need in task.spec.needs.iter().collect::<BTreeSet<_>>() {
                let Some(need) = index.number(need) else { continue };
                if let Some(dependents) = index.dependents.get_mut(need) {
                    dependents.push(no);
                }
                let met = tasks.get(need).is_some_and(|need| need.wait == Wait::Complete);
                if let Some(unmet) = index.unmet.get_mut(no) {
                    *unmet += usize::from(!met);
                }
            }
        }
        for (no, task) in numbers() {
            for path in &task.holds {
                index.locks.entry(path.clone()).or_default().insert(no);
            }
            index.enter(no, task);
        }
        index
    }

    pub(super) fn number(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Whether every need of a task is complete.
    pub(super) fn needs_nothing(&self, no: usize) -> bool {
        self.unmet.get(no) == Some(&0)
    }

    pub(super) fn complete(&self) -> usize {
        self.complete.len()
    }

    pub(super) fn failed(&self) -> usize {
        self.failed.len()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.ready.is_empty()
            && self.later.is_empty()
            && self.waiting.is_empty()
            && self.merging.is_empty()
            && self.checking.is_empty()
    }

    /// Takes a task out of the lookups before its wait or role changes.
    pub(super) fn leave(&mut self, no: usize, task: &Task) {
        if let Some(path) = self.deferred_at.remove(&no) {
            let rank = self.rank(no, task);
            drop_from(&mut self.deferred, &path, &rank);
        }
        self.enlist(no, task, false);
        // What it waited for and did not take is for the next in line.
        if task.wait == Wait::Slot {
            self.pass_on(files_of(task));
        }
    }

    /// Enters a task as it now is.
    pub(super) fn enter(&mut self, no: usize, task: &Task) {
        self.enlist(no, task, true);
    }

    /// Enters a task where it belongs, or takes it out.
    fn enlist(&mut self, no: usize, task: &Task, enter: bool) {
        match &task.wait {
            Wait::Slot => {
                let rank = self.rank(no, task);
                set(&mut self.ready, rank, enter);
            }
            Wait::File { path, since } => match enter {
                true => drop(self.waiting.insert((*since, no), path.clone())),
                false => drop(self.waiting.remove(&(*since, no))),
            },
            Wait::Change => set(&mut self.later, no, enter),
            Wait::Merge => set(&mut self.merging, no, enter),
            Wait::Checks { .. } => set(&mut self.checking, no, enter),
            Wait::Complete => set(&mut self.complete, no, enter),
            Wait::Failed => set(&mut self.failed, no, enter),
            Wait::Needs
            | Wait::Agent { .. }
            | Wait::Human { .. }
            | Wait::Expert { .. }
            | Wait::Infrastructure => {}
        }
    }

    /// The first task in line.
    pub(super) fn first_ready(&self) -> Option<usize> {
        self.ready.first().map(|rank| rank.3)
    }

    /// Tasks that wait for something to change.
    pub(super) fn later(&self) -> Vec<usize> {
        self.later.iter().copied().collect()
    }

    /// The tasks whose checks run.
    pub(super) fn checking(&self) -> impl Iterator<Item = usize> {
        self.checking.iter().copied()
    }

    /// Tasks whose work is being merged.
    pub(super) fn merging(&self) -> impl Iterator<Item = usize> {
        self.merging.iter().copied()
    }

    /// The task whose agent has waited for a file for the longest time.
    pub(super) fn oldest_wait(&self) -> Option<(Timestamp, usize)> {
        self.waiting.keys().next().copied()
    }

    /// The task that asked for this file first.
    pub(super) fn first_waiting(&self, path: &str) -> Option<usize> {
        self.waiting.iter().find(|(_, wanted)| *wanted == path).map(|((_, no), _)| *no)
    }

    /// The tasks that need this one.
    pub(super) fn dependents(&self, no: usize) -> &[usize] {
        self.dependents.get(no).map(Vec::as_slice).unwrap_or_default()
    }

    /// Records a completion; returns the tasks that now need nothing more.
    pub(super) fn completed(&mut self, no: usize) -> Vec<usize> {
        let dependents = self.dependents.get(no).cloned().unwrap_or_default();
        let mut freed = Vec::new();
        for dependent in dependents {
            if let Some(unmet) = self.unmet.get_mut(dependent) {
                *unmet = unmet.saturating_sub(1);
                if *unmet == 0 {
                    freed.push(dependent);
                }
            }
        }
        freed
    }

    /// The tasks that hold the file, apart from `no`.
    pub(super) fn holders(&self, path: &str, no: usize) -> Vec<usize> {
        let holders = self.locks.get(path);
        holders.map(|all| all.iter().copied().filter(|it| *it != no).collect()).unwrap_or_default()
    }

    pub(super) fn lock(&mut self, path: &str, no: usize) {
        self.locks.entry(path.to_owned()).or_default().insert(no);
    }

    /// Gives a file back; returns whether it is free now.
    pub(super) fn unlock(&mut self, path: &str, no: usize) -> bool {
        drop_from(&mut self.locks, path, &no);
        !self.locks.contains_key(path)
    }

    /// Defers a task that lacks a file, and lets the next one try the files it could have had.
    pub(super) fn defer(&mut self, no: usize, task: &Task, lacking: &str) {
        let rank = self.rank(no, task);
        if self.ready.remove(&rank) {
            self.deferred.entry(lacking.to_owned()).or_default().insert(rank);
            self.deferred_at.insert(no, lacking.to_owned());
        }
        self.pass_on(files_of(task).filter(|path| path != lacking));
    }

    /// Lets the next ones try the files of these that are free.
    fn pass_on(&mut self, files: impl Iterator<Item = String>) {
        for path in files {
            if !self.locks.contains_key(&path) {
                self.undefer(&path);
            }
        }
    }

    /// Lets the first of those that were deferred for a file try again.
    pub(super) fn undefer(&mut self, path: &str) {
        let first = self.deferred.get(path).and_then(|ranks| ranks.first().copied());
        if let Some(rank) = first {
            drop_from(&mut self.deferred, path, &rank);
            self.deferred_at.remove(&rank.3);
            self.ready.insert(rank);
        }
    }

    fn rank(&self, no: usize, task: &Task) -> Rank {
        let role = match task.role {
            Role::Critic => 0,
            Role::Auditor => 1,
            _ => 2,
        };
        let dependents = self.dependents.get(no).map_or(0, Vec::len);
        (role, Reverse(dependents), task.spec.priority, no)
    }
}

/// Adds a member, or removes it.
fn set<T: Ord>(members: &mut BTreeSet<T>, member: T, add: bool) {
    match add {
        true => drop(members.insert(member)),
        false => drop(members.remove(&member)),
    }
}

/// Removes a member of a set in a map, and the set with its last member.
fn drop_from<T: Ord>(map: &mut HashMap<String, BTreeSet<T>>, key: &str, member: &T) {
    if let Some(set) = map.get_mut(key) {
        set.remove(member);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
