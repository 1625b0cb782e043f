//! One writer for many: whatever waits is written in one transaction.
//!
//! A durable commit costs a flush of the disk, and that costs the same for one step as for a
//! hundred. A server with many writers therefore has one thread that takes all steps that wait,
//! writes them together, and answers each caller once the transaction is durable. While it flushes,
//! the next ones gather: the busier the server, the larger the groups.

mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aldis_signal::time::Timestamp;

use self::writer::{Helpers, Write, WriteFn, WriteJob};
use super::{SqliteStore, outbox, write};
use crate::claim::{Claim, ClaimRequest, PendingCount};
use crate::cursor::{ChangeStamp, Continuity, Cursor};
use crate::error::{CommitError, LeaseError, StoreError};
use crate::record::{
    Decision, DecisionFilter, Effect, EffectFilter, Event, Lease, Loaded, Prune, Run, RunFilter,
    RunSummary, StoreSize, Timer,
};
use crate::step::{Committed, Revision, RunId, Step};
use crate::store::{OnCommit, Store, Turn};
use crate::worker::WorkerRecord;

/// How many writes wait at most; more callers wait until there is room.
const WAITING_MAX: usize = 4_096;

/// A [`SqliteStore`] whose steps and effects are written by one thread, in groups.
///
/// For a server: one write alone costs a little more than with [`SqliteStore`], a hundred at once
/// cost about as much as one. Leases and pruning are rare and go straight through. Other processes
/// use the same database as before.
#[derive(Debug)]
pub struct GroupStore {
    store: Arc<SqliteStore>,
    jobs: Option<SyncSender<Box<dyn WriteJob>>>,
    threads: Vec<JoinHandle<()>>,
}

impl GroupStore {
    /// Opens the database in `dir` as [`SqliteStore::open`] does, and starts the writer.
    ///
    /// # Errors
    ///
    /// As [`SqliteStore::open`], and if the system gives no thread.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let store = Arc::new(SqliteStore::open(dir)?);
        let (jobs, waiting) = mpsc::sync_channel(WAITING_MAX);
        let (answers, written) = mpsc::channel();
        let (copier, asked) = mpsc::sync_channel(1);
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map_err(|error| StoreError::from_io(&error, dir, "start the writer"))
        };
        let helpers = Helpers { answers, copier };
        let (writes, copies) = (store.clone(), store.clone());
        let threads = vec![
            start("store-writer", Box::new(move || writer::work(&writes, &waiting, &helpers)))?,
            start("store-answers", Box::new(move || written.into_iter().for_each(writer::answer)))?,
            start("store-copier", Box::new(move || writer::copy(&copies, &asked)))?,
        ];
        Ok(Self { store, jobs: Some(jobs), threads })
    }

    /// Returns the store as it is for one writer.
    pub(super) fn alone(&self) -> &SqliteStore {
        &self.store
    }

    /// Hands a write to the writer and waits for its answer.
    fn ask<I: Send + 'static, T: Send + 'static>(
        &self,
        input: I,
        work: WriteFn<I, T>,
    ) -> Result<T, StoreError> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.hand_over(input, work, move |_, result| {
            // The receiver lives: the caller waits for it below.
            reply.send(result).ok();
        });
        answer.recv().unwrap_or_else(|_| Err(self.store.gone()))
    }

    /// Hands a write to the writer. Its reply is dropped if there is none.
    fn hand_over<I: Send + 'static, T: Send + 'static>(
        &self,
        input: I,
        work: WriteFn<I, T>,
        reply: impl FnOnce(I, Result<T, StoreError>) + Send + 'static,
    ) {
        if let Some(jobs) = &self.jobs {
            jobs.send(Box::new(Write { input, work, written: None, reply: Box::new(reply) })).ok();
        }
    }
}

impl Drop for GroupStore {
    fn drop(&mut self) {
        // What waits is still written: the channel is emptied before it counts as closed.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

/// Reading, leases and retention go straight through.
macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)+) => {
        $(fn $name(&self, $($argument: $kind),*) -> $result {
            self.store.$name($($argument),*)
        })+
    };
}

