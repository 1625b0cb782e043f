//! Worlds of supervised runs and deliveries: the coordinators that people use, which die at any
//! moment and are followed by others.

use std::sync::Arc;
use std::time::Duration;

use aldis::coordinate::simulated::{DeliveryStage, RunStage};
use aldis_engine::{Engine, EngineError, NewRun};
use aldis_machine::proof::{OnChange, RedFirst};
use aldis_machine::{proof, run, stagnation};
use aldis_signal::Dialect;
use aldis_store::{Driver, RunId, Store};

use super::fate::SharedFate;
use super::oracle::Oracle;
use super::store::SimStore;
use super::world::SimWorld;
use super::{Broken, Machine, delivery};
use crate::corpus::rng::Rng;

/// How many events a run may take until it ends, once nothing goes wrong any more.
const CALM_MAX: u64 = 5_000;
/// How many coordinators may follow one another.
const COORDINATORS_MAX: u32 = 400;

/// How everything is coordinated; making these costs more than a world.
#[derive(Debug)]
pub(super) struct Stages {
    runs: [RunStage; 2],
    deliveries: [DeliveryStage; 4],
    /// For fleets, whose processes are threads.
    pub(super) fleet: Arc<DeliveryStage>,
}

impl Stages {
    pub(super) fn new() -> Option<Self> {
        let chorus = Dialect::builtin("chorus")?;
        let runs = [None, Some("make test")].map(|verify| RunStage::new(chorus, verify));
        let kinds = [(false, false), (false, true), (true, false), (true, true)];
        let deliveries = kinds.map(|(no_wait, resume)| DeliveryStage::new(no_wait, resume));
        let fleet = Arc::new(DeliveryStage::new(false, true));
        Some(Self { runs, deliveries, fleet })
    }
}

/// One run or delivery in the making.
struct Play<'s> {
    stages: &'s Stages,
    machine: Machine,
    /// Which of the stages.
    stage: usize,
    inner: Arc<dyn Store>,
    shared: &'s SharedFate,
    id: RunId,
    world: SimWorld,
    /// The events after which nothing goes wrong any more, and those before this run.
    goal: u64,
    began: u64,
    replayed: bool,
}

/// How a coordinator left.
enum Left {
    Over(&'static str),
    /// It waits for a human, or failed.
    Early(String),
    Died,
}

/// Plays runs one after the other until there were so many events.
pub(super) fn play(
    stages: &Stages,
    machine: Machine,
    inner: &Arc<dyn Store>,
    shared: &SharedFate,
    (goal, replayed): (u64, bool),
) -> Result<(), Broken> {
    let mut number = 0;
    let faults = shared.lock().faults;
    while shared.lock().tally.events < goal {
        number += 1;
        let unnamed = |error: aldis_store::BadRunId| Broken::new("names_are_good", &error);
        let id = RunId::new(format!("r{number}")).map_err(unnamed)?;
        {
            let mut fate = shared.lock();
            fate.faults = faults;
            fate.notices.clear();
            fate.acknowledged.clear();
            fate.tally.runs += 1;
        }
        let stage = shared.lock().rng.below(if machine == Machine::Run { 2 } else { 4 });
        let engine = Engine::new(Arc::clone(inner));
        begin(&engine, machine, stage, shared, &id)
            .map_err(|error| Broken::new("runs_begin", &error))?;
        let (verified, slack) = match machine {
            Machine::Run => (stage == 1, Duration::from_millis(600)),
            // Costs are told once a second, the last ones after the verdict.
            _ => (false, Duration::from_millis(2_600)),
        };
        let oracle = Oracle::new(verified, slack);
        let world = SimWorld::new(shared.clone(), engine, id.clone(), oracle);
        let inner = Arc::clone(inner);
        let began = shared.lock().tally.events;
        Play { stages, machine, stage, inner, shared, id, world, goal, began, replayed }.run()?;
    }
    Ok(())
}

impl Play<'_> {
    fn run(mut self) -> Result<(), Broken> {
        for number in 0..COORDINATORS_MAX {
            self.calm_down();
            let left = self.coordinate(number == 0)?;
            let died = matches!(left, Left::Died);
            if let Left::Over(ending) = left {
                return self.over(ending);
            }
            if let Left::Early(why) = left {
                self.shared.note(format_args!("the coordinator leaves: {why}"));
            }
            self.world.coordinator_gone(died);
            let pause = self.shared.lock().rng.below(20_000) as u64;
            let shared = self.shared;
            shared.guarded(|| self.world.pass(pause))?;
        }
        Err(Broken::new("every_run_ends", &"it goes on and on"))
    }

    /// From the world's last event on, nothing goes wrong any more.
    fn calm_down(&mut self) {
        let mut fate = self.shared.lock();
        let calm = fate.tally.events >= self.goal;
        self.world.calm = calm;
        if calm {
            fate.faults = false;
        }
        drop(fate);
        self.shared.next_process(70, 1_500);
    }

