//! Which project a directory belongs to.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::CommandError;

/// How far up from a directory its project is looked for.
const ANCESTORS_MAX: usize = 64;

/// A directory, and the projects it may belong to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Where the work happens, free of links.
    directory: PathBuf,
    /// The root of the project.
    root: PathBuf,
}

impl Place {
    /// Finds the project around `directory`: the one the host names if the directory lies in it,
    /// else the nearest directory upwards that holds `.git`, else the directory itself.
    ///
    /// Looking no further than that keeps a file that somebody left in a shared parent directory
    /// from deciding anything here. Whatever a `.git` file points to is not followed.
    pub(crate) fn of(directory: &Path, named: Option<&Path>) -> Self {
        let plain = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let directory = plain(directory);
        let named = named.map(plain).filter(|root| directory.starts_with(root));
        let root = named.or_else(|| {
            let holds_git = |place: &&Path| fs::symlink_metadata(place.join(".git")).is_ok();
            directory.ancestors().take(ANCESTORS_MAX).find(holds_git).map(Path::to_owned)
        });
        Self { root: root.unwrap_or_else(|| directory.clone()), directory }
    }

    /// A place on another machine, by its name alone: nothing is looked up here.
    pub(crate) fn elsewhere(directory: &Path) -> Self {
        Self { root: directory.to_owned(), directory: directory.to_owned() }
    }

    /// Returns where the work happens.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the root of the project.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directories whose runs may concern this place, the nearest first: a run may have
    /// been started above or below the root.
    pub(crate) fn around(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take(ANCESTORS_MAX)
    }

    /// Returns where the project's state file is looked for: from the directory up to the root.
    pub(crate) fn inside(&self) -> impl Iterator<Item = &Path> {
        self.around().take_while(|place| place.starts_with(&self.root))
    }
}

/// Returns the current directory.
///
/// # Errors
///
/// Fails if there is none.
pub(crate) fn current() -> Result<PathBuf, CommandError> {
    env::current_dir().map_err(|error| CommandError::new(format!("the current directory: {error}")))
}

/// Returns the place around the current directory.
///
/// # Errors
///
/// As [`current`].
pub(crate) fn here() -> Result<Place, CommandError> {
    Ok(Place::of(&current()?, None))
}

/// Returns the directory of a run that is continued: the stored one, or the project where none is.
///
/// # Errors
///
/// Fails if it is not there any more: another one must not be taken for it.
pub(crate) fn still_there(stored: Option<&Path>, project: &str) -> Result<PathBuf, CommandError> {
    let directory = stored.unwrap_or_else(|| Path::new(project));
    match directory.is_dir() {
        true => Ok(directory.to_owned()),
        false => Err(CommandError::new(format!(
            "the directory of the run is gone: {}",
            directory.display()
        ))
        .with_help("restore it, or start a new run where the project is now")),
    }
}

/// How the store names a project.
pub(crate) fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
