//! Where Aldis keeps what it must not forget: outside every repository, where no agent works.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use aldis_store::SqliteStore;

use crate::error::CommandError;
use crate::failures;

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
    let set = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty());
    if let Some(directory) = set("ALDIS_STATE_DIR") {
        return Ok(directory.into());
    }
    let absolute = |path: &PathBuf| path.is_absolute();
    let state = set("XDG_STATE_HOME").map(PathBuf::from).filter(absolute);
    let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")));
    state.map(|state| state.join("aldis")).ok_or_else(|| {
        CommandError::new("neither ALDIS_STATE_DIR, XDG_STATE_HOME nor HOME is set")
            .with_help("say where to keep the state: --state-dir DIR")
    })
}

/// Opens the user's database.
///
/// # Errors
///
/// Fails with what is wrong with it.
pub(crate) fn open_store(asked: Option<&Path>) -> Result<SqliteStore, CommandError> {
    let directory = state_directory(asked)?;
    let store = SqliteStore::open(&directory)?;
    failures::reserve(&directory);
    Ok(store)
}

/// Returns where the user's own settings are: `aldis` in the user's configuration directory.
pub(crate) fn config_directory() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let named = set("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = named.or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")));
    config.map(|config| config.join("aldis"))
}