    /// One coordinator, until it leaves or dies.
    fn coordinate(&mut self, first: bool) -> Result<Left, Broken> {
        self.world.next_coordinator();
        let (goal, began) = (self.goal, self.began);
        let (shared, play) = (self.shared, &mut *self);
        let left = shared.guarded(|| {
            let store = SimStore::new(Arc::clone(&play.inner), play.shared.clone(), true);
            let engine = Engine::new(Arc::new(store));
            play.shared.note(format_args!("a coordinator comes"));
            let world = &mut play.world;
            world.calm_at = (goal, goal.max(began) + CALM_MAX);
            match play.machine {
                Machine::Run => coordinate_run(&play.stages.runs[play.stage], world, engine, first),
                _ => {
                    let stage = &play.stages.deliveries[play.stage];
                    delivery::coordinate(stage, world, engine, first)
                }
            }
        })?;
        self.shared.lock().dies_in = None;
        Ok(match left {
            None => Left::Died,
            Some(Ok(Some(ending))) => Left::Over(ending),
            Some(Ok(None)) => Left::Early("it waits for a human".to_owned()),
            Some(Err(why)) => Left::Early(why),
        })
    }

    /// Judges what is left.
    fn over(self, ending: &'static str) -> Result<(), Broken> {
        {
            let mut fate = self.shared.lock();
            fate.note(format_args!("it is over: {ending}"));
            fate.tally.ends += 1;
        }
        if self.world.processes.values().any(|process| process.is_agent) {
            return Err(Broken::new("no_agent_outlives_its_run", &ending));
        }
        let judged = self.world.oracle.over(
            &self.world.engine,
            &self.id,
            self.shared,
            (ending, self.replayed),
        );
        judged.map_err(Broken::from)
    }
}

fn coordinate_run(
    stage: &RunStage,
    world: &mut SimWorld,
    engine: Engine,
    first: bool,
) -> Result<Option<&'static str>, String> {
    let id = world.run.clone();
    let run = engine.open::<run::State>(&id).map_err(|error| error.to_string())?;
    let event = if first { run::Event::Begin } else { run::Event::Recovered };
    if let Some(ending) = run.state().ending()
        && !world.unperformed()
    {
        return Ok(Some(ending.as_str()));
    }
    stage.play(world, engine, run, event).map(|ending| Some(ending.as_str()))
}

/// Begins a run with small limits.
fn begin(
    engine: &Engine,
    machine: Machine,
    stage: usize,
    shared: &SharedFate,
    id: &RunId,
) -> Result<(), EngineError> {
    let mut fate = shared.lock();
    let (now, rng) = (fate.now, &mut fate.rng);
    let mut new = NewRun::of("/simulated/project", Driver::Process);
    new.id = Some(id.clone());
    if machine == Machine::Run {
        let start = run::Start {
            task: "Add CSV export".to_owned(),
            dialect: "chorus".to_owned(),
            instructions: String::new(),
            launch: String::new(),
            config: run_config(rng, stage == 1),
        };
        return engine.begin::<run::State>(now, &new, start).map(drop);
    }
    let stagnation = watched(rng);
    let start = delivery::start(rng, stagnation);
    engine.begin::<aldis_machine::delivery::State>(now, &new, start).map(drop)
}

fn watched(rng: &mut Rng) -> stagnation::Config {
    stagnation::Config {
        enabled: rng.chance(60),
        warn_timeout: rng.between(20, 60) as u64,
        pause_timeout: rng.between(60, 120) as u64,
        abort_timeout: if rng.chance(20) { 600 } else { 0 },
        grace_period: rng.between(1, 20) as u64,
        pause_limit: Some(rng.between(10, 200) as u64),
        ..stagnation::Config::supervised()
    }
}

/// What is checked, in every combination. Without checks it is as in runs that are older than them.
pub(super) fn checks(rng: &mut Rng) -> proof::Config {
    let check = |(name, needs): (&str, &[&str])| proof::Check {
        name: name.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        ..proof::Check::unnamed("make test")
    };
    let checks = match rng.below(3) {
        0 => Vec::new(),
        1 => vec![proof::Check::unnamed("make test")],
        _ => vec![check(("unit", &["build"])), check(("build", &[])), check(("lint", &[]))],
    };
    let policies = [None, Some(OnChange::Allow), Some(OnChange::Refuse), Some(OnChange::Ask)];
    let red = [RedFirst::Off, RedFirst::Off, RedFirst::Warn, RedFirst::Strict];
    proof::Config {
        checks,
        on_change: policies[rng.below(policies.len())],
        clean: rng.chance(20),
        red_first: red[rng.below(red.len())],
        repeat: u32::from(rng.chance(30)),
        timeout: rng.chance(30).then_some(60),
        ..proof::Config::default()
    }
}

fn run_config(rng: &mut Rng, verify: bool) -> run::Config {
    run::Config {
        max_iterations: 1 + u32::try_from(rng.below(8)).unwrap_or(0),
        iteration_timeout: rng.between(30, 300) as u64,
        timeout: rng.between(300, 3_000) as u64,
        max_tokens: rng.chance(40).then(|| rng.between(100, 1_500) as u64),
        verify,
        proof: if verify { checks(rng) } else { proof::Config::default() },
        no_wait: rng.chance(20),
        limit_wait: rng.between(10, 60) as u64,
        max_limit_waits: 3,
        max_crashes: u32::try_from(rng.below(4)).unwrap_or(0),
        crash_wait: rng.between(1, 10) as u64,
        stagnation: watched(rng),
        ..run::Config::default()
    }
}
