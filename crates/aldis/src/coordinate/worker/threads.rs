//! The slots of a worker on a real machine: a thread each, with a world of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aldis_engine::Engine;
use aldis_process::{Found, Interrupts, find_marked};
use aldis_signal::time::Timestamp;
use aldis_store::Claim;
use serde_json::Value;

use super::admission::{Admission, SlotEnd, admit, settle};
use super::slot::run_agent;
use super::trees::{TreeOf, WorkerTree, sweep};
use super::{SlotEvent, SlotId, Slots, run_of};
use crate::agents::command::worker_mark;
use crate::coordinate::delivery::{DeliveryPlan, number};
use crate::coordinate::real::{QUEUE, Real, spawn_feed};
use crate::coordinate::world::Happening;
use crate::error::CommandError;
use crate::settings::clock::SteadyClock;
use crate::view::live::delivery::DeliveryReporter;
use crate::view::live::{Detail, OutputOptions};

/// How long others leave an agent alone that could not be worked on here.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How often a claim is settled again where the store fails.
const SETTLE_TRIES: u32 = 5;
/// How long to wait before that.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);
/// How often signals are looked for.
const SIGNALS: Duration = Duration::from_millis(50);
/// How long an agent has to stop that an earlier worker of this name left behind.
const GRACE: Duration = Duration::from_secs(5);
/// Nothing is shown: what happens is logged.
const QUIET: OutputOptions =
    OutputOptions { color: false, detail: Detail::Quiet, json: false, terminal: false };

/// Reads how the agents of a run are started from the launch that its dispatches carry.
pub(crate) type ReadLaunch = dyn Fn(&Value) -> Result<DeliveryPlan, CommandError> + Send + Sync;

/// What all slots share.
struct Shared {
    engine: Engine,
    worker: String,
    /// Where clones and work trees are.
    directory: PathBuf,
    state: PathBuf,
    read_launch: Box<ReadLaunch>,
    /// One at a time changes a clone.
    turn: Arc<Mutex<()>>,
    clock: SteadyClock,
}

/// Slots that are threads.
pub(crate) struct Threads {
    shared: Arc<Shared>,
    events: Receiver<SlotEvent>,
    report: SyncSender<SlotEvent>,
    slots: BTreeMap<SlotId, (SyncSender<Happening>, JoinHandle<()>)>,
}

impl Threads {
    /// Gets ready to run agents as this worker, below this directory of its own. Agents that an earlier
    /// worker of this name left behind are ended.
    ///
    /// # Errors
    ///
    /// Fails if the system does not report signals.
    pub(crate) fn new(
        engine: Engine,
        worker: &str,
        (directory, state): (PathBuf, PathBuf),
        read_launch: Box<ReadLaunch>,
    ) -> Result<Self, CommandError> {
        let (report, events) = mpsc::sync_channel(QUEUE);
        let interrupts = Interrupts::listen()
            .map_err(|error| CommandError::new(format!("listening for signals: {error}")))?;
        if let Found::Alive(left) = find_marked(&worker_mark(worker)) {
            left.end(GRACE);
        }
        spawn_signals(interrupts, report.clone());
        let changed = report.clone();
        // A full queue wakes the worker anyway.
        let tell = move || {
            !matches!(
                changed.try_send(SlotEvent::StoreChanged),
                Err(mpsc::TrySendError::Disconnected(_))
            )
        };
        spawn_feed(engine.shared_store(), tell);
        let (worker, clock) = (worker.to_owned(), SteadyClock::start());
        let turn = Arc::default();
        let shared = Shared { engine, worker, directory, state, read_launch, turn, clock };
        Ok(Self { shared: Arc::new(shared), events, report, slots: BTreeMap::new() })
    }
}

impl Slots for Threads {
    fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    fn wait(&mut self, until: Timestamp) -> Vec<SlotEvent> {
        let mut happened = match self.events.recv_timeout(until.since(self.now())) {
            Ok(first) => vec![first],
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Vec::new(),
        };
        happened.extend(self.events.try_iter().take(QUEUE));
        for event in &happened {
            if let SlotEvent::Over(slot) = event
                && let Some((_, thread)) = self.slots.remove(slot)
            {
                let _ended = thread.join();
            }
        }
        happened
    }

