//! Worlds of fleets: several workers and coordinators over one store, which die, freeze and come again
//! at any moment, with the loops that people use. What they lead to is checked from the journal.

mod hub;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aldis::coordinate::simulated::{
    Delivered, DeliveryStage, Happening, Offer, SlotEnd, SlotEvent, SlotId, Slots, run_worker,
    settle_claim,
};
use aldis_engine::{Engine, NewRun};
use aldis_machine::HumanCommand;
use aldis_machine::delivery::{Config, Event, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Claim, Driver, RunId, Store};

use self::hub::{ActorId, GroupId, Hub, Mail};
use self::world::FleetWorld;
use super::coordinated::Stages;
use super::fate::SharedFate;
use super::store::SimStore;
use super::{Broken, delivery};
use crate::history::History;

/// How many workers there are at most.
const WORKERS_MAX: usize = 4;
/// How long a slot waits until it settles a claim again.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);
const SETTLE_TRIES: u32 = 5;
/// How many calls a process makes at most before it dies.
const CALLS_MAX: usize = 600;

/// What all actors of a world share.
#[derive(Clone)]
struct Scene {
    hub: Hub,
    stage: Arc<DeliveryStage>,
    inner: Arc<dyn Store>,
    run: RunId,
    /// The events after which nothing goes wrong any more.
    goal: u64,
}

/// Plays deliveries one after the other until there were so many events.
pub(super) fn play(
    stages: &Stages,
    inner: &Arc<dyn Store>,
    shared: &SharedFate,
    (goal, replayed): (u64, bool),
) -> Result<(), Broken> {
    let faults = shared.lock().faults;
    let mut number = 0;
    while shared.lock().tally.events < goal {
        number += 1;
        shared.lock().faults = faults;
        let unnamed = |error: aldis_store::BadRunId| Broken::new("names_are_good", &error);
        let run = RunId::new(format!("f{number}")).map_err(unnamed)?;
        begin(inner, shared, &run)?;
        let hub = Hub::new(shared);
        let stage = Arc::clone(&stages.fleet);
        let scene = Scene { hub: hub.clone(), stage, inner: Arc::clone(inner), run, goal };
        let nature = scene.clone();
        let group = hub.group(None);
        hub.spawn(group, move |actor| nature.play_nature(actor));
        hub.run()?;
        scene.judge(replayed)?;
        shared.lock().tally.ends += 1;
    }
    Ok(())
}

fn begin(inner: &Arc<dyn Store>, shared: &SharedFate, run: &RunId) -> Result<(), Broken> {
    let engine = Engine::new(Arc::clone(inner));
    let mut fate = shared.lock();
    fate.tally.runs += 1;
    let now = fate.now;
    let mut start = delivery::start(&mut fate.rng, aldis_machine::stagnation::Config::default());
    start.config = Config {
        workers: true,
        worktrees: true,
        proof: aldis_machine::proof::Config::default(),
        business_analyst: false,
        planner: false,
        max_time: None,
        max_tokens: None,
        ..start.config
    };
    let mut new = NewRun::of("/simulated/project", Driver::Worker);
    new.id = Some(run.clone());
    let begun = engine.begin::<State>(now, &new, start);
    begun.map(drop).map_err(|error| Broken::new("runs_begin", &error))
}

impl Scene {
    /// The store as a process of the fleet sees it.
    fn store(&self) -> Arc<dyn Store> {
        let (inner, shared) = (Arc::clone(&self.inner), self.hub.shared().clone());
        Arc::new(SimStore::new(inner, shared, false))
    }

    /// As nobody disturbs it.
    fn engine(&self) -> Engine {
        Engine::new(Arc::clone(&self.inner))
    }

    fn below(&self, most: usize) -> usize {
        self.hub.shared().lock().rng.below(most)
    }

    fn is_over(&self) -> bool {
        self.engine().open::<State>(&self.run).is_ok_and(|run| run.state().ending().is_some())
    }

