//! Keeps the state file in a project in step with the store.
//!
//! What needs no file is public, for the simulator.

use std::path::Path;

use aldis_machine::phases::{Event, State};
use aldis_store::{EffectState, Revision, RunFilter, RunId, Store, StoreError};

use crate::app::formats::auto_state::AutoStateFile;
use crate::engine::driver::{self, Loaded, Origin, Stepped, view_key};
use crate::hosts::view_file::{self, Found};

/// How many runs of a project a left-over file may be of.
const RUNS_MAX: usize = 8;

/// What a look at the file says about a run that the store knows.
#[derive(Debug)]
pub enum Glance {
    /// Nothing that matters.
    InStep,
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
pub(crate) fn glance(store: &dyn Store, loaded: &Loaded) -> Result<Glance, StoreError> {
    let Loaded { run, state } = loaded;
    let text = match view_file::read(Path::new(&run.record.project)) {
        Found::Text(text) => text,
        // Where no file could ever be written, its absence says nothing.
        Found::Nothing if state.adopted || was_written(store, &run.id)? => {
            return Ok(Glance::Changed(Box::new(deleted())));
        }
        Found::Nothing | Found::Refused(_) => return Ok(Glance::InStep),
    };
    Ok(match compare(&text, state) {
        Glance::Changed(_) if is_outdated(store, &run.record.project, &text)? => Glance::InStep,
        glance => glance,
    })
}

/// Compares the text of a state file with what the run's view says.
pub fn compare(text: &str, state: &State) -> Glance {
    let view = match AutoStateFile::parse(text) {
        Ok(view) => view,
        Err(error) => return Glance::Corrupt(error.to_string()),
    };
    let members = view.edits(state);
    if members.is_empty() {
        Glance::InStep
    } else if view.is_cancelled() && may_be_of(&view, state) {
        let by = "`active: false` in the state file".to_owned();
        Glance::Changed(Box::new(Event::Cancel { by }))
    } else {
        Glance::Changed(Box::new(Event::Edited { members }))
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

/// Writes the file of a run. The caller holds the store's turn, so that an older view never
/// replaces a newer one.
///
/// # Errors
///
/// Says why the file stays as it is.
pub(crate) fn write(project: &Path, state: &State) -> Result<(), String> {
    let found = match view_file::read(project) {
        Found::Nothing => None,
        Found::Text(text) => Some(text),
        Found::Refused(why) => return Err(why),
    };
    let view = match &found {
        Some(text) => Some(AutoStateFile::parse(text).map_err(|error| error.to_string())?),
        None => None,
    };
    let text = AutoStateFile::render(state, view);
    if found.as_deref() == Some(&*text) {
        return Ok(());
    }
    view_file::write(project, &text).map_err(|error| error.to_string())
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
        store.effect_done(&view_key(run, Revision(1))).map_err(|error| error.to_string())?;
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
    if revision > Revision(1) {
        store.effect_done(&view_key(run, Revision(1)))?;
    }
    store.effect_done(&view_key(run, revision)).map(drop)
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
    for run in store.runs(&filter)? {
        let Ok(Loaded { run, state }) = driver::load(run) else { continue };
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
