//! The shared database: many machines, one PostgreSQL.

mod config;
mod error;
mod feed;
mod link;
mod outbox;
mod queue;
mod read;
mod schema;
mod text;
mod tickets;
mod transfer;
mod turns;
mod values;
mod workers;
mod write;

use std::thread;
use std::time::{Duration, Instant};

use aldis_signal::time::Timestamp;

pub use self::config::PostgresAddress;
use self::feed::Feed;
use self::link::{Link, Repeat};
use self::queue::Queues;
use self::read::first;
use self::values::{Columns, Values};
use crate::claim::{Claim, ClaimRequest, PendingCount};
use crate::cursor::{ChangeStamp, Continuity, Cursor};
use crate::error::{CommitError, LeaseError, StoreError};
use crate::gate::Turns;
use crate::record::{
    Decision, DecisionFilter, Effect, EffectFilter, Event, Lease, Loaded, Prune, Run, RunFilter,
    RunSummary, StoreSize, Timer,
};
use crate::step::{Committed, Revision, RunId, Step};
use crate::store::{OnCommit, Store, Turn};
use crate::worker::WorkerRecord;

/// Rows deleted in one transaction, and transactions in one call of `prune`, at most.
const PRUNE_ROWS: u64 = 2_000;
const PRUNE_TRANSACTIONS: usize = 16;
/// How long a reader of all decisions waits for transactions that are older than the last one.
const HORIZON_MAX: Duration = Duration::from_millis(500);
const HORIZON_PAUSE: Duration = Duration::from_millis(1);

/// Runs in a PostgreSQL database, 15 or newer, that any number of machines share.
///
/// Each write is one call of one function of the database, and durable when it returns. Leases and claims
/// go by the database's clock. Everything but waiting for changes works through a pooler in transaction
/// mode; what waits needs a [direct](PostgresAddress::with_direct) address, or looks once a second.
#[derive(Debug)]
pub struct PostgresStore {
    queues: Queues,
    feed: Feed,
    turns: Turns,
    link: Link,
}

impl PostgresStore {
    /// Opens the database, and sets it up if there is nothing yet.
    ///
    /// # Errors
    ///
    /// [`StoreError::NewerSchema`], [`StoreError::OlderSchema`]; [`StoreError::Unsafe`] when it does not
    /// keep what it acknowledges; and what the server says.
    pub fn open(address: PostgresAddress) -> Result<Self, StoreError> {
        let link = Link::new(address)?;
        schema::open(&link)?;
        let feed = Feed::start(&link);
        Ok(Self { queues: Queues::start(&link, &feed), feed, turns: Turns::local(), link })
    }

    /// Brings the tables up to date, and lets a database that was restored from a backup count on from
    /// where it was. Returns the version before and after.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn migrate(address: PostgresAddress) -> Result<(u32, u32), StoreError> {
        schema::migrate(&Link::new(address)?)
    }

    /// Looks for what cannot be in the tables. Returns what was found, in words.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        read::findings(&self.link)
    }

    /// Leaves without telling others of the last changes, which they find within a second: for a process
    /// that has answered and wants to be gone.
    pub fn abandon(self) {
        self.feed.forget();
    }

    /// Tells everybody of a change, if there was one.
    fn note(&self, changed: bool) {
        if changed {
            self.feed.committed();
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queues.finish();
        self.feed.finish(&self.link);
    }
}

