//! Where agents work: in the project, or in a work tree per task that is merged when it is accepted.

use std::fs;
use std::path::{Path, PathBuf};

use aldis_store::RunId;

use crate::agents::git::{Git, GitError, Merge};
use crate::error::CommandError;

/// Returns the repository of which tasks get work trees.
///
/// # Errors
///
/// Fails if there is none, or no commit that a work tree could begin with.
pub(crate) fn repository(project: &Path) -> Result<Git, CommandError> {
    let refused = |why: &str, help: &str| {
        let what = format!("work trees for tasks need a git repository with a commit: {why}");
        CommandError::new(what).with_help(help)
    };
    let git = Git::around(project).ok_or_else(|| {
        let why = format!("`{}` is not in one", project.display());
        refused(&why, "git init && git add -A && git commit -m Start, or leave out --worktrees")
    })?;
    if git.has_commit() {
        return Ok(git);
    }
    let why = format!("`{}` has no commit yet", project.display());
    Err(refused(&why, "git add -A && git commit -m Start, or leave out --worktrees"))
}

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
    ///
    /// # Errors
    ///
    /// Fails if they should, and there is nothing to make them of.
    pub(super) fn new(
        project: &Path,
        state: &Path,
        run: &RunId,
        worktrees: bool,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            project: project.to_owned(),
            git: worktrees.then(|| repository(project)).transpose()?,
            trees: state.join("worktrees").join(run.as_str()),
            run: run.to_string(),
        })
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
