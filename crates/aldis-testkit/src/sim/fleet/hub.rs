//! Lets processes of several machines run one at a time, in virtual time.
//!
//! Every actor is a thread of its own, so that production code can block; only the one that holds the
//! baton runs (cooperative scheduling). Whoever waits passes it on to the actor that is due first, and
//! the clock goes to that moment. The same seed gives the same order.

use std::collections::BTreeMap;
use std::panic;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use aldis::coordinate::simulated::{Happening, SlotEvent};
use aldis_signal::time::Timestamp;

use crate::sim::Broken;
use crate::sim::fate::{Died, SharedFate};

/// How often somebody may get the baton until the world must have come to its end.
const TURNS_MAX: u64 = 400_000;
/// How many milliseconds a turn takes at most.
const TURN_MILLIS: usize = 3;

pub(super) type ActorId = u64;
/// A process; its threads die together.
pub(super) type GroupId = u32;

/// What one actor tells another.
#[derive(Debug)]
pub(super) enum Mail {
    Slot(SlotEvent),
    Happening(Happening),
}

/// What an actor finds when it has the baton again.
#[derive(Debug, Default)]
pub(super) struct Woken {
    pub(super) mail: Vec<Mail>,
    /// Whether anything was committed meanwhile.
    pub(super) changed: bool,
}

#[derive(Clone)]
pub(super) struct Hub(Arc<Inner>);

struct Inner {
    shared: SharedFate,
    state: Mutex<State>,
    turn: Condvar,
}

#[derive(Default)]
struct State {
    actors: BTreeMap<ActorId, Actor>,
    groups: BTreeMap<GroupId, Group>,
    running: Option<ActorId>,
    last_actor: ActorId,
    last_group: GroupId,
    turns: u64,
    /// Changes that no step of an actor made.
    others: u64,
    threads: Vec<JoinHandle<()>>,
    broken: Option<Broken>,
}

struct Actor {
    group: GroupId,
    wake: Timestamp,
    /// What it has seen of the store.
    seen: u64,
    /// When it had the baton last.
    ran: u64,
    mail: Vec<Mail>,
}

struct Group {
    dead: bool,
    frozen: Timestamp,
    dies_in: Option<u32>,
}

impl Hub {
    pub(super) fn new(shared: &SharedFate) -> Self {
        let (shared, state, turn) = (shared.clone(), Mutex::default(), Condvar::new());
        Self(Arc::new(Inner { shared, state, turn }))
    }

    pub(super) fn shared(&self) -> &SharedFate {
        &self.0.shared
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.0.shared.lock().now
    }

    /// A new process. It may die after some calls.
    pub(super) fn group(&self, dies_in: Option<u32>) -> GroupId {
        let mut state = self.state();
        state.last_group += 1;
        let group = Group { dead: false, frozen: Timestamp::from_millis(0), dies_in };
        let id = state.last_group;
        state.groups.insert(id, group);
        id
    }

    /// Has a process run this in a thread of its own, from now on.
    pub(super) fn spawn(
        &self,
        group: GroupId,
        act: impl FnOnce(ActorId) + Send + 'static,
    ) -> ActorId {
        let mut state = self.state();
        state.last_actor += 1;
        let id = state.last_actor;
        let (wake, seen, ran) = (self.now(), 0, state.turns);
        state.actors.insert(id, Actor { group, wake, seen, ran, mail: Vec::new() });
        let hub = self.clone();
        state.threads.push(thread::spawn(move || {
            let shared = hub.0.shared.clone();
            let done = shared.guarded(|| {
                // Nobody has read it yet.
                hub.wait_for_turn(id).mail.into_iter().for_each(|mail| hub.mail(id, mail));
                act(id);
            });
            hub.finish(id, done);
        }));
        id
    }

