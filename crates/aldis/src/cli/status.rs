//! `aldis status`: every run of the user, wherever it works.

use std::cmp::Reverse;
use std::io::Write as _;

use aldis_engine::{Engine, Snapshot};
use aldis_store::RunFilter;
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
use crate::view::paint::Paint;
use crate::view::run_view::RunView;
use crate::view::show;
use crate::view::wire::run_form;

/// How many ended runs are listed without being asked for.
const ENDED_SHOWN: usize = 5;
/// How much of a title is shown in a list.
const TITLE_MAX: usize = 48;
/// How much of a question is shown in a list.
const QUESTION_MAX: usize = 200;

/// Show the runs and how they are
///
/// Lists the active runs of all projects and the latest ended ones. With the id of a run, shows that
/// run. Exits with 1 if there is none.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show this run only
    run: Option<String>,

    /// List all ended runs, too
    #[arg(long, short)]
    all: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &StatusArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let now = clock::now()?;
    let runs = match &args.run {
        Some(wanted) => named(&engine, wanted)?,
        None => latest(&engine, if args.all { usize::MAX } else { ENDED_SHOWN })?,
    };
    if let (Some(wanted), true) = (&args.run, runs.is_empty()) {
        let wanted = display::line(wanted);
        writeln!(io.stderr, "there is no run `{wanted}`; `aldis status --all` lists the runs")?;
        return Ok(Outcome::No);
    }
    if args.run.is_none()
        && let Some(note) =
            adoption::explain(Some(engine.store()), &Place::of(&project::current()?, None), now)
    {
        writeln!(io.stderr, "note: {}", display::line(&note))?;
    }
    if !args.json {
        let directory = home::state_directory(io.state_dir.as_deref())?;
        for trouble in notify::troubles(engine.store(), &directory, now)? {
            writeln!(io.stderr, "note: {}; `aldis doctor` says more", display::line(&trouble))?;
        }
    }
    if runs.is_empty() {
        writeln!(io.stderr, "no runs; start one with `aldis auto start` or `aldis run`")?;
        return Ok(Outcome::No);
    }
    for run in &runs {
        if args.json {
            json::write_line(&mut io.stdout, &run_form(run, now))?;
        } else if args.run.is_some() {
            show::run(io, now, &RunView::new(run, now))?;
        } else {
            row(io, &RunView::new(run, now))?;
        }
    }
    Ok(Outcome::Yes)
}

/// The runs whose ids begin so: active ones first, then the latest.
fn named(engine: &Engine, wanted: &str) -> Result<Vec<Snapshot>, CommandError> {
    let mut found = engine.store().find(wanted, usize::MAX)?;
    found.sort_by_key(|run| (!run.active, Reverse(run.created)));
    let runs = found.iter().filter_map(|run| engine.snapshot(&run.id).transpose());
    Ok(runs.collect::<Result<_, _>>()?)
}

/// The active runs, and so many ended ones.
fn latest(engine: &Engine, limit: usize) -> Result<Vec<Snapshot>, CommandError> {
    let list = |active: bool| RunFilter { active: Some(active), ..RunFilter::default() };
    let mut runs = engine.snapshots(&list(true))?;
    runs.extend(engine.snapshots(&RunFilter { limit, ..list(false) })?);
    Ok(runs)
}

/// Shows a run in a list: how it is, where it works, and what to know where it needs somebody.
fn row(io: &mut Io, view: &RunView) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let out = &mut io.stdout;
    let mark = match (view.live, view.unsupervised) {
        (true, false) => "●",
        (true, true) => "◌",
        (false, _) => " ",
    };
    let title = display::excerpt(&view.title, TITLE_MAX);
    let (id, status) = (paint.strong(&view.id), show::status(paint, view));
    writeln!(out, "{mark} {id}  {title:<TITLE_MAX$}  {status}")?;
    writeln!(out, "    {}", paint.dim(display::line(show::project(&view.project))))?;
    for question in &view.questions {
        let text = display::one_line(&question.text, QUESTION_MAX);
        writeln!(out, "    question {}: {text}", question.id)?;
        if let Some(suggestion) = question.suggestion() {
            writeln!(out, "      {}", display::one_line(&suggestion, QUESTION_MAX))?;
        }
    }
    let refused = view.refused.as_ref().filter(|_| !view.live);
    for (label, text) in [("refused", refused), ("next", view.remedy.as_ref())] {
        if let Some(text) = text {
            writeln!(out, "    {label}: {}", display::line(text))?;
        }
    }
    Ok(())
}
