//! Finding an agent again after its supervisor was killed.
//!
//! A process number alone names a stranger sooner or later. An [`Identity`] has the start time and
//! the machine's boot as well, a random mark that every process of the agent carries in its
//! environment, and the control group.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::Survivor;
use super::cgroup::Cgroup;
use super::keeper::{KILL_LIMIT, survivors};
use super::launch::MARK_VARIABLE;
use super::tree::{self, Process};
use crate::clock;

/// How often it is looked whether they have gone.
const PAUSE: Duration = Duration::from_millis(10);

/// Who an agent is, in a form that can be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The agent's process.
    pub pid: i32,
    /// When it was started, in ticks since the boot.
    pub start: u64,
    /// The process that keeps it.
    pub keeper_pid: i32,
    /// When that was started.
    pub keeper_start: u64,
    /// Which boot of the machine this was.
    pub boot: String,
    /// What marks every process of the agent.
    pub mark: String,
    /// The agent's control group, if it has one.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
}

/// What is left of an agent.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Gone,
    /// Something that runs.
    Alive(Orphan),
}

/// The rest of an agent whose supervisor has gone.
#[derive(Debug)]
pub struct Orphan {
    identity: Identity,
}

/// Looks for what is left of an agent, and removes its control group if nothing is.
///
/// The caller must know that nobody supervises it any more.
pub fn find(identity: &Identity) -> Found {
    if identity.boot != tree::boot() {
        return Found::Gone;
    }
    if alive(identity).is_empty() {
        identity.clear();
        return Found::Gone;
    }
    Found::Alive(Orphan { identity: identity.clone() })
}

impl Orphan {
    /// Ends it: asks everybody to stop, and after the time of grace kills whoever is left.
    /// Returns who has survived that; there should be nobody.
    pub fn end(self, grace: Duration) -> Vec<Survivor> {
        // Stopping the keeper makes it end the tree, and it is the one who can reap.
        for process in alive(&self.identity) {
            process.signal(Signal::TERM);
            process.signal(Signal::CONT);
        }
        if let Some(group) = &self.identity.cgroup {
            let _thawed = Cgroup::at(group.clone()).freeze(false);
        }
        let until = clock::since_boot().saturating_add(grace);
        while clock::since_boot() < until {
            if alive(&self.identity).is_empty() {
                self.identity.clear();
                return Vec::new();
            }
            thread::sleep(PAUSE);
        }
        sweep(&self.identity)
    }
}

impl Identity {
    /// Removes what the file system knows of it.
    fn clear(&self) {
        if let Some(group) = &self.cgroup {
            Cgroup::at(group.clone()).remove();
        }
    }
}

/// Kills whatever is left of an agent, keeper included. Returns who has survived.
pub(super) fn sweep(identity: &Identity) -> Vec<Survivor> {
    let until = clock::since_boot() + KILL_LIMIT;
    loop {
        let left = alive(identity);
        if left.is_empty() {
            identity.clear();
            return Vec::new();
        }
        if clock::since_boot() >= until {
            return survivors(&left);
        }
        if let Some(group) = &identity.cgroup {
            let _killed = Cgroup::at(group.clone()).kill();
        }
        // The keeper goes last: while it lives, nobody below it can be orphaned out of sight.
        let (keeper, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|process| process.pid == identity.keeper_pid);
        let targets = if others.is_empty() { keeper } else { others };
        targets.iter().for_each(|process| process.signal(Signal::KILL));
        thread::sleep(PAUSE);
    }
}

/// Returns every living process that belongs to an agent, its keeper included.
fn alive(identity: &Identity) -> Vec<Process> {
    let all = tree::all();
    let mut found: Vec<Process> = all
        .iter()
        .filter(|process| {
            let known = (process.pid, process.start);
            known == (identity.pid, identity.start)
                || known == (identity.keeper_pid, identity.keeper_start)
                || process.is_marked(MARK_VARIABLE, &identity.mark)
        })
        .copied()
        .collect();
    if let Some(group) = &identity.cgroup {
        found.extend(Cgroup::at(group.clone()).processes());
    }
    let roots: Vec<i32> = found.iter().map(|process| process.pid).collect();
    found.extend(tree::below(&roots, &all));
    found.sort_unstable_by_key(|process| process.pid);
    found.dedup_by_key(|process| process.pid);
    found.retain(Process::is_alive);
    found
}
