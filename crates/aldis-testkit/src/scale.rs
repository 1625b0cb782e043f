//! What a fleet asks of its databases: thousands of workers and a million channels in virtual time.
//!
//! The real engine takes every step of deliveries and channels, over the store in memory; what each costs a
//! database is a model ([`Database`]), with figures that were measured. Nothing is sent anywhere, so that
//! ten thousand machines fit into one process. What is assumed is in [`Options`], and printed.

mod channels;
mod database;
mod fleet;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, EngineError};
use aldis_signal::time::Timestamp;
use aldis_store::{DecisionFilter, MemoryStore, RunId};

use self::channels::Channels;
pub use self::database::Database;
use self::fleet::Fleet;
pub use self::fleet::reply;
use crate::corpus::rng::Rng;

/// When the simulation begins.
const BEGIN: i64 = 1_772_445_600_000;
/// How many runs are read to find out how much is stored for a step.
const SAMPLE: usize = 50;

/// What is simulated, and what is assumed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Workers with a slot each.
    pub workers: usize,
    /// Channels.
    pub channels: usize,
    /// How long, in virtual minutes.
    pub minutes: u64,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// Databases among which projects are divided.
    pub databases: usize,
    /// Durable steps, and claims, that one of them takes in a second when it does nothing else.
    pub steps_per_second: f64,
    /// See [`steps_per_second`](Self::steps_per_second).
    pub claims_per_second: f64,
    /// How many statements one database works on at once.
    pub parallel: usize,
    /// How long an agent works, on average.
    pub agent: Duration,
    /// How long until a channel's next message, on average.
    pub message: Duration,
    /// What an agent writes in a second, in bytes.
    pub output_per_second: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 10_000,
            channels: 1_000_000,
            minutes: 20,
            seed: 1,
            databases: 1,
            steps_per_second: 5_000.0,
            claims_per_second: 2_000.0,
            parallel: 16,
            agent: Duration::from_secs(300),
            message: Duration::from_secs(600),
            output_per_second: 2_000,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Agents that were started, and tasks that are complete.
    pub agents: u64,
    /// See [`agents`](Self::agents).
    pub tasks: u64,
    /// Messages in channels.
    pub messages: u64,
    /// Steps, claims and renewals that reached a database, in a second.
    pub steps: f64,
    /// See [`steps`](Self::steps).
    pub claims: f64,
    /// See [`steps`](Self::steps).
    pub renewals: f64,
    /// How busy the busiest database was, from 0 to 1; more is asked than it can do where it is 1.
    pub busy: f64,
    /// How long a statement took, in milliseconds: median, 99 %, 99.9 %.
    pub waits: [f64; 3],
    /// Bytes of events and decisions that an average step adds.
    pub bytes_per_step: f64,
    /// How long workers were without an agent for want of an answer, as a share of their time.
    pub idle: f64,
}

/// What happens next, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Job {
    /// An agent of a delivery is done.
    Finished { delivery: usize, agent: u64 },
    /// A coordinator hears that an agent is alive.
    Report { delivery: usize, agent: u64 },
    /// A worker keeps its claim.
    Keep { delivery: usize, agent: u64 },
    /// A coordinator keeps its lease.
    Renew { delivery: usize },
    /// Somebody says something.
    Message { channel: usize },
    /// The same in a channel that is only counted.
    Counted,
}

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statement {
    Step,
    Claim,
    Renewal,
}

/// The world: a clock, what is to come, and the databases.
struct World {
    options: Options,
    now: f64,
    jobs: BinaryHeap<Reverse<(u64, u64, Job)>>,
    numbers: u64,
    rng: Rng,
    databases: Vec<Database>,
    counts: [u64; 3],
    waits: Vec<f32>,
}

impl World {
    fn at(&self) -> Timestamp {
        Timestamp::from_millis(BEGIN + (self.now * 1_000.0) as i64)
    }

    /// Has something happen later.
    fn after(&mut self, seconds: f64, job: Job) {
        self.numbers += 1;
        let at = ((self.now + seconds) * 1e6) as u64;
        self.jobs.push(Reverse((at, self.numbers, job)));
    }

    /// Asks the database of a project. Returns how many seconds the answer takes.
    fn ask(&mut self, project: usize, statement: Statement) -> f64 {
        let rate = match statement {
            Statement::Step => self.options.steps_per_second,
            Statement::Claim | Statement::Renewal => self.options.claims_per_second,
        };
        self.counts[statement as usize] += 1;
        let count = self.databases.len();
        let wait = self.databases[project % count].ask(self.now, 1.0 / rate);
        self.waits.push(wait as f32);
        wait
    }

