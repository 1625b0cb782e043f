//! What is left of an agent without its supervisor, and ending it.

use std::process;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::cgroup::Cgroup;
use super::clock::since_boot;
use super::reaper::survivors;
use super::tree::{self, Process};
use crate::os::{KILL_LIMIT, Remains};
use crate::{Found, Identity, Mark, Orphan, Survivor};

/// How often it is polled whether the processes have exited.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks for what is left of an agent, and removes its control group if nothing is.
pub(crate) fn find(identity: &Identity) -> Found {
    Traces::of(identity).find()
}

/// Looks for processes that carry a mark.
pub(crate) fn find_marked(mark: &Mark) -> Found {
    Traces::marked(mark.clone()).find()
}

/// By what the processes of an agent are recognised.
#[derive(Clone, Debug)]
pub(super) struct Traces {
    /// Its process and its reaper, by number and start time.
    processes: Vec<(i32, u64)>,
    /// The session of the reaper. Only if the reaper is a child of ours that was not waited for:
    /// then its number cannot have been reused for another session.
    session: Option<i32>,
    mark: Mark,
    cgroup: Option<Cgroup>,
}

impl Traces {
    pub(super) fn of(identity: &Identity) -> Self {
        let agent = identity.start.map(|start| (identity.pid, start));
        let reaper = identity.reaper_pid.zip(identity.reaper_start);
        Self {
            processes: agent.into_iter().chain(reaper).collect(),
            session: None,
            mark: identity.mark.clone(),
            cgroup: identity.cgroup.clone().map(Cgroup::at),
        }
    }

    pub(super) fn marked(mark: Mark) -> Self {
        Self { processes: Vec::new(), session: None, mark, cgroup: None }
    }

    /// Adds what a supervisor knows about its own reaper.
    pub(super) fn with_reaper(self, reaper: i32, cgroup: Option<Cgroup>) -> Self {
        Self { session: Some(reaper), cgroup: self.cgroup.or(cgroup), ..self }
    }

    fn find(self) -> Found {
        if self.alive().is_empty() {
            self.remove_group();
            return Found::Gone;
        }
        Found::Alive(Orphan { remains: Box::new(self) })
    }

    /// Returns every living process that belongs to the agent, its reaper included.
    fn alive(&self) -> Vec<Process> {
        let all = tree::all();
        let is_known = |process: &&Process| {
            self.processes.contains(&(process.pid, process.start))
                || self.session == Some(process.session)
                || process.is_marked(&self.mark)
        };
        let mut found: Vec<Process> = all.iter().filter(is_known).copied().collect();
        found.extend(self.cgroup.iter().flat_map(Cgroup::processes));
        let roots: Vec<i32> = found.iter().map(|process| process.pid).collect();
        found.extend(tree::below(&roots, &all));
        found.sort_unstable_by_key(|process| process.pid);
        found.dedup_by_key(|process| process.pid);
        // An agent may be the one that looks for what is left of itself.
        let own = process::id();
        found.retain(|process| process.is_alive() && process.pid.unsigned_abs() != own);
        found
    }

    /// Kills whatever is left, the reaper included. Returns the survivors.
    pub(super) fn sweep(&self) -> Vec<Survivor> {
        let until = since_boot() + KILL_LIMIT;
        loop {
            let left = self.alive();
            if left.is_empty() {
                self.remove_group();
                return Vec::new();
            }
            if since_boot() >= until {
                return survivors(&left);
            }
            if let Some(group) = &self.cgroup {
                let _killed = group.kill();
            }
            // The reaper goes last: while it lives, no descendant can be orphaned out of the tree.
            let (reaper, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|process| process.is_reaper());
            let targets = if others.is_empty() { reaper } else { others };
            targets.iter().for_each(|process| process.signal(Signal::KILL));
            thread::sleep(PAUSE);
        }
    }

    fn remove_group(&self) {
        if let Some(group) = &self.cgroup {
            group.remove();
        }
    }
}

impl Remains for Traces {
    fn end(&self, grace: Duration) -> Vec<Survivor> {
        // SIGTERM makes the reaper end the tree, and it is the one that can reap.
        for process in self.alive() {
            process.signal(Signal::TERM);
            process.signal(Signal::CONT);
        }
        if let Some(group) = &self.cgroup {
            let _thawed = group.freeze(false);
        }
        let until = since_boot().saturating_add(grace);
        while since_boot() < until {
            if self.alive().is_empty() {
                self.remove_group();
                return Vec::new();
            }
            thread::sleep(PAUSE);
        }
        self.sweep()
    }
}
