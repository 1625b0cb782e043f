//! What Windows does in its own way.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use process_wrap::std::{ChildWrapper, CommandWrap, JobObject};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use super::ProgramCheck;
use crate::SignalCounts;

/// `ERROR_BAD_EXE_FORMAT`.
const BAD_EXE_FORMAT: i32 = 193;
/// The endings of programs if `PATHEXT` does not say.
const PATHEXT: &str = ".COM;.EXE;.BAT;.CMD";

/// Looks at a file as the system would before running it. Every file may be run; whether it can
/// shows when it is tried.
pub(crate) fn check_program(path: &Path) -> ProgramCheck {
    match fs::metadata(path) {
        Ok(data) if data.is_file() => ProgramCheck::Executable,
        Ok(_) => ProgramCheck::NotExecutable,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => ProgramCheck::Hidden,
        Err(_) => ProgramCheck::Missing,
    }
}

/// Whether the system does not know how to run a file.
pub(crate) fn is_not_a_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(BAD_EXE_FORMAT)
}

/// Whether a program is named by a path, and not by a name to look up in `PATH`.
pub(crate) fn is_path(program: &OsStr) -> bool {
    program.as_encoded_bytes().iter().any(|byte| matches!(byte, b'/' | b'\\' | b':'))
}

/// Whether two names of environment variables mean the same variable.
pub(crate) fn same_variable(one: &OsStr, other: &OsStr) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Returns the file names under which a program may be found: as it is if it has an ending, else with
/// each of the endings of programs.
pub(crate) fn spellings(program: &OsStr) -> Vec<OsString> {
    if Path::new(program).extension().is_some() {
        return vec![program.to_owned()];
    }
    let endings = env::var("PATHEXT").unwrap_or_else(|_| PATHEXT.to_owned());
    let endings = endings.split(';').filter(|ending| !ending.is_empty());
    let spelling = |ending: &str| {
        let mut spelling = program.to_owned();
        spelling.push(ending);
        spelling
    };
    endings.map(spelling).collect()
}

/// Puts a program and its descendants into a job object.
pub(crate) fn contain(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    command.wrap(JobObject);
    command
}

/// Nothing can be asked to stop.
pub(crate) fn terminate(_child: &dyn ChildWrapper) {}

/// There is no such signal.
pub(crate) fn ignore_file_size_signal() {}

/// Counts the signals that ask this process to stop, which then no longer end it.
///
/// When it is dropped they are no longer counted, and still do not end the process.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
    ids: [SigId; 2],
}

impl Interrupts {
    /// Starts counting.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptors left.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Arc::new(AtomicBool::new(false));
        let terminate = Arc::new(AtomicBool::new(false));
        let ids = [
            flag::register(SIGINT, Arc::clone(&interrupt))?,
            flag::register(SIGTERM, Arc::clone(&terminate))?,
        ];
        Ok(Self { interrupt, terminate, ids })
    }

    /// Returns the signals received since the last call. Where the system does not count (Windows),
    /// several of a kind between two calls are one.
    pub fn take(&self) -> SignalCounts {
        let take = |flag: &AtomicBool| usize::from(flag.swap(false, Ordering::Relaxed));
        SignalCounts { interrupt: take(&self.interrupt), terminate: take(&self.terminate) }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for id in self.ids {
            low_level::unregister(id);
        }
    }
}
