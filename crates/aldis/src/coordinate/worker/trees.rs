//! The work trees of a worker: one clone for each repository, one tree for each task that its agents
//! work on. Whatever is not pushed is nobody else's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aldis_machine::phases::digest;
use aldis_machine::run::WorkTree;
use aldis_process::Cancellation;
use aldis_store::{RunId, Store};

use crate::agents::git::{Git, GitError, Push};
use crate::coordinate::remote::SharedRepository;
use crate::coordinate::world::{RepositoryAnswer, RepositoryRequest};

/// How often a push is tried again because somebody else was first.
const TRIES_MAX: u32 = 3;

/// Where the agent of one dispatch works.
#[derive(Clone, Debug)]
pub(crate) struct WorkerTree {
    shared: SharedRepository,
    clone: PathBuf,
    tree: PathBuf,
    branch: String,
    cancellation: Cancellation,
    /// One at a time changes a clone: its agents may share it.
    turn: Arc<Mutex<()>>,
    /// The commit of the branch as it was fetched, if it was there.
    fetched: Option<String>,
}

/// What is worked on, for the names of trees and branches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeOf<'r> {
    /// The run.
    pub(crate) run: &'r RunId,
    /// The place of the task in the plan, if it is one.
    pub(crate) task: Option<usize>,
    /// The agent.
    pub(crate) agent: u64,
}

impl TreeOf<'_> {
    /// Agents of one task work in one tree, one after the other. Others have a tree each.
    pub(crate) fn name(&self) -> String {
        match self.task {
            Some(task) => task.to_string(),
            None => format!("agent-{}", self.agent),
        }
    }
}

impl WorkerTree {
    /// The tree below this directory of a worker.
    pub(crate) fn new(
        directory: &Path,
        shared: SharedRepository,
        of: TreeOf<'_>,
        turn: &Arc<Mutex<()>>,
    ) -> Self {
        Self {
            clone: directory.join("clones").join(digest(&shared.url)),
            tree: directory.join("trees").join(of.run.as_str()).join(of.name()),
            branch: format!("aldis/{}/{}", of.run, of.name()),
            cancellation: Cancellation::default(),
            turn: Arc::clone(turn),
            fetched: None,
            shared,
        }
    }

    /// Returns what ends a git that nobody waits for any more.
    pub(crate) fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Answers a question about it.
    pub(crate) fn answer(&mut self, request: RepositoryRequest) -> RepositoryAnswer {
        match request {
            RepositoryRequest::AddWorktree { .. } => {
                RepositoryAnswer::Worktree(self.prepare().map_err(|error| error.to_string()))
            }
            RepositoryRequest::Publish { message } => {
                RepositoryAnswer::Published(self.publish(&message).map_err(|it| it.to_string()))
            }
            RepositoryRequest::Look { directory, .. } => {
                RepositoryAnswer::Looked(self.look(&directory))
            }
            _ => RepositoryAnswer::Removed,
        }
    }

    /// Makes the tree as the task stands: where its branch is, else where the project is.
    fn prepare(&mut self) -> Result<PathBuf, GitError> {
        let turn = Arc::clone(&self.turn);
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let git = Git::init(&self.clone, self.cancellation.clone())?;
        let url = &self.shared.url;
        self.fetched = git.remote_tip(url, &self.branch)?;
        let start = match &self.fetched {
            Some(_) => git.fetch(url, &self.branch)?,
            None => git.fetch(url, &self.shared.branch)?,
        };
        if self.tree.join(".git").exists() {
            git.at(&self.tree).reset_to(&start, &self.branch)?;
        } else {
            fs::create_dir_all(&self.tree)?;
            git.add_checkout(&self.tree, &start)?;
            git.at(&self.tree).reset_to(&start, &self.branch)?;
        }
        Ok(self.shared.folder_in(&self.tree))
    }

    /// Commits what the agent left and pushes it. Returns the commit. Whoever has the claim has the last
    /// word: what somebody else pushed meanwhile, whose claim is void, is replaced.
    fn publish(&mut self, message: &str) -> Result<String, GitError> {
        let git = Git::init(&self.clone, self.cancellation.clone())?.at(&self.tree);
        git.commit_all(message)?;
        let head = git.head().unwrap_or_default();
        let (url, branch) = (&self.shared.url, &self.branch);
        for _ in 0..TRIES_MAX {
            if self.fetched.as_ref() == Some(&head) {
                return Ok(head);
            }
            if git.push(url, (&head, branch), self.fetched.as_deref())? == Push::Done {
                self.fetched = Some(head.clone());
                return Ok(head);
            }
            self.fetched = git.remote_tip(url, branch)?;
        }
        let (what, said) = ("push".to_owned(), format!("somebody else pushes to `{branch}`"));
        Err(GitError::Refused { what, said })
    }

    fn look(&self, directory: &Path) -> WorkTree {
        let looked = Git::around_until(directory, self.cancellation.clone())
            .map(|git| git.look(None))
            .unwrap_or_else(|| Ok(WorkTree::default()));
        looked.unwrap_or_else(|error| WorkTree {
            error: Some(error.to_string()),
            ..WorkTree::default()
        })
    }
}

/// Removes the trees of runs that are over.
pub(crate) fn sweep(directory: &Path, store: &dyn Store) {
    let Ok(entries) = fs::read_dir(directory.join("trees")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(Ok(run)) = name.to_str().map(RunId::new) else { continue };
        let active = match store.run(&run) {
            Ok(found) => found.is_some_and(|run| run.record.active),
            Err(_) => return,
        };
        if !active && let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(%run, %error, "cannot remove the work trees of a run that is over");
        }
    }
}
