//! `aldis worker`: claims agents that deliveries want started, and runs each in a slot of its own.
//!
//! The store hands out the right to start an agent for a while, with a fencing number. Whoever keeps
//! that claim alive runs the agent; a worker that is gone loses it, and another one starts the agent
//! again. The loop here decides what to claim and when to leave. A slot ([`slot`]) works on one claim
//! with the loop that coordinators use, too. [`threads`] is where slots are on a real machine.

pub(crate) mod admission;
pub(crate) mod announced;
pub(crate) mod slot;
pub(crate) mod threads;
pub(crate) mod trees;

use std::collections::BTreeMap;
use std::time::Duration;

use aldis_engine::{DISPATCH, ENVIRONMENT_LABEL, ROLE_LABEL};
use aldis_machine::delivery::{Dispatch, Role};
use aldis_signal::time::Timestamp;
use aldis_store::{Claim, ClaimRequest, RunId, Store, StoreError};

use self::announced::{AnnouncedAgent, AnnouncedWorker, WorkerState};
use super::hold::CLAIM_TTL;
use crate::error::CommandError;

/// How often a worker says that it is there, and for how long that holds.
const HEARTBEAT: Duration = Duration::from_secs(10);
const HEARTBEAT_TTL: Duration = Duration::from_secs(30);
/// How often it looks for work where nobody says that there is any: claims that ran out tell nobody.
const LOOK: Duration = Duration::from_secs(5);
/// How often it looks at most.
const LOOK_AT_MOST: Duration = Duration::from_millis(250);
/// How long an agent waits whose work tree still has another agent of ours in it.
const TREE_WAIT: Duration = Duration::from_secs(1);

/// One of the agents that a worker runs at the same time. Never used twice.
pub type SlotId = u64;

/// What a worker offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name, unique among the workers of the store.
    pub name: String,
    /// The machine it is on, for people.
    pub machine: String,
    /// How many agents it runs at the same time.
    pub slots: usize,
    /// What its agents find here.
    pub labels: Vec<String>,
    /// The names of the variables that they find.
    pub environment: Vec<String>,
    /// The roles whose agents it runs; all where there are none.
    pub roles: Vec<Role>,
    /// How long agents may go on once it is asked to leave.
    pub drain: Duration,
}

/// Something that happened to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotEvent {
    /// A slot is free again, and its claim is settled.
    Over(SlotId),
    /// Somebody committed something, perhaps an agent to be started.
    StoreChanged,
    /// Somebody wants this worker to leave.
    Interrupted,
}

/// Where agents run, as the loop of a worker sees it.
pub trait Slots {
    /// Returns the time. It never goes back, and it goes on while the machine sleeps.
    fn now(&self) -> Timestamp;

    /// Waits until something happens, at most until then. Returns what happened, in order.
    fn wait(&mut self, until: Timestamp) -> Vec<SlotEvent>;

    /// Works on a claim that was asked for at this time, until [`SlotEvent::Over`].
    fn open(&mut self, slot: SlotId, claim: Claim, asked: Timestamp);

    /// Ends the agent of a slot and gives its claim back.
    fn end(&mut self, slot: SlotId);

    /// Tidies up while nothing else is to be done.
    fn sweep(&mut self) {}
}

/// Runs agents until somebody wants this worker to leave: then those at work may finish, for a while.
///
/// # Errors
///
/// Fails if the store fails for good.
pub(crate) fn work(
    store: &dyn Store,
    slots: &mut dyn Slots,
    offer: &Offer,
) -> Result<(), CommandError> {
    let mut worker = Worker::new(offer, slots.now());
    slots.sweep();
    loop {
        let now = slots.now();
        worker.announce(store, now)?;
        worker.claim(store, slots)?;
        if worker.leaves(slots) {
            let _withdrawn = store.withdraw(&offer.name);
            return Ok(());
        }
        for event in slots.wait(worker.next(now)) {
            worker.take(event, slots);
        }
    }
}

/// What the loop remembers.
struct Worker<'o> {
    offer: &'o Offer,
    labels: Vec<String>,
    running: BTreeMap<SlotId, AnnouncedAgent>,
    last_slot: SlotId,
    announced: Option<Timestamp>,
    /// When it looked for work last, and whether there may be some.
    looked: Option<Timestamp>,
    changed: bool,
    started: Timestamp,
    /// Until when agents may go on, once somebody wants it to leave.
    drain: Option<Timestamp>,
    ended: bool,
}

impl<'o> Worker<'o> {
    fn new(offer: &'o Offer, now: Timestamp) -> Self {
        let roles = if offer.roles.is_empty() { Role::ALL } else { &*offer.roles };
        let variables = offer.environment.iter().map(|it| format!("{ENVIRONMENT_LABEL}{it}"));
        let roles = roles.iter().map(|role| format!("{ROLE_LABEL}{}", role.as_str()));
        Self {
            offer,
            labels: offer.labels.iter().cloned().chain(variables).chain(roles).collect(),
            running: BTreeMap::new(),
            last_slot: 0,
            announced: None,
            looked: None,
            changed: true,
            started: now,
            drain: None,
            ended: false,
        }
    }

