//! What every Unix does alike, for the Linux implementation and for the fallback.

pub(crate) mod signals;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::io::Errno;
use signal_hook::consts::{SIGTERM, SIGXFSZ};
use signal_hook::flag;

use super::ProgramCheck;

/// Looks at a file as the system would before running it.
pub(crate) fn check_program(path: &Path) -> ProgramCheck {
    match fs::metadata(path) {
        Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => {
            ProgramCheck::Executable
        }
        Ok(_) => ProgramCheck::NotExecutable,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => ProgramCheck::Hidden,
        Err(_) => ProgramCheck::Missing,
    }
}

/// Whether the system does not know how to run a file (`ENOEXEC`).
pub(crate) fn is_not_a_program(error: &io::Error) -> bool {
    error.raw_os_error().map(Errno::from_raw_os_error) == Some(Errno::NOEXEC)
}

/// Makes a program the leader of a session and process group of its own, without a controlling
/// terminal.
pub(crate) fn contain(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    command.wrap(ProcessSession);
    command
}

/// Asks a program and its process group to stop.
pub(crate) fn terminate(child: &dyn ChildWrapper) {
    // Fails when the group is empty.
    let _sent = child.signal(SIGTERM);
}

/// Replaces the default action of `SIGXFSZ`, which is to kill: the write that exceeds the limit then
/// fails with `EFBIG`. A handler and not `SIG_IGN`, because `execve` resets handlers: the programs
/// that we start keep the default action.
pub(crate) fn ignore_file_size_signal() {
    // Nothing is lost if it cannot be registered.
    let _registered = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Whether an operation only has to be tried again.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether a program is named by a path, and not by a name to look up in `PATH`.
pub(crate) fn is_path(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

/// Whether two names of environment variables mean the same variable.
pub(crate) fn same_variable(one: &OsStr, other: &OsStr) -> bool {
    one == other
}

/// Returns the file names under which a program may be found in a directory of `PATH`.
pub(crate) fn spellings(program: &OsStr) -> Vec<OsString> {
    vec![program.to_owned()]
}
