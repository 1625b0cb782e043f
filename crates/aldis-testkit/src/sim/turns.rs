//! Worlds of channels: the turns machine, its store, alarms and outbox, a server that dies at any
//! moment, and agents and humans who speak when they like.
//!
//! Agents speak late, twice, out of turn, in batches or not at all; requests arrive late, out of
//! order and again; humans interrupt, pause and name the next; queues and configurations change;
//! the server's clock is set while it is down.

mod engine;
mod oracle;
mod planted;
mod stored;
mod voices;
mod world;

#[cfg(test)]
mod tests;

use self::engine::{Engine, Model};
pub use self::planted::Bug;
use self::stored::Stored;
use self::world::{Setup, World};
use super::oracle::Broken;
use super::world::Tally;
use super::{Backend, DRIVEN_EVERY, Options, REPLAYED_EVERY, Violation};

/// Simulates one world; again with a trace if something is wrong.
pub(super) fn simulate(
    options: &Options,
    bug: Option<Bug>,
    seed: u64,
    traced: bool,
) -> (Tally, Result<u64, Violation>) {
    let violation = |broken, trace| Violation { seed, broken, trace };
    let engine = match engine(&options.backend, bug, seed, traced) {
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
    backend: &Backend,
    bug: Option<Bug>,
    seed: u64,
    traced: bool,
) -> Result<Box<dyn Engine>, String> {
    Ok(match backend {
        Backend::Mixed if seed.is_multiple_of(DRIVEN_EVERY) => Box::new(Stored::memory()),
        Backend::Mixed | Backend::Model => Box::new(Model::new(bug)),
        Backend::Memory => Box::new(Stored::memory()),
        Backend::Sqlite(directory) => {
            // Alarms are looked for in all of a store: each world has its own.
            let again = if traced { "again" } else { "" };
            Box::new(Stored::sqlite(directory.join(format!("{seed}{again}")))?)
        }
    })
}
