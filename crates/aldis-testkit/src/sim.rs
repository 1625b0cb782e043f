//! A deterministic simulator: every machine over the engine, and the coordinators that people use,
//! in worlds with a clock of their own in which everything goes wrong.
//!
//! One seed is one *world*. The same seed gives the same world, event by event.

mod coordinated;
mod delivery;
mod fate;
mod fleet;
mod oracle;
mod people;
mod phases;
mod script;
mod store;
mod turns;
mod world;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use aldis_store::{MemoryStore, SqliteStore, Store};

use self::coordinated::Stages;
use self::fate::SharedFate;

/// Events of one world, apart from those with which it calms down.
pub const EVENTS_PER_WORLD: u64 = 400;
/// In one world in so many runs are replayed from their journals.
const REPLAYED_EVERY: u64 = 4;

/// Whose runs are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Phases, by hooks.
    Phases,
    /// Supervised runs, by the coordinator of `aldis run`.
    Run,
    /// Deliveries, by the coordinator of `aldis deliver`.
    Delivery,
    /// Deliveries, by several coordinators and workers.
    Fleet,
    /// Channels, by servers.
    Turns,
}

/// Where runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// In memory.
    Memory,
    /// In SQLite databases below this directory.
    Sqlite(PathBuf),
}

/// A mistake that is planted to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The store says that a step is durable, and it is not.
    LostCommit,
    /// The store forgets which requests it has taken.
    ForgottenSource,
    /// A process is started twice.
    StartedTwice,
    /// What a dead coordinator left behind is not ended.
    LeftoverNotEnded,
    /// Every check is reported as passed.
    CheckAlwaysPasses,
    /// A claim that ran out is handed out under the number that it had.
    SameFence,
    /// What is claimed counts as done.
    DoneWhenClaimed,
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// The first seed; the worlds after it have the next ones.
    pub seed: u64,
    /// How many worlds.
    pub worlds: u64,
    /// Whose runs.
    pub machine: Machine,
    /// Where they are kept.
    pub backend: Backend,
    /// Whether things go wrong.
    pub faults: bool,
    /// The bug to plant.
    pub bug: Option<Bug>,
    /// How many threads.
    pub jobs: usize,
}

impl SimOptions {
    /// At least this many events, everything else as usual.
    pub fn new(machine: Machine, seed: u64, events: u64) -> Self {
        let (worlds, backend) = (events.div_ceil(EVENTS_PER_WORLD), Backend::Memory);
        Self { seed, worlds, machine, backend, faults: true, bug: None, jobs: 1 }
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its name.
    pub invariant: &'static str,
    /// How that shows.
    pub detail: String,
}

impl Broken {
    fn new(invariant: &'static str, detail: &dyn fmt::Display) -> Self {
        Self { invariant, detail: detail.to_string() }
    }
}

impl From<oracle::Wrong> for Broken {
    fn from((invariant, detail): oracle::Wrong) -> Self {
        Self { invariant, detail }
    }
}

/// A world in which an invariant does not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The world.
    pub seed: u64,
    /// What is wrong.
    pub broken: Broken,
    /// The last events before.
    pub trace: Vec<String>,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimTally {
    /// Events.
    pub events: u64,
    /// Steps that were committed.
    pub steps: u64,
    /// Runs that began.
    pub runs: u64,
    /// Runs that ended.
    pub ends: u64,
    /// Things that went wrong.
    pub faults: u64,
    /// Runs that were replayed from their journals.
    pub replayed: u64,
}

impl SimTally {
    fn add(&mut self, more: &Self) {
        self.events += more.events;
        self.steps += more.steps;
        self.runs += more.runs;
        self.ends += more.ends;
        self.faults += more.faults;
        self.replayed += more.replayed;
    }
}

/// What a simulation came to.
#[derive(Clone, Debug, Default)]
pub struct SimReport {
    /// Worlds that were simulated.
    pub worlds: u64,
    /// What happened in them.
    pub tally: SimTally,
    /// All traces as one number, whatever the number of threads.
    pub hash: u64,
    /// The violation with the lowest seed, if there is any.
    pub violation: Option<Violation>,
}

/// Simulates, and tells `progress` of the report so far after every world.
pub fn run(options: &SimOptions, progress: &(dyn Fn(&SimReport) + Sync)) -> SimReport {
    let (next, broken) = (AtomicU64::new(0), AtomicBool::new(false));
    let report = Mutex::new(SimReport::default());
    let Some(stages) = Stages::new() else { return SimReport::default() };
    let work = || {
        while !broken.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.worlds {
                return;
            }
            let seed = options.seed.wrapping_add(number);
            let (tally, result) = simulate(options, &stages, seed);
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.worlds += 1;
            report.tally.add(&tally);
            match result {
                Ok(hash) => report.hash = report.hash.wrapping_add(spread(hash ^ spread(seed))),
                Err(violation) => {
                    broken.store(true, Ordering::Relaxed);
                    if report.violation.as_ref().is_none_or(|known| known.seed > seed) {
                        report.violation = Some(violation);
                    }
                }
            }
            progress(&report);
        }
    };
    thread::scope(|scope| {
        for _ in 1..options.jobs {
            scope.spawn(work);
        }
        work();
    });
    report.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Simulates one world. Returns its trace as a number.
fn simulate(
    options: &SimOptions,
    stages: &Stages,
    seed: u64,
) -> (SimTally, Result<u64, Violation>) {
    let shared = SharedFate::new(spread(seed), options.faults, options.bug);
    let replayed = seed.is_multiple_of(REPLAYED_EVERY) || options.backend != Backend::Memory;
    let extent = (EVENTS_PER_WORLD, replayed);
    let opened: Result<Arc<dyn Store>, Broken> = match &options.backend {
        Backend::Memory => Ok(Arc::new(MemoryStore::new())),
        Backend::Sqlite(directory) => match SqliteStore::open(&directory.join(seed.to_string())) {
            Ok(store) => Ok(Arc::new(store)),
            Err(error) => Err(Broken::new("the_store_opens", &error)),
        },
    };
    let result = opened.and_then(|inner| match options.machine {
        Machine::Phases => phases::play(&inner, &shared, extent),
        Machine::Turns => turns::play(&inner, &shared, extent),
        Machine::Fleet => fleet::play(stages, &inner, &shared, extent),
        Machine::Run | Machine::Delivery => {
            coordinated::play(stages, options.machine, &inner, &shared, extent)
        }
    });
    let fate = shared.lock();
    let trace = || fate.trace();
    let result = result.map_err(|broken| Violation { seed, broken, trace: trace() });
    (fate.tally, result.map(|()| fate.hash()))
}

/// The finaliser of splitmix64.
fn spread(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Every machine that is played.
pub const MACHINES: [Machine; 5] =
    [Machine::Phases, Machine::Run, Machine::Delivery, Machine::Fleet, Machine::Turns];
