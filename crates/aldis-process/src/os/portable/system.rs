//! What the fallback knows about the machine, its clock and other processes.

use std::io;
use std::time::Duration;

use sysinfo::{Product, System};

use super::members;
use crate::space::{PidSpace, StartTime, machine_digest};
use crate::{Liveness, ReaperArgs};

/// Returns the time since the first call.
#[cfg(windows)]
pub(crate) fn since_boot() -> Duration {
    // The performance counter of Windows goes on while the machine sleeps.
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// Returns `CLOCK_MONOTONIC`, which on macOS goes on while the machine sleeps. (`Instant` stops.)
#[cfg(unix)]
pub(crate) fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the name of the machine.
pub(crate) fn host_name() -> String {
    System::host_name().unwrap_or_default()
}

/// Returns the space of process numbers that this process lives in. Boots need not be told apart:
/// start times are by the calendar. Names of machines change with the network and are not unique, so
/// they count only where the hardware has no identifier.
pub(crate) fn pid_space() -> PidSpace {
    let uuid = Product::uuid().ok().filter(|uuid| !uuid.is_empty());
    let name = || Some(host_name()).filter(|name| !name.is_empty());
    let machine = uuid.or_else(name).map(|machine| machine_digest(&[&machine]));
    PidSpace { machine, boot: None, namespace: None }
}

/// Returns when a process was started, if the system tells.
pub(crate) fn start_time(pid: i32) -> Option<StartTime> {
    members::start_time(pid)
}

/// Returns whether a process of our space lives.
pub(crate) fn liveness(pid: i32, start: Option<StartTime>) -> Liveness {
    match (start, start_time(pid)) {
        (Some(StartTime::Seconds(start)), _) if members::is_alive(pid, start) => Liveness::Alive,
        (_, None) | (Some(StartTime::Seconds(_)), _) => Liveness::Gone,
        (Some(StartTime::Ticks(_)) | None, Some(_)) => Liveness::Unknown,
    }
}

/// Fails: without subreapers a reaper would be of no use.
pub(crate) fn run_reaper(_args: &ReaperArgs) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no reaper for agents"))
}

#[cfg(test)]
mod tests {
    //! As far as the system that runs the tests tells.

    use super::*;

    #[test]
    fn this_process_lives_and_others_do_not() {
        let own = i32::try_from(std::process::id()).unwrap();
        let start = start_time(own);
        assert_eq!(liveness(own, start), Liveness::Alive);
        let Some(StartTime::Seconds(seconds)) = start else { panic!("no start time") };
        assert_eq!(liveness(own, Some(StartTime::Seconds(seconds - 60))), Liveness::Gone);
        assert_eq!(liveness(i32::MAX, start), Liveness::Gone);
        assert_eq!(liveness(i32::MAX, None), Liveness::Gone);
        assert_eq!(liveness(own, None), Liveness::Unknown);
    }

    #[test]
    fn the_machine_is_told_from_others_as_far_as_the_system_tells() {
        assert_eq!(pid_space(), pid_space());
        assert_eq!(pid_space().boot, None);
        assert!(!host_name().is_empty());
    }

    #[test]
    fn the_clock_does_not_go_back() {
        let before = since_boot();
        assert!(since_boot() >= before);
    }

    #[test]
    fn there_is_no_reaper() {
        let args = ReaperArgs { terminal: false, cgroup: None, program: "x".into(), args: vec![] };
        assert_eq!(run_reaper(&args).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
