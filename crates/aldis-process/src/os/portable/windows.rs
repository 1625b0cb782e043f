//! The agent's process and job object on Windows.
//!
//! Windows has no signals. A console program could be sent a console event, and a process could be
//! suspended thread by thread; both need calls that this crate, which has no unsafe code, cannot make.

use std::ffi::OsStr;
use std::process::Command;

use process_wrap::std::ChildWrapper;

use crate::{Exit, Output};

/// What a group can be asked for elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Continue,
    Interrupt,
    Stop,
    Terminate,
}

impl Request {
    /// Returns the signal for processes outside of the group: there is none.
    pub(super) fn signal(self) -> Option<sysinfo::Signal> {
        None
    }
}

/// The name of a program is part of its command line and cannot be chosen.
pub(super) fn set_name(_command: &mut Command, _name: &OsStr) {}

/// Does nothing.
pub(super) fn request(_child: &dyn ChildWrapper, _wanted: Request) {}

/// Returns whether the agent has exited.
pub(super) fn poll(child: &mut dyn ChildWrapper) -> Option<Output> {
    let status = child.try_wait().ok()??;
    Some(Output::Exited(Exit { code: status.code(), signal: None }))
}