    /// Starts processes, lets them die and freeze, and ends them when the delivery is over.
    fn play_nature(&self, actor: ActorId) {
        let count = 1 + self.below(WORKERS_MAX);
        let mut workers: BTreeMap<String, (GroupId, ActorId)> =
            (0..count).map(|number| format!("w{number}")).map(|name| self.worker(name)).collect();
        let mut coordinator = self.coordinator(true);
        while !self.is_over() {
            let pause = Duration::from_millis(self.below(15_000) as u64);
            let until = self.hub.now().after(pause);
            while self.hub.now() < until {
                self.hub.park(actor, until);
            }
            let (faults, events) = {
                let mut fate = self.hub.shared().lock();
                if fate.tally.events >= self.goal {
                    fate.faults = false;
                }
                fate.event(format_args!("nature"));
                (fate.faults, fate.tally.events)
            };
            for (name, place) in &mut workers {
                if !self.hub.lives(place.0) {
                    *place = self.worker(name.clone()).1;
                } else if !faults && events >= self.goal {
                    self.hub.freeze(place.0, self.hub.now());
                    self.hub.doom(place.0, None);
                }
            }
            // A second coordinator takes the run over from the first, which finds out and leaves.
            if !self.hub.lives(coordinator) || faults && self.below(12) == 0 {
                coordinator = self.coordinator(false);
            }
            self.answer();
            let names: Vec<&String> = workers.keys().collect();
            if faults && self.below(4) == 0 {
                let name = names[self.below(names.len())];
                let until = self.hub.now().after(Duration::from_secs(5 + self.below(60) as u64));
                self.hub.freeze(workers[name].0, until);
            }
        }
        for (group, worker) in workers.values() {
            self.hub.freeze(*group, self.hub.now());
            self.hub.doom(*group, None);
            // Whoever asks twice is in a hurry.
            for _ in 0..2 {
                self.hub.mail(*worker, Mail::Slot(SlotEvent::Interrupted));
            }
        }
    }

    /// A person answers what is asked, so that the delivery comes to its end.
    fn answer(&self) {
        let engine = self.engine();
        let Ok(run) = engine.open::<State>(&self.run) else { return };
        let Some(id) = run.state().run().questions.keys().next().cloned() else { return };
        let answer = HumanCommand::Answer { id, text: "go on".to_owned() };
        let _answered = engine.command(self.hub.now(), &self.run, &answer, "a person", None);
        self.hub.shared().lock().changed = true;
    }

    /// After how many calls a process dies, if it does.
    fn mortal(&self, percent: usize) -> Option<u32> {
        let mut fate = self.hub.shared().lock();
        let dies = fate.faults && fate.rng.chance(percent);
        let calls = fate.rng.between(1, CALLS_MAX);
        dies.then(|| u32::try_from(calls).unwrap_or(1))
    }

    fn coordinator(&self, first: bool) -> GroupId {
        let group = self.hub.group(self.mortal(40));
        let scene = self.clone();
        self.hub.spawn(group, move |actor| {
            let engine = Engine::new(scene.store());
            let Ok(run) = engine.open::<State>(&scene.run) else { return };
            let event = if first { Event::Begin } else { Event::Recovered };
            let mut world = FleetWorld::new(&scene.hub, actor, scene.engine());
            let left = scene.stage.play(&mut world, engine, run, event);
            let shown = match &left {
                Ok(Delivered::Ended(ending)) => ending.as_str(),
                Ok(Delivered::Waits) => "waits",
                Err(why) => why,
            };
            scene.hub.shared().note(format_args!("a coordinator leaves: {shown}"));
        });
        group
    }

