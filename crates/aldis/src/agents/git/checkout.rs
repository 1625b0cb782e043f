//! A checkout of one commit, beside the work tree.

use std::ffi::OsStr;
use std::path::Path;

use super::{Git, GitError};

impl Git {
    /// Checks a commit out into a directory of its own, on no branch.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn add_checkout(&self, tree: &Path, commit: &str) -> Result<(), GitError> {
        // A tree whose directory was deleted would be in the way.
        self.run(&["worktree", "prune"], &[])?;
        let add = ["worktree", "add", "--quiet", "--detach", "--"].map(OsStr::new);
        self.run(&[&add[..], &[tree.as_os_str(), OsStr::new(commit)]].concat(), &[]).map(drop)
    }

    /// Removes a checkout, whatever is in it.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn remove_checkout(&self, tree: &Path) -> Result<(), GitError> {
        let remove = ["worktree", "remove", "--force", "--force", "--"].map(OsStr::new);
        self.run(&[&remove[..], &[tree.as_os_str()]].concat(), &[]).map(drop)
    }
}
