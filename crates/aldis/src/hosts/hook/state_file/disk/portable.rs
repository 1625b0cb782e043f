//! By names, where the system has no descriptors of directories. Somebody who may write in the
//! project can exchange a directory between the look and the use; there is nothing to prevent that.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{DIRECTORY, FILE, NEXT, ReadOutcome};

/// Reads the project's state file.
pub(crate) fn read(project: &Path) -> ReadOutcome {
    match try_read(project) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => ReadOutcome::Absent,
        Err(error) => ReadOutcome::Refused(format!("`{DIRECTORY}/{FILE}`: {error}")),
    }
}

fn try_read(project: &Path) -> io::Result<ReadOutcome> {
    let path = directory(project)?.join(FILE);
    // Looked at before it is opened: a pipe would wait for a writer that never comes.
    let found = fs::symlink_metadata(&path)?;
    if !found.is_file() {
        return Ok(ReadOutcome::refused("is not a regular file"));
    }
    ReadOutcome::read(File::open(&path)?, found.len())
}

/// A new version of the file, which nobody can see before it is published.
#[derive(Debug)]
pub(in crate::hosts::hook::state_file) struct NextVersion {
    directory: PathBuf,
    text: String,
}

impl NextVersion {
    /// Makes the directory where it is missing.
    ///
    /// # Errors
    ///
    /// Fails if that is not safe. Nothing has changed then.
    pub(in crate::hosts::hook::state_file) fn prepare(
        project: &Path,
        text: String,
    ) -> io::Result<Self> {
        let directory = match directory(project) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match fs::create_dir(project.join(DIRECTORY)) {
                    // Another process prepares its first version, too.
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => directory(project)?,
                }
            }
            found => found?,
        };
        Ok(Self { directory, text })
    }

    /// Writes the version, and puts it in the file's place. The caller holds the project's turn.
    ///
    /// # Errors
    ///
    /// Fails if that is not safe. The file has not changed then.
    pub(in crate::hosts::hook::state_file) fn publish(&self) -> io::Result<()> {
        let (file, next) = (self.directory.join(FILE), self.directory.join(NEXT));
        if fs::symlink_metadata(&file).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("something else than a file is in its place"));
        }
        // What a process left behind that was killed here: nobody else uses it during the turn.
        let _removed = fs::remove_file(&next);
        let mut options = OpenOptions::new();
        let mut written = options.write(true).create_new(true).open(&next)?;
        written.write_all(self.text.as_bytes())?;
        written.sync_all()?;
        drop(written);
        fs::rename(&next, &file).inspect_err(|_| {
            // The first error is the one to report.
            let _removed = fs::remove_file(&next);
        })
    }

    /// Does nothing: these systems make names durable by themselves, or not at all.
    ///
    /// # Errors
    ///
    /// Never.
    pub(in crate::hosts::hook::state_file) fn sync(self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the directory, if it is one.
fn directory(project: &Path) -> io::Result<PathBuf> {
    let directory = project.join(DIRECTORY);
    if fs::symlink_metadata(&directory)?.is_dir() {
        Ok(directory)
    } else {
        Err(io::Error::other("lies behind a link"))
    }
}