    fn worker(&self, name: String) -> (String, (GroupId, ActorId)) {
        let group = self.hub.group(self.mortal(60));
        let (scene, own) = (self.clone(), name.clone());
        let slots = 1 + self.below(3);
        let actor = self.hub.spawn(group, move |actor| {
            let offer = Offer {
                name: own.clone(),
                machine: "simulated".to_owned(),
                slots,
                labels: Vec::new(),
                environment: Vec::new(),
                roles: Vec::new(),
                drain: Duration::from_secs(30),
            };
            let store = scene.store();
            let mut slots = SimSlots { scene, group, actor, name: own, slots: BTreeMap::new() };
            let _left = run_worker(&*store, &mut slots, &offer);
        });
        (name, (group, actor))
    }

    /// Judges what is left of a delivery.
    fn judge(&self, replayed: bool) -> Result<(), Broken> {
        let unreadable = |error: aldis_store::StoreError| Broken::new("the_store_reads", &error);
        let history = History::read(&*self.inner, &self.run, Vec::new()).map_err(unreadable)?;
        let run = self.engine().open::<State>(&self.run);
        let run = run.map_err(|error| Broken::new("the_store_reads", &error))?;
        let complete = run.state().ending() == Some(aldis_machine::delivery::Ending::Complete);
        let wrong = history
            .check()
            .into_iter()
            .find(|wrong| complete || !matches!(wrong, crate::history::Violation::Completed(_, 0)));
        if let Some(wrong) = wrong {
            return Err(Broken::new("the_journal_is_sound", &wrong));
        }
        if replayed {
            self.hub.shared().lock().tally.replayed += 1;
            let replay = self.engine().replay(&self.run);
            let replay = replay.map_err(|error| Broken::new("journals_replay", &error))?;
            if let Some(difference) = replay.differences.first() {
                return Err(Broken::new("journals_replay", &format!("{difference:?}")));
            }
        }
        Ok(())
    }
}

/// The slots of a simulated worker.
struct SimSlots {
    scene: Scene,
    group: GroupId,
    actor: ActorId,
    name: String,
    slots: BTreeMap<SlotId, ActorId>,
}

impl Slots for SimSlots {
    fn now(&self) -> Timestamp {
        self.scene.hub.now()
    }

    fn wait(&mut self, until: Timestamp) -> Vec<SlotEvent> {
        let woken = self.scene.hub.park(self.actor, until);
        let mut events = Vec::new();
        for mail in woken.mail {
            if let Mail::Slot(event) = mail {
                events.push(event);
            }
        }
        if woken.changed {
            events.push(SlotEvent::StoreChanged);
        }
        events
    }

    fn open(&mut self, slot: SlotId, claim: Claim, asked: Timestamp) {
        let (scene, worker, name) = (self.scene.clone(), self.actor, self.name.clone());
        let actor = self.scene.hub.spawn(self.group, move |actor| {
            let (hub, store) = (scene.hub.clone(), scene.store());
            let engine = Engine::new(Arc::clone(&store));
            let mut world = FleetWorld::new(&hub, actor, scene.engine());
            let ended = scene.stage.run_claim(&mut world, engine, &name, (&claim, asked));
            let end = ended.unwrap_or_else(|why| {
                hub.shared().note(format_args!("a slot gives up: {why}"));
                SlotEnd::GivenBack(hub.now().after(SETTLE_PAUSE), why)
            });
            for _ in 0..SETTLE_TRIES {
                if settle_claim(&*store, &claim, &end).is_ok() {
                    break;
                }
                let until = hub.now().after(SETTLE_PAUSE);
                while hub.now() < until {
                    hub.park(actor, until);
                }
            }
            hub.mail(worker, Mail::Slot(SlotEvent::Over(slot)));
        });
        self.slots.insert(slot, actor);
    }

    fn end(&mut self, slot: SlotId) {
        if let Some(actor) = self.slots.get(&slot) {
            let interrupted = Happening::Interrupted("the worker is leaving");
            self.scene.hub.mail(*actor, Mail::Happening(interrupted));
        }
    }
}
