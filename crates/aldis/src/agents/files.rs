//! How the files of a directory stand, where there is no repository to ask.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use aldis_machine::phases::digest;

/// How many files are looked at: enough for a project, bounded for a home directory.
const FILES_MAX: usize = 20_000;
/// Directories that tools fill by themselves, our own included.
const SKIPPED: [&str; 6] = [".aldis", ".caw", ".git", "node_modules", "target", ".venv"];

/// Returns what the files look like, in short: names, sizes and times of change. Links are not
/// followed. Nothing if the directory cannot be read.
pub(crate) fn fingerprint(directory: &Path) -> Option<String> {
    let mut seen = String::new();
    let mut left = vec![directory.to_owned()];
    let mut count = 0;
    while let Some(directory) = left.pop() {
        let mut entries: Vec<_> = fs::read_dir(&directory).ok()?.filter_map(Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(metadata) = entry.metadata() else { continue };
            let name = entry.file_name();
            if metadata.is_dir() {
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    left.push(entry.path());
                }
                continue;
            }
            let at = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let (name, at) = (entry.path(), at.map(|at| at.as_nanos()));
            let _written = writeln!(seen, "{} {} {at:?}", name.to_string_lossy(), metadata.len());
            count += 1;
            if count == FILES_MAX {
                return Some(digest(&seen));
            }
        }
    }
    Some(digest(&seen))
}
