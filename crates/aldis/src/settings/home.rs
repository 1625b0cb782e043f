//! Where Aldis keeps what it must not forget: outside every repository, where no agent works.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aldis_store::Store;

use crate::error::CommandError;
use crate::failures;
use crate::settings::store::StorePlace;
use crate::settings::system::System;

/// Returns the directory of the database, the recorded failures and the locks: the one asked for, else
/// `ALDIS_STATE_DIR`, else `aldis` in the user's state directory.
///
/// # Errors
///
/// Fails if none of the variables that name it is set.
pub(crate) fn state_directory(asked: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(asked) = asked {
        return Ok(asked.to_owned());
    }
    if let Some(directory) = env::var_os("ALDIS_STATE_DIR").filter(|value| !value.is_empty()) {
        return Ok(directory.into());
    }
    let state = System::CURRENT.state(|name| env::var_os(name)).ok_or_else(|| {
        CommandError::new("neither ALDIS_STATE_DIR, XDG_STATE_HOME nor HOME is set")
            .with_help("say where to keep the state: --state-dir DIR")
    })?;
    if !state.is_absolute() {
        // It would be another one in every directory.
        return Err(CommandError::new("HOME is no absolute path")
            .with_help("correct it, or say where to keep the state: --state-dir DIR"));
    }
    Ok(state)
}

/// Opens the user's store: the database here, or the one that the settings name.
///
/// # Errors
///
/// Fails with what is wrong with it.
pub(crate) fn open_store(asked: Option<&Path>) -> Result<Arc<dyn Store>, CommandError> {
    let directory = state_directory(asked)?;
    let store = StorePlace::of(&directory)?.open()?.shared();
    failures::reserve(&directory);
    Ok(store)
}

/// Returns where the user's own settings are: `aldis` in the user's configuration directory.
pub(crate) fn config_directory() -> Option<PathBuf> {
    System::CURRENT.config(|name| env::var_os(name))
}
