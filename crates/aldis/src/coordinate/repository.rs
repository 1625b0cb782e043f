//! The repository of a run: its work trees, and what was done in them.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use aldis_machine::run::WorkTree;
use aldis_process::Cancellation;
use aldis_store::RunId;

use super::plan_box::{PlanBox, Tick};
use super::remote::SharedRepository;
use super::world::{RepositoryAnswer, RepositoryRequest};
use crate::agents::command::owner_mark;
use crate::agents::files;
use crate::agents::git::{Git, GitError, Merge, Since};
use crate::error::CommandError;
use crate::proof::clean::CleanPlace;
use crate::proof::inspect::{InspectRequest, Inspected, inspect};

/// Where the agents of a delivery work.
#[derive(Debug)]
pub(crate) enum Isolation {
    /// Each task has a work tree of its own, merged into the branch of this name.
    Worktrees {
        /// The branch, if the repository is on one.
        into: String,
        /// Whether something is not committed, so that agents do not see it.
        dirty: bool,
    },
    /// In the project itself, because work trees cannot be or are not wanted.
    Shared {
        /// Whether they were not wanted.
        wanted: bool,
    },
}

impl Isolation {
    /// Does what is wanted; where nothing is said, gives tasks work trees if they can have them.
    ///
    /// # Errors
    ///
    /// Fails if work trees are wanted and cannot be.
    pub(crate) fn of(worktrees: Option<bool>, project: &Path) -> Result<Self, CommandError> {
        if worktrees == Some(false) {
            return Ok(Self::Shared { wanted: true });
        }
        match (check_worktrees(project), worktrees) {
            (Ok(git), _) => {
                let dirty = git.look(None).is_ok_and(|tree| tree.dirty);
                let into = git.branch().unwrap_or_else(|| "the current commit".to_owned());
                Ok(Self::Worktrees { into, dirty })
            }
            (Err(_), None) => Ok(Self::Shared { wanted: false }),
            (Err(error), Some(_)) => Err(error),
        }
    }

    /// Whether tasks have work trees.
    pub(crate) fn worktrees(&self) -> bool {
        matches!(self, Self::Worktrees { .. })
    }

    /// Says it to whoever starts the delivery.
    pub(crate) fn said(&self, slots: u32) -> String {
        match self {
            Self::Worktrees { into, dirty } => {
                let unseen = match dirty {
                    true => {
                        " Agents start from the last commit: they do not see your uncommitted changes."
                    }
                    false => "",
                };
                format!(
                    "Each task gets its own git work tree; accepted work is merged into {into}.{unseen}"
                )
            }
            Self::Shared { wanted } => {
                let why = match wanted {
                    true => "",
                    false => ": there is no git repository with a commit here",
                };
                match slots {
                    1 => format!("One agent at a time works in this directory{why}."),
                    _ => format!(
                        "{slots} agents at a time work in this directory and see each other's \
                         unfinished changes{why}."
                    ),
                }
            }
        }
    }
}