    /// Says that it is there, and what it runs: in time, and whenever that changes.
    fn announce(&mut self, store: &dyn Store, now: Timestamp) -> Result<(), CommandError> {
        if self.announced.is_some_and(|at| now.since(at) < HEARTBEAT) {
            return Ok(());
        }
        let worker = AnnouncedWorker {
            v: 1,
            machine: self.offer.machine.clone(),
            slots: self.offer.slots,
            labels: self.offer.labels.clone(),
            roles: self.offer.roles.clone(),
            state: if self.drain.is_some() { WorkerState::Draining } else { WorkerState::Ready },
            started: self.started,
            agents: self.running.values().cloned().collect(),
        };
        let body = serde_json::to_string(&worker)
            .map_err(|error| CommandError::new(format!("the registry of workers: {error}")))?;
        let announced = store.announce(&self.offer.name, &body, now, HEARTBEAT_TTL);
        if tolerate(announced)?.is_some() {
            self.announced = Some(now);
        }
        Ok(())
    }

    /// Claims as many agents as there are free slots.
    fn claim(&mut self, store: &dyn Store, slots: &mut dyn Slots) -> Result<(), CommandError> {
        let now = slots.now();
        let free = self.offer.slots.saturating_sub(self.running.len());
        if free == 0 || self.drain.is_some() || now < self.next_look() {
            return Ok(());
        }
        (self.looked, self.changed) = (Some(now), false);
        let request = ClaimRequest {
            labels: self.labels.clone(),
            limit: free,
            ..ClaimRequest::new(&[DISPATCH], &self.offer.name, now, CLAIM_TTL)
        };
        let Some(claims) = tolerate(store.claim(&request))? else { return Ok(()) };
        for claim in claims {
            self.open(store, slots, claim, now)?;
        }
        Ok(())
    }

    fn open(
        &mut self,
        store: &dyn Store,
        slots: &mut dyn Slots,
        claim: Claim,
        asked: Timestamp,
    ) -> Result<(), CommandError> {
        let Ok(dispatch) = serde_json::from_str::<Dispatch>(&claim.effect.body) else {
            let why = "this version of aldis does not understand the dispatch";
            tracing::error!(key = claim.effect.key, why);
            return tolerate(store.failed(&claim, Some(asked.after(CLAIM_TTL)), why)).map(drop);
        };
        let run = claim.effect.run.clone();
        let agent = AnnouncedAgent {
            run: run.to_string(),
            agent: dispatch.agent,
            role: dispatch.role,
            task: dispatch.task,
            since: asked,
        };
        // Two agents of one task share a work tree: the one before may still be ending.
        let same =
            |it: &AnnouncedAgent| it.task.is_some() && it.run == agent.run && it.task == agent.task;
        if self.running.values().any(same) {
            let why = "the agent before it is still ending";
            self.changed = true;
            return tolerate(store.failed(&claim, Some(asked.after(TREE_WAIT)), why)).map(drop);
        }
        self.last_slot += 1;
        tracing::info!(%run, agent = agent.agent, role = agent.role.as_str(), "agent claimed");
        self.running.insert(self.last_slot, agent);
        self.announced = None;
        slots.open(self.last_slot, claim, asked);
        Ok(())
    }

    fn take(&mut self, event: SlotEvent, slots: &mut dyn Slots) {
        match event {
            SlotEvent::Over(slot) => {
                self.running.remove(&slot);
                (self.announced, self.changed) = (None, true);
                if self.running.is_empty() {
                    slots.sweep();
                }
            }
            SlotEvent::StoreChanged => self.changed = true,
            SlotEvent::Interrupted => {
                let now = slots.now();
                let agents = self.running.len();
                // Whoever asks twice is in a hurry.
                let within = if self.drain.is_some() { Duration::ZERO } else { self.offer.drain };
                tracing::info!(agents, "leaving: no further agents are claimed");
                (self.drain, self.announced) = (Some(now.after(within)), None);
            }
        }
    }

    /// Returns whether it can leave now; ends agents that had their time.
    fn leaves(&mut self, slots: &mut dyn Slots) -> bool {
        let Some(until) = self.drain else { return false };
        if slots.now() >= until && !std::mem::replace(&mut self.ended, true) {
            self.running.keys().for_each(|slot| slots.end(*slot));
        }
        self.running.is_empty()
    }

    fn next_look(&self) -> Timestamp {
        let pause = if self.changed { LOOK_AT_MOST } else { LOOK };
        self.looked.map_or(self.started, |looked| looked.after(pause))
    }

    /// When it must do something, whatever happens.
    fn next(&self, now: Timestamp) -> Timestamp {
        let heartbeat =
            self.announced.map_or_else(|| now.after(LOOK_AT_MOST), |at| at.after(HEARTBEAT));
        let busy = self.running.len() >= self.offer.slots || self.drain.is_some();
        let look = (!busy).then(|| self.next_look());
        let drain = self.drain.filter(|_| !self.ended);
        [look, drain].into_iter().flatten().fold(heartbeat, Timestamp::min)
    }
}

/// What the store said; nothing where it fails for a moment.
fn tolerate<T>(said: Result<T, StoreError>) -> Result<Option<T>, CommandError> {
    match said {
        Ok(said) => Ok(Some(said)),
        Err(error) if error.may_pass() => {
            tracing::warn!(%error, "the store does not answer");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the run of a claim.
fn run_of(claim: &Claim) -> &RunId {
    &claim.effect.run
}
