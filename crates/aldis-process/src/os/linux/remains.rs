//! What is left of an agent without its supervisor, and ending it.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::cgroup::Cgroup;
use super::clock::since_boot;
use super::reaper::survivors;
use super::tree::{self, Process};
use crate::launch::MARK_VARIABLE;
use crate::os::{KILL_LIMIT, Remains};
use crate::{Found, Identity, Orphan, Survivor};

/// How often it is polled whether the processes have exited.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks for what is left of an agent, and removes its control group if nothing is.
pub(crate) fn find(identity: &Identity) -> Found {
    if identity.boot != tree::boot() {
        return Found::Gone;
    }
    if alive(identity).is_empty() {
        remove_group(identity);
        return Found::Gone;
    }
    Found::Alive(Orphan { remains: Box::new(Traces { identity: identity.clone() }) })
}

#[derive(Debug)]
struct Traces {
    identity: Identity,
}

impl Remains for Traces {
    fn end(&self, grace: Duration) -> Vec<Survivor> {
        // SIGTERM makes the reaper end the tree, and it is the one that can reap.
        for process in alive(&self.identity) {
            process.signal(Signal::TERM);
            process.signal(Signal::CONT);
        }
        if let Some(group) = &self.identity.cgroup {
            let _thawed = Cgroup::at(group.clone()).freeze(false);
        }
        let until = since_boot().saturating_add(grace);
        while since_boot() < until {
            if alive(&self.identity).is_empty() {
                remove_group(&self.identity);
                return Vec::new();
            }
            thread::sleep(PAUSE);
        }
        sweep(&self.identity)
    }
}

fn remove_group(identity: &Identity) {
    if let Some(group) = &identity.cgroup {
        Cgroup::at(group.clone()).remove();
    }
}

/// Kills whatever is left of an agent, reaper included. Returns the survivors.
pub(super) fn sweep(identity: &Identity) -> Vec<Survivor> {
    let until = since_boot() + KILL_LIMIT;
    loop {
        let left = alive(identity);
        if left.is_empty() {
            remove_group(identity);
            return Vec::new();
        }
        if since_boot() >= until {
            return survivors(&left);
        }
        if let Some(group) = &identity.cgroup {
            let _killed = Cgroup::at(group.clone()).kill();
        }
        // The reaper goes last: while it lives, no descendant can be orphaned out of the tree.
        let (reaper, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|process| process.pid == identity.reaper_pid);
        let targets = if others.is_empty() { reaper } else { others };
        targets.iter().for_each(|process| process.signal(Signal::KILL));
        thread::sleep(PAUSE);
    }
}

/// Returns every living process that belongs to an agent, its reaper included.
fn alive(identity: &Identity) -> Vec<Process> {
    let all = tree::all();
    let mut found: Vec<Process> = all
        .iter()
        .filter(|process| {
            let known = (process.pid, process.start);
            known == (identity.pid, identity.start)
                || known == (identity.reaper_pid, identity.reaper_start)
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
