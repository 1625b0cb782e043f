//! Reports of agents whose sandbox keeps the store from them: files in the work tree, moved in by
//! whoever drives the run next.
//!
//! Anybody can write into a work tree, and a repository can bring files along: a report counts only if
//! it names the run or the session, which nobody knows who was not started in it.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use aldis_engine::{CallRecord, Engine, EngineError};
use aldis_signal::signal::Via;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use serde::{Deserialize, Serialize};

use crate::settings::project::Place;

/// Where reports wait, seen from the root of the project.
pub(crate) const SPOOL: &str = ".aldis/spool";
/// How many files are looked at, and how long one may be.
const FILES_MAX: usize = 256;
const LENGTH_MAX: u64 = 64 * 1024;

/// A report that waits, as it is written down.
#[derive(Debug, Serialize, Deserialize)]
struct Spooled {
    v: u32,
    /// The run that the agent was started for.
    #[serde(default)]
    run: Option<String>,
    record: CallRecord,
}

/// Writes a report down in the work tree around `directory`.
///
/// # Errors
///
/// Fails if nothing can be written there either.
pub(crate) fn write(
    directory: &Path,
    run: Option<String>,
    record: CallRecord,
) -> io::Result<PathBuf> {
    let root = Place::of(directory, None).root().to_owned();
    let spool = root.join(SPOOL);
    fs::create_dir_all(&spool)?;
    // A link could lead the report elsewhere.
    if fs::canonicalize(&spool)? != fs::canonicalize(&root)?.join(SPOOL) {
        return Err(io::Error::other(format!("`{SPOOL}` is a link")));
    }
    exclude(&root, SPOOL);
    let path = spool.join(format!("{}.json", record.id));
    let text = serde_json::to_vec(&Spooled { v: 1, run, record })?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Readers take whole files only: they look for the ending.
    let part = path.with_extension("part");
    let mut file = options.open(&part)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&part, &path)?;
    Ok(path)
}

/// Moves the reports that wait in a work tree for this run, or for this session, into the store. Returns
/// whether there were any.
///
/// # Errors
///
/// Fails if the store does. A file that makes no sense is left alone.
pub(crate) fn collect(
    engine: &Engine,
    now: Timestamp,
    root: &Path,
    (run, session): (&RunId, Option<&str>),
) -> Result<bool, EngineError> {
    let Ok(entries) = fs::read_dir(root.join(SPOOL)) else { return Ok(false) };
    let mut moved = false;
    for entry in entries.flatten().take(FILES_MAX) {
        let path = entry.path();
        let Some(Spooled { v: 1, run: named, mut record }) = read(&path) else { continue };
        let is_ours = match &named {
            Some(named) => named == run.as_str(),
            None => session.is_some() && record.session.as_deref() == session,
        };
        if !is_ours || record.taken {
            continue;
        }
        // What the file says of itself is worth no more than that.
        record.via = record.via.min(Via::Receipt);
        record.at = record.at.min(now);
        engine.record_call(now, run, &record)?;
        let _removed = fs::remove_file(&path);
        moved = true;
    }
    Ok(moved)
}

/// Keeps git from showing a directory of ours. Where that is not possible, whoever looks leaves it out.
pub(super) fn exclude(root: &Path, directory: &str) {
    let path = root.join(".git/info/exclude");
    let line = format!("/{directory}/");
    let Ok(known) = fs::read_to_string(&path) else { return };
    if !known.lines().any(|known| known == line) {
        let added = OpenOptions::new().append(true).open(&path);
        let _best_effort = added.and_then(|mut file| writeln!(file, "{line}"));
    }
}

fn read(path: &Path) -> Option<Spooled> {
    if path.extension()? != "json" {
        return None;
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(LENGTH_MAX + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= LENGTH_MAX).then(|| serde_json::from_slice(&text).ok())?
}
