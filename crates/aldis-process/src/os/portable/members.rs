//! The processes of an agent, from the system's list of processes.

use std::collections::HashSet;
use std::process;

use sysinfo::{
    Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, Signal, System, UpdateKind,
};

use crate::launch::MARK_VARIABLE;
use crate::space::StartTime;
use crate::{Mark, Survivor};

/// How much a start time may differ from one reading to the next: some systems compute it from the
/// wall clock.
const START_SLACK: u64 = 2;

/// Returns when a process was started, if the system tells.
pub(crate) fn start_time(pid: i32) -> Option<StartTime> {
    let pid = as_pid(pid)?;
    let system = list(ProcessesToUpdate::Some(&[pid]))?;
    let start = system.process(pid)?.start_time();
    (start > 0).then_some(StartTime::Seconds(start))
}

/// Whether a process is alive that was started then.
#[cfg(any(not(target_os = "linux"), test))]
pub(crate) fn is_alive(pid: i32, start: u64) -> bool {
    let found = || {
        let pid = as_pid(pid)?;
        let system = list(ProcessesToUpdate::Some(&[pid]))?;
        system.process(pid).map(|process| is_same(process, start) && lives(process))
    };
    found().unwrap_or(false)
}

/// Living processes of one agent, as they were listed at some moment.
#[derive(Debug)]
pub(super) struct ProcessMembers {
    system: Option<System>,
    pids: Vec<Pid>,
    /// The leader of the session, if that counts.
    session: Option<Pid>,
}

impl ProcessMembers {
    /// Finds the agent's process by number and start time, its session by number, whoever carries the
    /// mark, and the descendants of all these.
    pub(super) fn find(leader: Option<(i32, u64)>, session: Option<i32>, mark: &Mark) -> Self {
        let leader = leader.and_then(|(pid, start)| Some((as_pid(pid)?, start)));
        // What Windows calls a session is that of a user.
        let session = session.and_then(as_pid).filter(|_| cfg!(unix));
        let Some(system) = list(ProcessesToUpdate::All) else {
            return Self { system: None, pids: Vec::new(), session };
        };
        let is_known = |process: &Process| {
            let is_leader = |(pid, start)| process.pid() == pid && is_same(process, start);
            leader.is_some_and(is_leader)
                || (session.is_some() && process.session_id() == session)
                || is_marked(process, mark)
        };
        let own = Pid::from_u32(process::id());
        let known: HashSet<Pid> =
            system.processes().values().filter(|it| is_known(it)).map(Process::pid).collect();
        let mut pids: Vec<Pid> = with_descendants(&system, known).into_iter().collect();
        pids.retain(|pid| *pid != own && system.process(*pid).is_some_and(lives));
        Self { system: Some(system), pids, session }
    }

    /// Leaves out those that a signal to the group reaches.
    pub(super) fn outside_of_session(self) -> Self {
        let Self { system, mut pids, session } = self;
        let process = |pid: &Pid| system.as_ref().and_then(|system| system.process(*pid));
        pids.retain(|pid| {
            session.is_none() || process(pid).is_some_and(|it| it.session_id() != session)
        });
        Self { system, pids, session }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pids.is_empty()
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Fails for those that have just exited.
        for process in self.processes() {
            process.kill_with(signal);
        }
    }

    pub(super) fn kill(&self) {
        for process in self.processes() {
            process.kill();
        }
    }

    pub(super) fn survivors(&self) -> Vec<Survivor> {
        let survivor = |process: &Process| Survivor {
            pid: i32::try_from(process.pid().as_u32()).unwrap_or_default(),
            name: process.name().to_string_lossy().into_owned(),
        };
        self.processes().map(survivor).collect()
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        let process = |pid: &Pid| self.system.as_ref().and_then(|system| system.process(*pid));
        self.pids.iter().filter_map(process)
    }
}

fn with_descendants(system: &System, mut known: HashSet<Pid>) -> HashSet<Pid> {
    loop {
        let is_child = |process: &&Process| {
            let parent = process.parent().filter(|parent| known.contains(parent));
            // Windows does not forget the number of a parent that has exited, and reuses it.
            let older = |parent: &Process| {
                parent.start_time() <= process.start_time().saturating_add(START_SLACK)
            };
            !known.contains(&process.pid())
                && parent.and_then(|parent| system.process(parent)).is_some_and(older)
        };
        let children: Vec<Pid> =
            system.processes().values().filter(is_child).map(Process::pid).collect();
        if children.is_empty() {
            return known;
        }
        known.extend(children);
    }
}

/// Lists processes, not their threads, with the environment where the system shows it.
fn list(which: ProcessesToUpdate<'_>) -> Option<System> {
    let mut system = System::new().ok()?;
    let kind = ProcessRefreshKind::nothing().without_tasks().with_environ(UpdateKind::Always);
    system.refresh_processes_specifics(which, true, kind);
    Some(system)
}

fn as_pid(pid: i32) -> Option<Pid> {
    u32::try_from(pid).ok().map(Pid::from_u32)
}

fn is_same(process: &Process, start: u64) -> bool {
    process.start_time().abs_diff(start) <= START_SLACK
}

fn lives(process: &Process) -> bool {
    !matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead)
}

fn is_marked(process: &Process, mark: &Mark) -> bool {
    process.environ().iter().any(|entry| {
        let entry = entry.to_string_lossy();
        let variable = entry.split_once('=').filter(|(name, _)| *name == MARK_VARIABLE);
        variable.is_some_and(|(_, value)| mark.is_in(value))
    })
}

#[cfg(test)]
mod tests {
    //! Start times and living processes, as this system tells them.

    use super::*;

    #[test]
    fn this_process_is_found_and_no_other() {
        let own = i32::try_from(process::id()).unwrap();
        let Some(StartTime::Seconds(start)) = start_time(own) else { panic!("no start time") };
        assert!(is_alive(own, start) && is_alive(own, start + START_SLACK));
        assert!(!is_alive(own, start + START_SLACK + 1), "a reused number");
        assert!(!is_alive(i32::MAX, start));
        let nobody = ProcessMembers::find(None, None, &Mark::random().unwrap());
        assert!(nobody.is_empty());
    }
}
