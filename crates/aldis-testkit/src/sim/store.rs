//! A store that fails before or after a write took effect, is full for a while, and lets others step
//! in between; under it is a real one.

use std::panic;
use std::sync::Arc;
use std::time::Duration;

use aldis_engine::Engine;
use aldis_signal::time::Timestamp;
use aldis_store::{
    ChangeStamp, Claim, ClaimRequest, CommitError, Committed, Continuity, Cursor, Decision,
    DecisionFilter, Effect, EffectFilter, Event, Lease, LeaseError, Loaded, PendingCount, Prune,
    Revision, Run, RunFilter, RunId, RunSummary, Step, Store, StoreError, StoreSize, Ticket,
    Tickets, Timer, Turn, WorkerRecord,
};

use super::fate::{Died, SharedFate, Write};
use super::{Bug, people};

pub(super) struct SimStore {
    inner: Arc<dyn Store>,
    shared: SharedFate,
    /// Whether people step in between reading and writing.
    disturbed: bool,
}

impl SimStore {
    pub(super) fn new(inner: Arc<dyn Store>, shared: SharedFate, disturbed: bool) -> Self {
        Self { inner, shared, disturbed }
    }

    fn read(&self) -> &dyn Store {
        self.shared.call();
        &*self.inner
    }

    fn write<T, E: From<StoreError>>(
        &self,
        write: impl FnOnce(&dyn Store) -> Result<T, E>,
    ) -> Result<T, E> {
        self.shared.call();
        let (verdict, full) = {
            let mut fate = self.shared.lock();
            (fate.write(), fate.full_for > 0)
        };
        let location = "the simulated store".to_owned();
        let error = match full {
            true => StoreError::Full { location },
            false => StoreError::Busy { location },
        };
        match verdict {
            Write::Done => write(&*self.inner),
            Write::FailsBefore => Err(error.into()),
            Write::FailsAfter => write(&*self.inner).and(Err(error.into())),
            Write::DiesAfter => {
                let _written = write(&*self.inner);
                self.shared.lock().dies_in = None;
                panic::resume_unwind(Box::new(Died))
            }
        }
    }

    /// Whether the planted bug is this one, and shows now.
    fn has(&self, bug: Bug, one_in: usize) -> bool {
        let mut fate = self.shared.lock();
        fate.bug == Some(bug) && fate.rng.below(one_in) == 0
    }

    /// Somebody else is quicker now and then.
    fn disturb(&self, run: &RunId) {
        let disturbed = {
            let mut fate = self.shared.lock();
            self.disturbed && fate.faults && fate.rng.chance(2)
        };
        if disturbed {
            let engine = Engine::new(Arc::clone(&self.inner));
            people::act(&engine, run, &self.shared, false);
        }
    }
}

macro_rules! reads {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $arg: $type)*) -> $result {
            self.read().$name($($arg),*)
        })*
    };
}

macro_rules! writes {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $arg: $type)*) -> $result {
            self.write(|store| store.$name($($arg),*))
        })*
    };
}

impl Tickets for SimStore {
    reads! {
        fn ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError>;
        fn tickets(&self, kind: &str, limit: usize) -> Result<Vec<Ticket>, StoreError>;
    }

    writes! {
        fn put_ticket(&self, ticket: &Ticket) -> Result<bool, StoreError>;
        fn take_ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError>;
    }
}

impl Store for SimStore {
    reads! {
        fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError>;
        fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError>;
        fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError>;
        fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError>;
        fn count(&self, filter: &RunFilter) -> Result<u64, StoreError>;
        fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError>;
        fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;
        fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError>;
        fn decisions_after(&self, run: Option<&RunId>, after: &Cursor, limit: usize)
            -> Result<Vec<Decision>, StoreError>;
        fn decisions_of(&self, run: &RunId, revision: Revision)
            -> Result<Vec<Decision>, StoreError>;
        fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError>;
        fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError>;
        fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError>;
        fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError>;
        fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError>;
        fn next_timer(&self) -> Result<Option<Timestamp>, StoreError>;
        fn change(&self) -> Result<ChangeStamp, StoreError>;
        fn wait_for_change(&self, after: &ChangeStamp, timeout: Duration)
            -> Result<ChangeStamp, StoreError>;
        fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError>;
        fn size(&self) -> Result<StoreSize, StoreError>;
        fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError>;
    }

    writes! {
        fn effects_done(&self, run: &RunId, fence: Option<u64>, keys: &[String])
            -> Result<usize, CommitError>;
        fn keep(&self, claims: &[Claim], now: Timestamp, ttl: Duration)
            -> Result<Vec<bool>, StoreError>;
        fn done(&self, claim: &Claim) -> Result<bool, StoreError>;
        fn failed(&self, claim: &Claim, next: Option<Timestamp>, error: &str)
            -> Result<bool, StoreError>;
        fn trim_lane(&self, lane: &str, keep: usize, now: Timestamp, error: &str)
            -> Result<usize, StoreError>;
        fn acquire_lease(&self, run: &RunId, holder: &str, now: Timestamp, ttl: Duration)
            -> Result<Lease, LeaseError>;
        fn renew_lease(&self, lease: &Lease, now: Timestamp, ttl: Duration)
            -> Result<Lease, LeaseError>;
        fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError>;
        fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError>;
        fn announce(&self, name: &str, body: &str, now: Timestamp, ttl: Duration)
            -> Result<(), StoreError>;
        fn withdraw(&self, name: &str) -> Result<bool, StoreError>;
        fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError>;
        fn probe(&self) -> Result<(), StoreError>;
    }

    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let mut claims = self.write(|store| store.claim(request))?;
        if self.has(Bug::SameFence, 1) {
            claims.iter_mut().for_each(|claim| claim.fence = 1);
        }
        if self.has(Bug::DoneWhenClaimed, 4) {
            for claim in &claims {
                self.inner.done(claim)?;
            }
        }
        Ok(claims)
    }

    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError> {
        if self.has(Bug::ForgottenSource, 1) {
            return Ok(None);
        }
        self.read().event_by_source(run, source)
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        self.disturb(&step.run);
        if step.expected.0 > 0 && self.has(Bug::LostCommit, 16) {
            let revision = Revision(step.expected.0 + 1);
            let events = step.events.len() as u64;
            let last = self.inner.run(&step.run)?.map_or(0, |run| run.last_event);
            return Ok(Committed { revision, last_event: last + events });
        }
        let mut forgetful = None;
        if self.has(Bug::ForgottenSource, 1) {
            let mut without = step.clone();
            without.events.iter_mut().for_each(|event| event.source = None);
            forgetful = Some(without);
        }
        let step = forgetful.as_ref().unwrap_or(step);
        let shared = self.shared.clone();
        self.write(|store| {
            let committed = store.commit(step)?;
            shared.lock().committed(step);
            Ok(committed)
        })
    }
}
