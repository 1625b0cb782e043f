//! `aldis report`: what happened in a run, for the morning after.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use aldis_engine::EngineError;
use clap::{Args, ValueHint};

use super::{Outcome, why};
use crate::app::report;
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::home;
use crate::view::report::outline;
use crate::view::timeline::svg;
use crate::view::{json, page};

/// Report what happened in a run
///
/// Tells what was asked and how it ended, the claims and what became of each, checks, questions, waits,
/// cost, agents and their tools, commits and files, and the decisions that matter. Secrets of known
/// shapes are left out. Prints Markdown unless another form is asked for.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis report
  aldis report 7f3kq2bn -o report.html
  aldis report --json")]
pub(super) struct ReportArgs {
    /// The run (default: the active run of this project, else its latest)
    run: Option<String>,

    /// Print one HTML file, with a picture of the timeline
    #[arg(long, group = "form")]
    html: bool,

    /// Print JSON
    #[arg(long, group = "form")]
    json: bool,

    /// Print only the picture of the timeline
    #[arg(long, group = "form")]
    svg: bool,

    /// Write to this file; the extensions .html, .md, .json and .svg choose the form
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(super) fn run(io: &mut Io, args: &ReportArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let run = match &args.run {
        Some(name) => Some(why::find(engine.store(), name)?),
        None => why::around(engine.store())?,
    };
    let Some(run) = run else {
        writeln!(io.stderr, "no run in this project; `aldis status --all` lists all runs")?;
        return Ok(Outcome::No);
    };
    let found = report::report(&engine, &state, &run, clock::now()?)?;
    let (form, timeline) = found.ok_or(EngineError::NoSuchRun(run))?;
    let mut text = Vec::new();
    let ending = args.output.as_ref().and_then(|path| path.extension()?.to_str());
    let ending = ending.filter(|_| !(args.html || args.json || args.svg));
    if args.html || matches!(ending, Some("html" | "htm")) {
        text.extend(page::html(&form.title, outline(&form, &timeline)).into_bytes());
    } else if args.json || matches!(ending, Some("json" | "jsonl")) {
        json::write_line(&mut text, &form)?;
    } else if args.svg || ending == Some("svg") {
        text.extend(format!("{}\n", svg(&timeline)).into_bytes());
    } else {
        text.extend(page::markdown(outline(&form, &timeline)).into_bytes());
    }
    match &args.output {
        Some(path) => fs::write(path, text).map_err(|error| CommandError::file(path, &error))?,
        None => io.stdout.write_all(&text)?,
    }
    Ok(Outcome::Yes)
}
