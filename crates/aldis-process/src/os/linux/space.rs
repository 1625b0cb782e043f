//! Which machine, boot and PID namespace this is, and whether a process of it lives.

use std::fs;
use std::process;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::tree::Process;
use crate::Liveness;
use crate::space::{PidSpace, StartTime, machine_digest};

/// Where the identifier of the machine is; the second is that of systems without systemd.
const MACHINE_FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// Returns the space of process numbers that this process lives in.
pub(crate) fn pid_space() -> PidSpace {
    PidSpace { machine: machine(), boot: boot(), namespace: Some(namespace()) }
}

/// Returns the name of the machine or container.
pub(crate) fn host_name() -> String {
    first_line("/proc/sys/kernel/hostname").unwrap_or_default()
}

/// Images of virtual machines are often cloned with the identifier in them, so the name of the
/// machine counts as well.
fn machine() -> Option<String> {
    let id = MACHINE_FILES.iter().find_map(|file| first_line(file))?;
    Some(machine_digest(&[&id, &host_name()]))
}

fn boot() -> Option<String> {
    first_line("/proc/sys/kernel/random/boot_id")
}

fn first_line(file: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Returns the inode of the PID namespace (`pid:[4026531836]`).
fn namespace() -> u64 {
    let own = fs::read_link("/proc/self").unwrap_or_default();
    // A /proc that was mounted outside of our namespace shows processes by other numbers.
    if own.to_str() != Some(&process::id().to_string()) {
        return PidSpace::UNKNOWN;
    }
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let inode = link.to_str().and_then(|link| link.strip_prefix("pid:[")?.strip_suffix(']'));
    inode.and_then(|inode| inode.parse().ok()).unwrap_or(PidSpace::UNKNOWN)
}

/// Returns when a process was started.
pub(crate) fn start_time(pid: i32) -> Option<StartTime> {
    Process::read(pid).map(|process| StartTime::Ticks(process.start))
}

/// Returns whether a process of our space lives.
pub(crate) fn liveness(pid: i32, start: Option<StartTime>) -> Liveness {
    let Some(process) = Process::read(pid) else {
        // With `hidepid`, /proc does not show processes of other users; kill(2) tells of them.
        let exists = Pid::from_raw(pid).map(test_kill_process);
        return match exists {
            None | Some(Err(Errno::SRCH)) => Liveness::Gone,
            Some(_) => Liveness::Unknown,
        };
    };
    match start {
        Some(StartTime::Ticks(ticks)) if ticks == process.start && process.is_alive() => {
            Liveness::Alive
        }
        Some(StartTime::Ticks(_)) => Liveness::Gone,
        Some(StartTime::Seconds(_)) | None => Liveness::Unknown,
    }
}
