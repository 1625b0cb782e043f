//! Delivers what waits in the outbox for sinks: at least once, each under its name, later again where
//! that helps.
//!
//! The store hands out effects by lane, first in, first out. A lane has one sink: those of a server
//! have one each, so that what is posted arrives in the order in which it was decided; every other run
//! has one for each of its own sinks. A thread works a lane until nothing in it is due, several lanes at
//! once, so that a sink that is slow or dead delays no other. Claims keep couriers of several processes
//! from delivering the same thing, and what a courier held that was killed is free again when its claim
//! ends.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use aldis_engine::{NOTICE, NOTIFY, SINK};
use aldis_process::LeaseHolder;
use aldis_signal::time::Timestamp;
use aldis_store::{Claim, ClaimRequest, EffectFilter, PendingCount, RunId, Store, StoreError};
use serde::Deserialize as _;
use serde::de::value::{Error as ValueError, StrDeserializer};

use super::processes::PROGRAM_WAIT;
use super::retry;
use super::routes::QueuedNotice;
use super::sink::{Delivery, Sink};
use crate::failures::{self, Failure};
use crate::receipts;
use crate::settings::clock::SteadyClock;
use crate::settings::config::{Notify, Sink as SinkName};

/// Even without a change the outbox is looked at so often: what failed comes due by itself.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long commits gather before the outbox is looked at.
const GATHER: Duration = Duration::from_millis(5);
/// How many lanes are worked at once.
const LANES_MAX: usize = 16;
/// How much is claimed of a lane at once.
const BATCH: usize = 32;
/// How many notices wait for one sink before the oldest are dropped.
const PENDING_MAX: usize = 1_000;
/// How often a receiver may answer one notice with an error of its own before the one behind it is
/// tried: after some minutes.
const REFUSALS_MAX: u32 = 8;
/// How long others leave a claim alone: longer than an attempt takes.
const CLAIM: Duration = Duration::from_secs(20);
/// How long the process that supervises a run has to deliver its notices itself, also after the end of
/// the run: it may have a desktop that others do not have.
const GRACE: Duration = Duration::from_secs(20);
/// How long git may take for a receipt that nobody wrote yet.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a lane rests that another courier works, or whose time has not come.
const REST: Duration = Duration::from_secs(1);
const REST_OF_OTHERS: Duration = Duration::from_secs(5);
/// How long the last notices of a run may take, and how often it is looked whether they are gone.
const FINAL_WAIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(20);

