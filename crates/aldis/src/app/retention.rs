//! Deletes what is older than the user wants to keep: ended runs, and the files that belong to them.
//!
//! Whoever holds the store open for long does it beside its work ([`Background`]), `aldis auto start`
//! a little at a time, `aldis store prune` all at once. The hook never does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use aldis_process::Cancellation;
use aldis_signal::time::Timestamp;
use aldis_store::{Prune, RunFilter, RunId, Store, StoreError};

use crate::agents::git::Git;
use crate::agents::output_log;
use crate::coordinate::repository;
use crate::error::CommandError;
use crate::failures::{self, Failure};
use crate::receipts;
use crate::settings::clock;
use crate::settings::config::{Keep, Layered};

/// How long git may take for a receipt that nobody wrote yet.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(10);
/// How many runs are deleted in one step.
const STEP: usize = 100;
/// How often a command that goes on looks for what has become too old.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// What is kept, and where.
pub(crate) struct Retention {
    store: Arc<dyn Store>,
    state: PathBuf,
    /// How long; for ever where there is none.
    ended: Option<Duration>,
    output: Option<Duration>,
    /// Ends a git that hangs.
    cancellation: Cancellation,
}

/// What was deleted.
#[derive(Debug, Default)]
pub(crate) struct Pruned {
    pub(crate) runs: u64,
    /// What agents wrote, in bytes.
    pub(crate) output: u64,
    /// Work trees that tasks left.
    pub(crate) worktrees: u64,
    /// Work trees that could not be removed, and why.
    pub(crate) kept: Vec<String>,
}

impl Retention {
    /// Keeps what the user's settings say.
    ///
    /// # Errors
    ///
    /// Fails if the settings cannot be read: deleting by the defaults could delete too much.
    pub(crate) fn new(store: Arc<dyn Store>, state: PathBuf) -> Result<Self, CommandError> {
        let Keep { keep_ended, keep_output, .. } = Layered::of_user()?.settings.store;
        let [ended, output] = [keep_ended, keep_output].map(|it| it.0.map(Duration::from_secs));
        Ok(Self { store, state, ended, output, cancellation: Cancellation::default() })
    }

    /// Keeps ended runs this long.
    pub(crate) fn set_ended(&mut self, ended: Duration) {
        self.ended = Some(ended);
    }

    /// Deletes some of what is too old, without git.
    ///
    /// # Errors
    ///
    /// As the store.
    pub(crate) fn once(&self, now: Timestamp) -> Result<(), StoreError> {
        let mut pruned = Pruned::default();
        self.step(now, &mut pruned)?;
        self.output(now, true, &mut pruned)
    }

    /// Deletes all that is too old; `on_step` is told what is gone so far. With `dry`, it only says
    /// what would be.
    ///
    /// # Errors
    ///
    /// As the store.
    pub(crate) fn all(
        &self,
        now: Timestamp,
        dry: bool,
        mut on_step: impl FnMut(&Pruned),
    ) -> Result<Pruned, StoreError> {
        let mut pruned = Pruned::default();
        if let (Some(ended_before), true) = (self.ended_before(now), dry) {
            let (active, updated_before) = (Some(false), Some(ended_before));
            let filter = RunFilter { active, updated_before, ..RunFilter::default() };
            pruned.runs = self.store.count(&filter)?;
        } else {
            while self.step(now, &mut pruned)? {
                on_step(&pruned);
            }
        }
        self.output(now, !dry, &mut pruned)?;
        self.worktrees(now, !dry, &mut pruned)?;
        Ok(pruned)
    }

    /// Does the same beside a command, again and again, until the result is dropped.
    pub(crate) fn spawn(self) -> Background {
        let (stop, stopped) = mpsc::channel();
        let cancellation = self.cancellation.clone();
        let thread = thread::spawn(move || self.repeat(&stopped));
        Background { stop: Some(stop), cancellation, thread: Some(thread) }
    }

