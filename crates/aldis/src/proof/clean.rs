//! A clean checkout of a commit, in which checks run instead of in the agent's work tree.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agents::git::{Git, GitError};

/// Where a check that needs a clean checkout gets it.
#[derive(Clone, Debug)]
pub(crate) struct CleanPlace {
    /// The directory of the checkout; nothing else is ever in it.
    pub(crate) directory: PathBuf,
}

impl CleanPlace {
    /// Makes the checkout. Returns the place in it that is the project's.
    ///
    /// # Errors
    ///
    /// Says why there is none, as a clause.
    pub(crate) fn make(&self, project: &Path, commit: &str) -> Result<PathBuf, String> {
        let Some(git) = Git::around(project) else {
            return Err("there is no git repository to check out".to_owned());
        };
        self.clear(&git);
        let made = || -> Result<PathBuf, GitError> {
            if let Some(parent) = self.directory.parent() {
                fs::create_dir_all(parent)?;
            }
            git.add_checkout(&self.directory, commit)?;
            let project = fs::canonicalize(project)?;
            let inside = project.strip_prefix(fs::canonicalize(git.root())?).ok();
            Ok(inside.map_or_else(|| self.directory.clone(), |it| self.directory.join(it)))
        };
        let place = made().map_err(|error| format!("the checkout of {commit}: {error}"))?;
        match place.is_dir() {
            true => Ok(place),
            false => Err(format!("commit {commit} does not have the project's folder")),
        }
    }

    /// Removes the checkout, if there is one.
    pub(crate) fn remove(&self, project: &Path) {
        if self.directory.exists()
            && let Some(git) = Git::around(project)
        {
            self.clear(&git);
        }
    }

    fn clear(&self, git: &Git) {
        if self.directory.exists() {
            let _removed = git.remove_checkout(&self.directory);
            // What git does not know any more is in the way all the same.
            let _gone = fs::remove_dir_all(&self.directory);
        }
    }
}
