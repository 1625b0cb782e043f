//! The state file `.caw/auto-state.json` of a project: a copy of what the store knows about its run.
//!
//! The store decides. `inspect` says whether somebody else changed the file, `refresh` brings it
//! up to date.
//!
//! What needs no file is public, for the simulator.

mod disk;

use std::path::Path;

use aldis_engine::{Engine, EngineError};
use aldis_machine::phases::{Event, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, EffectState, Loaded, PartChange, RunFilter, RunId, Store, StoreError};
use sha2::{Digest as _, Sha256};

use self::disk::NextVersion;
pub(crate) use self::disk::{ReadOutcome, read};
use super::live::{self, PhasesRun};
use crate::hosts::hook::auto_state::AutoStateFile;
use crate::hosts::spool;

pub(super) use self::disk::SHOWN_NAME;

/// The note that says when the file of a run was first written. As long as there is none, nothing
/// follows from a missing file.
const WRITTEN: &str = "view";
/// The note with the digest of the file from which a run was adopted.
const ADOPTED: &str = "adopted_file";
/// How many runs of a project a left-over file may be of.
const RUNS_MAX: usize = 8;

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
pub(crate) fn inspect(engine: &Engine, run: &PhasesRun) -> Result<StateFileCheck, EngineError> {
    if !has_file(run) {
        return Ok(StateFileCheck::Unchanged);
    }
    let text = match read(Path::new(run.project())) {
        ReadOutcome::Text(text) => text,
        // Where no file could ever be written, its absence says nothing.
        ReadOutcome::Absent if was_written(engine.store(), run)? => {
            return Ok(StateFileCheck::Changed(Box::new(deleted())));
        }
        ReadOutcome::Absent | ReadOutcome::Refused(_) => return Ok(StateFileCheck::Unchanged),
    };
    Ok(match compare(&text, run.state()) {
        StateFileCheck::Changed(_)
            if is_adopted(run, &text)? || is_outdated(engine, run.project(), &text)? =>
        {
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

/// Whether the file of a run was ever there.
///
/// # Errors
///
/// Fails if the store does.
pub fn was_written(store: &dyn Store, run: &PhasesRun) -> Result<bool, StoreError> {
    if run.state().is_adopted() || has_note(run, WRITTEN) {
        return Ok(true);
    }
    // 0.1.0 had the first view in the outbox, where it was done once the file was written.
    let first = store.effect(&format!("{}/view/1", run.id()))?;
    Ok(first.is_some_and(|effect| effect.state == EffectState::Done))
}

/// Writes the file of a run as the run stands, and remembers that there is one.
///
/// The caller holds no turn, so that nobody waits while a slow disk syncs. An older view never
/// replaces a newer one all the same, however many processes write at once: a view is put in place
/// only inside the project's turn, and only while the store still says what the view says. So views
/// follow each other in the order of the steps they show. Whoever finds that the store says something
/// else leaves the file alone: the process whose step that was comes here, too. If that one dies
/// before, the file stays behind, which [`inspect`] finds out from the journal.
///
/// # Errors
///
/// Says why the file stays as it is. The run goes on without it.
pub(crate) fn refresh(engine: &Engine, now: Timestamp, run: &mut PhasesRun) -> Result<(), String> {
    if !has_file(run) {
        return Ok(());
    }
    if let Some(next) = prepare(Path::new(run.project()), run.state())? {
        let turn = live::turn(engine.store(), run.project()).map_err(text_of)?;
        if !is_current(engine.store(), run).map_err(text_of)? {
            return Ok(());
        }
        next.publish().map_err(text_of)?;
        drop(turn);
        next.sync().map_err(text_of)?;
        if !has_note(run, WRITTEN) {
            spool::exclude(Path::new(run.project()), disk::DIRECTORY);
        }
    }
    remember_written(engine, now, run).map_err(text_of)
}

/// Prepares the next version of a project's file; `None` where it says all of that already.
fn prepare(project: &Path, state: &State) -> Result<Option<NextVersion>, String> {
    let found = match read(project) {
        ReadOutcome::Absent => None,
        ReadOutcome::Text(text) => Some(text),
        ReadOutcome::Refused(why) => return Err(why),
    };
    let view = found.as_deref().map(AutoStateFile::parse).transpose().map_err(text_of)?;
    let text = AutoStateFile::render(state, view);
    if found.as_deref() == Some(&*text) {
        return Ok(None);
    }
    NextVersion::prepare(project, text).map(Some).map_err(text_of)
}

/// Whether the file of the project should say what the view of this run says: nobody has changed that
/// meanwhile, and the file is not another run's.
fn is_current(store: &dyn Store, run: &PhasesRun) -> Result<bool, EngineError> {
    let Some(stored) = store.run(run.id())? else { return Ok(false) };
    if stored.revision != run.revision() {
        // Not every step changes what the file says.
        let stored = PhasesRun::from_stored(Loaded { run: stored, parts: Vec::new() })?;
        let render = |run: &PhasesRun| AutoStateFile::render(run.state(), None);
        if render(&stored) != render(run) {
            return Ok(false);
        }
    }
    // The file is the live run's, else the latest one's.
    if run.state().is_active() {
        return Ok(true);
    }
    let shown = match live::live_in(store, vec![run.project().to_owned()], None)? {
        Some(live) => Some(live),
        None => live::latest(store, run.project())?,
    };
    Ok(shown.is_some_and(|shown| shown.id() == run.id()))
}

/// Notes that there is a file, once: from now on, deleting it ends the run.
///
/// # Errors
///
/// Fails if the store does.
pub fn remember_written(
    engine: &Engine,
    now: Timestamp,
    run: &mut PhasesRun,
) -> Result<(), EngineError> {
    if run.state().is_adopted() || has_note(run, WRITTEN) {
        return Ok(());
    }
    // 0.1.0 left views in the outbox, which nobody performs any more.
    while let Some(old) = run.next_effect(engine)? {
        run.performed(old.key);
    }
    let note = aldis_engine::note(WRITTEN, &now)?;
    run.set_notes(engine, now, vec![note])
}

/// The notes of a run that is adopted from a file with this text.
pub(super) fn adoption_notes(text: &str) -> Vec<PartChange> {
    let body = serde_json::Value::String(digest(text)).to_string();
    vec![PartChange::Set { key: ADOPTED.to_owned(), body }]
}

/// Whether the file is the one from which the run was adopted. It says things in the words of another
/// tool until its first view is written.
fn is_adopted(run: &PhasesRun, text: &str) -> Result<bool, EngineError> {
    Ok(run.note::<String>(ADOPTED)?.is_some_and(|known| known == digest(text)))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a run has a file at all: a server's has none, nor has one without a project.
fn has_file(run: &PhasesRun) -> bool {
    run.driver() == Driver::Hook && !run.project().is_empty()
}

fn has_note(run: &PhasesRun, key: &str) -> bool {
    run.notes_under(key).any(|found| found == key)
}

/// Returns whether the text is an earlier view of a run of the project: one that was never replaced
/// because its writer died, could not write, or is still at it. Such a file asks for nothing.
///
/// # Errors
///
/// Fails if the store does.
pub fn is_outdated(engine: &Engine, project: &str, text: &str) -> Result<bool, StoreError> {
    let Ok(view) = AutoStateFile::parse(text) else { return Ok(false) };
    let filter = RunFilter { limit: RUNS_MAX, ..live::of_project(project) };
    for stored in engine.store().loaded(&filter)? {
        let Ok(run) = PhasesRun::from_stored(stored) else { continue };
        // It says which run it is of; reading journals costs more.
        if may_be_of(&view, run.state()) && was_shown(engine, run.id(), &view)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file can be about this run, and not about one before it.
fn may_be_of(view: &AutoStateFile, state: &State) -> bool {
    view.started_at().is_none_or(|at| state.started_at() == Some(at))
}

fn was_shown(engine: &Engine, run: &RunId, view: &AutoStateFile) -> Result<bool, StoreError> {
    let mut states: Vec<State> = Vec::new();
    // What cannot be understood was not shown by us.
    if let Err(EngineError::Store(error)) =
        engine.retrace(run, |state: &State| states.push(state.clone()))
    {
        return Err(error);
    }
    // It is seldom much older.
    Ok(states.iter().rev().any(|state| view.edits(state).is_empty()))
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