    fn repeat(&self, stopped: &Receiver<()>) {
        loop {
            if let Err(error) = self.round(stopped) {
                self.record(clock::wall(), error.to_string());
            }
            if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn record(&self, at: Timestamp, what: String) {
        failures::record(&self.state, &Failure { at, part: "retention".to_owned(), what });
    }

    /// Deletes all that is too old; of a command that is about to end, only the first step.
    fn round(&self, stopped: &Receiver<()>) -> Result<(), CommandError> {
        let (now, mut pruned) = (clock::now()?, Pruned::default());
        while self.step(now, &mut pruned)? && stopped.try_recv() == Err(TryRecvError::Empty) {}
        self.output(now, true, &mut pruned)?;
        Ok(self.worktrees(now, true, &mut pruned)?)
    }

    /// Deletes some runs. Returns whether there may be more to delete.
    fn step(&self, now: Timestamp, pruned: &mut Pruned) -> Result<bool, StoreError> {
        let Some(ended_before) = self.ended_before(now) else { return Ok(false) };
        // A run that is gone cannot get a receipt any more.
        if let Err(error) =
            receipts::settle(&*self.store, &self.state, None, (now, RECEIPT_PATIENCE))
        {
            self.record(now, format!("receipts: {error}"));
            return Ok(false);
        }
        let gone = self.store.prune(&Prune { ended_before, limit: STEP })?;
        pruned.runs += gone.len() as u64;
        Ok(!gone.is_empty() || self.store.size()?.unfinished > 0)
    }

    fn ended_before(&self, now: Timestamp) -> Option<Timestamp> {
        self.ended.map(|ended| now.before(ended))
    }

    /// Deletes what the agents of deleted runs wrote, and what any wrote long ago.
    fn output(&self, now: Timestamp, delete: bool, pruned: &mut Pruned) -> Result<(), StoreError> {
        for (run, directory) in runs_in(&output_log::all(&self.state)) {
            let is_gone = self.is_gone(&run, now)?;
            let is_old = |file: &fs::Metadata| {
                let written =
                    file.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let age = written.map(|at| now.since(Timestamp::from_millis(0).after(at)));
                age.zip(self.output).is_some_and(|(age, kept)| age > kept)
            };
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Ok(file) = entry.metadata() else { continue };
                let goes = is_gone || is_old(&file);
                if goes && (!delete || fs::remove_file(entry.path()).is_ok()) {
                    pruned.output += file.len();
                }
            }
            // Fails if something is left in it.
            let _gone = delete.then(|| fs::remove_dir(&directory));
        }
        Ok(())
    }

    /// Removes the work trees of deleted runs. Their branches stay, with all that was in the trees: it
    /// may be the only copy of somebody's work.
    fn worktrees(
        &self,
        now: Timestamp,
        delete: bool,
        pruned: &mut Pruned,
    ) -> Result<(), StoreError> {
        for (run, directory) in runs_in(&repository::all_worktrees(&self.state)) {
            if !self.is_gone(&run, now)? {
                continue;
            }
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let tree = entry.path();
                match if delete { self.retire(&tree, &run) } else { Ok(()) } {
                    Ok(()) => pruned.worktrees += 1,
                    Err(why) => pruned.kept.push(format!("{}: {why}", tree.display())),
                }
            }
            let _gone = delete.then(|| fs::remove_dir(&directory));
        }
        Ok(())
    }

    fn retire(&self, tree: &Path, run: &RunId) -> Result<(), String> {
        // Around a tree whose repository is gone there may be another one.
        let is_root = |git: &Git| fs::canonicalize(tree).is_ok_and(|tree| tree == git.root());
        let git = Git::around_until(tree, self.cancellation.clone()).filter(is_root);
        let git = git.ok_or("its repository is gone")?;
        git.retire(&format!("Unfinished work of run {run}")).map_err(|error| error.to_string())
    }

    /// Whether a run was deleted, or is about to be.
    fn is_gone(&self, run: &RunId, now: Timestamp) -> Result<bool, StoreError> {
        let ended_before = self.ended_before(now);
        Ok(self.store.run(run)?.is_none_or(|run| {
            !run.record.active && ended_before.is_some_and(|before| run.updated < before)
        }))
    }
}

/// Deletes beside a command, until it is dropped. The first step is always taken, or commands that
/// are over quickly would never delete anything.
pub(crate) struct Background {
    stop: Option<Sender<()>>,
    cancellation: Cancellation,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop = None;
        self.cancellation.cancel();
        // One that panicked has nothing more to do.
        let _ended = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// The directories of runs in a directory.
fn runs_in(directory: &Path) -> Vec<(RunId, PathBuf)> {
    let run = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok().filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()))?;
        Some((RunId::new(entry.file_name().to_str()?).ok()?, entry.path()))
    };
    fs::read_dir(directory).into_iter().flatten().filter_map(run).collect()
}
