//! The repository that the workers of a delivery share with its coordinator: what they fetch, and where
//! their work goes. The work of a task is the branch `aldis/RUN/NUMBER` there until it is merged.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agents::git::{Git, GitError, Merge, Push};
use crate::error::CommandError;

/// How often a push is tried again because somebody else was first.
const TRIES_MAX: u32 = 5;
/// The remote that is used where none is named.
const ORIGIN: &str = "origin";

/// A repository that several machines share. It is part of every dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedRepository {
    /// Its address, as git takes it.
    pub(crate) url: String,
    /// The branch into which accepted work is merged.
    pub(crate) branch: String,
    /// The commit of that branch when the delivery began.
    pub(crate) commit: String,
    /// The folder of the repository that the delivery is about; empty for all of it.
    #[serde(default)]
    pub(crate) folder: PathBuf,
}

impl SharedRepository {
    /// The remote of a project, which must hold what is checked out: agents elsewhere see nothing else.
    ///
    /// # Errors
    ///
    /// Says what is missing, and what to do about it.
    pub(crate) fn of(project: &Path, url: Option<&str>) -> Result<Self, CommandError> {
        let failed = |what: String, help: &str| Err(CommandError::new(what).with_help(help));
        let Some(git) = Git::around(project) else {
            let what = format!("`{}` is not in a git repository", project.display());
            return failed(what, "workers get the project from a git remote");
        };
        let Some(url) = url.map(str::to_owned).or_else(|| git.remote_url(ORIGIN)) else {
            let what = "the project has no remote from which workers could get it".to_owned();
            return failed(what, "git remote add origin URL, or --remote URL");
        };
        let (Some(branch), Some(commit)) = (git.branch(), git.head()) else {
            let what = "no branch with a commit is checked out".to_owned();
            return failed(what, "git switch BRANCH");
        };
        match git.remote_tip(&url, &branch) {
            Ok(Some(tip)) if tip == commit => {
                let inside = fs::canonicalize(project).ok();
                let inside =
                    inside.and_then(|it| it.strip_prefix(git.root()).ok().map(PathBuf::from));
                Ok(Self { url, branch, commit, folder: inside.unwrap_or_default() })
            }
            Ok(_) => {
                let what = format!("the branch `{branch}` of the remote is at another commit");
                failed(what, &format!("git pull, then git push {ORIGIN} {branch}"))
            }
            Err(error) => failed(format!("the remote `{url}`: {error}"), "check its address"),
        }
    }

    /// Returns where agents start in a work tree. A folder that leads out of it is none.
    pub(super) fn folder_in(&self, tree: &Path) -> PathBuf {
        let mut parts = self.folder.components();
        let inside = parts.all(|part| matches!(part, Component::Normal(_)));
        let folder = tree.join(&self.folder);
        if inside && folder.is_dir() { folder } else { tree.to_owned() }
    }

    /// Brings the branch that is checked out up to what others pushed.
    pub(super) fn catch_up(&self, git: &Git) -> Result<(), String> {
        let refused = |error: GitError| error.to_string();
        let tip = git.fetch(&self.url, &self.branch).map_err(refused)?;
        match git.catch_up(&tip).map_err(refused)? {
            Merge::Done => Ok(()),
            Merge::Conflicts(files) => Err(format!(
                "the branch `{}` of the remote has changed in the same places as the project: {}",
                self.branch,
                files.join(", ")
            )),
        }
    }

    /// Pushes what is checked out to the branch.
    pub(super) fn publish(&self, git: &Git) -> Result<(), String> {
        let refused = |error: GitError| error.to_string();
        for _ in 0..TRIES_MAX {
            self.catch_up(git)?;
            let expected = git.remote_tip(&self.url, &self.branch).map_err(refused)?;
            let Some(head) = git.head() else { return Err("there is no commit".to_owned()) };
            let pushed = git.push(&self.url, (&head, &self.branch), expected.as_deref());
            if pushed.map_err(refused)? == Push::Done {
                return Ok(());
            }
        }
        Err(format!("somebody else pushes to `{}` all the time", self.branch))
    }
}