impl Store for GroupStore {
    forward! {
        fn run(id: &RunId) -> Result<Option<Run>, StoreError>;
        fn load(id: &RunId) -> Result<Option<Loaded>, StoreError>;
        fn loaded(filter: &RunFilter) -> Result<Vec<Loaded>, StoreError>;
        fn list(filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError>;
        fn count(filter: &RunFilter) -> Result<u64, StoreError>;
        fn find(prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError>;
        fn events(run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;
        fn event_by_source(run: &RunId, source: &str) -> Result<Option<Event>, StoreError>;
        fn decisions(filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError>;
        fn decisions_after(run: Option<&RunId>, after: &Cursor, limit: usize)
            -> Result<Vec<Decision>, StoreError>;
        fn decisions_within(run: Option<&RunId>, after: &Cursor, limit: usize, bytes: usize)
            -> Result<Vec<Decision>, StoreError>;
        fn decisions_of(run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError>;
        fn continuity(after: &Cursor) -> Result<Continuity, StoreError>;
        fn pending_effects(filter: &EffectFilter) -> Result<Vec<Effect>, StoreError>;
        fn effect(key: &str) -> Result<Option<Effect>, StoreError>;
        fn pending_count() -> Result<Vec<PendingCount>, StoreError>;
        fn due_timers(now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError>;
        fn next_timer() -> Result<Option<Timestamp>, StoreError>;
        fn change() -> Result<ChangeStamp, StoreError>;
        fn wait_for_change(after: &ChangeStamp, timeout: Duration)
            -> Result<ChangeStamp, StoreError>;
        fn acquire_lease(run: &RunId, holder: &str, now: Timestamp, ttl: Duration)
            -> Result<Lease, LeaseError>;
        fn renew_lease(lease: &Lease, now: Timestamp, ttl: Duration) -> Result<Lease, LeaseError>;
        fn release_lease(lease: &Lease) -> Result<bool, StoreError>;
        fn break_lease(run: &RunId, fence: u64) -> Result<bool, StoreError>;
        fn announce(name: &str, body: &str, now: Timestamp, ttl: Duration)
            -> Result<(), StoreError>;
        fn withdraw(name: &str) -> Result<bool, StoreError>;
        fn workers() -> Result<Vec<WorkerRecord>, StoreError>;
        fn prune(prune: &Prune) -> Result<Vec<RunId>, StoreError>;
        fn size() -> Result<StoreSize, StoreError>;
    }

    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError> {
        self.store.turn(run)
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        let written = self.ask(step.clone(), write::step)??;
        written.map_or_else(|| self.store.commit(step), Ok)
    }

    fn commit_then(&self, step: Box<Step>, on_commit: OnCommit) {
        let work: WriteFn<Box<Step>, _> = |statements, step| write::step(statements, step);
        let store = self.store.clone();
        self.hand_over(step, work, move |step, result| match result {
            Ok(Ok(Some(committed))) => on_commit(step, Ok(committed)),
            Ok(Err(refusal)) => on_commit(step, Err(refusal)),
            Err(error) => on_commit(step, Err(error.into())),
            // An old run of the same name is deleted first, which may take a while.
            Ok(Ok(None)) => {
                let again = move || {
                    let result = store.commit(&step);
                    on_commit(step, result);
                };
                thread::Builder::new().spawn(again).ok();
            }
        });
    }

    fn effects_done(
        &self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError> {
        self.ask((run.clone(), fence, keys.to_vec()), |statements, (run, fence, keys)| {
            outbox::effects_done(statements, run, *fence, keys)
        })?
    }

    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.ask(request.clone(), outbox::claim)
    }

    fn keep(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        self.ask((claims.to_vec(), now, ttl), |statements, (claims, now, ttl)| {
            outbox::keep(statements, claims, *now, *ttl)
        })
    }

    fn done(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.ask(claim.clone(), outbox::done)
    }

    fn failed(
        &self,
        claim: &Claim,
        next: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError> {
        let input = (claim.clone(), next, error.to_owned());
        self.ask(input, |statements, (claim, next, error)| {
            outbox::failed(statements, claim, *next, error)
        })
    }

    fn trim_lane(
        &self,
        lane: &str,
        keep: usize,
        now: Timestamp,
        error: &str,
    ) -> Result<usize, StoreError> {
        let input = (lane.to_owned(), keep, now, error.to_owned());
        self.ask(input, |statements, (lane, keep, now, error)| {
            outbox::trim(statements, lane, *keep, *now, error)
        })
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.ask((), |statements, ()| write::probe(statements))
    }
}
