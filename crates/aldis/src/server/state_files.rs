//! Files of other turn managers: personas and state.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use aldis_machine::turns::{Config, Persona};

use crate::app::formats::personas::read_personas;
use crate::app::formats::turn_state::ChannelSet;
use crate::error::CommandError;
use crate::settings::clock;

/// How many files of personas are read, and how long each may be.
const FILES_MAX: usize = 256;
const FILE_MAX: u64 = 1 << 20;
/// The longest state file.
const STATE_MAX: u64 = 64 << 20;

/// Reads a file of personas, or all in a directory.
///
/// # Errors
///
/// Fails with the first file that cannot be used.
pub(crate) fn personas(path: &Path) -> Result<BTreeMap<String, Persona>, CommandError> {
    let mut files = Vec::new();
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| CommandError::file(path, &error))?;
        let is_json =
            |file: &PathBuf| file.extension().is_some_and(|extension| extension == "json");
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_json));
        files.sort();
        files.truncate(FILES_MAX);
    } else {
        files.push(path.to_owned());
    }
    let mut personas = BTreeMap::new();
    for file in files {
        let text = read(&file, FILE_MAX)?;
        let name = file.file_stem().and_then(|name| name.to_str());
        let read = read_personas(&text, name)
            .map_err(|error| CommandError::new(format!("`{}`: {error}", file.display())))?;
        personas.extend(read);
    }
    Ok(personas)
}

/// What a state file held.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// Its channels.
    pub(crate) board: ChannelSet,
    /// Why there are none, in words for people.
    pub(crate) problem: Option<String>,
}

/// Reads a state file. One that is damaged is set aside under another name, so that nobody takes it
/// for good or writes over it; whoever starts the server again finds none. Neither keeps the server
/// from starting: a service manager would try for ever.
///
/// # Errors
///
/// Fails if the file cannot be read, or not be set aside.
pub(crate) fn board(
    path: &Path,
    personas: &BTreeMap<String, Persona>,
) -> Result<Imported, CommandError> {
    if fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let problem = Some(format!("no state file `{}`: no channels imported", path.display()));
        return Ok(Imported { problem, ..Imported::default() });
    }
    let text = read(path, STATE_MAX)?;
    let now = clock::now()?;
    let error = match ChannelSet::import(&text, &Config::default(), personas, now) {
        Ok(board) => return Ok(Imported { board, problem: None }),
        Err(error) => error,
    };
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".corrupted.{}", now.as_millis()));
    let aside = PathBuf::from(aside);
    let problem = format!("`{}`: {error}", path.display());
    fs::rename(path, &aside).map_err(|_| CommandError::new(&problem))?;
    let problem =
        Some(format!("{problem}; no channels imported, set aside as `{}`", aside.display()));
    Ok(Imported { problem, ..Imported::default() })
}

fn read(path: &Path, most: u64) -> Result<String, CommandError> {
    let found = fs::metadata(path).map_err(|error| CommandError::file(path, &error))?;
    if !found.is_file() || found.len() > most {
        return Err(CommandError::new(format!(
            "`{}` is not a regular file, or larger than {} KiB",
            path.display(),
            most >> 10
        )));
    }
    fs::read_to_string(path).map_err(|error| CommandError::file(path, &error))
}
