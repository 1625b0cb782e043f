//! `aldis tasks`: the tasks of a delivery.

use std::env;
use std::io::Write as _;

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
use crate::view::live::delivery::{row, tally};
use crate::view::paint::Paint;
use crate::view::wire::task::TaskLine;

/// List the tasks of a delivery
///
/// Shows where each one is, its round, who works on it and for how long, and the questions that wait
/// for an answer. Exits with 1 if there is no delivery.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis tasks
  aldis tasks 7f3kq2bn --json
  aldis why csv-writer")]
pub(super) struct TasksArgs {
    /// The delivery; by default the latest of this project
    run: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &TasksArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let found = match &args.run {
        Some(name) => Some(why::find(engine.store(), name)?),
        None => latest(engine.store(), &here()?)?,
    };
    let Some(id) = found else {
        writeln!(io.stderr, "no delivery here; start one with `aldis deliver PLAN`")?;
        return Ok(Outcome::No);
    };
    let state = engine.open::<State>(&id)?.into_state();
    let now = clock::now()?;
    if args.json {
        for task in state.tasks() {
            json::write_line(&mut io.stdout, &TaskLine::new(&id, &state, task))?;
        }
        return Ok(Outcome::Yes);
    }
    let paint = Paint { on: io.color_stdout };
    let title = display::line(&state.run().title);
    writeln!(io.stdout, "{}  {}   {}", paint.strong(&id), paint.strong(title), tally(&state))?;
    for task in state.tasks() {
        let agent = task.agent().and_then(|agent| state.agent(agent));
        writeln!(io.stdout, "  {}", row(paint, now, task, agent))?;
    }
    for (id, question) in &state.run().questions {
        let text = display::line(&question.text);
        writeln!(io.stdout, "  {} {text}\n    aldis answer {id} TEXT", paint.warn("?"))?;
    }
    Ok(Outcome::Yes)
}

/// The place around the current directory.
pub(super) fn here() -> Result<Place, CommandError> {
    let directory = env::current_dir()
        .map_err(|error| CommandError::new(format!("the current directory: {error}")))?;
    Ok(Place::of(&directory, None))
}

/// The latest delivery around a place.
pub(super) fn latest(store: &dyn Store, place: &Place) -> Result<Option<RunId>, CommandError> {
    let projects = place.around().map(project::name).collect();
    let machine = Some(State::NAME.to_owned());
    let filter = RunFilter { projects, machine, limit: 1, ..RunFilter::default() };
    Ok(store.list(&filter)?.into_iter().next().map(|run| run.id))
}
