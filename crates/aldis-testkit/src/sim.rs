//! A deterministic simulator of every machine with its store.
//!
//! A *world* is one seed: some projects, sessions, agents, humans and outsiders, a clock that steps
//! both ways, and faults: crashes before and after a commit, failing writes, duplicates, delays,
//! races, lost and edited view files. After every step the invariants of [`Broken`] are checked from
//! the outside. The same seed gives the same world, event by event.
//!
//! Most worlds of the memory store go through a model of the commit protocol over plain values; one
//! in [`DRIVEN_EVERY`] goes through the real driver, JSON and all, and so do all worlds of SQLite.

mod agent;
pub mod delivery;
mod driven;
mod engine;
mod faulty;
mod file;
mod host;
mod machine;
mod model;
mod oracle;
mod replay;
pub mod runs;
pub mod turns;
mod world;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use self::driven::Driven;
use self::engine::Engine;
pub use self::machine::Bug;
use self::machine::Machine;
use self::model::Model;
pub use self::oracle::Broken;
pub use self::world::Tally;
use self::world::{Setup, World};

/// Events of one world, apart from those with which it calms down.
pub const EVENTS_PER_WORLD: u64 = 500;
/// One world of the memory store in so many goes through the real driver.
pub const DRIVEN_EVERY: u64 = 64;
/// In one world in so many every run is replayed from its journal.
pub const REPLAYED_EVERY: u64 = 8;

/// Where runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The model, and the driver with the memory store now and then.
    Mixed,
    /// Only the model.
    Model,
    /// The driver with the memory store.
    Memory,
    /// The driver with SQLite, in this directory.
    Sqlite(PathBuf),
}

/// Which machine is simulated, with which bug.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// The phases machine.
    Phases(Option<Bug>),
    /// The run machine.
    Run(Option<runs::RunBug>),
    /// The delivery machine.
    Delivery(Option<delivery::Bug>),
    /// The turns machine.
    Turns(Option<turns::Bug>),
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The first seed; the worlds after it have the next ones.
    pub seed: u64,
    /// How many worlds.
    pub worlds: u64,
    /// Events of each world.
    pub events: u64,
    /// Where runs are kept.
    pub backend: Backend,
    /// Whether things go wrong.
    pub faults: bool,
    /// Which machine, and the bug to plant in it; bugs need the model.
    pub subject: Subject,
    /// How many threads.
    pub jobs: usize,
}

impl Options {
    /// At least this many events, everything else as usual.
    pub fn new(seed: u64, events: u64) -> Self {
        Self {
            seed,
            worlds: events.div_ceil(EVENTS_PER_WORLD),
            events: EVENTS_PER_WORLD,
            backend: Backend::Mixed,
            faults: true,
            subject: Subject::Phases(None),
            jobs: 1,
        }
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The world in which it does not.
    pub seed: u64,
    /// Which one, and how that shows.
    pub broken: Broken,
    /// The last events before.
    pub trace: Vec<String>,
}

/// What a simulation came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Worlds that were simulated.
    pub worlds: u64,
    /// What happened in them.
    pub tally: Tally,
    /// All traces as one number, whatever the number of threads.
    pub hash: u64,
    /// The violation with the lowest seed, if there is any.
    pub violation: Option<Violation>,
}

/// Simulates, and tells `progress` of the report so far after every world.
pub fn run(options: &Options, progress: &(dyn Fn(&Report) + Sync)) -> Report {
    let simulate = |seed| match options.subject {
        Subject::Phases(bug) => simulate(options, bug, seed, false),
        Subject::Run(bug) => runs::simulate(options, bug, seed, false),
        Subject::Delivery(bug) => delivery::simulate(options, bug, seed, false),
        Subject::Turns(bug) => turns::simulate(options, bug, seed, false),
    };
    run_worlds(options, &simulate, progress)
}

/// One world: what happened in it, and its trace as a number.
type Simulated = (Tally, Result<u64, Violation>);

/// Simulates world after world, each by its seed, on all threads.
fn run_worlds(
    options: &Options,
    simulate: &(dyn Fn(u64) -> Simulated + Sync),
    progress: &(dyn Fn(&Report) + Sync),
) -> Report {
    let next = AtomicU64::new(0);
    let broken = AtomicBool::new(false);
    let report = Mutex::new(Report::default());
    let work = || {
        while !broken.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= options.worlds {
                return;
            }
            let seed = options.seed.wrapping_add(number);
            let (tally, result) = simulate(seed);
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.worlds += 1;
            report.tally.add(&tally);
            match result {
                Ok(hash) => report.hash = report.hash.wrapping_add(spread(hash ^ spread(seed))),
                Err(violation) => {
                    broken.store(true, Ordering::Relaxed);
                    let lowest = report.violation.as_ref().is_none_or(|known| known.seed > seed);
                    if lowest {
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

/// Simulates one world; again with a trace if something is wrong.
fn simulate(options: &Options, bug: Option<Bug>, seed: u64, traced: bool) -> Simulated {
    let violation = |broken, trace| Violation { seed, broken, trace };
    let engine = match engine(options, bug, seed, traced) {
        Ok(engine) => engine,
        Err(detail) => {
            let broken = Broken { invariant: "the_store_opens", detail };
            return (Tally::default(), Err(violation(broken, Vec::new())));
        }
    };
    let replays = seed.is_multiple_of(REPLAYED_EVERY) || options.backend != Backend::Mixed;
    let machine = Machine { bug };
    let setup = Setup { seed, engine, machine, faulty: options.faults, replays, traced };
    let mut world = World::new(setup);
    let result = world.run(options.events);
    let tally = world.tally;
    match result {
        Ok(()) => (tally, Ok(world.hash())),
        Err(broken) if traced => (tally, Err(violation(broken, world.trace()))),
        Err(broken) => match simulate(options, bug, seed, true).1 {
            Err(traced) => (tally, Err(traced)),
            Ok(_) => {
                let detail = format!("{}: {}", broken.invariant, broken.detail);
                let broken = Broken { invariant: "same_seed_same_world", detail };
                (tally, Err(violation(broken, Vec::new())))
            }
        },
    }
}

fn engine(
    options: &Options,
    bug: Option<Bug>,
    seed: u64,
    traced: bool,
) -> Result<Box<dyn Engine>, String> {
    let model = || Box::new(Model::new(Machine { bug }));
    Ok(match &options.backend {
        Backend::Mixed if seed.is_multiple_of(DRIVEN_EVERY) => Box::new(Driven::memory(seed)),
        Backend::Mixed | Backend::Model => model(),
        Backend::Memory => Box::new(Driven::memory(seed)),
        Backend::Sqlite(directory) => {
            // A world that is simulated again must not meet its former self.
            let place = if traced { directory.join("again") } else { directory.clone() };
            Box::new(Driven::sqlite(seed, place)?)
        }
    })
}

/// The finaliser of splitmix64.
fn spread(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
