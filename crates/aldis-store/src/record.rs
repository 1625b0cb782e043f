//! What comes back out of a store: rows as they are read, and the filters that choose them.

use aldis_signal::time::Timestamp;

use crate::cursor::{Cursor, PageCursor};
use crate::step::{Driver, Revision, RunId, RunRecord};

/// A run as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// How many steps it has taken.
    pub revision: Revision,
    /// The number of its last event; 0 when it has none.
    pub last_event: u64,
    /// When its first step was taken.
    pub created: Timestamp,
    /// When its last step was taken.
    pub updated: Timestamp,
    /// The fencing number that counts: of its last lease, or above it if that was broken. 0 when
    /// there never was one.
    pub fence: u64,
    /// The lease that somebody holds, expired or not.
    pub lease: Option<Lease>,
    /// Everything the last step recorded about it.
    pub record: RunRecord,
}

/// A run with the parts of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The run.
    pub run: Run,
    /// The parts of its state, in the order of their keys' bytes.
    pub parts: Vec<Part>,
}

/// A run without its state: what a list shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Its name.
    pub id: RunId,
    /// How many steps it has taken.
    pub revision: Revision,
    /// The number of its last event; 0 when it has none.
    pub last_event: u64,
    /// When its first step was taken.
    pub created: Timestamp,
    /// When its last step was taken.
    pub updated: Timestamp,
    /// The fencing number that counts, as in [`Run`].
    pub fence: u64,
    /// The lease that somebody holds, expired or not.
    pub lease: Option<Lease>,
    /// The project it works on; empty when there is none.
    pub project: String,
    /// The host's session it is bound to, if any.
    pub session: Option<String>,
    /// Which machine decides.
    pub machine: String,
    /// Who takes its steps.
    pub driver: Driver,
    /// What people call it.
    pub title: String,
    /// Whether it can still step.
    pub active: bool,
    /// Its position in the list, for the page after it.
    pub page: PageCursor,
}

/// Which runs to list. The default lists every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFilter {
    /// Of any of these projects; of all projects when empty.
    pub projects: Vec<String>,
    /// Of this machine only.
    pub machine: Option<String>,
    /// Of this driver only.
    pub driver: Option<Driver>,
    /// Only those that can still step, or only those that cannot.
    pub active: Option<bool>,
    /// Bound to this session only.
    pub session: Option<String>,
    /// Only those whose last step was taken before.
    pub updated_before: Option<Timestamp>,
    /// Only those that the list has after this one: how to ask for the next page.
    pub after: Option<PageCursor>,
    /// At most this many.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self {
            projects: Vec::new(),
            machine: None,
            driver: None,
            active: None,
            session: None,
            updated_before: None,
            after: None,
            limit: usize::MAX,
        }
    }
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whose history it belongs to.
    pub run: RunId,
    /// Its number in that history: 1, 2, 3, without gaps.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What kind of event it is.
    pub kind: String,
    /// The event, as JSON.
    pub body: String,
    /// The key of its source, if it can be delivered twice.
    pub source: Option<String>,
    /// The digest of its source; unknown for events of 0.1.0.
    pub digest: Option<String>,
    /// The revision whose step took it; unknown for events of 0.1.0.
    pub revision: Option<Revision>,
}

/// A decision that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its position among the decisions of all runs. Never reused.
    pub cursor: Cursor,
    /// Whose decision it is.
    pub run: RunId,
    /// The revision whose step made it.
    pub revision: Revision,
    /// When it was made.
    pub at: Timestamp,
    /// The decision, as JSON.
    pub body: String,
}

/// Which decisions to list. The default lists every decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionFilter {
    /// Of this run only.
    pub run: Option<RunId>,
    /// Only those before this position: how to ask for the next page.
    pub before: Option<Cursor>,
    /// At most this many.
    pub limit: usize,
}

impl Default for DecisionFilter {
    fn default() -> Self {
        Self { run: None, before: None, limit: usize::MAX }
    }
}

/// Something the world must do, or has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Unique in the store. Receivers use it to recognise a repeat.
    pub key: String,
    /// Whose step asked for it.
    pub run: RunId,
    /// What kind of effect it is.
    pub kind: String,
    /// The effect, as JSON.
    pub body: String,
    /// Not to be tried before.
    pub due: Timestamp,
    /// How often it was tried and failed.
    pub attempts: u32,
    /// What went wrong the last time.
    pub error: Option<String>,
    /// How it stands.
    pub state: EffectState,
    /// The queue it waits in; `""` is none.
    pub lane: String,
    /// The labels a worker must have to perform it.
    pub requires: Vec<String>,
    /// Who claimed it last.
    pub worker: Option<String>,
}

/// How an effect stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectState {
    /// Still to be performed.
    Pending,
    /// Performed at least once.
    Done,
    /// Failed for good; nobody will try again.
    GivenUp,
}

/// Which pending effects to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectFilter {
    /// Of this run only.
    pub run: Option<RunId>,
    /// Of any of these kinds; of all kinds when empty.
    pub kinds: Vec<String>,
    /// Only those due by then.
    pub due_by: Timestamp,
    /// At most this many.
    pub limit: usize,
}

impl EffectFilter {
    /// Chooses every effect of every run that is due by `due_by`.
    pub fn due_by(due_by: Timestamp) -> Self {
        Self { run: None, kinds: Vec::new(), due_by, limit: usize::MAX }
    }
}

/// Which runs to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    /// Those that ended and took their last step before.
    pub ended_before: Timestamp,
    /// At most this many.
    pub limit: usize,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// How long the database is, without its log.
    pub bytes: u64,
    /// How much of that is free for new rows.
    pub free_bytes: u64,
    /// How long the write-ahead log is.
    pub log_bytes: u64,
    /// How many runs there are.
    pub runs: u64,
    /// How many pruned runs have rows left that a later call of `prune` deletes.
    pub unfinished: u64,
}

/// An alarm that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Whose alarm it is.
    pub run: RunId,
    /// Unique in its run.
    pub key: String,
    /// When it fires.
    pub due: Timestamp,
}

/// A part of a run's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Unique in its run.
    pub key: String,
    /// The part, as JSON.
    pub body: String,
}

/// The right to coordinate a run for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Which run.
    pub run: RunId,
    /// Who holds it.
    pub holder: String,
    /// Grows each time the lease is acquired. Steps carry it, so that a holder that slept through
    /// its successor's term writes nothing.
    pub fence: u64,
    /// When others may take it.
    pub until: Timestamp,
}
