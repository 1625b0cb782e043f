//! Keeps the state file in a project in step with the store.

use std::path::Path;

use aldis_core::machine::phases::{Event, State, View};
use aldis_store::{EffectState, Revision, RunId, Store, StoreError};

use crate::driver::{Loaded, Stepped, view_key};
use crate::view_file::{self, Found};

/// What a look at the file says about a run that the store knows.
#[derive(Debug)]
pub(crate) enum Glance {
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
        Found::Nothing if state.adopted || was_written(store, loaded)? => {
            return Ok(Glance::Changed(Box::new(Event::Cancel {
                by: "deleting the state file".to_owned(),
            })));
        }
        Found::Nothing | Found::Refused(_) => return Ok(Glance::InStep),
    };
    let view = match View::parse(&text) {
        Ok(view) => view,
        Err(error) => return Ok(Glance::Corrupt(error.to_string())),
    };
    let members = view.edits(state);
    // Until a view of this run was written, the file may be what an earlier run left.
    let foreign = !members.is_empty() && !view.is_of(state) && !was_written(store, loaded)?;
    Ok(if members.is_empty() || foreign {
        Glance::InStep
    } else if view.is_cancelled() {
        Glance::Changed(Box::new(Event::Cancel {
            by: "`active: false` in the state file".to_owned(),
        }))
    } else {
        Glance::Changed(Box::new(Event::Edited { members }))
    })
}

/// Whether the file was ever there. The first view stays pending until any view was written.
fn was_written(store: &dyn Store, loaded: &Loaded) -> Result<bool, StoreError> {
    is_written(store, &loaded.run.id, Revision(1))
}

fn is_written(store: &dyn Store, run: &RunId, revision: Revision) -> Result<bool, StoreError> {
    let effect = store.effect(&view_key(run, revision))?;
    Ok(effect.is_none_or(|effect| effect.state == EffectState::Done))
}

/// Whether a file is an older view of a run whose last one was never written, however many steps
/// it is behind.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn is_behind(
    store: &dyn Store,
    view: &View,
    loaded: &Loaded,
) -> Result<bool, StoreError> {
    let Loaded { run, state } = loaded;
    Ok(view.edits(state).is_empty()
        || view.is_of(state) && !is_written(store, &run.id, run.revision)?)
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
        Some(text) => Some(View::parse(text).map_err(|error| error.to_string())?),
        None => None,
    };
    let text = state.render_view(view);
    if found.as_deref() == Some(&*text) {
        return Ok(());
    }
    view_file::write(project, &text).map_err(|error| error.to_string())
}

/// Writes the view of a run that goes on. The next step records that it was written, except for
/// the first view.
///
/// # Errors
///
/// Says why the file stays as it is.
pub(crate) fn refresh(store: &dyn Store, stepped: &Stepped) -> Result<(), String> {
    write(Path::new(&stepped.project), &stepped.state)?;
    let Stepped { run, state, .. } = stepped;
    let known = state.adopted || is_written(store, run, Revision(1)).map_err(|e| e.to_string())?;
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
    let key = view_key(&stepped.run, stepped.revision);
    store.effect_done(&key).map(drop).map_err(|error| error.to_string())
}
