//! The state file `.caw/auto-state.json` of a project: a copy of what the store knows about its run.
//!
//! The store decides. `inspect` says whether somebody else changed the file, `write` brings it
//! up to date. The repository may be hostile: no link is followed below the project's root, only
//! regular files of a reasonable size are read, and a new version replaces the old one whole.
//!
//! What needs no file is public, for the simulator.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use aldis_machine::phases::{Event, State};
use aldis_store::{CommitError, EffectState, Revision, RunFilter, RunId, Store, StoreError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::app::formats::auto_state::AutoStateFile;
use crate::engine::driver::{self, Loaded, Origin, Stepped, view_key};

/// What a look at the file says about a run that the store knows.
#[derive(Debug)]
pub enum StateFileCheck {
    /// Nothing that matters.
    Unchanged,
    /// Somebody changed it: the machine should hear of it.
    Changed(Box<Event>),
    /// It cannot be understood and is left alone, and so is the run.
    Corrupt(String),
}

/// Compares the file of a run's project with what it should say.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn inspect(store: &dyn Store, loaded: &Loaded) -> Result<StateFileCheck, StoreError> {
    let Loaded { run, state } = loaded;
    // A run without a project has no file.
    if run.record.project.is_empty() {
        return Ok(StateFileCheck::Unchanged);
    }
    let text = match read(Path::new(&run.record.project)) {
        ReadOutcome::Text(text) => text,
        // Where no file could ever be written, its absence says nothing.
        ReadOutcome::Absent if state.adopted || was_written(store, &run.id)? => {
            return Ok(StateFileCheck::Changed(Box::new(deleted())));
        }
        ReadOutcome::Absent | ReadOutcome::Refused(_) => return Ok(StateFileCheck::Unchanged),
    };
    Ok(match compare(&text, state) {
        StateFileCheck::Changed(_) if is_outdated(store, &run.record.project, &text)? => {
            StateFileCheck::Unchanged
        }
        check => check,
    })
}

/// Compares the text of a state file with what the run's view says.
pub fn compare(text: &str, state: &State) -> StateFileCheck {
    let view = match AutoStateFile::parse(text) {
        Ok(view) => view,
        Err(error) => return StateFileCheck::Corrupt(error.to_string()),
    };
    let members = view.edits(state);
    if members.is_empty() {
        StateFileCheck::Unchanged
    } else if view.is_cancelled() && may_be_of(&view, state) {
        let by = "`active: false` in the state file".to_owned();
        StateFileCheck::Changed(Box::new(Event::Cancel { by }))
    } else {
        StateFileCheck::Changed(Box::new(Event::Edited { members }))
    }
}

/// What a file that was there and is gone means.
pub fn deleted() -> Event {
    Event::Cancel { by: "deleting the state file".to_owned() }
}

/// Whether the file was there after the run's first step.
///
/// # Errors
///
/// Fails if the store does.
pub fn was_written(store: &dyn Store, run: &RunId) -> Result<bool, StoreError> {
    let first = store.effect(&view_key(run, Revision(1)))?;
    Ok(first.is_some_and(|effect| effect.state == EffectState::Done))
}

/// Writes the file of a run. The caller holds the project's turn, so that an older view never
/// replaces a newer one.
///
/// # Errors
///
/// Says why the file stays as it is.
pub(crate) fn write(project: &Path, state: &State) -> Result<(), String> {
    if project.as_os_str().is_empty() {
        return Ok(());
    }
    let found = match read(project) {
        ReadOutcome::Absent => None,
        ReadOutcome::Text(text) => Some(text),
        ReadOutcome::Refused(why) => return Err(why),
    };
    let view = match &found {
        Some(text) => Some(AutoStateFile::parse(text).map_err(|error| error.to_string())?),
        None => None,
    };
    let text = AutoStateFile::render(state, view);
    if found.as_deref() == Some(&*text) {
        return Ok(());
    }
    replace(project, &text).map_err(|error| error.to_string())
}

