//! The repository of a run: its work trees, and what was done in them.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use aldis_machine::run::WorkTree;
use aldis_process::Cancellation;
use aldis_store::RunId;

use super::world::{RepositoryAnswer, RepositoryRequest};
use crate::agents::files;
use crate::agents::git::{Git, GitError, Merge, Since};
use crate::error::CommandError;

/// Checks that tasks can have work trees of their own.
///
/// # Errors
///
/// Fails if there is no repository, or no commit that a work tree could begin with.
pub(crate) fn check_worktrees(project: &Path) -> Result<(), CommandError> {
    let refused = |why: &str, help: &str| {
        let what = format!("work trees for tasks need a git repository with a commit: {why}");
        Err(CommandError::new(what).with_help(help))
    };
    let shown = project.display();
    match Git::around(project) {
        Some(git) if git.has_commit() => Ok(()),
        Some(_) => refused(
            &format!("`{shown}` has no commit yet"),
            "git add -A && git commit -m Start, or leave out --worktrees",
        ),
        None => refused(
            &format!("`{shown}` is not in one"),
            "git init && git add -A && git commit -m Start, or leave out --worktrees",
        ),
    }
}

/// Returns where the work trees of all runs are.
pub(crate) fn all_worktrees(state: &Path) -> PathBuf {
    state.join("worktrees")
}

/// Keeps the uncommitted work of a run whose supervisor has gone on a branch of its own.
///
/// # Errors
///
/// Says what went wrong.
pub(crate) fn keep_work(project: &Path, run: &RunId, base: Option<String>) -> Result<(), String> {
    let failed = |error: &dyn fmt::Display| format!("the partial work was not kept: {error}");
    let repository = Repository::around(project, Path::new(""), run, false);
    let repository = repository.map_err(|error| failed(&error))?;
    let message = partial_work(run);
    repository.keep_work(&message, base.as_deref()).map(drop).map_err(|error| failed(&error))
}

/// The message of the commit that keeps partial work.
pub(crate) fn partial_work(run: &RunId) -> String {
    format!("Partial work of run {run}")
}

/// Where the agents of a run work: in the project, or in a work tree per task that is merged when
/// it is accepted.
#[derive(Debug)]
pub(crate) struct Repository {
    project: PathBuf,
    /// The project's repository, if it has one.
    git: Option<Git>,
    /// Where the work trees of tasks are.
    trees: PathBuf,
    run: String,
}

impl Repository {
    /// The repository around a project; `state` is our own directory. With `worktrees`, tasks have
    /// work trees of their own.
    ///
    /// # Errors
    ///
    /// Fails if there is nothing to make work trees of.
    pub(crate) fn around(
        project: &Path,
        state: &Path,
        run: &RunId,
        worktrees: bool,
    ) -> Result<Self, CommandError> {
        if worktrees {
            check_worktrees(project)?;
        }
        Ok(Self {
            project: project.to_owned(),
            git: Git::around(project),
            trees: all_worktrees(state).join(run.as_str()),
            run: run.to_string(),
        })
    }

    /// Returns what ends a git that nobody waits for any more.
    pub(super) fn cancellation(&self) -> Cancellation {
        self.git.as_ref().map(Git::cancellation).cloned().unwrap_or_default()
    }

    /// Answers a question. Git has a deadline: a filter that hangs is an answer, too.
    pub(crate) fn answer(&self, request: RepositoryRequest) -> RepositoryAnswer {
        match request {
            RepositoryRequest::Look { directory, markers } => {
                RepositoryAnswer::Looked(self.look(&directory, markers.as_ref()))
            }
            RepositoryRequest::KeepWork { message, base } => {
                let kept = self.keep_work(&message, base.as_deref());
                RepositoryAnswer::Kept(kept.map_err(|error| error.to_string()))
            }
            RepositoryRequest::AddWorktree { task } => {
                RepositoryAnswer::Worktree(self.worktree(task).map_err(|error| error.to_string()))
            }
            RepositoryRequest::Merge { task, message } => {
                RepositoryAnswer::Merged(self.merge(task, &message))
            }
            RepositoryRequest::HasFile { name } => RepositoryAnswer::HasFile(self.has_file(&name)),
        }
    }

    /// Looks at a work tree; without git, at the files themselves.
    fn look(&self, directory: &Path, markers: Option<&Since>) -> WorkTree {
        let git = match &self.git {
            Some(git) if directory != self.project => Some(&git.at(directory)),
            git => git.as_ref(),
        };
        match git {
            Some(git) => git.look(markers).unwrap_or_else(|error| WorkTree {
                error: Some(error.to_string()),
                ..WorkTree::default()
            }),
            None => WorkTree { fingerprint: files::fingerprint(directory), ..WorkTree::default() },
        }
    }

    /// Keeps uncommitted work on a branch, unless the run has changed nothing.
    fn keep_work(&self, message: &str, base: Option<&str>) -> Result<Option<String>, GitError> {
        let Some(git) = &self.git else { return Ok(None) };
        let unchanged =
            |base| Ok::<_, GitError>(git.look(None)?.fingerprint.as_deref() == Some(base));
        if base.map(unchanged).transpose()? == Some(true) {
            return Ok(None);
        }
        git.keep_work(&self.run, message)
    }

    /// Makes the work tree of a task if it is not there.
    fn worktree(&self, task: usize) -> Result<PathBuf, GitError> {
        let Some(git) = &self.git else { return Ok(self.project.clone()) };
        let tree = self.tree(task);
        if !tree.join(".git").exists() {
            fs::create_dir_all(&self.trees)?;
            git.add_worktree(&tree, &self.branch(task))?;
        }
        Ok(tree)
    }

    /// Brings the work of a task into the project's current branch. What stands in the way is the
    /// error.
    fn merge(&self, task: usize, message: &str) -> Result<(), String> {
        let Some(git) = &self.git else { return Err("the project has no repository".to_owned()) };
        let tree = self.tree(task);
        if !tree.join(".git").exists() {
            // Merged before, and cut off before that was told.
            return Ok(());
        }
        let refused = |error: GitError| error.to_string();
        git.at(&tree).commit_all(message).map_err(refused)?;
        match git.merge(&self.branch(task), message).map_err(refused)? {
            Merge::Done => {
                // It is in the project now; a tree that stays is only in the way.
                let _gone = git.remove_worktree(&tree, &self.branch(task));
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
    fn has_file(&self, name: &str) -> bool {
        let path = Path::new(name.trim());
        let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        inside && self.project.join(path).is_file()
    }

    fn tree(&self, task: usize) -> PathBuf {
        self.trees.join(task.to_string())
    }

    fn branch(&self, task: usize) -> String {
        format!("aldis/{}/{task}", self.run)
    }
}
