//! A store whose next commit can be made to fail, before or after it took effect.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{
    ChangeStamp, Claim, ClaimRequest, CommitError, Committed, Continuity, Cursor, Decision,
    DecisionFilter, Effect, EffectFilter, Event, Fault, FaultKind, Lease, LeaseError, Loaded,
    PendingCount, Prune, Revision, Run, RunFilter, RunId, RunSummary, Step, Store, StoreError,
    StoreSize, Timer, Turn, When,
};

/// Any store, with faults on command. Unlike those of the memory store, a planned fault hits commits
/// only and can be taken back, so that every backend fails at the same moments.
#[derive(Debug)]
pub(super) struct Faulty<S> {
    pub(super) inner: S,
    fault: Mutex<Option<Fault>>,
}

impl<S> Faulty<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, fault: Mutex::default() }
    }

    pub(super) fn plan(&self, fault: Option<Fault>) {
        *self.fault() = fault;
    }

    fn fault(&self) -> MutexGuard<'_, Option<Fault>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn error(kind: FaultKind) -> StoreError {
    let (location, detail) = ("the simulated store".to_owned(), "as commanded".to_owned());
    match kind {
        FaultKind::Busy => StoreError::Busy { location },
        FaultKind::Full => StoreError::Full { location },
        FaultKind::Io => StoreError::Io { location, doing: "write", detail },
        FaultKind::ReadOnly => StoreError::ReadOnly { location, detail },
    }
}

impl<S: Store> Store for Faulty<S> {
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.inner.run(id)
    }

    fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        self.inner.load(id)
    }

    fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError> {
        self.inner.loaded(filter)
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.list(filter)
    }

    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        self.inner.count(filter)
    }

    fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.inner.find(prefix, limit)
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        let Some(fault) = self.fault().take() else { return self.inner.commit(step) };
        if fault.when == When::After {
            self.inner.commit(step)?;
        }
        Err(error(fault.kind).into())
    }

    fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.inner.events(run, after, limit)
    }

    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError> {
        self.inner.event_by_source(run, source)
    }

    fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions(filter)
    }

    fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions_after(run, after, limit)
    }

    fn decisions_of(&self, run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError> {
        self.inner.decisions_of(run, revision)
    }

    fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError> {
        self.inner.continuity(after)
    }

    fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        self.inner.pending_effects(filter)
    }

    fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        self.inner.effect(key)
    }

    fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError> {
        self.inner.pending_count()
    }

    fn effects_done(
        &self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError> {
        self.inner.effects_done(run, fence, keys)
    }

    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.inner.claim(request)
    }

    fn keep(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        self.inner.keep(claims, now, ttl)
    }

    fn done(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.inner.done(claim)
    }

    fn failed(
        &self,
        claim: &Claim,
        next: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.inner.failed(claim, next, error)
    }

    fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
        self.inner.due_timers(now, limit)
    }

    fn next_timer(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_timer()
    }

    fn change(&self) -> Result<ChangeStamp, StoreError> {
        self.inner.change()
    }

    fn wait_for_change(
        &self,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        self.inner.wait_for_change(after, timeout)
    }

    fn acquire_lease(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.inner.acquire_lease(run, holder, now, ttl)
    }

    fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.inner.renew_lease(lease, now, ttl)
    }

    fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError> {
        self.inner.release_lease(lease)
    }

    fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError> {
        self.inner.break_lease(run, fence)
    }

    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError> {
        self.inner.turn(run)
    }

    fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError> {
        self.inner.prune(prune)
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.inner.probe()
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        self.inner.size()
    }
}
