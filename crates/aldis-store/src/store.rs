//! The contract of every backend.

use std::time::Duration;

use aldis_signal::time::Timestamp;

use crate::claim::{Claim, ClaimRequest, PendingCount};
use crate::cursor::{ChangeStamp, Continuity, Cursor};
use crate::error::{CommitError, LeaseError, StoreError};
use crate::record::{
    Decision, DecisionFilter, Effect, EffectFilter, Event, Lease, Loaded, Prune, Run, RunFilter,
    RunSummary, StoreSize, Timer,
};
use crate::step::{Committed, Revision, RunId, Step};
use crate::ticket::Tickets;
use crate::worker::WorkerRecord;

/// What to do once a step is durable, or refused.
pub type OnCommit = Box<dyn FnOnce(Box<Step>, Result<Committed, CommitError>) + Send>;

/// A durable home for runs, shared by any number of processes.
///
/// Synchronous, because its most frequent user is a hook that lives for a few milliseconds.
/// Reading never waits for writers. Limits of 0 give nothing. Every method fails with a
/// [`StoreError`] when the backend does; see there for what that means for a write.
pub trait Store: Tickets + Send + Sync {
    /// Returns the run as its last step left it.
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError>;

    /// Returns the run with the parts of its state, as one step left them.
    fn load(&self, id: &RunId) -> Result<Option<Loaded>, StoreError>;

