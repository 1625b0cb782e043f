//! `aldis status`: every run of the user, wherever it works.

use std::cmp::Reverse;
use std::io::Write as _;

use aldis_store::{Run, RunFilter, Store};
use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use crate::hosts::hook::adoption;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::view::display;
use crate::view::json;
use crate::view::known::Known;
use crate::view::paint::Paint;
use crate::view::show;

/// How many ended runs are listed without being asked for.
const ENDED_SHOWN: usize = 5;
/// How much of a title is shown in a list.
const TITLE_MAX: usize = 48;

/// Show what is going on
///
/// Lists the active runs of all projects and the latest that ended. With a run's name, shows that one.
/// Exits with 1 if there is none.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show this run only
    run: Option<String>,

    /// List all runs that ended, too
    #[arg(long, short)]
    all: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &StatusArgs) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let now = clock::now()?;
    let runs = match &args.run {
        Some(wanted) => named(&store, wanted)?,
        None => latest(&store, if args.all { usize::MAX } else { ENDED_SHOWN })?,
    };
    if let (Some(wanted), true) = (&args.run, runs.is_empty()) {
        let wanted = display::line(wanted);
        writeln!(io.stderr, "there is no run `{wanted}`; `aldis status --all` lists the runs")?;
        return Ok(Outcome::No);
    }
    if args.run.is_none()
        && let Some(note) =
            adoption::explain(Some(&store), &Place::of(&project::current()?, None), now)
    {
        writeln!(io.stderr, "note: {}", display::line(&note))?;
    }
    if !args.json {
        let directory = home::state_directory(io.state_dir.as_deref())?;
        for trouble in notify::troubles(&store, &directory, now)? {
            writeln!(io.stderr, "note: {}; `aldis doctor` says more", display::line(&trouble))?;
        }
    }
    if runs.is_empty() {
        writeln!(io.stderr, "no runs; start one with `aldis auto start` or `aldis run`")?;
        return Ok(Outcome::No);
    }
    let single = args.run.is_some();
    for run in runs {
        let id = run.id.clone();
        match Known::of(&store, run) {
            Ok(known) if args.json => json::write_line(&mut io.stdout, &known.form())?,
            Ok(known) if single => known.show(io, now)?,
            Ok(known) => row(io, &known)?,
            Err(error) => writeln!(io.stderr, "{id}: {error}")?,
        }
    }
    Ok(Outcome::Yes)
}

/// The runs whose names begin so: those that go on first, then the latest.
fn named(store: &dyn Store, wanted: &str) -> Result<Vec<Run>, CommandError> {
    let mut found = store.find(wanted, usize::MAX)?;
    found.sort_by_key(|run| (!run.active, Reverse(run.created)));
    let runs = found.iter().filter_map(|run| store.run(&run.id).transpose());
    Ok(runs.collect::<Result<_, _>>()?)
}

/// The runs that go on, and so many that ended.
fn latest(store: &dyn Store, limit: usize) -> Result<Vec<Run>, CommandError> {
    let list = |active: bool| RunFilter { active: Some(active), ..RunFilter::default() };
    let mut runs = store.loaded(&list(true))?;
    runs.extend(store.loaded(&RunFilter { limit, ..list(false) })?);
    Ok(runs.into_iter().map(|loaded| loaded.run).collect())
}

fn row(io: &mut Io, known: &Known) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let mark = if known.is_live() { "●" } else { " " };
    let run = known.run();
    let Run { id, record, .. } = run;
    let title = display::excerpt(&record.title, TITLE_MAX);
    let standing = known.standing(paint);
    writeln!(io.stdout, "{mark} {}  {title:<TITLE_MAX$}  {standing}", paint.strong(id))?;
    writeln!(io.stdout, "    {}", paint.dim(show::project(run)))?;
    Ok(())
}
