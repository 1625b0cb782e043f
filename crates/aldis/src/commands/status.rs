//! `aldis status`: every run of the user, wherever it works.

use std::io::Write as _;

use aldis_core::machine::phases::State;
use aldis_store::{Run, RunFilter, Store as _};
use clap::Args;

use super::Outcome;
use crate::driver::{self, Loaded};
use crate::error::CommandError;
use crate::io::Io;
use crate::paint::Paint;
use crate::wire::run::run_form;
use crate::{clock, display, home, json, machines, show};

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

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &StatusArgs) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let now = clock::now()?;
    let list = |active: bool| RunFilter { active: Some(active), ..RunFilter::default() };
    let mut runs = store.runs(&list(true))?;
    let limit = if args.all || args.run.is_some() { usize::MAX } else { ENDED_SHOWN };
    runs.extend(store.runs(&RunFilter { limit, ..list(false) })?);
    if let Some(wanted) = &args.run {
        runs.retain(|run| run.id.as_str().starts_with(&**wanted));
    }
    if runs.is_empty() {
        writeln!(io.stderr, "no runs; start one with `aldis auto start TASK`")?;
        return Ok(Outcome::No);
    }
    let single = args.run.is_some();
    for run in runs {
        let id = run.id.clone();
        if run.record.machine != driver::PHASES {
            other(io, &run, args.json)?;
            continue;
        }
        match driver::load(run) {
            Ok(Loaded { run, state }) if args.json => {
                json::write_line(&mut io.stdout, &run_form(&run, &state))?;
            }
            Ok(Loaded { run, state }) if single => show::run(io, now, &run, &state)?,
            Ok(Loaded { run, state }) => row(io, &run, &state)?,
            Err(error) => writeln!(io.stderr, "{id}: {error}")?,
        }
    }
    Ok(Outcome::Yes)
}

/// A run of another machine than phases.
fn other(io: &mut Io, run: &Run, as_json: bool) -> Result<(), CommandError> {
    let form = machines::shown(run);
    if as_json {
        return Ok(json::write_line(&mut io.stdout, &form)?);
    }
    let paint = Paint { on: io.color_stdout };
    let mark = if run.record.active { "●" } else { " " };
    let title = display::excerpt(&run.record.title, TITLE_MAX);
    let text = |name: &str| form.get(name).and_then(|value| value.as_str());
    let standing = match (text("floor"), text("active_agent")) {
        (Some(floor), Some(agent)) => format!("floor {floor}: {agent}"),
        (Some(floor), None) => format!("floor {floor}"),
        (None, _) => if run.record.active { "active" } else { "ended" }.to_owned(),
    };
    let standing = display::line(&standing);
    writeln!(io.stdout, "{mark} {}  {title:<TITLE_MAX$}  {standing}", paint.strong(&run.id))?;
    writeln!(io.stdout, "    {}", paint.dim(display::line(&run.record.machine)))?;
    Ok(())
}

fn row(io: &mut Io, run: &Run, state: &State) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let mark = if state.is_live() { "●" } else { " " };
    let title = display::excerpt(&state.task, TITLE_MAX);
    let standing = show::standing(paint, state);
    writeln!(io.stdout, "{mark} {}  {title:<TITLE_MAX$}  {standing}", paint.strong(&run.id))?;
    writeln!(io.stdout, "    {}", paint.dim(display::line(&run.record.project)))?;
    Ok(())
}
