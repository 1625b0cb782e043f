//! Simulates a machine with its store, and stops at the first violated invariant.
//!
//! `aldis-sim --events 20000000 --seed 1 [--machine phases|run|delivery|turns]
//! [--store memory|driver|sqlite] [--faults all|none] [--worlds N] [--jobs N]`

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use aldis_testkit::sim::{Backend, Options, Report, Subject, run};

/// How often progress is shown, in events.
const SHOWN_EVERY: u64 = 1_000_000;
const USAGE: &str = "usage: aldis-sim [--events N] [--seed N] [--worlds N] [--jobs N] \
                     [--machine phases|run|delivery|turns] [--store memory|driver|sqlite] \
                     [--faults all|none]";

struct Args {
    options: Options,
    machine: String,
    store: String,
    faults: String,
    /// Keeps the database's directory until the end.
    _directory: Option<tempfile::TempDir>,
}

fn parse() -> Result<Args, Box<dyn Error>> {
    let (mut seed, mut events, mut worlds, mut jobs) = (1, 1_000_000, None, 1);
    let mut machine = "phases".to_owned();
    let (mut store, mut faults) = ("memory".to_owned(), "all".to_owned());
    let mut args = env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        match &*name {
            "--events" => events = value.parse()?,
            "--seed" => seed = value.parse()?,
            "--worlds" => worlds = Some(value.parse()?),
            "--jobs" => jobs = value.parse()?,
            "--store" => store = value,
            "--faults" => faults = value,
            "--machine" => machine = value,
            _ => return Err(USAGE.into()),
        }
    }
    let mut options = Options::new(seed, events);
    options.worlds = worlds.unwrap_or(options.worlds);
    options.jobs = jobs;
    options.subject = match &*machine {
        "phases" => Subject::Phases(None),
        "run" => Subject::Run(None),
        "delivery" => Subject::Delivery(None),
        "turns" => Subject::Turns(None),
        _ => return Err(USAGE.into()),
    };
    options.faults = match &*faults {
        "all" => true,
        "none" => false,
        _ => return Err(USAGE.into()),
    };
    let mut directory = None;
    options.backend = match &*store {
        "memory" => Backend::Mixed,
        "driver" => Backend::Memory,
        "sqlite" => {
            let created = tempfile::tempdir()?;
            let path = created.path().join("state");
            directory = Some(created);
            Backend::Sqlite(path)
        }
        _ => return Err(USAGE.into()),
    };
    Ok(Args { options, machine, store, faults, _directory: directory })
}

fn simulate() -> Result<bool, Box<dyn Error>> {
    let args = parse()?;
    let began = Instant::now();
    let progress = |report: &Report| {
        let (before, events) = (report.tally.events.saturating_sub(1), report.tally.events);
        // Worlds are longer than one event: a round number lies within the last one or does not.
        if events / SHOWN_EVERY != before.saturating_sub(600) / SHOWN_EVERY {
            let seconds = began.elapsed().as_secs_f64();
            let rate = events as f64 / seconds;
            writeln!(io::stderr(), "{events} events, {rate:.0} a second").ok();
        }
    };
    let report = run(&args.options, &progress);
    let seconds = began.elapsed().as_secs_f64();
    show(&args, &report, seconds)?;
    Ok(report.violation.is_none())
}

fn show(args: &Args, report: &Report, seconds: f64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let Report { worlds, tally, hash, violation } = report;
    let last = args.options.seed.wrapping_add(*worlds).wrapping_sub(1);
    let years = tally.millis as f64 / (365.25 * 86_400_000.0);
    writeln!(out, "seeds       {} to {last}, {worlds} worlds", args.options.seed)?;
    writeln!(out, "machine     {}", args.machine)?;
    writeln!(out, "store       {}, faults {}", args.store, args.faults)?;
    writeln!(out, "events      {}, {} steps committed", tally.events, tally.steps)?;
    writeln!(out, "runs        {}, {} ends, {} complete", tally.runs, tally.ends, tally.successes)?;
    writeln!(out, "refusals    {}", tally.refusals)?;
    writeln!(out, "faults      {}", tally.faults)?;
    writeln!(
        out,
        "sampled     {} states written and read, {} prompts scanned, {} runs replayed",
        tally.written, tally.scanned, tally.replayed
    )?;
    writeln!(out, "time        {years:.1} simulated years in {seconds:.1} s")?;
    writeln!(out, "rate        {:.0} events a second", tally.events as f64 / seconds)?;
    writeln!(out, "trace hash  {hash:016x}")?;
    let Some(violation) = violation else { return writeln!(out, "no invariant was violated") };
    let seed = violation.seed;
    writeln!(out, "\nviolated    {}", violation.broken.invariant)?;
    writeln!(out, "because     {}", violation.broken.detail)?;
    writeln!(
        out,
        "repeat      cargo run --release -p aldis-testkit --bin aldis-sim -- --seed {seed} \
         --worlds 1 --machine {} --store {} --faults {}",
        args.machine, args.store, args.faults
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
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::from(2)
        }
    }
}
