//! A process of ours that goes on without the terminal it was started from.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use process_wrap::std::ChildWrapper;

use crate::os;

/// A process in the background. It goes on when this is dropped.
#[derive(Debug)]
pub struct Background(Box<dyn ChildWrapper>);

impl Background {
    /// Starts a program in a session of its own (`setsid`), so that no hangup and no Ctrl-C of a terminal
    /// reaches it. It reads nothing, and prints to `log`.
    ///
    /// # Errors
    ///
    /// If the system cannot start it.
    pub fn start(program: &Path, args: &[OsString], log: &File) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log.try_clone()?);
        Ok(Self(os::contain(command).spawn()?))
    }

    /// Returns how it ended, if it has.
    ///
    /// # Errors
    ///
    /// If the system does not tell.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}