impl Store for PostgresStore {
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        read::run(&self.link, id)
    }

    fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError> {
        read::load(&self.link, id)
    }

    fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError> {
        read::loaded(&self.link, filter)
    }

    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        read::list(&self.link, filter)
    }

    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        read::count_runs(&self.link, filter)
    }

    fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        read::find(&self.link, prefix, limit)
    }

    fn commit(&self, step: &Step) -> Result<Committed, CommitError> {
        let values = write::step_values(step);
        let outcome = self.link.call(write::DOING, Repeat::Write, write::STEP, values, |rows| {
            write::outcome(&step.run, &rows)
        })?;
        self.note(outcome.is_ok());
        outcome
    }

    fn commit_then(&self, step: Box<Step>, on_commit: OnCommit) {
        self.queues.hand_over(step, on_commit);
    }

    fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        read::events(&self.link, run, after, limit)
    }

    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError> {
        read::event_by_source(&self.link, run, source)
    }

    fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        read::decisions(&self.link, filter)
    }

    fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        self.decisions_within(run, after, limit, usize::MAX)
    }

    fn decisions_within(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        if run.is_none() {
            // What is committed now shall be seen now: transactions that began before it are short, and
            // a long one elsewhere in the server delays the reader, but never makes it skip anything.
            let (began, (newest, mut oldest)) = (Instant::now(), read::horizon(&self.link)?);
            while oldest <= newest && began.elapsed() < HORIZON_MAX {
                thread::sleep(HORIZON_PAUSE);
                oldest = read::horizon(&self.link)?.1;
            }
        }
        read::decisions_within(&self.link, run, after, limit, bytes)
    }

    fn decisions_of(&self, run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError> {
        read::decisions_of(&self.link, run, revision)
    }

    fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError> {
        read::continuity(&self.link, after)
    }

    fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError> {
        read::pending_effects(&self.link, filter)
    }

    fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError> {
        read::effect(&self.link, key)
    }

    fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError> {
        read::pending_count(&self.link)
    }

    fn effects_done(
        &self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError> {
        let values = Values::default()
            .text(run.as_str())
            .maybe_number(fence)
            .texts(keys.iter().map(|key| &**key));
        let sql = "SELECT * FROM {s}.effects_done($1, $2, $3)";
        let closed = self
            .link
            .call("close effects", Repeat::Write, sql, values, |rows| write::closed(run, &rows))?;
        self.note(closed.as_ref().is_ok_and(|closed| *closed > 0));
        closed
    }

    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.claim_effects(request)
    }

    fn keep(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        self.keep_claims(claims, now, ttl)
    }

    fn done(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.settle("close an effect", claim, None, None)
    }

    fn failed(
        &self,
        claim: &Claim,
        next: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.settle("postpone an effect", claim, Some(error), next)
    }

    fn trim_lane(
        &self,
        lane: &str,
        keep: usize,
        now: Timestamp,
        error: &str,
    ) -> Result<usize, StoreError> {
        self.trim(lane, keep, now, error)
    }

    fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError> {
        read::due_timers(&self.link, now.as_millis(), limit)
    }

    fn next_timer(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT min(due) FROM {s}.timers";
        let due = first(|columns| columns.maybe_moment());
        Ok(self.link.read("read timers", sql, Values::default(), due)?.flatten())
    }

    fn change(&self) -> Result<ChangeStamp, StoreError> {
        Feed::change(&self.link)
    }

    fn wait_for_change(
        &self,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        self.feed.wait(&self.link, after, timeout)
    }

    fn acquire_lease(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.acquire(run, holder, now, ttl)
    }

    fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.renew(lease, now, ttl)
    }

    fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError> {
        self.end("release a lease", &lease.run, lease.fence, Some(&lease.holder))
    }

    fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError> {
        self.end("end a lease", run, fence, None)
    }

    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError> {
        Ok(Box::new(turns::enter(&self.link, &self.turns, run)?))
    }

    fn announce(
        &self,
        name: &str,
        body: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        self.announce_worker((name, body), now, ttl)
    }

    fn withdraw(&self, name: &str) -> Result<bool, StoreError> {
        self.withdraw_worker(name)
    }

    fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.all_workers()
    }

    fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError> {
        let sql = "SELECT * FROM {s}.prune($1, $2, $3)";
        let mut gone = Vec::new();
        for _ in 0..PRUNE_TRANSACTIONS {
            let values = Values::default()
                .moment(prune.ended_before)
                .limit(prune.limit - gone.len())
                .number(PRUNE_ROWS);
            let batch = |columns: &mut Columns<'_>| Ok((columns.texts()?, columns.flag()?));
            let doing = "delete old runs";
            let batch = self.link.call(doing, Repeat::Write, sql, values, first(batch))?;
            let Some((runs, more)) = batch else { break };
            self.note(!runs.is_empty());
            for run in runs {
                gone.push(RunId::new(run).map_err(|bad| self.link.corrupt(bad.to_string()))?);
            }
            if !more {
                break;
            }
        }
        tracing::debug!(runs = gone.len(), "old runs deleted");
        Ok(gone)
    }

    fn probe(&self) -> Result<(), StoreError> {
        let (doing, sql) = ("write a probe", "SELECT {s}.probe()::text");
        self.link.call(doing, Repeat::Write, sql, Values::default(), |_| Ok(()))?;
        self.note(true);
        Ok(())
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        read::size(&self.link)
    }
}
