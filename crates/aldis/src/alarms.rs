//! What went wrong where nobody could be told: one line each in `alarms.jsonl`.
//!
//! A hook that fails must let the agent stop and print nothing. It says why here, where `aldis
//! doctor` and `aldis log` find it, even when the database itself is the problem.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};

/// When the file is set aside for a new one.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alarm {
    /// When.
    pub(crate) at: Timestamp,
    /// Which part of Aldis it befell.
    pub(crate) part: String,
    /// What happened.
    pub(crate) what: String,
}

/// Appends an alarm. There is nobody left to tell if that fails.
pub(crate) fn raise(directory: &Path, alarm: &Alarm) {
    let path = path(directory);
    if fs::metadata(&path).is_ok_and(|file| file.len() > FILE_BYTES_MAX) {
        let _moved = fs::rename(&path, path.with_extension("jsonl.old"));
    }
    let Ok(mut line) = serde_json::to_string(alarm) else { return };
    line.push('\n');
    if let Ok(mut file) = open(&path) {
        // One write: lines of several processes do not mix.
        let _written = file.write_all(line.as_bytes());
    }
}

/// Returns the latest alarms, oldest first.
pub(crate) fn latest(directory: &Path, count: usize) -> Vec<Alarm> {
    let text = fs::read_to_string(path(directory)).unwrap_or_default();
    let alarms: Vec<Alarm> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    alarms[alarms.len().saturating_sub(count)..].to_vec()
}

fn path(directory: &Path) -> PathBuf {
    directory.join("alarms.jsonl")
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