    /// Lets everybody run until nobody is left.
    pub(super) fn run(&self) -> Result<(), Broken> {
        let mut state = self.state();
        self.pass_on(&mut state);
        while !state.actors.is_empty() {
            state = self.0.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let (threads, broken) = (std::mem::take(&mut state.threads), state.broken.take());
        drop(state);
        for thread in threads {
            let _ended = thread.join();
        }
        broken.map_or(Ok(()), Err)
    }

    /// Passes the baton on, until it is this moment, there is mail, or something was committed.
    pub(super) fn park(&self, id: ActorId, until: Timestamp) -> Woken {
        {
            let mut state = self.state();
            let dies_in = self.0.shared.lock().dies_in.take();
            let Some(actor) = state.actors.get_mut(&id) else { return Woken::default() };
            actor.wake = until;
            let group = actor.group;
            if let Some(group) = state.groups.get_mut(&group) {
                group.dies_in = dies_in;
            }
            self.pass_on(&mut state);
        }
        self.wait_for_turn(id)
    }

    fn wait_for_turn(&self, id: ActorId) -> Woken {
        let mut state = self.state();
        while state.running != Some(id) {
            state = self.0.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let version = self.version(&mut state);
        let broken = state.broken.is_some();
        let Some(actor) = state.actors.get_mut(&id) else { return Woken::default() };
        let changed = actor.seen != version;
        actor.seen = version;
        let (mail, group) = (std::mem::take(&mut actor.mail), actor.group);
        let Some(group) = state.groups.get(&group) else { return Woken::default() };
        let (dead, dies_in) = (group.dead || broken, group.dies_in);
        drop(state);
        self.0.shared.lock().dies_in = dies_in;
        if dead {
            panic::resume_unwind(Box::new(Died));
        }
        Woken { mail, changed }
    }

    /// How much was written so far.
    fn version(&self, state: &mut State) -> u64 {
        let mut fate = self.0.shared.lock();
        state.others += u64::from(std::mem::take(&mut fate.changed));
        fate.tally.steps + state.others
    }

    /// Gives the baton to whoever is due first; of several, to whoever had it least recently.
    fn pass_on(&self, state: &mut State) {
        self.0.shared.pass(TURN_MILLIS);
        let (version, now) = (self.version(state), self.now());
        state.turns += 1;
        if state.turns > TURNS_MAX && state.broken.is_none() {
            let detail = format!("not within {TURNS_MAX} turns");
            state.broken = Some(Broken { invariant: "every_delivery_ends", detail });
        }
        let broken = state.broken.is_some();
        let due = |actor: &Actor| {
            let group = state.groups.get(&actor.group);
            let dead = broken || group.is_none_or(|group| group.dead);
            let urgent = !actor.mail.is_empty() || actor.seen != version;
            let wake = if urgent { now } else { actor.wake.max(now) };
            let frozen = group.map_or(now, |group| group.frozen);
            if dead { now } else { wake.max(frozen) }
        };
        let next = state.actors.iter().map(|(id, actor)| (due(actor), actor.ran, *id)).min();
        state.running = next.map(|(_, _, id)| id);
        if let Some((at, _, id)) = next {
            self.0.shared.lock().now = at;
            let turns = state.turns;
            if let Some(actor) = state.actors.get_mut(&id) {
                actor.ran = turns;
            }
        }
        self.0.turn.notify_all();
    }

    /// An actor has ended. One that died takes its process with it.
    fn finish(&self, id: ActorId, done: Result<Option<()>, Broken>) {
        let mut state = self.state();
        self.0.shared.lock().dies_in = None;
        let actor = state.actors.remove(&id);
        if !matches!(done, Ok(Some(())))
            && let Some(group) = actor.and_then(|actor| state.groups.get_mut(&actor.group))
        {
            group.dead = true;
        }
        if let Err(broken) = done {
            state.broken.get_or_insert(broken);
        }
        self.pass_on(&mut state);
    }

    pub(super) fn mail(&self, to: ActorId, mail: Mail) {
        if let Some(actor) = self.state().actors.get_mut(&to) {
            actor.mail.push(mail);
        }
    }

    /// Whether a process is there.
    pub(super) fn lives(&self, group: GroupId) -> bool {
        let state = self.state();
        let known = state.groups.get(&group).is_some_and(|group| !group.dead);
        known && state.actors.values().any(|actor| actor.group == group)
    }

    /// Lets a process do nothing for a while.
    pub(super) fn freeze(&self, group: GroupId, until: Timestamp) {
        if let Some(group) = self.state().groups.get_mut(&group) {
            group.frozen = until;
        }
    }

    /// Lets a process die after so many calls.
    pub(super) fn doom(&self, group: GroupId, dies_in: Option<u32>) {
        if let Some(group) = self.state().groups.get_mut(&group) {
            group.dies_in = dies_in;
        }
    }
}
