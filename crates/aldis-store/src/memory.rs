//! A store without a disk: for simulators and tests, with faults on command.
//!
//! Also the plainest statement of what a store does, which the property tests hold SQLite to.

mod faults;
mod outbox;
mod tables;
mod tickets;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aldis_signal::time::Timestamp;

use self::faults::Faults;
pub use self::faults::{Fault, FaultKind, When};
use self::tables::{Row, Tables};
use crate::claim::{Claim, ClaimRequest, PendingCount};
use crate::cursor::{ChangeStamp, Continuity, Cursor};
use crate::error::{CommitError, LeaseError, StoreError};
use crate::gate::Turns;
use crate::record::{
    Decision, DecisionFilter, Effect, EffectFilter, Event, Lease, Loaded, Prune, Run, RunFilter,
    RunSummary, StoreSize, Timer,
};
use crate::step::{Committed, Revision, RunId, Step};
use crate::store::{Store, Turn};
use crate::worker::WorkerRecord;

/// Keeps runs as long as it lives. Deterministic: the same calls give the same answers.
#[derive(Debug)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
    /// Wakes whoever waits for a change.
    written: Condvar,
    turns: Turns,
}

#[derive(Debug, Default)]
struct Inner {
    tables: Tables,
    faults: Faults,
    /// How many writes took effect.
    writes: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { inner: Mutex::default(), written: Condvar::new(), turns: Turns::local() }
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the `nth` write from now fail: 1 is the next one. Every method that changes something
    /// is a write, also when it would have been refused. Faults for the same write: the last counts.
    pub fn fail_nth(&self, nth: u64, fault: Fault) {
        self.inner().faults.plan(nth, fault);
    }

    /// Lets the next write fail.
    pub fn fail_next(&self, fault: Fault) {
        self.fail_nth(1, fault);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Tables) -> T) -> T {
        read(&self.inner().tables)
    }

    /// Does one write, or fails before or after it as planned.
    fn write<T, E: From<StoreError>>(
        &self,
        write: impl FnOnce(&mut Tables) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut inner = self.inner();
        let fault = inner.faults.next_write();
        if let Some(Fault { when: When::Before, kind }) = fault {
            return Err(kind.error().into());
        }
        // A refusal has no outcome to be unsure of.
        let result = write(&mut inner.tables)?;
        inner.writes += 1;
        self.written.notify_all();
        fault.map_or(Ok(result), |fault| Err(fault.kind.error().into()))
    }
}

impl Store for MemoryStore {
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        Ok(self.read(|tables| tables.run(id)))
    }

    fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        Ok(self.read(|tables| tables.load(id)))
    }

    fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError> {
        Ok(self.read(|tables| tables.rows(filter).map(Row::load).collect()))
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        Ok(self.read(|tables| tables.rows(filter).map(Row::summary).collect()))
    }

    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        let all = RunFilter { limit: usize::MAX, ..filter.clone() };
        Ok(self.read(|tables| tables.rows(&all).count() as u64))
    }

    fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        Ok(self.read(|tables| tables.find(prefix, limit)))
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        self.write(|tables| tables.commit(step))
    }

    fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        Ok(self.read(|tables| tables.events(run, after, limit)))
    }

    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError> {
        Ok(self.read(|tables| tables.event_by_source(run, source)))
    }

    fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        Ok(self.read(|tables| tables.decisions(filter)))
    }

    fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        Ok(self.read(|tables| tables.decisions_after(run, after, limit)))
    }

    fn decisions_of(&self, run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError> {
        Ok(self.read(|tables| tables.decisions_of(run, revision)))
    }

    fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError> {
        Ok(self.read(|tables| tables.continuity(after)))
    }

    fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        Ok(self.read(|tables| tables.outbox.pending(filter)))
    }

    fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        Ok(self.read(|tables| tables.outbox.effect(key)))
    }

    fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError> {
        Ok(self.read(|tables| tables.outbox.pending_count()))
    }

    fn effects_done(
        &self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError> {
        self.write(|tables| tables.effects_done(run, fence, keys))
    }

    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.write(|tables| Ok(tables.outbox.claim(request)))
    }

    fn keep(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        self.write(|tables| Ok(tables.outbox.keep(claims, now.after(ttl))))
    }

    fn done(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.write(|tables| Ok(tables.outbox.done(claim)))
    }

    fn failed(
        &self,
        claim: &Claim,
        next: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.write(|tables| Ok(tables.outbox.failed(claim, next, error)))
    }

    fn trim_lane(
        &self,
        lane: &str,
        keep: usize,
        now: Timestamp,
        error: &str,
    ) -> Result<usize, StoreError> {
        self.write(|tables| Ok(tables.outbox.trim(lane, keep, now, error)))
    }

    fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
        Ok(self.read(|tables| tables.due_timers(now, limit)))
    }

    fn next_timer(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.read(Tables::next_timer))
    }

    fn change(&self) -> Result<ChangeStamp, StoreError> {
        Ok(ChangeStamp::of(0, self.inner().writes))
    }

    fn wait_for_change(
        &self,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        let same = |inner: &mut Inner| ChangeStamp::of(0, inner.writes) == *after;
        let waited = self.written.wait_timeout_while(self.inner(), timeout, same);
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Ok(ChangeStamp::of(0, inner.writes))
    }

    fn acquire_lease(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.write(|tables| tables.acquire_lease(run, holder, now, ttl))
    }

    fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.write(|tables| tables.renew_lease(lease, now, ttl))
    }

    fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError> {
        self.write(|tables| Ok(tables.release_lease(lease)))
    }

    fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError> {
        self.write(|tables| Ok(tables.break_lease(run, fence)))
    }

    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError> {
        Ok(Box::new(self.turns.enter(run)?))
    }

    fn announce(
        &self,
        name: &str,
        body: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let (name, body, until) = (name.to_owned(), body.to_owned(), now.after(ttl));
        self.write(|tables| {
            tables.announce(WorkerRecord { name, body, seen: now, until });
            Ok(())
        })
    }

    fn withdraw(&self, name: &str) -> Result<bool, StoreError> {
        self.write(|tables| Ok(tables.workers.remove(name).is_some()))
    }

    fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        Ok(self.read(|tables| tables.workers.values().cloned().collect()))
    }

    fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError> {
        self.write(|tables| Ok(tables.prune(prune)))
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.write(|_| Ok(()))
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        let runs = self.read(|tables| tables.rows(&RunFilter::default()).count() as u64);
        Ok(StoreSize { runs, ..StoreSize::default() })
    }
}