    fn open(&mut self, slot: SlotId, claim: Claim, asked: Timestamp) {
        let (interrupt, happenings) = mpsc::sync_channel(QUEUE);
        let (shared, over) = (Arc::clone(&self.shared), Over { slot, report: self.report.clone() });
        let channel = (interrupt.clone(), happenings);
        let spawned = thread::Builder::new().name(format!("slot-{slot}")).spawn(move || {
            let _over = over;
            shared.work_on(&claim, asked, channel);
        });
        match spawned {
            Ok(thread) => drop(self.slots.insert(slot, (interrupt, thread))),
            // Its claim runs out by itself; that the slot is free is told as the guard is dropped.
            Err(error) => tracing::error!(%error, "cannot start a thread"),
        }
    }

    fn end(&mut self, slot: SlotId) {
        if let Some((interrupt, _)) = self.slots.get(&slot) {
            let _told = interrupt.send(Happening::Interrupted("the worker is leaving"));
        }
    }

    fn sweep(&mut self) {
        sweep(&self.shared.directory, self.shared.engine.store());
    }
}

/// Tells that a slot is free, however its thread ends.
struct Over {
    slot: SlotId,
    report: SyncSender<SlotEvent>,
}

impl Drop for Over {
    fn drop(&mut self) {
        let _told = self.report.send(SlotEvent::Over(self.slot));
    }
}

impl Shared {
    /// Works on a claim until it is settled.
    fn work_on(
        &self,
        claim: &Claim,
        asked: Timestamp,
        channel: (SyncSender<Happening>, Receiver<Happening>),
    ) {
        let run = run_of(claim);
        let end = self.run_claim(claim, asked, channel).unwrap_or_else(|error| {
            tracing::warn!(%run, %error, "an agent could not be run");
            SlotEnd::GivenBack(self.clock.now().after(AFTER_FAILURE), error.to_string())
        });
        tracing::info!(%run, key = claim.effect.key, ?end, "claim settled");
        for _ in 0..SETTLE_TRIES {
            match settle(self.engine.store(), claim, &end) {
                Err(error) if error.may_pass() => thread::sleep(SETTLE_PAUSE),
                // Otherwise it runs out by itself.
                _ => return,
            }
        }
    }

    fn run_claim(
        &self,
        claim: &Claim,
        asked: Timestamp,
        channel: (SyncSender<Happening>, Receiver<Happening>),
    ) -> Result<SlotEnd, CommandError> {
        let (engine, worker) = (self.engine.clone(), &*self.worker);
        let (dispatch, run) = match admit(&engine, worker, claim, self.clock.now())? {
            Admission::Start(dispatch, run) => (dispatch, *run),
            Admission::End(end) => return Ok(end),
        };
        let body: Value = serde_json::from_str(&claim.effect.body)
            .map_err(|error| CommandError::new(format!("the dispatch: {error}")))?;
        let plan = (self.read_launch)(&body["launch"])?;
        let Some(repository) = plan.shared.clone() else {
            return Err(CommandError::new("the dispatch names no repository"));
        };
        let task = dispatch.task.as_deref().and_then(|task| number(run.state(), task));
        let of = TreeOf { run: run_of(claim), task, agent: dispatch.agent };
        let tree = WorkerTree::new(&self.directory, repository, of, &self.turn);
        let mut world = Real::of_agent(engine.shared_store(), &self.state, channel, tree);
        let board = DeliveryReporter::new(Box::new(std::io::sink()), QUIET);
        let claim = (engine, claim.clone(), asked);
        run_agent(&mut world, claim, (dispatch, run), (&plan, worker), board)
    }
}

/// Reports signals that want this worker to leave.
fn spawn_signals(interrupts: Interrupts, report: SyncSender<SlotEvent>) {
    let _thread = thread::spawn(move || {
        loop {
            let seen = interrupts.take();
            for _ in 0..seen.interrupt + seen.terminate {
                if report.send(SlotEvent::Interrupted).is_err() {
                    return;
                }
            }
            thread::sleep(SIGNALS);
        }
    });
}
