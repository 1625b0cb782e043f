//! The simulator's other half: the delivery machine with agents that crash, lie, are late, repeat
//! themselves or say nothing, and a coordinator that dies at any moment.

mod agents;
mod keeper;
mod oracle;
mod performing;
mod planted;
mod world;

#[cfg(test)]
mod tests;

use self::keeper::{Keeper, Plain, Stored};
pub use self::planted::Bug;
use self::world::{Setup, World};
use super::oracle::Broken;
use super::world::Tally;
use super::{Backend, DRIVEN_EVERY, Options, REPLAYED_EVERY, Violation, spread};

/// After so many events a delivery calms down and must end.
const EVENTS_PER_DELIVERY: u64 = 300;

/// Simulates one world; again with a trace if something is wrong.
pub(super) fn simulate(
    options: &Options,
    bug: Option<Bug>,
    seed: u64,
    traced: bool,
) -> (Tally, Result<u64, Violation>) {
    let (mut tally, mut hash) = (Tally::default(), 0_u64);
    // One delivery after the other, until enough has happened.
    for number in 0.. {
        if tally.events >= options.events {
            break;
        }
        let (one, result) = deliver(options, bug, (seed, number), traced);
        tally.add(&one);
        match result {
            Ok(one) => hash = hash.rotate_left(7) ^ one,
            Err(violation) if traced => return (tally, Err(violation)),
            Err(Violation { broken, .. }) => {
                let again = simulate(options, bug, seed, true).1;
                let unsure = || {
                    let detail = format!("{}: {}", broken.invariant, broken.detail);
                    let broken = Broken { invariant: "same_seed_same_world", detail };
                    Violation { seed, broken, trace: Vec::new() }
                };
                return (tally, Err(again.err().unwrap_or_else(unsure)));
            }
        }
    }
    (tally, Ok(hash))
}

/// Simulates one delivery of a world.
fn deliver(
    options: &Options,
    bug: Option<Bug>,
    (seed, number): (u64, u64),
    traced: bool,
) -> (Tally, Result<u64, Violation>) {
    let violation = |broken, trace| Violation { seed, broken, trace };
    let keeper = match keeper(&options.backend, (seed, number), traced) {
        Ok(keeper) => keeper,
        Err(detail) => {
            let broken = Broken { invariant: "the_store_opens", detail };
            return (Tally::default(), Err(violation(broken, Vec::new())));
        }
    };
    let replays = seed.is_multiple_of(REPLAYED_EVERY) || options.backend != Backend::Mixed;
    let seed = spread(seed).wrapping_add(number);
    let setup = Setup { seed, keeper, bug, faulty: options.faults, replays, traced };
    let mut world = World::new(setup);
    let result = world.run(EVENTS_PER_DELIVERY);
    let tally = world.tally;
    match result {
        Ok(()) => (tally, Ok(world.hash())),
        Err(broken) => (tally, Err(violation(broken, world.trace()))),
    }
}

fn keeper(
    backend: &Backend,
    (seed, number): (u64, u64),
    traced: bool,
) -> Result<Box<dyn Keeper>, String> {
    let name = format!("w{seed}-{number}");
    Ok(match backend {
        Backend::Mixed if seed.is_multiple_of(DRIVEN_EVERY) => Box::new(Stored::memory(&name)?),
        Backend::Mixed | Backend::Model => Box::new(Plain::default()),
        Backend::Memory => Box::new(Stored::memory(&name)?),
        Backend::Sqlite(directory) => {
            // A world that is simulated again must not meet its former self.
            let place = if traced { directory.join("again") } else { directory.clone() };
            Box::new(Stored::sqlite(&place, &name)?)
        }
    })
}
