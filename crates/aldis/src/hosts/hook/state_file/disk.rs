//! The state file on disk, in a repository that may be hostile: no link is followed below the project's
//! root, only regular files of a reasonable size are read, and a new version replaces the old one
//! whole.

use std::fs::File;
use std::io::{self, Read as _};

#[cfg(any(not(unix), test))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(super) use self::portable::NextVersion;
#[cfg(not(unix))]
pub(crate) use self::portable::read;
#[cfg(unix)]
pub(super) use self::unix::NextVersion;
#[cfg(unix)]
pub(crate) use self::unix::read;

/// What stands where the state file should be. Exhaustive: each decides differently.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    /// Nothing.
    Absent,
    /// A file with this text.
    Text(String),
    /// Something that is not to be touched, and why.
    Refused(String),
}

impl ReadOutcome {
    fn refused(why: &str) -> Self {
        Self::Refused(format!("`{DIRECTORY}/{FILE}` {why}"))
    }

    /// Reads a regular file that has about this length.
    fn read(file: File, length: u64) -> io::Result<Self> {
        // Room for the end of the file as well, so that two reads are enough.
        let room = usize::try_from(length.min(BYTES_MAX)).unwrap_or(0) + 1;
        let mut bytes = Vec::with_capacity(room);
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Ok(Self::refused("is too large"));
        }
        Ok(String::from_utf8(bytes).map_or_else(|_| Self::refused("is not UTF-8"), Self::Text))
    }
}

/// The file as people know it.
pub(in crate::hosts::hook) const SHOWN_NAME: &str = ".caw/auto-state.json";
/// The directory in the project.
pub(super) const DIRECTORY: &str = ".caw";
/// The file in it.
const FILE: &str = "auto-state.json";
/// Where the next version is for a moment.
const NEXT: &str = ".auto-state.json.next";
/// The longest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests;
