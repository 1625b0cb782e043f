//! Where the database lives, and whether it is safe there.
//!
//! A state directory that somebody else can write to, or that leads elsewhere, would let a checkout
//! or another user choose what we read. Refusing is cheaper than repairing.

use std::fs::{self, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// From this length on the log is copied back. The first process to open a database reads the whole
/// log, and that is often a hook with 3 ms to live.
pub(super) const LOG_MAX: u64 = 512 << 10;

/// The paths of one store.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    pub(super) db: PathBuf,
    pub(super) lock: PathBuf,
    pub(super) turns: PathBuf,
    log: PathBuf,
}

impl Files {
    /// Names the files in `dir`, without touching them.
    pub(super) fn of(dir: &Path) -> Result<Self, StoreError> {
        // Absolute, so that a later change of directory does not lead a reconnection elsewhere and
        // SQLite cannot take the name for a URI.
        let dir = std::path::absolute(dir)
            .map_err(|error| StoreError::from_io(&error, dir, "find the directory"))?;
        Ok(Self {
            db: dir.join("aldis.db"),
            lock: dir.join("aldis.db.lock"),
            turns: dir.join("aldis.db.turns"),
            log: dir.join("aldis.db-wal"),
            dir,
        })
    }

    /// Returns how long the write-ahead log is, in bytes.
    pub(super) fn log_length(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |log| log.len())
    }

    /// Makes sure that directory and file exist and are ours alone. Returns whether the file is
    /// empty, whoever created it.
    pub(super) fn prepare(&self) -> Result<bool, StoreError> {
        let directory = match look(&self.dir)? {
            Some(metadata) => metadata,
            None => self.create_dir()?,
        };
        check_dir(&directory).map_err(|why| refuse(&self.dir, why))?;
        let file = match look(&self.db)? {
            Some(metadata) => metadata,
            None => self.create_db()?,
        };
        check_file(&file).map_err(|why| refuse(&self.db, why))?;
        Ok(file.len() == 0)
    }

    fn create_dir(&self) -> Result<Metadata, StoreError> {
        let failed = |error| StoreError::from_io(&error, &self.dir, "create the directory");
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.dir).map_err(failed)?;
        // SQLite syncs this directory; that it exists at all is for its parent to remember.
        #[cfg(unix)]
        if let Some(parent) = self.dir.parent() {
            fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)?;
        }
        fs::symlink_metadata(&self.dir).map_err(failed)
    }

    /// Creates the file before SQLite does, which would let the world read it.
    fn create_db(&self) -> Result<Metadata, StoreError> {
        let failed = |error| StoreError::from_io(&error, &self.db, "create the database");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&self.db) {
            Ok(_) => {}
            // Another process was quicker.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        fs::symlink_metadata(&self.db).map_err(failed)
    }
}

fn look(path: &Path) -> Result<Option<Metadata>, StoreError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::from_io(&error, path, "look at the path")),
    }
}

fn refuse(path: &Path, why: &'static str) -> StoreError {
    StoreError::Unsafe { location: path.display().to_string(), why }
}

fn check_dir(directory: &Metadata) -> Result<(), &'static str> {
    if directory.is_symlink() {
        return Err("it is a symbolic link; name the directory itself");
    }
    if !directory.is_dir() {
        return Err("it is not a directory; choose another one");
    }
    check_owner(directory)
}

fn check_file(file: &Metadata) -> Result<(), &'static str> {
    if file.is_symlink() {
        return Err("it is a symbolic link; move the database itself here");
    }
    if !file.is_file() {
        return Err("it is not a regular file; move it away");
    }
    check_owner(file)
}

#[cfg(unix)]
fn check_owner(metadata: &Metadata) -> Result<(), &'static str> {
    use std::os::unix::fs::MetadataExt;

    if metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Err("it belongs to somebody else; choose a directory of your own");
    }
    if metadata.mode() & 0o022 != 0 {
        return Err("it is writable by other users; fix with `chmod go-w DIR`");
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_owner(_metadata: &Metadata) -> Result<(), &'static str> {
    // A user's profile is the user's own there, by default and by inheritance.
    Ok(())
}
