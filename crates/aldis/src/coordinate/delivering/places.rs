//! Where agents work: in the project, or in a work tree per task that is merged when it is accepted.

use std::fs;
use std::path::{Path, PathBuf};

use aldis_store::RunId;

use crate::agents::git::{Git, GitError, Merge};

/// The directories of a delivery.
#[derive(Debug)]
pub(super) struct Places {
    project: PathBuf,
    /// The project's repository, where tasks have work trees of their own.
    git: Option<Git>,
    /// Where those are.
    trees: PathBuf,
    run: String,
}

impl Places {
    /// `worktrees` says whether tasks have work trees of their own.
    pub(super) fn new(project: &Path, state: &Path, run: &RunId, worktrees: bool) -> Self {
        Self {
            project: project.to_owned(),
            git: worktrees.then(|| Git::around(project)).flatten(),
            trees: state.join("worktrees").join(run.as_str()),
            run: run.to_string(),
        }
    }

    /// Returns where the agents of a task work, by its place in the plan; makes it if need be.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(super) fn of_task(&self, task: Option<usize>) -> Result<PathBuf, GitError> {
        let (Some(git), Some(no)) = (&self.git, task) else { return Ok(self.project.clone()) };
        let tree = self.tree(no);
        if !tree.join(".git").exists() {
            fs::create_dir_all(&self.trees)?;
            git.add_worktree(&tree, &self.branch(no))?;
        }
        Ok(tree)
    }

    /// Brings the work of a task into the project's current branch. What stands in the way is the
    /// error.
    pub(super) fn merge(&self, no: usize, task: &str) -> Result<(), String> {
        let Some(git) = &self.git else { return Ok(()) };
        let tree = self.tree(no);
        if !tree.join(".git").exists() {
            // Merged before, and cut off before that was told.
            return Ok(());
        }
        let message = format!("Work of task {task}");
        Git::at(&tree).commit_all(&message).map_err(|error| error.to_string())?;
        match git.merge(&self.branch(no), &message).map_err(|error| error.to_string())? {
            Merge::Done => {
                // It is in the project now; a tree that stays is only in the way.
                let _gone = git.remove_worktree(&tree, &self.branch(no));
                Ok(())
            }
            Merge::Conflicts(files) => Err(format!(
                "FILE CONFLICT: the project has changed in the same places: {}. Merge the \
                 project's branch into yours and resolve them.",
                files.join(", ")
            )),
        }
    }

    /// Returns whether a file of the project is there. Names that lead out of it are not.
    pub(super) fn has_file(&self, name: &str) -> bool {
        let path = Path::new(name.trim());
        let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        inside && self.project.join(path).is_file()
    }

    fn tree(&self, no: usize) -> PathBuf {
        self.trees.join(no.to_string())
    }

    fn branch(&self, no: usize) -> String {
        format!("aldis/{}/{no}", self.run)
    }
}
