//! Finds the phases run of a session or a place, reading once, and takes the turn of its project.
//!
//! What needs no file is public, for the simulator.

use aldis_engine::{EngineError, Handle};
use aldis_machine::Machine as _;
use aldis_machine::phases::State;
use aldis_store::{Driver, RunFilter, RunId, Store, Turn};
use sha2::{Digest as _, Sha256};

use crate::settings::project::{self, Place};

/// An open run through the phases.
pub type PhasesRun = Handle<State>;

/// Waits until nobody else changes the runs of this project. The turn of a run would not do: there
/// may be none yet, and the project has one state file.
///
/// # Errors
///
/// Fails if the store does.
pub fn turn<'s>(store: &'s dyn Store, project: &str) -> Result<Box<dyn Turn + 's>, EngineError> {
    let digest = Sha256::digest(project.as_bytes());
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let id = RunId::new(name).map_err(|error| EngineError::Invalid(error.to_string()))?;
    Ok(store.turn(&id)?)
}

/// Returns the live run that this session or place belongs to: the session's own before any other,
/// the nearest before the farther.
pub(crate) fn live(
    store: &dyn Store,
    place: &Place,
    session: Option<&str>,
) -> Result<Option<PhasesRun>, EngineError> {
    let around: Vec<String> = place.around().map(project::name).collect();
    live_in(store, around, session)
}

/// Returns the live run of this session, else that of the first of these projects that has one.
///
/// # Errors
///
/// Fails if the store does, or what is stored cannot be understood.
pub fn live_in(
    store: &dyn Store,
    projects: Vec<String>,
    session: Option<&str>,
) -> Result<Option<PhasesRun>, EngineError> {
    let active = RunFilter { active: Some(true), ..of_hooks() };
    if let Some(session) = session {
        let bound = RunFilter { session: Some(session.to_owned()), limit: 1, ..active.clone() };
        if let Some(bound) = store.loaded(&bound)?.into_iter().next() {
            return Handle::from_stored(bound).map(Some);
        }
    }
    let filter = RunFilter { projects, ..active };
    let runs = store.loaded(&filter)?.into_iter();
    let projects = &filter.projects;
    let nearest =
        runs.min_by_key(|it| projects.iter().position(|name| *name == it.run.record.project));
    nearest.map(Handle::from_stored).transpose()
}

/// Returns the latest run of exactly this project, ended or not.
pub(crate) fn latest(store: &dyn Store, project: &str) -> Result<Option<PhasesRun>, EngineError> {
    let filter = RunFilter { limit: 1, ..of_project(project) };
    store.loaded(&filter)?.into_iter().next().map(Handle::from_stored).transpose()
}

/// The runs of exactly this project.
pub(super) fn of_project(project: &str) -> RunFilter {
    RunFilter { projects: vec![project.to_owned()], ..of_hooks() }
}

/// Those that hooks take through the phases; a server's have sessions and projects of their own.
fn of_hooks() -> RunFilter {
    let machine = Some(State::NAME.to_owned());
    RunFilter { machine, driver: Some(Driver::Hook), ..RunFilter::default() }
}
