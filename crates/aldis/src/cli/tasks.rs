//! `aldis tasks`: the tasks of a delivery.

use std::io::Write as _;

use aldis_engine::EngineError;
use aldis_machine::Machine as _;
use aldis_machine::delivery::State;
use aldis_store::{RunFilter, RunId, Store};
use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::project::{self, Place};
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::run_view::RunView;
use crate::view::show;

/// List the tasks of a delivery
///
/// Shows the state and round of each task, who works on it and for how long, and the open questions. Exits with 1 if there is no delivery.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis tasks
  aldis tasks 7f3kq2bn --json
  aldis why csv-writer")]
pub(super) struct TasksArgs {
    /// The delivery (default: the latest of this project)
    run: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &TasksArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let found = match &args.run {
        Some(name) => Some(why::find(engine.store(), name)?),
        None => latest(engine.store(), &here()?, State::NAME)?,
    };
    let Some(id) = found else {
        writeln!(io.stderr, "no delivery here; start one with `aldis deliver PLAN`")?;
        return Ok(Outcome::No);
    };
    let snapshot = engine.snapshot(&id)?.ok_or(EngineError::NoSuchRun(id))?;
    let now = clock::now()?;
    let view = RunView::new(&snapshot, now);
    if view.tasks.is_empty() {
        writeln!(io.stderr, "run {} has no tasks: it is not a delivery", view.id)?;
        return Ok(Outcome::No);
    }
    if args.json {
        for task in &view.tasks {
            json::write_line(&mut io.stdout, task)?;
        }
        return Ok(Outcome::Yes);
    }
    let (paint, out) = (Paint { on: io.color_stdout }, &mut io.stdout);
    let (title, status) = (display::line(&view.title), show::status(paint, &view));
    writeln!(out, "{}   {status}   {}", paint.strong(title), paint.dim(&view.id))?;
    for row in show::task_rows(paint, now, &view.tasks, &show::LastTools::new(), |_| true) {
        writeln!(out, "  {row}")?;
    }
    for question in &view.questions {
        let (id, text) = (&question.id, display::one_line(&question.text, usize::MAX));
        writeln!(out, "  {} {text}\n    aldis answer {id} TEXT", paint.warn("?"))?;
    }
    if let Some(remedy) = view.remedy.filter(|_| view.questions.is_empty()) {
        writeln!(out, "  next: {}", display::line(&remedy))?;
    }
    Ok(Outcome::Yes)
}

/// The place around the current directory.
pub(super) fn here() -> Result<Place, CommandError> {
    Ok(Place::of(&project::current()?, None))
}

/// The latest run of a machine around a place.
pub(super) fn latest(
    store: &dyn Store,
    place: &Place,
    machine: &str,
) -> Result<Option<RunId>, CommandError> {
    let projects = place.around().map(project::name).collect();
    let machine = Some(machine.to_owned());
    let filter = RunFilter { projects, machine, limit: 1, ..RunFilter::default() };
    Ok(store.list(&filter)?.into_iter().next().map(|run| run.id))
}
