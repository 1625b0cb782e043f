//! Simulated deliveries: small plans with small limits, and the coordinator of `aldis deliver`.

use aldis::coordinate::simulated::{Delivered, DeliveryStage};
use aldis_engine::Engine;
use aldis_machine::delivery::{Config, Event, Plan, Priority, Start, State, TaskSpec, Timeouts};
use aldis_machine::{proof, stagnation};

use super::coordinated;
use super::world::SimWorld;
use crate::corpus::rng::Rng;

/// One coordinator, until it leaves the delivery.
pub(super) fn coordinate(
    stage: &DeliveryStage,
    world: &mut SimWorld,
    engine: Engine,
    first: bool,
) -> Result<Option<&'static str>, String> {
    let id = world.run.clone();
    let run = engine.open::<State>(&id).map_err(|error| error.to_string())?;
    let event = if first { Event::Begin } else { Event::Recovered };
    match stage.play(world, engine, run, event)? {
        Delivered::Ended(ending) => Ok(Some(ending.as_str())),
        Delivered::Waits => Ok(None),
    }
}

/// How a delivery begins.
pub(super) fn start(rng: &mut Rng, stagnation: stagnation::Config) -> Start {
    let (plan, config) = (plan(rng), config(rng, stagnation));
    Start { plan, config, token: rng.chance(30).then(|| "s3cret".to_owned()) }
}

fn plan(rng: &mut Rng) -> Plan {
    let count = rng.between(1, 6);
    let mut tasks: Vec<TaskSpec> = Vec::new();
    for number in 0..count {
        let needs = match tasks.is_empty() || rng.chance(60) {
            true => Vec::new(),
            false => vec![format!("t{}", rng.below(number))],
        };
        let analysed = rng.chance(80);
        tasks.push(TaskSpec {
            id: format!("t{number}"),
            title: format!("Task {number}"),
            acceptance: if analysed { vec!["it works".to_owned()] } else { Vec::new() },
            needs,
            priority: rng.pick(&[Priority::High, Priority::Medium, Priority::Low]),
            files: if rng.chance(30) { vec!["src/a.rs".to_owned()] } else { Vec::new() },
            ..TaskSpec::default()
        });
    }
    Plan { title: "Simulated".to_owned(), tasks }
}

fn config(rng: &mut Rng, stagnation: stagnation::Config) -> Config {
    Config {
        proof: if rng.chance(40) { coordinated::checks(rng) } else { proof::Config::default() },
        slots: 1 + u32::try_from(rng.below(4)).unwrap_or(0),
        business_analyst: rng.chance(20),
        planner: rng.chance(15),
        worktrees: rng.chance(50),
        max_tokens: rng.chance(20).then(|| rng.between(500, 5_000) as u64),
        max_time: rng.chance(20).then(|| rng.between(300, 3_000) as u64),
        checkpoint_every: rng.between(30, 300) as u64,
        conflict_wait: 60,
        timeouts: Timeouts { developer: 120, critic: 90, ..Default::default() },
        stagnation,
        ..Config::default()
    }
}
