//! What deliveries cost without their agents: 10,000 tasks driven through the machine and the store by
//! scripted signals: `cargo bench -p aldis-testkit --bench delivery`.
//!
//! Two questions. Does a task cost more where there are more of them? One delivery each, in processor
//! time. And how many durable signals a second do many deliveries get through at once, with a
//! connection for each coordinator and with one writer for all? In wall time: waiting for the disk is
//! what it is about.

#[expect(dead_code, reason = "the others measure throughput")]
mod measure;

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use aldis_engine::{Engine, Handle, NewRun};
use aldis_machine::delivery::{
    AgentReply, Config, Dispatch, Effect, Ending, Event, Plan, Start, State, TaskSpec,
};
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Rules, Token};
use aldis_store::{Driver, GroupStore, SqliteStore, Store};
use aldis_testkit::scale::reply;
use measure::{Bars, timed};

const ROUNDS: usize = 3;
const FEW: usize = 1_000;
const MANY: usize = 10_000;
/// Deliveries at once, and the tasks of each.
const DELIVERIES: usize = 50;
const TASKS: usize = MANY / DELIVERIES;

fn main() -> io::Result<()> {
    let (mut few, mut many, mut apart, mut grouped) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        few.push(cost_per_task(FEW)?);
        many.push(cost_per_task(MANY)?);
        apart.push(round(own_connections)?);
        grouped.push(round(one_writer)?);
    }
    let (few, many) = (middle(few), middle(many));
    let [apart, grouped] = [apart, grouped].map(|mut rounds| {
        rounds.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
        rounds.swap_remove(ROUNDS / 2)
    });
    let mut out = io::stdout().lock();
    writeln!(out, "| tasks in one delivery | processor time per task |\n|---|---|")?;
    writeln!(out, "| {FEW} | {few:.1?} |\n| {MANY} | {many:.1?} |\n")?;
    writeln!(out, "| {DELIVERIES} deliveries of {TASKS} tasks | signals/s | p99 |\n|---|---|---|")?;
    for (name, measured) in [("a connection each", &apart), ("one group writer", &grouped)] {
        writeln!(out, "| {name} | {:.0} | {:.1?} |", measured.per_second, measured.p99)?;
    }
    drop(out);
    let mut bars = Bars::default();
    let growth = many.as_secs_f64() / few.as_secs_f64();
    let faster = grouped.per_second / apart.per_second;
    bars.add("10,000 tasks cost 1.3 times 1,000 each", format!("{growth:.2}"), growth <= 1.3);
    bars.add("5 times a connection for each coordinator", format!("{faster:.1}"), faster >= 5.0);
    bars.report()
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// What the machine and the store spend on one task of a delivery with so many.
fn cost_per_task(tasks: usize) -> io::Result<Duration> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(directory.path()).map_err(io::Error::other)?);
    let mut delivered = Ok(Vec::new());
    let spent = timed(|| delivered = deliver(store, tasks))?;
    delivered?;
    Ok(spent / u32::try_from(tasks).unwrap_or(u32::MAX))
}

/// What one contender did in one round.
struct Measured {
    per_second: f64,
    p99: Duration,
}

type Stores = Vec<Arc<dyn Store>>;

fn own_connections(place: &std::path::Path) -> io::Result<Stores> {
    let open = |_| -> io::Result<Arc<dyn Store>> {
        Ok(Arc::new(SqliteStore::open(place).map_err(io::Error::other)?))
    };
    (0..DELIVERIES).map(open).collect()
}

fn one_writer(place: &std::path::Path) -> io::Result<Stores> {
    let store: Arc<dyn Store> = Arc::new(GroupStore::open(place).map_err(io::Error::other)?);
    Ok(vec![store; DELIVERIES])
}

fn round(open: fn(&std::path::Path) -> io::Result<Stores>) -> io::Result<Measured> {
    let directory = tempfile::tempdir()?;
    let stores = open(directory.path())?;
    let start = Barrier::new(DELIVERIES);
    let began = Instant::now();
    let mut waits: Vec<Duration> = thread::scope(|scope| -> io::Result<Vec<Duration>> {
        let threads: Vec<_> = stores
            .iter()
            .map(|store| {
                scope.spawn(|| {
                    start.wait();
                    deliver(Arc::clone(store), TASKS)
                })
            })
            .collect();
        let mut waits = Vec::new();
        for thread in threads {
            let done = thread.join().map_err(|_| io::Error::other("a coordinator failed"))?;
            waits.extend(done?);
        }
        Ok(waits)
    })?;
    let per_second = waits.len() as f64 / began.elapsed().as_secs_f64();
    waits.sort_unstable();
    let p99 = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
    Ok(Measured { per_second, p99 })
}

/// Delivers a plan with agents that answer at once. Returns how long each signal took to be durable.
fn deliver(store: Arc<dyn Store>, tasks: usize) -> io::Result<Vec<Duration>> {
    let rules = Rules::new(Dialect::builtin("delivery").cloned());
    let now = Timestamp::from_millis(1_772_445_600_000);
    let start = Start { plan: plan(tasks), config: Config::default(), token: None };
    let (engine, new) = (Engine::new(store), NewRun::of("bench", Driver::Process));
    let (mut run, _): (Handle<State>, _) =
        engine.begin(now, &new, start).map_err(io::Error::other)?;
    let mut at_work: VecDeque<Dispatch> = VecDeque::new();
    let mut waits = Vec::with_capacity(3 * tasks);
    let mut event = Event::Begin;
    loop {
        let asked = Instant::now();
        let outcome = run.advance(&engine, now, event).map_err(io::Error::other)?.outcome;
        waits.push(asked.elapsed());
        at_work.extend(outcome.effects.into_iter().filter_map(|effect| match effect {
            Effect::Dispatch(dispatch) => Some(dispatch),
            _ => None,
        }));
        let Some(dispatch) = at_work.pop_front() else { break };
        let reply = AgentReply::read(&rules, &Token::Off, &reply(&dispatch));
        event = Event::Finished { agent: dispatch.agent, exit: None, reply };
    }
    match run.state().ending() {
        Some(Ending::Complete) => Ok(waits),
        other => Err(io::Error::other(format!("the delivery did not complete: {other:?}"))),
    }
}

/// Every task but the first few needs one before it.
fn plan(tasks: usize) -> Plan {
    let task = |no: usize| TaskSpec {
        id: format!("t{no}"),
        title: format!("Task {no}"),
        acceptance: vec!["it works".to_owned()],
        needs: no.checked_sub(20).map(|before| format!("t{before}")).into_iter().collect(),
        ..TaskSpec::default()
    };
    Plan { title: "Many".to_owned(), tasks: (0..tasks).map(task).collect() }
}