    /// A time of this average: exponential, as of things that happen independently.
    fn draw(&mut self, average: Duration) -> f64 {
        let share = (self.rng.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        -average.as_secs_f64() * (1.0 - share).ln()
    }
}

/// Simulates a fleet.
///
/// # Errors
///
/// Fails if a delivery or a channel does what it should not.
pub fn simulate(options: &Options) -> Result<Report, EngineError> {
    let databases = vec![Database::new(options.parallel); options.databases.max(1)];
    let mut world = World {
        options: options.clone(),
        now: 0.0,
        jobs: BinaryHeap::new(),
        numbers: 0,
        rng: Rng::new(options.seed),
        databases,
        counts: [0; 3],
        waits: Vec::new(),
    };
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::new(store);
    let mut fleet = Fleet::start(&engine, &mut world)?;
    let mut channels = Channels::open(&engine, &mut world)?;
    let end = options.minutes as f64 * 60.0;
    while let Some(Reverse((at, _, job))) = world.jobs.pop() {
        world.now = at as f64 / 1e6;
        if world.now > end {
            break;
        }
        match job {
            Job::Message { channel } => channels.message(&engine, &mut world, channel)?,
            Job::Counted => channels.counted(&mut world),
            job => fleet.take(&engine, &mut world, job)?,
        }
    }
    let mut report = Report {
        agents: fleet.agents,
        tasks: fleet.tasks(),
        messages: channels.messages,
        idle: fleet.idle / (options.workers.max(1) as f64 * end),
        bytes_per_step: bytes_per_step(&engine, &fleet.runs())?,
        ..Report::default()
    };
    [report.steps, report.claims, report.renewals] = world.counts.map(|count| count as f64 / end);
    report.busy = world.databases.iter().map(|it| it.busy(end)).fold(0.0, f64::max);
    report.waits = percentiles(&mut world.waits);
    Ok(report)
}

fn percentiles(waits: &mut [f32]) -> [f64; 3] {
    waits.sort_by(f32::total_cmp);
    [0.5, 0.99, 0.999].map(|share| {
        let place = (waits.len() as f64 * share) as usize;
        let wait = waits.get(place.min(waits.len().saturating_sub(1))).copied();
        f64::from(wait.unwrap_or_default()) * 1_000.0
    })
}

/// How much the journal grows with a step, in some of the runs.
fn bytes_per_step(engine: &Engine, runs: &[RunId]) -> Result<f64, EngineError> {
    let (mut bytes, mut steps) = (0, 0);
    for run in runs.iter().take(SAMPLE) {
        let filter = DecisionFilter { run: Some(run.clone()), ..DecisionFilter::default() };
        let events = engine.store().events(run, 0, usize::MAX)?;
        let decisions = engine.store().decisions(&filter)?;
        bytes += events.iter().map(|event| event.body.len()).sum::<usize>();
        bytes += decisions.iter().map(|decision| decision.body.len()).sum::<usize>();
        let stored = engine.store().run(run)?;
        steps += stored.map_or(0, |stored| stored.revision.0);
    }
    Ok(bytes as f64 / steps.max(1) as f64)
}

#[cfg(test)]
mod tests {
    //! A small fleet, and one that is too large for its database.

    use super::*;

    fn small() -> Options {
        Options {
            workers: 20,
            channels: 200,
            minutes: 10,
            agent: Duration::from_secs(60),
            message: Duration::from_secs(30),
            ..Options::default()
        }
    }

    #[test]
    fn a_small_fleet_works() {
        let report = simulate(&small()).unwrap();
        // Twenty workers for ten minutes: a minute for each developer, a third of that for reviews.
        assert!((150..=450).contains(&report.agents), "{report:?}");
        assert!(report.tasks > 20 && report.messages > 2_000, "{report:?}");
        assert!(report.busy < 0.1 && report.waits[1] < 20.0, "{report:?}");
        assert!(report.bytes_per_step > 100.0, "{report:?}");
        let again = simulate(&small()).unwrap();
        assert_eq!(format!("{report:?}"), format!("{again:?}"), "the same seed, the same fleet");
    }

    #[test]
    fn what_is_too_much_for_one_database_is_not_for_four() {
        let slow = Options { steps_per_second: 10.0, claims_per_second: 10.0, ..small() };
        let one = simulate(&slow).unwrap();
        let four = simulate(&Options { databases: 4, ..slow }).unwrap();
        assert!(one.busy > 0.95 && one.waits[1] > 1_000.0, "{one:?}");
        assert!(four.busy < one.busy && four.waits[1] < one.waits[1] / 2.0, "{four:?}");
    }
}