/// Writes the view of a run that goes on. The next step records that it was written, except for
/// the first view: whether there ever was one must be known.
///
/// # Errors
///
/// Says why the file stays as it is.
pub(crate) fn refresh(store: &dyn Store, stepped: &Stepped) -> Result<(), String> {
    write(Path::new(&stepped.project), &stepped.state)?;
    let Stepped { run, state, .. } = stepped;
    let known = state.adopted || was_written(store, run).map_err(|error| error.to_string())?;
    if !known {
        record(store, run, &[view_key(run, Revision(1))]).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Performs the view of a step and records that.
///
/// # Errors
///
/// Says why the file stays as it is.
pub(crate) fn perform(store: &dyn Store, stepped: &Stepped) -> Result<(), String> {
    write(Path::new(&stepped.project), &stepped.state)?;
    written(store, &stepped.run, stepped.revision).map_err(|error| error.to_string())
}

/// Records that the view of a step was written.
///
/// # Errors
///
/// Fails if the store does.
pub fn written(store: &dyn Store, run: &RunId, revision: Revision) -> Result<(), StoreError> {
    record(store, run, &[view_key(run, Revision(1)), view_key(run, revision)])
}

/// Records what was written. There is nothing to record of a run that is gone.
fn record(store: &dyn Store, run: &RunId, keys: &[String]) -> Result<(), StoreError> {
    match store.effects_done(run, None, keys) {
        Err(CommitError::Store(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether the text is an earlier view of a run of the project: one that was never replaced
/// because its writer died or could not write. Such a file asks for nothing.
///
/// # Errors
///
/// Fails if the store does.
pub fn is_outdated(store: &dyn Store, project: &str, text: &str) -> Result<bool, StoreError> {
    let Ok(view) = AutoStateFile::parse(text) else { return Ok(false) };
    let filter =
        RunFilter { projects: vec![project.to_owned()], limit: RUNS_MAX, ..RunFilter::default() };
    for stored in store.loaded(&filter)? {
        let Ok(Loaded { run, state }) = driver::load(stored.run) else { continue };
        // It says which run it is of; reading journals costs more.
        if may_be_of(&view, &state) && was_shown(store, &run.id, &view)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file can be about this run, and not about one before it.
fn may_be_of(view: &AutoStateFile, state: &State) -> bool {
    view.started_at().is_none_or(|at| state.started_at == Some(at))
}

fn was_shown(store: &dyn Store, run: &RunId, view: &AutoStateFile) -> Result<bool, StoreError> {
    let mut states: Vec<State> = Vec::new();
    for event in store.events(run, 0, usize::MAX)? {
        let next = match states.last() {
            None => match serde_json::from_str::<Origin>(&event.body) {
                Ok(origin) => origin.state(event.at),
                Err(_) => break,
            },
            Some(state) => match serde_json::from_str::<Event>(&event.body) {
                Ok(taken) => {
                    let mut state = state.clone();
                    state.on_event(event.at, &taken);
                    state
                }
                Err(_) => break,
            },
        };
        states.push(next);
    }
    // It is seldom much older.
    Ok(states.iter().rev().any(|state| view.edits(state).is_empty()))
}

/// What stands where the state file should be. Exhaustive: each decides differently.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    /// Nothing.
    Absent,
    /// A file with this text.
    Text(String),
    /// Something that is not to be touched, and why.
    Refused(String),
}

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
    let refused = |why: &str| Ok(ReadOutcome::Refused(format!("`{DIRECTORY}/{FILE}` {why}")));
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
        Ok(text) => Ok(ReadOutcome::Text(text)),
        Err(_) => refused("is not UTF-8"),
    }
}

/// Replaces the project's state file, making its directory where it is missing.
///
/// # Errors
///
/// Fails if it cannot be written safely. Nothing has changed then.
fn replace(project: &Path, text: &str) -> io::Result<()> {
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

/// How many runs of a project a left-over file may be of.
const RUNS_MAX: usize = 8;
/// The file as people know it.
pub(super) const SHOWN_NAME: &str = ".caw/auto-state.json";
/// The directory in the project.
const DIRECTORY: &str = ".caw";
/// The file in it.
const FILE: &str = "auto-state.json";
/// Where the next version is prepared.
const NEXT: &str = ".auto-state.json.next";
/// The longest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests;
