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

use self::writer::{Helpers, Job, Work, Write};
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
    jobs: Option<SyncSender<Box<dyn Job>>>,
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

    /// Hands a write to the writer and waits for its answer.
    fn ask<I: Send + 'static, T: Send + 'static>(
        &self,
        input: I,
        work: Work<I, T>,
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
        work: Work<I, T>,
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

impl Store for GroupStore {
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.store.run(id)
    }

    fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        self.store.load(id)
    }

    fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError> {
        self.store.loaded(filter)
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.store.list(filter)
    }

    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        self.store.count(filter)
    }

    fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.store.find(prefix, limit)
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        let written = self.ask(step.clone(), write::step)??;
        written.map_or_else(|| self.store.commit(step), Ok)
    }

    fn commit_then(&self, step: Box<Step>, on_commit: OnCommit) {
        let work: Work<Box<Step>, _> = |statements, step| write::step(statements, step);
        let store = self.store.clone();
        self.hand_over(step, work, move |step, result| match result {
            Ok(Ok(Some(committed))) => on_commit(step, Ok(committed)),
            Ok(Err(refusal)) => on_commit(step, Err(refusal)),
            Err(error) => on_commit(step, Err(error.into())),
            // An old run of the same name is deleted first, which may take a while.
            Ok(Ok(None)) => drop(thread::spawn(move || {
                let result = store.commit(&step);
                on_commit(step, result);
            })),
        });
    }

    fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.store.events(run, after, limit)
    }

    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError> {
        self.store.event_by_source(run, source)
    }

    fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        self.store.decisions(filter)
    }

    fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        self.store.decisions_after(run, after, limit)
    }

    fn decisions_of(&self, run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError> {
        self.store.decisions_of(run, revision)
    }

    fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError> {
        self.store.continuity(after)
    }

    fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        self.store.pending_effects(filter)
    }

    fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        self.store.effect(key)
    }

    fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError> {
        self.store.pending_count()
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

    fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
        self.store.due_timers(now, limit)
    }

    fn next_timer(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store.next_timer()
    }

    fn change(&self) -> Result<ChangeStamp, StoreError> {
        self.store.change()
    }

    fn wait_for_change(
        &self,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        self.store.wait_for_change(after, timeout)
    }

    fn acquire_lease(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.store.acquire_lease(run, holder, now, ttl)
    }

    fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.store.renew_lease(lease, now, ttl)
    }

    fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError> {
        self.store.release_lease(lease)
    }

    fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError> {
        self.store.break_lease(run, fence)
    }

    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError> {
        self.store.turn(run)
    }

    fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError> {
        self.store.prune(prune)
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.ask((), |statements, ()| write::probe(statements))
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        self.store.size()
    }
}
