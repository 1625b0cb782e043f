//! How many durable steps a second the store takes from many writers at once, with a connection for
//! each writer and with one writer for all: `cargo bench -p aldis-testkit --bench store`.
//!
//! Where PostgreSQL is installed, the same on a server of its own, beside `pgbench` with the same
//! statement.
//!
//! Unlike the other benchmarks this measures wall time: waiting for the disk is what it is about.
//! Every step is what one message in a channel writes: the event, the state, a decision and a post.

#[expect(dead_code, reason = "the others measure processor time")]
mod measure;
#[cfg(target_os = "linux")]
#[path = "store/postgres.rs"]
mod postgres;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Committed, Driver, GroupStore, NewDecision, NewEffect, NewEvent, Revision, RunId,
    RunRecord, Source, SqliteStore, Step, Store,
};
use measure::Bars;

const WRITERS: usize = 64;
/// Writers that do not wait, and how many runs each of them has, at least and at most.
const HANDS: usize = 4;
const FEW: usize = 128;
const MANY: usize = 256;
const ROUNDS: usize = 5;
/// For how long each contender writes in a round.
const SPAN: Duration = Duration::from_secs(2);

/// What one contender did in one round.
struct Measured {
    per_second: f64,
    median: Duration,
    p99: Duration,
}

fn main() -> io::Result<()> {
    let mut apart = Vec::new();
    let mut grouped = Vec::new();
    let mut crowded = Vec::new();
    let mut handed = Vec::new();
    let mut heaped = Vec::new();
    #[cfg(target_os = "linux")]
    let mut shared = postgres::Rounds::start()?;
    for _ in 0..ROUNDS {
        apart.push(round(WRITERS, write, |place| own_connections(place, WRITERS))?);
        grouped.push(round(WRITERS, write, |place| one_writer(place, WRITERS))?);
        crowded.push(round(4 * WRITERS, write, |place| one_writer(place, 4 * WRITERS))?);
        handed.push(round(HANDS, hand_over::<FEW>, |place| one_writer(place, HANDS))?);
        heaped.push(round(HANDS, hand_over::<MANY>, |place| one_writer(place, HANDS))?);
        #[cfg(target_os = "linux")]
        shared.round()?;
    }
    let [apart, grouped, crowded, handed, heaped] =
        [apart, grouped, crowded, handed, heaped].map(middle);
    let mut out = io::stdout().lock();
    writeln!(out, "| | messages/s | median | p99 |\n|---|---|---|---|")?;
    for (name, measured) in [
        ("64 writers, a connection each", &apart),
        ("64 writers, one group writer", &grouped),
        ("256 writers, one group writer", &crowded),
        ("512 steps handed over by 4 writers, one group writer", &handed),
        ("1,024 steps handed over by 4 writers, one group writer", &heaped),
    ] {
        let Measured { per_second, median, p99 } = measured;
        writeln!(out, "| {name} | {per_second:.0} | {median:.1?} | {p99:.1?} |")?;
    }
    #[cfg(target_os = "linux")]
    shared.tell(&mut out)?;
    drop(out);
    let mut bars = Bars::default();
    let most = [&grouped, &crowded, &handed, &heaped].map(|measured| measured.per_second);
    let most = most.into_iter().fold(0.0, f64::max);
    let ratio = grouped.per_second / apart.per_second;
    bars.add("20,000 durable messages/s", format!("{most:.0}"), most >= 20_000.0);
    let (rate, p99) = (handed.per_second, handed.p99);
    bars.add(
        "20,000 of 512 under way, with a p99 within 50 ms",
        format!("{rate:.0}, {p99:.1?}"),
        rate >= 20_000.0 && p99 <= Duration::from_millis(50),
    );
    bars.add("5 times a connection for each writer", format!("{ratio:.1}"), ratio >= 5.0);
    let p99 = grouped.p99;
    bars.add(
        "p99 of 64 writers within 20 ms",
        format!("{p99:.1?}"),
        p99 <= Duration::from_millis(20),
    );
    #[cfg(target_os = "linux")]
    shared.judge(&mut bars);
    bars.report()
}

/// The stores that the writers of a round use.
type Stores = Vec<std::sync::Arc<dyn Store>>;

fn own_connections(place: &Path, writers: usize) -> io::Result<Stores> {
    let open = |_| -> io::Result<std::sync::Arc<dyn Store>> {
        Ok(std::sync::Arc::new(SqliteStore::open(place).map_err(io::Error::other)?))
    };
    (0..writers).map(open).collect()
}