/// What became of something for a sink.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SinkReport<'r> {
    /// It arrived.
    Delivered,
    /// It is tried again later.
    Failed,
    /// It is given up: of which run, which sink, why.
    GivenUp(&'r RunId, &'r str, &'r str),
    /// So many were dropped for a sink: too many waited.
    Dropped(&'r str, usize),
}

/// What came of an attempt.
enum AttemptResult {
    /// So many are delivered or given up.
    Settled(usize),
    /// It is tried again then.
    Again(Timestamp),
}

/// What the process of a courier is.
pub(crate) enum CourierRole {
    /// It supervises a run, whose notices it delivers before others do.
    Supervisor(RunId),
    /// A server with sinks of these names.
    Server(BTreeMap<String, Sink>),
}

/// Delivers in the background until it is dropped.
pub(crate) struct Courier {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    /// Where failures are recorded.
    state: PathBuf,
    role: CourierRole,
    clock: SteadyClock,
    worker: String,
    on_report: Box<dyn Fn(SinkReport<'_>) + Send + Sync>,
    stopping: AtomicBool,
    lanes: Mutex<BTreeMap<String, Lane>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// A thread works it.
    Busy,
    /// Nothing in it can be delivered before.
    Rests(Timestamp),
}

impl Courier {
    /// Delivers what its role says, and what others left behind. Failures are recorded in `state`.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        state: &Path,
        role: CourierRole,
        on_report: impl Fn(SinkReport<'_>) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            store,
            state: state.to_owned(),
            role,
            clock: SteadyClock::start(),
            worker: LeaseHolder::me().to_string(),
            on_report: Box::new(on_report),
            stopping: AtomicBool::new(false),
            lanes: Mutex::default(),
        });
        let looks = Arc::clone(&shared);
        let _thread = thread::spawn(move || looks.watch());
        Self { shared }
    }

    /// Gives the last notices of a run a little time. Returns what still waits, in words: whoever comes
    /// next delivers it.
    pub(crate) fn finish(self, run: &RunId) -> Vec<String> {
        let shared = &self.shared;
        let (own, deadline) = (format!("{run}/"), shared.now().after(FINAL_WAIT));
        let filter = EffectFilter {
            run: Some(run.clone()),
            kinds: vec![NOTICE.to_owned()],
            ..EffectFilter::due_by(Timestamp::from_millis(i64::MAX))
        };
        loop {
            // The first of a lane says when the others come.
            let mut due = BTreeMap::new();
            for waits in shared.store.pending_effects(&filter).unwrap_or_default() {
                due.entry(waits.lane).or_insert(waits.due);
            }
            let later = due.values().all(|due| *due > deadline);
            // What was given up just now is reported a moment later.
            let works =
                |(lane, how): (&String, &Lane)| *how == Lane::Busy && lane.starts_with(&own);
            let busy = shared.lanes().iter().any(works);
            if later && !busy || shared.now() >= deadline {
                let waiting = shared.store.pending_count().unwrap_or_default();
                let mine = waiting.iter().filter(|it| it.lane.starts_with(&own));
                return mine.filter_map(waits_in_words).collect();
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
    }
}

/// Says what waits in a lane for a sink.
pub(super) fn waits_in_words(waiting: &PendingCount) -> Option<String> {
    let PendingCount { kind, lane, count, error } = waiting;
    let (run, sink) = lane.rsplit_once('/')?;
    let sink = match &**kind {
        SINK => sink.to_owned(),
        NOTICE => format!("{sink} of run {run}"),
        _ => return None,
    };
    let notices = if *count == 1 { "1 notice waits" } else { &format!("{count} notices wait") };
    Some(match error {
        Some(error) => format!("{sink}: {notices} for another attempt: {error}"),
        None => format!("{sink}: {notices}"),
    })
}

impl Shared {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<String, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the outbox whenever it has changed, or something in it comes due.
    fn watch(self: &Arc<Self>) {
        while !self.is_stopping() {
            let stamp = self.store.change();
            let pause = self.round().unwrap_or(LOOK_EVERY);
            let waited = stamp.and_then(|stamp| self.store.wait_for_change(&stamp, pause));
            thread::sleep(if waited.is_ok() { GATHER } else { LOOK_EVERY });
        }
    }

    /// Starts a thread for each lane that nobody works. Returns when to look again.
    fn round(self: &Arc<Self>) -> Result<Duration, StoreError> {
        let mut waiting = self.store.pending_count()?;
        let serves = matches!(self.role, CourierRole::Server(_));
        waiting.retain(|it| it.kind == NOTICE || it.kind == SINK && serves);
        let mut pause = LOOK_EVERY;
        for PendingCount { kind, lane, count, .. } in &waiting {
            if *count > PENDING_MAX as u64 {
                self.trim(lane)?;
            }
            let (now, mut lanes) = (self.now(), self.lanes());
            match lanes.get(lane) {
                Some(Lane::Busy) => continue,
                Some(Lane::Rests(until)) if *until > now => {
                    pause = pause.min(until.since(now));
                    continue;
                }
                Some(Lane::Rests(_)) | None => {}
            }
            let busy = lanes.values().filter(|lane| **lane == Lane::Busy).count();
            if busy < LANES_MAX {
                lanes.insert(lane.clone(), Lane::Busy);
                let (works, kind, lane) = (Arc::clone(self), kind.clone(), lane.clone());
                let _thread = thread::spawn(move || works.work(&kind, &lane));
            }
        }
        let waits = |lane: &str| waiting.iter().any(|it| it.lane == lane);
        self.lanes().retain(|lane, how| *how == Lane::Busy || waits(lane));
        Ok(pause)
    }

    /// Drops the oldest of a lane that is too long.
    fn trim(&self, lane: &str) -> Result<(), StoreError> {
        let why = format!("more than {PENDING_MAX} waited");
        let dropped = self.store.trim_lane(lane, PENDING_MAX, self.now(), &why)?;
        if dropped > 0 {
            let sink = lane.rsplit('/').next().unwrap_or(lane);
            self.record(format!("{sink}: {dropped} notices were dropped: {why}"));
            (self.on_report)(SinkReport::Dropped(sink, dropped));
        }
        Ok(())
    }

    /// Works a lane, and says when it is worth looking at again.
    fn work(&self, kind: &str, lane: &str) {
        // A lane whose thread panicked would be busy for ever.
        let delivered = catch_unwind(AssertUnwindSafe(|| self.deliver(kind, lane)));
        let rests = match delivered {
            Ok(Ok(rests)) => rests,
            Ok(Err(_)) | Err(_) => Some(self.now().after(REST)),
        };
        let mut lanes = self.lanes();
        match rests {
            Some(until) => drop(lanes.insert(lane.to_owned(), Lane::Rests(until))),
            None => drop(lanes.remove(lane)),
        }
    }

    /// Delivers what is due in a lane, in order. Returns how long it rests then.
    fn deliver(&self, kind: &str, lane: &str) -> Result<Option<Timestamp>, StoreError> {
        let (grace, rest) = match &self.role {
            CourierRole::Supervisor(run) if lane.starts_with(&format!("{run}/")) => {
                (Duration::ZERO, REST)
            }
            CourierRole::Server(_) if kind == SINK => (Duration::ZERO, REST),
            CourierRole::Supervisor(_) | CourierRole::Server(_) => (GRACE, REST_OF_OTHERS),
        };
        let is_program = kind == NOTICE && !lane.ends_with("/webhook");
        let ttl = if is_program { CLAIM + PROGRAM_WAIT } else { CLAIM };
        let mut worked = false;
        let mut sink = None;
        loop {
            // As seen a little earlier, nothing is due that is due since then.
            let then = self.now().before(grace);
            let claims = self.store.claim(&ClaimRequest {
                lane: Some(lane.to_owned()),
                limit: BATCH,
                ..ClaimRequest::new(&[kind], &self.worker, then, ttl + grace)
            })?;
            if claims.is_empty() {
                return Ok((!worked).then(|| self.now().after(rest)));
            }
            worked = true;
            let (mut claimed, mut left) = (self.now(), &*claims);
            while !left.is_empty() {
                if self.is_stopping() {
                    self.store.keep(left, self.now(), Duration::ZERO)?;
                    return Ok(None);
                }
                if self.now().since(claimed) > ttl / 4 {
                    claimed = self.now();
                    self.store.keep(left, claimed, ttl)?;
                }
                match self.attempt(left, &mut sink)? {
                    AttemptResult::Settled(count) => left = &left[count..],
                    AttemptResult::Again(next) => {
                        // What follows must not overtake it.
                        self.store.keep(&left[1..], self.now(), Duration::ZERO)?;
                        return Ok(Some(next));
                    }
                }
            }
        }
    }

    /// Tries the first of these once, and records what came of it.
    fn attempt(
        &self,
        claims: &[Claim],
        sink: &mut Option<Sink>,
    ) -> Result<AttemptResult, StoreError> {
        let Some(claim) = claims.first() else { return Ok(AttemptResult::Settled(0)) };
        let Some((queued, delivery)) = self.send(claim, sink)? else {
            self.give_up(claim, "?", "cannot be understood")?;
            return Ok(AttemptResult::Settled(1));
        };
        let is_old = self.now().since(queued.notice.timestamp) >= retry::AGE_MAX;
        let is_refused = matches!(delivery, Delivery::Refused { .. });
        match delivery {
            Delivery::Done => {
                self.store.done(claim)?;
                (self.on_report)(SinkReport::Delivered);
            }
            Delivery::Later { why, after } | Delivery::Refused { why, after } if !is_old => {
                if is_refused
                    && claim.effect.attempts >= REFUSALS_MAX
                    && self.is_next_taken(claims, sink)?
                {
                    let why = format!("{why} again and again, but took the notice behind it");
                    self.give_up(claim, &queued.sink, &why)?;
                    return Ok(AttemptResult::Settled(2));
                }
                let next = self.now().after(retry::pause(claim.effect.attempts, after));
                self.store.failed(claim, Some(next), &why)?;
                (self.on_report)(SinkReport::Failed);
                return Ok(AttemptResult::Again(next));
            }
            Delivery::Later { why, .. }
            | Delivery::Refused { why, .. }
            | Delivery::Impossible(why) => self.give_up(claim, &queued.sink, &why)?,
        }
        Ok(AttemptResult::Settled(1))
    }

    /// Tries the second of these: a receiver that takes it is well, and has something against the
    /// first, which must not hold up all others.
    fn is_next_taken(&self, claims: &[Claim], sink: &mut Option<Sink>) -> Result<bool, StoreError> {
        let Some(behind) = claims.get(1) else { return Ok(false) };
        self.store.keep(&claims[..2], self.now(), CLAIM)?;
        let taken = matches!(self.send(behind, sink)?, Some((_, Delivery::Done)));
        if taken {
            self.store.done(behind)?;
            (self.on_report)(SinkReport::Delivered);
        }
        Ok(taken)
    }

    /// Sends a notice. Nothing if it cannot be understood.
    fn send(
        &self,
        claim: &Claim,
        sink: &mut Option<Sink>,
    ) -> Result<Option<(QueuedNotice, Delivery)>, StoreError> {
        let effect = &claim.effect;
        // Nobody is told that something is done whose receipt is not written.
        let when = (self.now(), RECEIPT_PATIENCE);
        receipts::settle_or_record(&*self.store, &self.state, &effect.run, when);
        let Some(mut queued) = QueuedNotice::read(effect) else { return Ok(None) };
        // The same for every attempt: receivers drop what they have seen.
        queued.notice.id = effect.key.replace('/', "-");
        let delivery = match (&self.role, sink) {
            (CourierRole::Server(sinks), _) if effect.kind == SINK => match sinks.get(&queued.sink)
            {
                Some(sink) => sink.send(&queued.notice),
                None => Delivery::Impossible("there is no such sink any more".to_owned()),
            },
            (_, Some(sink)) => sink.send(&queued.notice),
            (_, sink) => match self.sink_of(&effect.run, &queued.sink)? {
                Ok(found) => sink.insert(found).send(&queued.notice),
                Err(why) => Delivery::later(why),
            },
        };
        Ok(Some((queued, delivery)))
    }

    fn give_up(&self, claim: &Claim, sink: &str, why: &str) -> Result<(), StoreError> {
        let run = &claim.effect.run;
        if self.store.failed(claim, None, why)? {
            self.record(format!("{sink}: a notice of run {run} was given up: {why}"));
            (self.on_report)(SinkReport::GivenUp(run, sink, why));
        }
        Ok(())
    }

    /// Where `aldis doctor`, `status` and `log` find it.
    fn record(&self, what: String) {
        let part = super::PART.to_owned();
        failures::record(&self.state, &Failure { at: self.now(), part, what });
    }

    /// Makes the sink that a run's own settings describe. The inner error says why that is not possible.
    fn sink_of(&self, run: &RunId, name: &str) -> Result<Result<Sink, String>, StoreError> {
        let Some(loaded) = self.store.load(run)? else { return Ok(Err("its run is gone".into())) };
        let note = loaded.parts.iter().find(|part| part.key == NOTIFY);
        let settings = note.and_then(|note| serde_json::from_str::<Notify>(&note.body).ok());
        let name = SinkName::deserialize(StrDeserializer::<ValueError>::new(name)).ok();
        let (Some(settings), Some(name)) = (settings, name) else {
            return Ok(Err("its settings are not known".to_owned()));
        };
        let project = Path::new(&loaded.run.record.project);
        Ok(match Sink::of_run(&settings, name, project) {
            Ok(Some(sink)) => Ok(sink),
            Ok(None) => Err("it is switched off".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    }
}
