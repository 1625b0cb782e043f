//! Delivers a plan by real workers, servers and a real database while all of them are killed, frozen and
//! cut off, and then checks the journal.
//!
//! An example, and not a command of the program, so that users neither build nor install it.
//! Exit codes: 0 everything held, 1 something did not, 2 it could not run.

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use aldis_testkit::chaos::{ChaosOptions, run};

const USAGE: &str =
    "usage: chaos [--aldis PATH] [--seconds N] [--tasks N] [--workers N] [--seed N]";

fn parse() -> Result<ChaosOptions, Box<dyn Error>> {
    let beside = env::current_exe()?.with_file_name("../aldis");
    let mut options = ChaosOptions {
        aldis: beside,
        last: Duration::from_secs(120),
        tasks: 50,
        workers: 4,
        seed: 1,
    };
    let mut args = env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        match &*name {
            "--aldis" => options.aldis = PathBuf::from(value),
            "--seconds" => options.last = Duration::from_secs(value.parse()?),
            "--tasks" => options.tasks = value.parse()?,
            "--workers" => options.workers = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let result = parse().and_then(|options| Ok(run(&options, &mut io::stderr())?));
    let mut out = io::stdout();
    let (text, code) = match result {
        Ok(report) => {
            let code = if report.violations.is_empty() { 0 } else { 1 };
            (report.to_string(), code)
        }
        Err(error) => (format!("error: {error}"), 2),
    };
    // Nobody is left to tell when this fails.
    let _written = writeln!(out, "{text}");
    ExitCode::from(code)
}