fn one_writer(place: &Path, writers: usize) -> io::Result<Stores> {
    let store: std::sync::Arc<dyn Store> =
        std::sync::Arc::new(GroupStore::open(place).map_err(io::Error::other)?);
    Ok(vec![store; writers])
}

/// What a writer does until the time is over; returns how long each step took.
type Work = fn(&dyn Store, usize, &Barrier) -> io::Result<Vec<Duration>>;

fn round(
    writers: usize,
    work: Work,
    open: impl Fn(&Path) -> io::Result<Stores>,
) -> io::Result<Measured> {
    let directory = tempfile::tempdir()?;
    let stores = open(directory.path())?;
    let start = Barrier::new(writers);
    let mut waits: Vec<Duration> = Vec::new();
    thread::scope(|scope| -> io::Result<()> {
        let threads: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(number, store)| {
                let start = &start;
                scope.spawn(move || work(&**store, number, start))
            })
            .collect();
        for thread in threads {
            let written = thread.join().map_err(|_| io::Error::other("a writer failed"))?;
            waits.extend(written?);
        }
        Ok(())
    })?;
    waits.sort_unstable();
    let at = |share: f64| {
        let place = (waits.len() as f64 * share) as usize;
        waits.get(place.min(waits.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    let per_second = waits.len() as f64 / SPAN.as_secs_f64();
    Ok(Measured { per_second, median: at(0.5), p99: at(0.99) })
}

/// Writes steps of a run of its own, one after the other.
fn write(store: &dyn Store, number: usize, start: &Barrier) -> io::Result<Vec<Duration>> {
    let run = RunId::new(format!("channel-{number}")).map_err(io::Error::other)?;
    start.wait();
    let began = Instant::now();
    let mut waits = Vec::new();
    while began.elapsed() < SPAN {
        let step = message(&run, waits.len() as u64);
        let asked = Instant::now();
        store.commit(&step).map_err(io::Error::other)?;
        waits.push(asked.elapsed());
    }
    Ok(waits)
}

/// Writes steps of many runs, one of each under way at any time, without waiting for each: as the
/// server does.
fn hand_over<const RUNS: usize>(
    store: &dyn Store,
    number: usize,
    start: &Barrier,
) -> io::Result<Vec<Duration>> {
    let run = |place: usize| RunId::new(format!("channel-{number}-{place}"));
    let runs: Vec<RunId> =
        (0..RUNS).map(run).collect::<Result<_, _>>().map_err(io::Error::other)?;
    let (done, answers) = mpsc::channel();
    let submit = |place: usize, expected: u64| {
        let (done, asked) = (done.clone(), Instant::now());
        let step = Box::new(message(&runs[place], expected));
        let then = Box::new(move |_, result: Result<Committed, CommitError>| {
            let result = result.map(|committed| (place, committed.revision.0, asked.elapsed()));
            done.send(result).ok();
        });
        store.commit_then(step, then);
    };
    start.wait();
    let began = Instant::now();
    (0..RUNS).for_each(|place| submit(place, 0));
    let (mut waits, mut under_way) = (Vec::new(), RUNS);
    while under_way > 0 {
        let answer = answers.recv().map_err(io::Error::other)?;
        let (place, revision, took) = answer.map_err(io::Error::other)?;
        waits.push(took);
        if began.elapsed() < SPAN {
            submit(place, revision);
        } else {
            under_way -= 1;
        }
    }
    Ok(waits)
}

/// What one message in a channel writes.
fn message(run: &RunId, expected: u64) -> Step {
    let at = Timestamp::from_millis(1_772_445_600_000 + i64::try_from(expected).unwrap_or(0));
    let record = RunRecord {
        project: String::new(),
        session: None,
        machine: "turns".to_owned(),
        driver: Driver::Server,
        title: run.to_string(),
        active: true,
        state: "s".repeat(1_200),
    };
    let mut step = Step::new(run.clone(), Revision(expected), record, at);
    let source = format!("message-{expected}");
    let body = "e".repeat(300);
    step.events.push(NewEvent {
        kind: "said".to_owned(),
        body,
        source: Some(Source::new(source)),
        at,
    });
    step.decisions.push(NewDecision { body: "d".repeat(400), at });
    let key = format!("{run}/{expected}/0");
    step.effects.push(NewEffect {
        key,
        kind: "post".to_owned(),
        body: "p".repeat(250),
        due: at,
        lane: String::new(),
        requires: Vec::new(),
    });
    step
}

/// The round in the middle.
fn middle(mut rounds: Vec<Measured>) -> Measured {
    rounds.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    rounds.swap_remove(rounds.len() / 2)
}
