//! Selects the implementation for this system. Only this file and those below `os/` know platforms.
//!
//! [`Supervised`] and [`Remains`] are what an implementation provides; the contract is that of
//! [`Agent`](crate::Agent) and [`Orphan`](crate::Orphan).

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod portable;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fmt::Debug;
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{
    find_marked, host_name, liveness, pid_space, run_reaper, since_boot, start_time,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::portable::{
    find, find_marked, host_name, liveness, pid_space, run_reaper, since_boot, start, start_time,
};
#[cfg(unix)]
pub use self::unix::signals::Interrupts;
#[cfg(unix)]
pub(crate) use self::unix::{
    check_program, contain, ignore_file_size_signal, is_not_a_program, is_path, same_variable,
    spellings, terminate,
};
#[cfg(windows)]
pub use self::windows::Interrupts;
#[cfg(windows)]
pub(crate) use self::windows::{
    check_program, contain, ignore_file_size_signal, is_not_a_program, is_path, same_variable,
    spellings, terminate,
};
#[cfg(target_os = "linux")]
use crate::{Ended, Found, Identity, Launch, Output, StartError, Supervision, Survivor};
#[cfg(not(target_os = "linux"))]
use crate::{Ended, Identity, Output, Survivor};

/// How long a descendant may hold the output open after the agent has exited.
pub(crate) const LEAK_WINDOW: Duration = Duration::from_millis(100);
/// How long descendants may take to stop once the agent itself has exited.
pub(crate) const STRAGGLER_GRACE: Duration = Duration::from_millis(250);
/// How long killing may take. Only a process stuck in the kernel takes longer.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A running agent. Dropping it kills it with everything it has started.
pub(crate) trait Supervised: Debug + Send {
    /// See [`Agent::identity`](crate::Agent::identity).
    fn identity(&self) -> &Identity;
    /// See [`Agent::next`](crate::Agent::next).
    fn next(&self, timeout: Duration) -> Option<Output>;
    /// See [`Agent::interrupt`](crate::Agent::interrupt).
    fn interrupt(&self);
    /// See [`Agent::suspend`](crate::Agent::suspend).
    fn suspend(&self);
    /// See [`Agent::resume`](crate::Agent::resume).
    fn resume(&self);
    /// See [`Agent::end_with`](crate::Agent::end_with).
    fn end(&mut self, grace: Duration, on_output: &mut dyn FnMut(Output)) -> Ended;
}

/// Processes of an agent whose supervisor is gone.
pub(crate) trait Remains: Debug + Send {
    /// See [`Orphan::end`](crate::Orphan::end).
    fn end(&self, grace: Duration) -> Vec<Survivor>;
}

/// What a file looks like that is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramCheck {
    Executable,
    NotExecutable,
    /// In a directory that we may not search.
    Hidden,
    Missing,
}

/// Starts an agent.
#[cfg(target_os = "linux")]
pub(crate) fn start(launch: &Launch) -> Result<Box<dyn Supervised>, StartError> {
    match launch.supervision {
        Supervision::Native => linux::start(launch),
        #[cfg(feature = "portable")]
        Supervision::Portable => portable::start(launch),
        #[cfg(not(feature = "portable"))]
        Supervision::Portable => Err(StartError::NotSupported { what: "the portable fallback" }),
    }
}

/// Looks for what is left of an agent, with the implementation that has started it.
#[cfg(target_os = "linux")]
pub(crate) fn find(identity: &Identity) -> Found {
    match (identity.start, identity.started_at) {
        #[cfg(feature = "portable")]
        (None, Some(_)) => portable::find(identity),
        #[cfg(not(feature = "portable"))]
        (None, Some(_)) => Found::Unknown,
        _ => linux::find(identity),
    }
}
