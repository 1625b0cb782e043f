//! The agent's process and group on any Unix.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use process_wrap::std::ChildWrapper;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use crate::{Exit, Output};

/// What a group can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Continue,
    Interrupt,
    Stop,
    Terminate,
}

impl Request {
    /// Returns the signal for processes outside of the group, if the system has such signals.
    pub(super) fn signal(self) -> Option<sysinfo::Signal> {
        Some(match self {
            Self::Continue => sysinfo::Signal::Continue,
            Self::Interrupt => sysinfo::Signal::Interrupt,
            Self::Stop => sysinfo::Signal::Stop,
            Self::Terminate => sysinfo::Signal::Term,
        })
    }

    fn number(self) -> i32 {
        match self {
            Self::Continue => Signal::CONT,
            Self::Interrupt => Signal::INT,
            Self::Stop => Signal::STOP,
            Self::Terminate => Signal::TERM,
        }
        .as_raw()
    }
}

/// Sets the name that a program is given for itself (`argv[0]`).
pub(super) fn set_name(command: &mut Command, name: &OsStr) {
    command.arg0(name);
}

/// Asks the process group for something.
pub(super) fn request(child: &dyn ChildWrapper, wanted: Request) {
    // Fails when the group is empty.
    let _sent = child.signal(wanted.number());
}

/// Returns whether the agent has exited or was stopped since the last call. It is not waited for
/// (`WNOWAIT`): as long as it is a zombie, the number of its group cannot be reused.
#[expect(clippy::needless_pass_by_ref_mut, reason = "on Windows it has to be")]
pub(super) fn poll(child: &mut dyn ChildWrapper) -> Option<Output> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(pid), exited) {
        Ok(Some(status)) => {
            let code = status.exit_status();
            return Some(Output::Exited(Exit { code, signal: status.terminating_signal() }));
        }
        Ok(None) => {}
        // Somebody else has waited for it. Nobody can tell any more how it ended.
        Err(_) => return Some(Output::Exited(Exit { code: None, signal: None })),
    }
    let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
    matches!(stopped, Ok(Some(_))).then_some(Output::Stopped)
}
