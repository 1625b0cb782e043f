//! Opens a transcript without being led astray.
//!
//! The path comes from outside. It must not make us wait (a FIFO), read what is not ours to read (a
//! link, a path with `..`) or run into a device.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::TailError;

/// Opens a regular file below one of the roots and returns it with its length.
pub(super) fn open(path: &Path, roots: &[PathBuf]) -> Result<(File, u64), TailError> {
    if path.extension().is_some_and(|extension| extension == "zst") {
        return Err(TailError::Compressed);
    }
    let name = path.file_name().ok_or(TailError::NotAFile)?;
    // Links among the directories are followed, and what counts is where they lead.
    let folder = path.parent().ok_or(TailError::NotAFile)?.canonicalize()?;
    let inside = roots.iter().filter(|root| root.is_absolute()).any(|root| {
        root.canonicalize().is_ok_and(|root| root.parent().is_some() && folder.starts_with(root))
    });
    if !inside {
        return Err(TailError::Outside);
    }
    let file = open_plainly(&folder.join(name))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(TailError::NotAFile);
    }
    Ok((file, metadata.len()))
}

#[cfg(unix)]
fn open_plainly(path: &Path) -> Result<File, TailError> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        // The kernels' words for a link; sockets cannot be opened at all.
        Err(Errno::LOOP | Errno::MLINK) => Err(TailError::Symlink),
        Err(Errno::NXIO) => Err(TailError::NotAFile),
        Err(error) => {
            let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
            Err(if is_link { TailError::Symlink } else { std::io::Error::from(error).into() })
        }
    }
}

#[cfg(not(unix))]
fn open_plainly(path: &Path) -> Result<File, TailError> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Err(TailError::Symlink);
    }
    if !found.is_file() {
        return Err(TailError::NotAFile);
    }
    Ok(File::open(path)?)
}
