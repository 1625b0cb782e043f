//! By descriptors: what was looked at is what is read and written, whoever changes names meanwhile.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fstat, linkat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::{DIRECTORY, FILE, NEXT, ReadOutcome};

/// Who may read and write it.
const MODE: Mode = Mode::from_raw_mode(0o644);

/// Reads the project's state file.
pub(crate) fn read(project: &Path) -> ReadOutcome {
    match try_read(project) {
        Ok(found) => found,
        Err(Errno::NOENT) => ReadOutcome::Absent,
        Err(Errno::LOOP | Errno::NOTDIR) => {
            ReadOutcome::Refused(format!("`{DIRECTORY}/{FILE}` is or lies behind a symbolic link"))
        }
        Err(error) => ReadOutcome::Refused(format!("`{DIRECTORY}/{FILE}`: {error}")),
    }
}

fn try_read(project: &Path) -> Result<ReadOutcome, Errno> {
    let directory = open_directory(project)?;
    // Without O_NONBLOCK a pipe would wait for a writer that never comes.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&directory, FILE, flags, Mode::empty())?);
    let status = fstat(&file)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Ok(ReadOutcome::refused("is not a regular file"));
    }
    ReadOutcome::read(file, u64::try_from(status.st_size).unwrap_or(0))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// A new version of the file: its bytes are durable, and nobody can see it before it is published.
#[derive(Debug)]
pub(in crate::hosts::hook::state_file) struct NextVersion {
    directory: OwnedFd,
    text: String,
    /// The bytes in a file without a name, where the system has such files.
    unnamed: Option<File>,
}

impl NextVersion {
    /// Writes and syncs a new version, making the directory where it is missing.
    ///
    /// Needs no lock. A file without a name is nobody else's, so that several processes prepare
    /// theirs at once, and the system deletes what a killed one leaves behind.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written safely. Nothing has changed then.
    pub(in crate::hosts::hook::state_file) fn prepare(
        project: &Path,
        text: String,
    ) -> io::Result<Self> {
        let directory = match open_directory(project) {
            Err(Errno::NOENT) => {
                match mkdirat(open_root(project)?, DIRECTORY, Mode::from_raw_mode(0o755)) {
                    // Another process prepares its first version, too.
                    Ok(()) | Err(Errno::EXIST) => open_directory(project)?,
                    Err(error) => return Err(error.into()),
                }
            }
            opened => opened?,
        };
        let unnamed = create_unnamed(&directory).ok().map(File::from);
        if let Some(mut file) = unnamed.as_ref() {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        Ok(Self { directory, text, unnamed })
    }

    /// The same as where files always have a name.
    #[cfg(test)]
    pub(super) fn named(self) -> Self {
        Self { unnamed: None, ..self }
    }

    /// Puts the version in the file's place. The caller holds the project's turn: the name under
    /// which the version is for a moment is the same for all.
    ///
    /// # Errors
    ///
    /// Fails if that is not safe. Nothing has changed then.
    pub(in crate::hosts::hook::state_file) fn publish(&self) -> io::Result<()> {
        if let Ok(status) = statat(&self.directory, FILE, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(status.st_mode) != FileType::RegularFile
        {
            return Err(io::Error::other("something else than a file is in its place"));
        }
        let linked = self.unnamed.as_ref().is_some_and(|file| self.link(file).is_ok());
        if !linked {
            self.write_named()?;
        }
        renameat(&self.directory, NEXT, &self.directory, FILE).map_err(|error| {
            // The first error is the one to report.
            let _removed = unlinkat(&self.directory, NEXT, AtFlags::empty());
            error.into()
        })
    }

    /// Makes the new name durable.
    ///
    /// # Errors
    ///
    /// Fails if the disk does.
    pub(in crate::hosts::hook::state_file) fn sync(self) -> io::Result<()> {
        File::from(self.directory).sync_all()
    }

    /// Gives the file its first name.
    fn link(&self, file: &File) -> Result<(), Errno> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        self.in_place_of_leftover(|| {
            linkat(CWD, &*path, &self.directory, NEXT, AtFlags::SYMLINK_FOLLOW)
        })
    }

    /// Writes the version under its name, where there are no files without one. Slower for all who
    /// wait for the turn, and as safe.
    fn write_named(&self) -> io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || openat(&self.directory, NEXT, flags, MODE);
        let mut file = File::from(self.in_place_of_leftover(create)?);
        file.write_all(self.text.as_bytes())?;
        file.sync_all()
    }

    /// Removes what a process left behind that was killed here: nobody else uses it while the caller
    /// holds the turn.
    fn in_place_of_leftover<T>(&self, make: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match make() {
            Err(Errno::EXIST) => {
                unlinkat(&self.directory, NEXT, AtFlags::empty())?;
                make()
            }
            made => made,
        }
    }
}

#[cfg(target_os = "linux")]
fn create_unnamed(directory: &OwnedFd) -> Result<OwnedFd, Errno> {
    openat(directory, ".", OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, MODE)
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed(_directory: &OwnedFd) -> Result<OwnedFd, Errno> {
    Err(Errno::NOTSUP)
}

fn open_root(project: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(project, flags, Mode::empty())
}

fn open_directory(project: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(open_root(project)?, DIRECTORY, flags, Mode::empty())
}
