//! Reading and writing `.caw/auto-state.json` in a repository that may be hostile.
//!
//! No link is followed below the project's root, only regular files of a reasonable size are read,
//! and a new version replaces the old one whole: readers see one or the other.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

/// The directory in the project.
const DIRECTORY: &str = ".caw";
/// The file in it.
const FILE: &str = "auto-state.json";
/// Where the next version is prepared.
const NEXT: &str = ".auto-state.json.next";
/// The longest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;

/// What stands where the state file should be. Exhaustive: each decides differently.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// A file with this text.
    Text(String),
    /// Something that is not to be touched, and why.
    Refused(String),
}

/// Reads the project's state file.
pub(crate) fn read(project: &Path) -> Found {
    match try_read(project) {
        Ok(found) => found,
        Err(Errno::NOENT) => Found::Nothing,
        Err(Errno::LOOP | Errno::NOTDIR) => {
            Found::Refused(format!("`{DIRECTORY}/{FILE}` is or lies behind a symbolic link"))
        }
        Err(error) => Found::Refused(format!("`{DIRECTORY}/{FILE}`: {error}")),
    }
}

fn try_read(project: &Path) -> Result<Found, Errno> {
    let directory = open_directory(project)?;
    // Without O_NONBLOCK a pipe would wait for a writer that never comes.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&directory, FILE, flags, Mode::empty())?);
    let status = fstat(&file)?;
    let refused = |why: &str| Ok(Found::Refused(format!("`{DIRECTORY}/{FILE}` {why}")));
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return refused("is not a regular file");
    }
    // Room for the end of the file as well, so that two reads are enough.
    let length = u64::try_from(status.st_size).unwrap_or(0).min(BYTES_MAX);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if bytes.len() as u64 > BYTES_MAX {
        return refused("is too large");
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Found::Text(text)),
        Err(_) => refused("is not UTF-8"),
    }
}

/// Replaces the project's state file, making its directory where it is missing.
///
/// # Errors
///
/// Fails if it cannot be written safely. Nothing has changed then.
pub(crate) fn write(project: &Path, text: &str) -> io::Result<()> {
    let directory = match open_directory(project) {
        Err(Errno::NOENT) => {
            let root = open_root(project)?;
            mkdirat(&root, DIRECTORY, Mode::from_raw_mode(0o755))?;
            open_directory(project)?
        }
        opened => opened?,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || openat(&directory, NEXT, flags, Mode::from_raw_mode(0o644));
    let file = match create() {
        // Left behind by a process that was killed: the caller holds the lock, so nobody uses it.
        Err(Errno::EXIST) => {
            unlinkat(&directory, NEXT, AtFlags::empty())?;
            create()?
        }
        created => created?,
    };
    let mut file = File::from(file);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if let Ok(status) = rustix::fs::statat(&directory, FILE, AtFlags::SYMLINK_NOFOLLOW)
        && FileType::from_raw_mode(status.st_mode) != FileType::RegularFile
    {
        unlinkat(&directory, NEXT, AtFlags::empty())?;
        return Err(io::Error::other("something else than a file is in its place"));
    }
    renameat(&directory, NEXT, &directory, FILE)?;
    File::from(directory).sync_all()
}

fn open_root(project: &Path) -> Result<rustix::fd::OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(project, flags, Mode::empty())
}

fn open_directory(project: &Path) -> Result<rustix::fd::OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(open_root(project)?, DIRECTORY, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    //! Hostile places, and the ordinary one.

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn text(found: Found) -> String {
        match found {
            Found::Nothing => "nothing".to_owned(),
            Found::Text(text) => text,
            Found::Refused(_) => "refused".to_owned(),
        }
    }

    #[test]
    fn files_are_replaced_whole() {
        let project = tempfile::tempdir().unwrap();
        assert_eq!(text(read(project.path())), "nothing");
        for content in ["{}", "{\"a\":1}"] {
            write(project.path(), content).unwrap();
            assert_eq!(text(read(project.path())), content);
        }
        // What a killed writer left behind is no obstacle.
        fs::write(project.path().join(".caw").join(NEXT), "torn").unwrap();
        write(project.path(), "{}").unwrap();
        assert_eq!(fs::read_dir(project.path().join(".caw")).unwrap().count(), 1);
    }

    #[test]
    fn links_pipes_and_directories_are_refused() {
        let victim = tempfile::tempdir().unwrap();
        fs::write(victim.path().join(FILE), "secret").unwrap();
        let project = tempfile::tempdir().unwrap();
        let caw = project.path().join(".caw");
        symlink(victim.path(), &caw).unwrap();
        assert_eq!(text(read(project.path())), "refused");
        assert!(write(project.path(), "{}").is_err());

        fs::remove_file(&caw).unwrap();
        fs::create_dir(&caw).unwrap();
        symlink(victim.path().join(FILE), caw.join(FILE)).unwrap();
        assert_eq!(text(read(project.path())), "refused");
        assert!(write(project.path(), "{}").is_err());

        fs::remove_file(caw.join(FILE)).unwrap();
        fs::create_dir(caw.join(FILE)).unwrap();
        assert_eq!(text(read(project.path())), "refused");
        assert!(write(project.path(), "{}").is_err());
        assert_eq!(fs::read_to_string(victim.path().join(FILE)).unwrap(), "secret");
    }

    #[test]
    fn huge_files_are_refused() {
        let project = tempfile::tempdir().unwrap();
        fs::create_dir(project.path().join(".caw")).unwrap();
        let file = File::create(project.path().join(".caw").join(FILE)).unwrap();
        file.set_len(BYTES_MAX + 1).unwrap();
        assert_eq!(text(read(project.path())), "refused");
    }
}
