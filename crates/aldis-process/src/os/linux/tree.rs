//! Processes and their parents, read from `/proc`.
//!
//! A process is identified by its number and its start time together, because numbers are reused.
//! Signals go through a pidfd that is opened before the start time is checked, so they cannot reach
//! another process that was given the same number in between.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::launch::MARK_VARIABLE;
use crate::{Mark, REAPER_COMMAND};

/// One process as `/proc/PID/stat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// In clock ticks since the boot.
    pub(super) start: u64,
    state: u8,
    threads: u32,
}

impl Process {
    /// Reads the entry of a process, if there is one.
    pub(super) fn read(pid: i32) -> Option<Self> {
        // The name of the program may be any bytes.
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&text))
    }

    /// The name is in parentheses and may contain some: only the last one closes it.
    fn parse(pid: i32, text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
            state: *fields.first()?.as_bytes().first()?,
            threads: fields.get(17)?.parse().ok()?,
        })
    }

    /// Returns the process if it is still the one that was started then.
    pub(super) fn same(pid: i32, start: u64) -> Option<Self> {
        Self::read(pid).filter(|process| process.start == start)
    }

    /// Whether anything of it still runs. A process whose main thread has exited looks like a
    /// zombie while other threads run on.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X') || self.threads > 1
    }

    /// Whether a signal or a debugger has stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Whether a signal has stopped it. A debugger or `strace` stops for a moment, and often.
    pub(super) fn is_stopped_by_signal(&self) -> bool {
        self.state == b'T'
    }

    /// Sends a signal to this very process. It is not an error if it has exited.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Self::same(self.pid, self.start).is_some() {
            // It may have exited in between.
            let _sent = pidfd_send_signal(&handle, signal);
        }
    }

    /// Returns the name of the program, for messages.
    pub(super) fn name(&self) -> String {
        let name = fs::read(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&name).trim_end().to_owned()
    }

    /// Whether it looks like a reaper of ours: a session leader with that command line.
    pub(super) fn is_reaper(&self) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let command = line.split(|byte| *byte == 0).nth(1);
        self.session == self.pid && command == Some(REAPER_COMMAND.as_bytes())
    }

    /// Whether the process was started with this mark.
    pub(super) fn is_marked(&self, mark: &Mark) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| {
            let entry = String::from_utf8_lossy(entry);
            let variable = entry.split_once('=').filter(|(name, _)| *name == MARK_VARIABLE);
            variable.is_some_and(|(_, value)| mark.is_in(value))
        })
    }
}

/// Returns every process there is.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect()
}

/// Returns the descendants of the processes with these numbers, without these themselves.
pub(super) fn below(roots: &[i32], all: &[Process]) -> Vec<Process> {
    let mut known: HashSet<i32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for process in all {
            if known.contains(&process.parent) && known.insert(process.pid) {
                found.push(*process);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_name_made_to_confuse() {
        let text = "7 (a) R 1 (b)) S 3 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 2 0 991 12 13\n";
        let process = Process::parse(7, text).unwrap();
        assert_eq!((process.parent, process.start, process.state), (3, 991, b'S'));
        assert_eq!((process.session, process.threads), (7, 2));
        assert_eq!(Process::parse(7, "7 (a) S 3"), None);
    }

    #[test]
    fn finds_this_process_and_no_other() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let own = Process::read(pid).unwrap();
        assert!(own.is_alive());
        assert_eq!(Process::same(pid, own.start + 1), None);
        assert!(all().iter().any(|process| process.pid == pid));
    }

    #[test]
    fn walks_the_tree_in_any_order() {
        let process =
            |pid, parent| Process { pid, parent, session: 0, start: 0, state: b'S', threads: 1 };
        let all = [process(9, 8), process(8, 2), process(2, 1), process(3, 1), process(1, 0)];
        let mut found: Vec<i32> = below(&[2], &all).iter().map(|process| process.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [8, 9]);
    }
}
