//! Simulates a machine with its engine, store and coordinator, and stops at the first violation.
//!
//! Exit codes: 0 everything held, 1 something did not, 2 it could not run.

use std::env;
use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use aldis_testkit::sim::{Backend, Machine, SimOptions, SimReport, run};

/// How often progress is shown, in events.
const SHOWN_EVERY: u64 = 100_000;
const USAGE: &str = "usage: aldis-sim [--events N] [--seed N] [--jobs N] \
                     [--machine phases|run|delivery|fleet|turns] [--store memory|sqlite] \
                     [--faults all|none]";

struct Args {
    options: SimOptions,
    /// The machine, the store and the faults, as they were asked for.
    words: [String; 3],
    /// Keeps the databases until the end.
    _directory: Option<tempfile::TempDir>,
}

fn parse() -> Result<Args, Box<dyn Error>> {
    let (mut seed, mut events, mut jobs) = (1, 1_000_000, 1);
    let [mut machine, mut store, mut faults] = ["run", "memory", "all"].map(str::to_owned);
    let mut args = env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        match &*name {
            "--events" => events = value.parse()?,
            "--seed" => seed = value.parse()?,
            "--jobs" => jobs = value.parse()?,
            "--store" => store = value,
            "--faults" => faults = value,
            "--machine" => machine = value,
            _ => return Err(USAGE.into()),
        }
    }
    let subject = match &*machine {
        "delivery" => Machine::Delivery,
        "fleet" => Machine::Fleet,
        "phases" => Machine::Phases,
        "run" => Machine::Run,
        "turns" => Machine::Turns,
        _ => return Err(USAGE.into()),
    };
    let mut options = SimOptions::new(subject, seed, events);
    options.jobs = jobs;
    options.faults = match &*faults {
        "all" => true,
        "none" => false,
        _ => return Err(USAGE.into()),
    };
    let mut directory = None;
    options.backend = match &*store {
        "memory" => Backend::Memory,
        "sqlite" => {
            let created = tempfile::tempdir()?;
            let path = created.path().join("state");
            directory = Some(created);
            Backend::Sqlite(path)
        }
        _ => return Err(USAGE.into()),
    };
    Ok(Args { options, words: [machine, store, faults], _directory: directory })
}

fn simulate() -> Result<bool, Box<dyn Error>> {
    let args = parse()?;
    let (began, terminal) = (Instant::now(), io::stderr().is_terminal());
    let progress = |report: &SimReport| {
        let events = report.tally.events;
        if terminal && events % SHOWN_EVERY < 500 {
            let rate = events as f64 / began.elapsed().as_secs_f64();
            let _shown = write!(io::stderr(), "\r{events} events, {rate:.0} a second ");
        }
    };
    let report = run(&args.options, &progress);
    if terminal {
        writeln!(io::stderr())?;
    }
    show(&args, &report, began.elapsed().as_secs_f64())?;
    Ok(report.violation.is_none())
}

fn show(args: &Args, report: &SimReport, seconds: f64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let SimReport { worlds, tally, hash, violation } = report;
    let [machine, store, faults] = &args.words;
    let last = args.options.seed.wrapping_add(*worlds).wrapping_sub(1);
    writeln!(out, "machine     {machine}, store {store}, faults {faults}")?;
    writeln!(out, "seeds       {} to {last}, {worlds} worlds", args.options.seed)?;
    writeln!(out, "events      {}, {} steps committed", tally.events, tally.steps)?;
    writeln!(out, "runs        {}, {} ends, {} replayed", tally.runs, tally.ends, tally.replayed)?;
    writeln!(out, "faults      {}", tally.faults)?;
    writeln!(out, "rate        {:.0} events a second", tally.events as f64 / seconds)?;
    writeln!(out, "trace hash  {hash:016x}")?;
    let Some(violation) = violation else { return writeln!(out, "no invariant was violated") };
    let seed = violation.seed;
    writeln!(out, "\nviolated    {}", violation.broken.invariant)?;
    writeln!(out, "because     {}", violation.broken.detail)?;
    writeln!(
        out,
        "repeat      cargo run --release -p aldis-testkit --bin aldis-sim -- --seed {seed} \
         --events 1 --machine {machine} --store {store} --faults {faults}"
    )?;
    writeln!(out, "the last {} events:", violation.trace.len())?;
    violation.trace.iter().try_for_each(|line| writeln!(out, "  {line}"))
}

fn main() -> ExitCode {
    match simulate() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Nothing is left to do if this fails too.
            let _told = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}
