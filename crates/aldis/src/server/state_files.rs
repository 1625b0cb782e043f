//! Files of other turn managers: personas and state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aldis_machine::turns::{Config, Persona};

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
        let read = Persona::read_all(&text, name)
            .map_err(|error| CommandError::new(format!("`{}`: {error}", file.display())))?;
        personas.extend(read);
    }
    Ok(personas)
}

/// Reads a state file. One that is damaged is set aside under another name, so that nobody takes it
/// for good or writes over it.
///
/// # Errors
///
/// Fails if the file cannot be read or used.
pub(crate) fn board(
    path: &Path,
    personas: &BTreeMap<String, Persona>,
) -> Result<ChannelSet, CommandError> {
    let text = read(path, STATE_MAX)?;
    let now = clock::now()?;
    ChannelSet::import(&text, &Config::default(), personas, now).map_err(|error| {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".corrupted.{}", now.as_millis()));
        let aside = PathBuf::from(aside);
        let message = format!("`{}`: {error}", path.display());
        match fs::rename(path, &aside) {
            Ok(()) => CommandError::new(message)
                .with_help(format!("it was set aside as `{}`", aside.display())),
            Err(_) => CommandError::new(message),
        }
    })
}

fn read(path: &Path, most: u64) -> Result<String, CommandError> {
    let found = fs::metadata(path).map_err(|error| CommandError::file(path, &error))?;
    if !found.is_file() || found.len() > most {
        return Err(CommandError::new(format!("`{}` is no file of such a size", path.display())));
    }
    fs::read_to_string(path).map_err(|error| CommandError::file(path, &error))
}