/// Returns the repository in which tasks can have work trees of their own.
///
/// # Errors
///
/// Fails if there is no repository, or no commit that a work tree could begin with.
fn check_worktrees(project: &Path) -> Result<Git, CommandError> {
    let refused = |why: &str, help: &str| {
        let what = format!("work trees for tasks need a git repository with a commit: {why}");
        Err(CommandError::new(what).with_help(help))
    };
    let shown = project.display();
    match Git::around(project) {
        Some(git) if git.has_commit() => Ok(git),
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

/// Where the claim of a supervised run is checked out.
pub(crate) fn checkout(state: &Path, run: &RunId) -> CleanPlace {
    CleanPlace { directory: checkout_in(&all_worktrees(state).join(run.as_str()), None) }
}

fn checkout_in(trees: &Path, task: Option<usize>) -> PathBuf {
    match task {
        Some(task) => trees.join(format!("check-{task}")),
        None => trees.join("check"),
    }
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
    /// What it shares with workers, where those do the work.
    shared: Option<SharedRepository>,
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
            git: Git::around(project).map(|git| git.owned_by(owner_mark(run))),
            trees: all_worktrees(state).join(run.as_str()),
            run: run.to_string(),
            shared: None,
        })
    }

    /// Takes the work of tasks from where workers push it, and pushes what is merged.
    pub(crate) fn sharing(self, shared: Option<SharedRepository>) -> Self {
        Self { shared, ..self }
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
            RepositoryRequest::Inspect(request) => {
                let seen = inspect(&request, None, &self.checkout(None));
                RepositoryAnswer::Inspected(Box::new(seen))
            }
            RepositoryRequest::InspectTask { request, task, worktree } => {
                let seen = self.inspect_task(*request, task, worktree);
                RepositoryAnswer::Inspected(Box::new(seen))
            }
            RepositoryRequest::RemoveCheckout { task } => {
                self.checkout(task).remove(&self.project);
                RepositoryAnswer::Removed
            }
            RepositoryRequest::Publish { .. } => {
                RepositoryAnswer::Published(Err("this is no worker".to_owned()))
            }
            RepositoryRequest::HasFile { name } => RepositoryAnswer::HasFile(self.has_file(&name)),
            RepositoryRequest::Tick { plan, item, commit } => {
                RepositoryAnswer::Ticked(self.tick(&plan, &item, commit.as_deref()))
            }
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
        let pushed = match &self.shared {
            Some(shared) => git.remote_tip(&shared.url, &self.branch(task))?,
            None => None,
        };
        if !tree.join(".git").exists() {
            fs::create_dir_all(&self.trees)?;
            git.add_worktree(&tree, &self.branch(task))?;
        }
        if let (Some(shared), Some(_)) = (&self.shared, pushed) {
            let commit = git.fetch(&shared.url, &self.branch(task))?;
            git.at(&tree).reset_to(&commit, &self.branch(task))?;
        }
        // Agents start in the same folder of the repository as the delivery.
        let project = fs::canonicalize(&self.project)?;
        let inside = project.strip_prefix(git.root()).map(|inside| tree.join(inside));
        Ok(inside.ok().filter(|inside| inside.is_dir()).unwrap_or(tree))
    }

    /// Brings the work of a task into the project's current branch. What stands in the way is the
    /// error.
    fn merge(&self, task: usize, message: &str) -> Result<(), String> {
        let Some(git) = &self.git else { return Err("the project has no repository".to_owned()) };
        let tree = self.tree(task);
        let refused = |error: GitError| error.to_string();
        if let Some(shared) = &self.shared {
            shared.catch_up(git)?;
            if git.remote_tip(&shared.url, &self.branch(task)).map_err(refused)?.is_some() {
                self.worktree(task).map_err(refused)?;
            }
        }
        if !tree.join(".git").exists() {
            // Merged before, and cut off before that was told.
            return self.publish_merge(git, task);
        }
        git.at(&tree).commit_all(message).map_err(refused)?;
        match git.merge(&self.branch(task), message).map_err(refused)? {
            Merge::Done => {
                // It is in the project now; a tree that stays is only in the way.
                let _gone = git.remove_worktree(&tree, &self.branch(task));
                self.publish_merge(git, task)
            }
            Merge::Conflicts(files) => Err(format!(
                "FILE CONFLICT: the project has changed in the same places: {}. Merge the \
                 project's branch into yours and resolve them.",
                files.join(", ")
            )),
        }
    }

    /// Pushes what was merged, where workers must see it. The branch of the task is in it then.
    fn publish_merge(&self, git: &Git, task: usize) -> Result<(), String> {
        let Some(shared) = &self.shared else { return Ok(()) };
        shared.publish(git)?;
        if let Err(error) = git.remove_remote_branch(&shared.url, &self.branch(task)) {
            tracing::warn!(%error, "the branch of a task that is merged stays at the remote");
        }
        Ok(())
    }

    /// Ticks the box of a complete task, and with a message commits that, unless the plan has other
    /// changes that are not committed.
    fn tick(&self, plan: &Path, item: &PlanBox, commit: Option<&str>) -> Result<(), String> {
        let to_commit = self.git.as_ref().zip(commit).filter(|(git, _)| git.is_committed(plan));
        match (item.tick(plan).map_err(|error| error.to_string())?, to_commit) {
            (Tick::Done, Some((git, message))) => {
                git.commit_file(plan, message).map_err(|error| error.to_string())?;
                self.shared.as_ref().map_or(Ok(()), |shared| shared.publish(git))
            }
            (Tick::Done | Tick::Before, _) => Ok(()),
            (Tick::Gone, _) => Err("its line has changed".to_owned()),
        }
    }

    /// Returns whether a file of the project is there. Names that lead out of it are not.
    fn has_file(&self, name: &str) -> bool {
        let path = Path::new(name.trim());
        let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        inside && self.project.join(path).is_file()
    }

    /// Inspects a task in its work tree: what is the same in the project was accepted with another
    /// task.
    fn inspect_task(&self, request: InspectRequest, task: usize, worktree: bool) -> Inspected {
        let directory = match worktree {
            true => self.worktree(task).map_err(|error| error.to_string()),
            false => Ok(request.directory.clone()),
        };
        let directory = match directory {
            Ok(directory) => directory,
            Err(problem) => return Inspected::failed(problem, request.directory),
        };
        let tree = self.look(&directory, None);
        let commit = tree.head.clone().filter(|_| request.config.clean);
        let accepted = worktree.then_some(&*self.project);
        let request = InspectRequest { directory, commit, ..request };
        let seen = inspect(&request, accepted, &self.checkout(Some(task)));
        Inspected { head: tree.head, dirty: tree.dirty, ..seen }
    }

    /// Where the claim of a task is checked out.
    fn checkout(&self, task: Option<usize>) -> CleanPlace {
        CleanPlace { directory: checkout_in(&self.trees, task) }
    }

    fn tree(&self, task: usize) -> PathBuf {
        self.trees.join(task.to_string())
    }

    fn branch(&self, task: usize) -> String {
        format!("aldis/{}/{task}", self.run)
    }
}
