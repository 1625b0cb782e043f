//! Failures that could be reported nowhere else: one line each in `failures.jsonl`; and how such
//! files are written.
//!
//! A hook that fails must let the agent stop and print nothing. It says why here, where `aldis
//! doctor` and `aldis log` find it, even when the database itself is the problem.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};

const FILE: &str = "failures.jsonl";
/// When a file is set aside for a new one.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// How much space is set aside for it.
#[cfg(target_os = "linux")]
const RESERVED: u64 = 16 * 1024;

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// When.
    pub(crate) at: Timestamp,
    /// Which part of Aldis it befell.
    pub(crate) part: String,
    /// What happened.
    pub(crate) what: String,
}

/// Appends a failure.
pub(crate) fn record(directory: &Path, failure: &Failure) {
    append(directory, FILE, failure);
}

/// Appends a line to a file of bounded size, in a directory that is made where it is missing. There
/// is nobody left to tell if that fails.
pub(crate) fn append(directory: &Path, file: &str, line: &impl Serialize) {
    let path = directory.join(file);
    if fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() > FILE_BYTES_MAX) {
        let _moved = fs::rename(&path, path.with_extension("jsonl.old"));
    }
    let Ok(mut line) = serde_json::to_string(line) else { return };
    line.push('\n');
    if create(directory).is_ok()
        && let Ok(mut file) = open(&path)
    {
        // One write: lines of several processes do not mix.
        let _written = file.write_all(line.as_bytes());
    }
}

/// Sets space aside, so that a failure can be recorded on a full disk: that the disk is full is what
/// the user must know. Without, a record may be lost and nothing else.
#[cfg(target_os = "linux")]
pub(crate) fn reserve(directory: &Path) {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::{FallocateFlags, fallocate};
    let path = directory.join(FILE);
    let has_room = |file: &fs::Metadata| file.blocks() * 512 >= file.len() + RESERVED / 2;
    if !fs::symlink_metadata(&path).is_ok_and(|file| has_room(&file))
        && let Ok(file) = open(&path)
    {
        let length = file.metadata().map_or(0, |file| file.len());
        // Where the file system cannot, it cannot.
        let _reserved = fallocate(&file, FallocateFlags::KEEP_SIZE, length, RESERVED);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reserve(_: &Path) {}

/// Returns the latest failures, oldest first.
pub(crate) fn latest(directory: &Path, count: usize) -> Vec<Failure> {
    let path = directory.join(FILE);
    // Whoever put a pipe there must not make us wait.
    let is_file = fs::symlink_metadata(&path).is_ok_and(|file| file.is_file());
    let text = is_file.then(|| fs::read_to_string(path).ok()).flatten().unwrap_or_default();
    let failures: Vec<Failure> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    failures[failures.len().saturating_sub(count)..].to_vec()
}

/// Makes the state directory, for its owner alone, as the store would.
pub(crate) fn create(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Opens the file without waiting for anybody: not for the reader of a pipe, and through no link.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        options.mode(0o600).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

#[cfg(test)]
mod tests {
    //! Places where a record can and cannot be kept.

    use super::*;

    fn failure(what: &str) -> Failure {
        let (at, part) = (Timestamp::from_millis(0), "hook".to_owned());
        Failure { at, part, what: what.to_owned() }
    }

    #[test]
    fn the_directory_is_made_for_its_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state/aldis");
        record(&directory, &failure("first"));
        record(&directory, &failure("second"));
        let whats: Vec<String> = latest(&directory, 5).into_iter().map(|it| it.what).collect();
        assert_eq!(whats, ["first", "second"]);
        assert_eq!(latest(&directory, 1).len(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&directory), mode(&directory.join(FILE))), (0o700, 0o600));
        }
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_links_are_neither_waited_for_nor_followed() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        fs::create_dir(&pipe).unwrap();
        let made = std::process::Command::new("mkfifo").arg(pipe.join(FILE)).status().unwrap();
        assert!(made.success());
        let link = place.path().join("link");
        fs::create_dir(&link).unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "").unwrap();
        std::os::unix::fs::symlink(&victim, link.join(FILE)).unwrap();
        for directory in [&pipe, &link] {
            record(directory, &failure("lost"));
            assert_eq!(latest(directory, 5), []);
        }
        assert_eq!(fs::read_to_string(victim).unwrap(), "");
    }
}
