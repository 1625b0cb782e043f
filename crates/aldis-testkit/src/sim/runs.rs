//! Worlds of supervised runs: the run and stagnation machines, their store, and a supervisor that
//! performs what they want.
//!
//! A world has one run after another, an agent that does anything, a check, a human at another
//! terminal, and a supervisor that dies at any moment and is started again. What the supervisor does
//! with processes is modelled; its journal and its outbox are the real ones, or a model of them.

mod agent;
mod driven;
mod engine;
mod model;
mod oracle;
mod world;

#[cfg(test)]
mod tests;

use self::driven::Driven;
use self::engine::Engine;
use self::model::Model;
pub use self::model::RunBug;
use self::world::{Setup, World};
use super::oracle::Broken;
use super::world::Tally;
use super::{Backend, DRIVEN_EVERY, Options, REPLAYED_EVERY, Report, Subject, Violation};

/// Simulates supervised runs; `bug` is planted in the model only.
pub fn run(options: &Options, bug: Option<RunBug>, progress: &(dyn Fn(&Report) + Sync)) -> Report {
    super::run(&Options { subject: Subject::Run(bug), ..options.clone() }, progress)
}

/// Simulates one world; again with a trace if something is wrong.
pub(super) fn simulate(
    options: &Options,
    bug: Option<RunBug>,
    seed: u64,
    traced: bool,
) -> (Tally, Result<u64, Violation>) {
    let violation = |broken, trace| Violation { seed, broken, trace };
    let engine = match engine(options, bug, seed, traced) {
        Ok(engine) => engine,
        Err(detail) => {
            let broken = Broken { invariant: "the_store_opens", detail };
            return (Tally::default(), Err(violation(broken, Vec::new())));
        }
    };
    let replays = seed.is_multiple_of(REPLAYED_EVERY) || options.backend != Backend::Mixed;
    let mut world = World::new(Setup { seed, engine, faulty: options.faults, replays, traced });
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
    bug: Option<RunBug>,
    seed: u64,
    traced: bool,
) -> Result<Box<dyn Engine>, String> {
    Ok(match &options.backend {
        Backend::Mixed if seed.is_multiple_of(DRIVEN_EVERY) => Box::new(Driven::memory()),
        Backend::Mixed | Backend::Model => Box::new(Model::new(bug)),
        Backend::Memory => Box::new(Driven::memory()),
        Backend::Sqlite(directory) => {
            // A world that is simulated again must not meet its former self.
            let place = if traced { directory.join("again") } else { directory.clone() };
            Box::new(Driven::sqlite(place)?)
        }
    })
}
