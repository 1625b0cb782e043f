//! What a coordinator needs of the world: a clock, processes, a repository, people.
//!
//! The coordinator decides nothing by itself and waits for nothing by itself: it asks the world for
//! the next thing that happens. [`super::real`] is the world of `aldis run` and `aldis deliver`; the
//! simulator has one with virtual time, scripted agents and faults, so that it plays the very loop
//! that people use.

use std::path::PathBuf;
use std::time::Duration;

use aldis_machine::run::{Exit, WorkTree};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use super::plan_box::PlanBox;
use crate::agents::command::{JobLaunch, StartFailure};
use crate::agents::git::Since;
use crate::notify::TerminalNotice;
use crate::proof::inspect::{InspectRequest, Inspected};

/// A process that the coordinator started: an agent or a check.
pub type JobId = u64;
/// A question to the repository that has not been answered yet.
pub type Ticket = u64;

/// The world as a coordinator sees it.
pub trait World {
    /// Returns the time. It never goes back, and it goes on while the machine sleeps.
    fn now(&self) -> Timestamp;

    /// Waits until something happens, at most until then. Returns what happened, in order.
    fn wait(&mut self, until: Timestamp) -> Vec<Happening>;

    /// Waits until then without reading anything, so that agents wait, too. Returns how often this
    /// process was asked to end so far.
    fn pause(&mut self, until: Timestamp) -> u32;

    /// Starts a process. Returns how to recognise it after a crash.
    ///
    /// # Errors
    ///
    /// [`StartFailure`] if it cannot be started; then nothing of it runs.
    fn start(&mut self, job: JobId, launch: &JobLaunch) -> Result<String, StartFailure>;

    /// Asks a process to stop, suspends it, lets it go on, or ends it with its tree. Its end is told
    /// by [`Happening::Over`].
    fn control(&mut self, job: JobId, control: Control);

    /// Asks the repository something; the answer comes as [`Happening::Repository`]. Questions are
    /// answered one after the other, each within a bounded time.
    fn ask(&mut self, ticket: Ticket, request: RepositoryRequest);

    /// Ends whatever a coordinator that crashed left behind.
    fn end_leftover(&mut self, leftover: &Leftover);

    /// Rings the bell of the terminal, if there is one. Returns whether the notice is shown there.
    fn notify(&mut self, notice: &TerminalNotice) -> bool;

    /// Tells whoever looks at this process now that it waits for something.
    fn warn(&mut self, what: &str);

    /// Writes the receipts of this run that wait, before anybody is told that something is done.
    fn keep_receipts(&mut self, _run: &RunId) {}

    /// Whether traces of the run are exported: its agents are then told below which span theirs hang.
    fn is_traced(&self) -> bool {
        false
    }

    /// Asks the person at the terminal, if there is one; `None` when nothing is wanted any more.
    fn prompt(&mut self, question: Option<&str>);
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A process wrote something.
    Output {
        /// Which.
        job: JobId,
        /// Where to.
        stream: OutputStream,
        /// What; at most 64 KiB.
        bytes: Vec<u8>,
    },
    /// A process stopped itself, as by Ctrl-Z.
    Stopped {
        /// Which.
        job: JobId,
    },
    /// A process and everything it started has ended, and all it wrote was told.
    Over {
        /// Which.
        job: JobId,
        /// How.
        exit: Exit,
    },
    /// The repository's answer.
    Repository {
        /// To which question.
        ticket: Ticket,
        /// What it is.
        answer: RepositoryAnswer,
    },
    /// Somebody committed something, perhaps to this run.
    StoreChanged,
    /// The user or the system wants this process to end, by this means.
    Interrupted(&'static str),
    /// The person at the terminal typed a line.
    Typed(String),
    /// Something went wrong beside the run, in words.
    Problem(String),
}

/// A stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output, or its terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Ask it to stop, as Ctrl-C does.
    Interrupt,
    /// Suspend it with everything it started.
    Suspend,
    /// Let it go on.
    Resume,
    /// End it with everything it started, by force after this long.
    End(Duration),
}

/// What a crashed coordinator may have left running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A process whose identity was stored.
    Identity(String),
    /// A process of this run that was started, and whose identity was not stored.
    Unknown(RunId),
}

/// A question to the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepositoryRequest {
    /// How does the work tree of this directory stand?
    Look {
        /// Which directory.
        directory: PathBuf,
        /// Whether conflict markers are looked for, and since which commit.
        markers: Option<Since>,
    },
    /// Keep uncommitted work on a branch of its own.
    KeepWork {
        /// The message of the commit.
        message: String,
        /// How the work tree looked when the run began: what is still the same needs no branch.
        base: Option<String>,
    },
    /// Make the work tree of a task, unless it is there.
    AddWorktree {
        /// The task's place in the plan.
        task: usize,
    },
    /// Merge the work of a task into the project's branch.
    Merge {
        /// The task's place in the plan.
        task: usize,
        /// The message of the commit.
        message: String,
    },
    /// Tick the box of a complete task in the plan.
    Tick {
        /// The file.
        plan: PathBuf,
        /// The line.
        item: PlanBox,
        /// The message of the commit, if there is to be one.
        commit: Option<String>,
    },
    /// Pin what the checks of a project are made of, or compare it with its pins; in a clean
    /// checkout, if a commit is named.
    Inspect(Box<InspectRequest>),
    /// The same for a task of a delivery, in its work tree if it has one, and how that stands.
    InspectTask {
        /// What is inspected; the directory is that of the project.
        request: Box<InspectRequest>,
        /// The task's place in the plan.
        task: usize,
        /// Whether it has a work tree.
        worktree: bool,
    },
    /// Remove the clean checkout, in which nothing runs any more.
    RemoveCheckout {
        /// The task that was checked, by its place in the plan.
        task: Option<usize>,
    },
    /// Commit what an agent of a worker left, and push it.
    Publish {
        /// The message of the commit.
        message: String,
    },
    /// Is this file of the project there?
    HasFile {
        /// Its name, as an agent wrote it.
        name: String,
    },
}

/// An answer of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepositoryAnswer {
    /// How the work tree stands.
    Looked(WorkTree),
    /// The branch that holds the work, if there was any; or what went wrong.
    Kept(Result<Option<String>, String>),
    /// Where the task's work tree is; or what went wrong.
    Worktree(Result<PathBuf, String>),
    /// The commit that was pushed; or what went wrong.
    Published(Result<String, String>),
    /// Whether the work is merged; or what stands in the way.
    Merged(Result<(), String>),
    /// Whether the box is ticked; or why not.
    Ticked(Result<(), String>),
    /// How the project stands, and where its checks run.
    Inspected(Box<Inspected>),
    /// The clean checkout is gone.
    Removed,
    /// Whether the file is there.
    HasFile(bool),
}
