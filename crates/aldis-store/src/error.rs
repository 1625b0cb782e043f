//! What can go wrong: refusals are for code to branch on, store errors for people to read.

use std::io;
use std::path::Path;

use aldis_signal::time::Timestamp;

use crate::step::{Revision, RunId};

/// The store could not do its work. The message names the location and the remedy.
///
/// After a failed write the outcome is unknown: the step may be there. Repeating the very same step
/// is safe, because one that was written after all is then refused as
/// [`CommitError::Conflict`] or [`CommitError::Duplicate`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Somebody else held the database for too long.
    #[error("{location} is held by another process; try again, or find the process that hangs")]
    Busy {
        /// Which store.
        location: String,
    },
    /// No space left. Nothing acknowledged is lost.
    #[error("no space left for {location}; free some and try again, nothing recorded is lost")]
    Full {
        /// Which store.
        location: String,
    },
    /// The store can be read but not written.
    #[error(
        "{location} cannot be written ({detail}); make it writable, or choose another directory"
    )]
    ReadOnly {
        /// Which store.
        location: String,
        /// The error of the system.
        detail: String,
    },
    /// What is stored is not what was written, or is not ours.
    #[error(
        "{location} is damaged or not an Aldis database ({detail}); move it away, or restore a backup"
    )]
    Corrupt {
        /// Which store.
        location: String,
        /// What was found.
        detail: String,
    },
    /// A newer version has been here. It may have changed meanings, so nothing is touched.
    #[error(
        "{location} was written by a newer version (schema {found}, this one knows {known}); \
         update this program"
    )]
    NewerSchema {
        /// Which store.
        location: String,
        /// The schema it has.
        found: u32,
        /// The newest one this program knows.
        known: u32,
    },
    /// The SQLite library can damage a database that several processes use.
    #[error("SQLite {version} is too old; build with 3.51.3 or newer (the bundled one is)")]
    OldLibrary {
        /// Its version.
        version: &'static str,
    },
    /// The location is not one to keep state in: others could read or replace it.
    #[error("refusing to use {location}: {why}")]
    Unsafe {
        /// The file or directory.
        location: String,
        /// What is wrong with it, and the remedy.
        why: &'static str,
    },
    /// The system failed. The connection is not used again; the next call opens a new one.
    #[error("failed to {doing} in {location}: {detail}; check the disk and the permissions")]
    Io {
        /// Which store.
        location: String,
        /// What was being done.
        doing: &'static str,
        /// The error of the system.
        detail: String,
    },
    /// The address of a database that cannot be used. It is not repeated: it may hold a password.
    #[error("the address of the store is wrong: {why}; write postgres://USER@HOST/DATABASE")]
    BadAddress {
        /// What is wrong with it.
        why: String,
    },
    /// The server did not answer, or the connection broke.
    #[error(
        "failed to {doing}: {location} does not answer ({detail}); see that the server runs and the \
         address is right"
    )]
    Unreachable {
        /// Which store.
        location: String,
        /// What was being done.
        doing: &'static str,
        /// What the server or the system says.
        detail: String,
    },
    /// The server knows us and refuses.
    #[error("{location} does not allow this ({detail}); docs/store.md lists what the role needs")]
    NotAllowed {
        /// Which store.
        location: String,
        /// What the server says.
        detail: String,
    },
    /// The tables are of an older version, or came back from a backup. Others may be using them, so
    /// that changing them is a command of its own.
    #[error(
        "{location} is not up to date; run `aldis store migrate` once every machine is updated"
    )]
    OlderSchema {
        /// Which store.
        location: String,
    },
    /// Anything else.
    #[error("failed to {doing} in {location}: {detail}")]
    Other {
        /// Which store.
        location: String,
        /// What was being done.
        doing: &'static str,
        /// What went wrong.
        detail: String,
    },
}

impl StoreError {
    /// Returns whether waiting can help: somebody holds the store, or there is no space now.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Full { .. } | Self::Io { .. } | Self::Unreachable { .. }
        )
    }

    /// Sorts an error of the file system.
    pub(crate) fn from_io(error: &io::Error, location: &Path, doing: &'static str) -> Self {
        let location = location.display().to_string();
        let detail = error.to_string();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { location },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { location, detail }
            }
            _ => Self::Io { location, doing, detail },
        }
    }
}

/// Why a step was not committed. Nothing of it was written, except where [`StoreError`] says that
/// the outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// Somebody else stepped the run first: read it again, decide again, and retry.
    #[error("the run moved on to revision {found} meanwhile")]
    Conflict {
        /// Where the run stands.
        found: Revision,
    },
    /// This delivery has been recorded before: its answer are the decisions of that revision.
    #[error("`{source_key}` has already been recorded")]
    Duplicate {
        /// The source that is known, or that the step names twice.
        source_key: String,
        /// The digest of the first delivery, where it is known. Another one means that the key was
        /// used for two requests.
        digest: Option<String>,
        /// The revision whose step took the first delivery, where it is known.
        revision: Option<Revision>,
    },
    /// The writer's lease has passed to somebody else: stop coordinating this run.
    #[error("another coordinator took over (fencing number {current})")]
    Fenced {
        /// The number that counts.
        current: u64,
    },
    /// The step is not the first one, and there is no such run.
    #[error("there is no run `{run}`")]
    NoSuchRun {
        /// The run that is missing.
        run: RunId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a lease was not given or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Somebody else holds it.
    #[error("`{holder}` coordinates this run until {until}")]
    Held {
        /// Who.
        holder: String,
        /// When to ask again.
        until: Timestamp,
        /// Its fencing number, to end exactly this lease if its holder is gone.
        fence: u64,
    },
    /// It was released, or somebody else took it: stop coordinating this run.
    #[error("the lease was lost (fencing number {current})")]
    Lost {
        /// The number that counts.
        current: u64,
    },
    /// There is no such run.
    #[error("there is no run `{run}`")]
    NoSuchRun {
        /// The run that is missing.
        run: RunId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