    /// Returns the runs that pass the filter with their parts, the latest created first. For
    /// whoever needs all their states at once; lists need [`list`](Self::list).
    fn loaded(&self, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError>;

    /// Returns the runs that pass the filter without their states, the latest created first.
    fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError>;

    /// Returns how many runs pass the filter, whatever its limit.
    fn count(&self, filter: &RunFilter) -> Result<u64, StoreError>;

    /// Returns the runs whose id begins with `prefix`, in the order of their ids: the run of exactly
    /// that name comes first.
    fn find(&self, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError>;

    /// Writes one step: all of it or nothing. When this returns `Ok`, the step is durable.
    ///
    /// The revision afterwards is `step.expected` + 1.
    ///
    /// # Errors
    ///
    /// Checked in this order: [`CommitError::Fenced`] when the step carries another fencing number
    /// than the run's current one, so that a replaced coordinator learns that first;
    /// [`CommitError::Duplicate`] when one of its sources is known, however old its revision;
    /// [`CommitError::NoSuchRun`]; [`CommitError::Conflict`].
    fn commit(&self, step: &Step) -> Result<Committed, CommitError>;

    /// As [`commit`](Self::commit), for whoever cannot wait: `on_commit` is called with the step and what
    /// came of it, by whatever thread knows, perhaps before this returns. It must not wait for
    /// anything. If it is dropped without being called, whether the step is written is unknown.
    fn commit_then(&self, step: Box<Step>, on_commit: OnCommit) {
        let result = self.commit(&step);
        on_commit(step, result);
    }

    /// Returns the run's events after number `after`, in order.
    fn events(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Returns the event that the source with this key delivered, with the revision and the digest:
    /// how a second delivery gets the first one's answer.
    fn event_by_source(&self, run: &RunId, source: &str) -> Result<Option<Event>, StoreError>;

    /// Returns the decisions that pass the filter, newest first, across runs.
    fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError>;

    /// Returns the decisions after this position, of this run only if one is given, in order: how a
    /// reader follows what happens. None is skipped that becomes visible later.
    fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Result<Vec<Decision>, StoreError>;

    /// Returns decisions as [`decisions_after`](Self::decisions_after) does, up to the one that makes
    /// their bodies `bytes` bytes long together: for readers whose memory is bounded.
    fn decisions_within(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Decision>, StoreError> {
        let (mut page, mut after, mut length) = (Vec::new(), *after, 0);
        while page.len() < limit && length < bytes {
            let Some(next) = self.decisions_after(run, &after, 1)?.pop() else { break };
            after = next.cursor;
            length += next.body.len();
            page.push(next);
        }
        Ok(page)
    }

    /// Returns what the step that led to this revision decided, in order.
    fn decisions_of(&self, run: &RunId, revision: Revision) -> Result<Vec<Decision>, StoreError>;

    /// Returns whether a reader that goes on after this position sees every decision.
    fn continuity(&self, after: &Cursor) -> Result<Continuity, StoreError>;

    /// Returns the effects that are due and not yet performed, in the order they were enqueued.
    ///
    /// Reading does not claim. This is for the holder of a run's lease, whose steps say what was
    /// performed; others [claim](Self::claim).
    fn pending_effects(&self, filter: &EffectFilter) -> Result<Vec<Effect>, StoreError>;

    /// Returns the effect with this key, whatever became of it.
    fn effect(&self, key: &str) -> Result<Option<Effect>, StoreError>;

    /// Returns how many effects are pending, by kind and lane, in this order.
    fn pending_count(&self) -> Result<Vec<PendingCount>, StoreError>;

    /// Records that these effects of a run were performed, claimed or not, as [`Step::done`] does,
    /// without a step. Returns how many were pending until now.
    ///
    /// # Errors
    ///
    /// [`CommitError::Fenced`] as for a step, then [`CommitError::NoSuchRun`].
    fn effects_done(
        &self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError>;

    /// Hands out effects that are due and that nobody has claimed, or whose claim is over at
    /// `request.now`, in the order they were enqueued, each with a new fencing number.
    ///
    /// A lane is first in, first out: an effect is handed out only if every pending effect of its
    /// lane that was enqueued earlier is handed out with it. One that is not due, not wanted or
    /// claimed already holds up the rest of its lane.
    fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Keeps claims until `now` + `ttl`. Returns for each whether it was kept: one that passed to
    /// another worker, or whose effect is not pending any more, is lost. A claim that is over and that
    /// nobody took meanwhile can still be kept. A `ttl` of zero gives claims back.
    fn keep(
        &self,
        claims: &[Claim],
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError>;

    /// Records that a claimed effect was performed. Returns false, and records nothing, if the claim
    /// is lost.
    fn done(&self, claim: &Claim) -> Result<bool, StoreError>;

    /// Records that a claimed effect failed, and when to try again; never again when `next` is
    /// `None`. The claim is over. Returns false, and records nothing, if the claim is lost.
    fn failed(
        &self,
        claim: &Claim,
        next: Option<Timestamp>,
        error: &str,
    ) -> Result<bool, StoreError>;

    /// Gives up the oldest pending effects of a lane until `keep` are left, with `error` as the reason:
    /// how a queue for somebody who takes nothing stays short. Those that are claimed at `now` are left
    /// alone. Returns how many were given up.
    fn trim_lane(
        &self,
        lane: &str,
        keep: usize,
        now: Timestamp,
        error: &str,
    ) -> Result<usize, StoreError>;

    /// Returns the timers that are due at `now`, the earliest first.
    ///
    /// Firing one means committing a step that clears or re-arms it. The step's revision makes
    /// sure that this happens once.
    fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<Timer>, StoreError>;

    /// Returns when the next timer of any run is due.
    fn next_timer(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Returns a stamp that differs from earlier ones if anything was written since, by anybody.
    ///
    /// Take it first, then read, then [wait](Self::wait_for_change): nothing is missed.
    fn change(&self) -> Result<ChangeStamp, StoreError>;

    /// Waits until anybody, in any process, has written something after this stamp was taken, but no
    /// longer than `timeout`. Returns the stamp that counts then: the same one if nothing was
    /// written. It may differ without a write: then there is nothing new to read.
    ///
    /// Any number of threads may wait at once.
    fn wait_for_change(
        &self,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError>;

    /// Takes the right to coordinate a run until `now` + `ttl`, with a new fencing number.
    ///
    /// Possible when nobody holds it, when the holder's time is over at `now`, or for the holder
    /// itself: a process that restarts under its old name takes over from its former self, and
    /// fences it off. A backend with a clock of its own that all holders share may prefer that
    /// clock to `now`.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Held`] or [`LeaseError::NoSuchRun`].
    fn acquire_lease(
        &self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError>;

    /// Keeps a lease until `now` + `ttl`. The fencing number stays. An expired lease that nobody
    /// took meanwhile can still be kept.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Lost`] or [`LeaseError::NoSuchRun`].
    fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError>;

    /// Gives a lease back before its time. Returns whether it was still in force; a lost one is not
    /// touched. Steps that carry its number stay valid until somebody acquires the next.
    fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError>;

    /// Ends the lease with this fencing number, whoever holds it: for a holder that is known to be
    /// gone. Returns whether it was in force, expired or not; another lease is not touched. The
    /// number is void from then on, so that a holder that lives after all writes nothing.
    fn break_lease(&self, run: &RunId, fence: u64) -> Result<bool, StoreError>;

    /// Waits until nobody else holds the turn of this run, and holds it.
    ///
    /// A courtesy between those who ask for it: whoever reads, decides and commits inside saves
    /// retries. Correctness rests on revisions, and a commit needs no turn. The thread that holds the
    /// turn gets it again without waiting. Runs may share one, so holding the turns of two runs at
    /// once can wait for ever.
    fn turn(&self, run: &RunId) -> Result<Box<dyn Turn + '_>, StoreError>;

    /// Says that a worker is there until `now` + `ttl`, and what it says about itself: a heartbeat. One of
    /// the same name is replaced. Workers that are gone for a day are forgotten.
    fn announce(
        &self,
        name: &str,
        body: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError>;

    /// Takes a worker out of the registry. Returns whether it was there.
    fn withdraw(&self, name: &str) -> Result<bool, StoreError>;

    /// Returns the workers that announced themselves, by name; also those whose time is over.
    fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError>;

    /// Deletes runs that ended long ago, those with the oldest last step first, with their whole
    /// history: effects that are still pending are given up, and keys and sources are forgotten.
    /// Returns the runs that are gone.
    ///
    /// Does a bounded amount of work, with others in between. A run is gone at once; of a long history
    /// some rows may stay readable until later calls have deleted them.
    fn prune(&self, prune: &Prune) -> Result<Vec<RunId>, StoreError>;

    /// Writes something small, durably, as a commit does: fails exactly when commits fail, because the
    /// disk is full or nothing may be written. For checks of health.
    fn probe(&self) -> Result<(), StoreError>;

    /// Returns how much the store holds. Cheap.
    fn size(&self) -> Result<StoreSize, StoreError>;
}

/// The turn of a run, until dropped. Bound to its thread.
pub trait Turn {}
