//! `aldis why`: what was decided, by which rule, on what evidence, and what to do.

use std::cmp::Reverse;
use std::env;
use std::io::Write as _;

use aldis_engine::Handle;
use aldis_machine::{Machine as _, delivery, phases, run};
use aldis_store::{DecisionFilter, RunFilter, RunId, RunSummary, Store};
use clap::Args;

use super::{Outcome, tasks};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::receipts;
use crate::settings::clock;
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::view::display;
use crate::view::json;
use crate::view::run_view::RunView;
use crate::view::show;
use crate::view::wire::run::DecisionForm;

/// How many runs of a project are looked at for the one that is meant.
const RUNS_MAX: usize = 100;

/// How far back a decision that matters is looked for.
const LOOK_BACK: usize = 1_000;

/// Explain why an agent was stopped or kept working
///
/// Without a run, explains the last decision about the current project, or about any project if it has
/// none; then the project is named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis why
  aldis why --last --json
  aldis why 7f3kq2bn --all
  aldis why csv-writer")]
pub(super) struct WhyArgs {
    /// A run, or a task of this project's latest delivery (shows its whole history)
    #[arg(conflicts_with = "last", value_name = "RUN|TASK")]
    run: Option<String>,

    /// Explain the last decision about any project
    #[arg(long)]
    last: bool,

    /// Show all decisions about the run, oldest first
    #[arg(long, short)]
    all: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &WhyArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let (store, now) = (engine.store(), clock::now()?);
    let state = home::state_directory(io.state_dir.as_deref())?;
    let (run, task) = meant(store, args)?;
    let several = run.is_none();
    if several && !args.last {
        let all = "`aldis status` lists the runs of all projects";
        writeln!(io.stderr, "note: this project has no run; this is about another one; {all}")?;
    }
    let limit = if task.is_some() { usize::MAX } else { LOOK_BACK };
    let filter = DecisionFilter { run, limit, ..DecisionFilter::default() };
    let mut forms: Vec<DecisionForm> =
        store.decisions(&filter)?.iter().filter_map(DecisionForm::new).collect();
    if let Some(task) = &task {
        forms.retain(|form| form.task.as_ref() == Some(task));
    }
    if args.all || task.is_some() {
        forms.reverse();
    } else {
        // What was only recorded explains nothing, unless there is nothing else.
        let telling = forms.iter().position(|form| !is_record(form)).unwrap_or(0);
        forms = forms.into_iter().skip(telling).take(1).collect();
    }
    if forms.is_empty() {
        writeln!(io.stderr, "nothing was decided yet")?;
        return Ok(Outcome::No);
    }
    for (left, form) in (0..forms.len()).rev().zip(&forms) {
        if args.json {
            json::write_line(&mut io.stdout, form)?;
            continue;
        }
        // How a run is now stands once below its history.
        let named = task.is_none() && (several || left == 0);
        let id = RunId::new(&*form.run).ok().filter(|_| named);
        let run = id.as_ref().map(|id| engine.snapshot(id)).transpose()?.flatten();
        let view = run.map(|run| RunView::new(&run, now));
        show::decision(io, now, form, view.as_ref())?;
        if let Some(view) = view.as_ref().filter(|_| several) {
            writeln!(
                io.stdout,
                "  {:<9} {}",
                "project",
                display::line(show::project(&view.project))
            )?;
        }
        if let Some(id) = id.filter(|id| receipts::count(&state, id) > 0) {
            writeln!(io.stdout, "  {:<9} aldis proof show {id}", "receipt")?;
        }
    }
    Ok(Outcome::Yes)
}

/// Whether a decision changes nothing that an agent would notice.
fn is_record(form: &DecisionForm) -> bool {
    let phases = phases::Rule::of_stored(&form.rule, &form.summary);
    let run = run::Rule::ALL.iter().find(|rule| rule.as_str() == form.rule);
    form.rule == "run/listen"
        || phases.is_some_and(phases::Rule::is_record)
        || run.is_some_and(|rule| rule.is_record())
}

/// The run that is meant, or the task of a delivery.
fn meant(
    store: &dyn Store,
    args: &WhyArgs,
) -> Result<(Option<RunId>, Option<String>), CommandError> {
    let Some(name) = &args.run else {
        return Ok((if args.last { None } else { around(store)? }, None));
    };
    let found = find(store, name);
    if found.is_err()
        && let Some(id) = tasks::latest(store, &tasks::here()?, delivery::State::NAME)?
        && let Some(loaded) = store.load(&id)?
        && Handle::<delivery::State>::from_stored(loaded)?.state().task(name).is_some()
    {
        return Ok((Some(id), Some(name.clone())));
    }
    Ok((Some(found?), None))
}

/// The run around the current directory that is meant: of the nearest project that has any, one that
/// goes on before one that ended, the latest before earlier ones.
pub(super) fn around(store: &dyn Store) -> Result<Option<RunId>, CommandError> {
    let projects = projects_around();
    let filter = RunFilter { projects: projects.clone(), limit: RUNS_MAX, ..RunFilter::default() };
    let far = |run: &RunSummary| projects.iter().position(|name| *name == run.project);
    let runs = store.list(&filter)?.into_iter();
    let meant = runs.min_by_key(|run| (far(run), !run.active, Reverse(run.updated)));
    Ok(meant.map(|run| run.id))
}

/// The projects around the current directory, the nearest first.
pub(super) fn projects_around() -> Vec<String> {
    let Ok(directory) = env::current_dir() else { return Vec::new() };
    Place::of(&directory, None).around().map(project::name).collect()
}

/// The run of this name, or the only one whose name begins so.
pub(super) fn find(store: &dyn Store, name: &str) -> Result<RunId, CommandError> {
    let mut found = store.find(name, 2)?.into_iter().map(|run| run.id);
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (Some(id), Some(_)) if id.as_str() == name => Ok(id),
        (Some(_), Some(_)) => Err(CommandError::new(format!("several runs start with `{name}`"))
            .with_help("write more of the id; `aldis status --all` lists the runs")),
        (None, _) => Err(CommandError::new(format!("there is no run `{name}`"))
            .with_help("`aldis status --all` lists the runs")),
    }
}
