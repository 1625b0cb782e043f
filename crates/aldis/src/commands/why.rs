//! `aldis why`: what was decided, by which rule, on what evidence, and what to do.

use std::env;
use std::io::Write as _;

use aldis_store::{DecisionFilter, RunId, SqliteStore, Store};
use clap::Args;

use super::Outcome;
use crate::driver::{self, Driver};
use crate::error::CommandError;
use crate::io::Io;
use crate::project::Place;
use crate::wire::run::DecisionForm;
use crate::{clock, home, json, show};

/// How far back a decision that matters is looked for.
const LOOK_BACK: usize = 1_000;
/// Decisions of this rule change nothing an agent would notice.
const LISTENING: &str = "phases/listen";

/// Say why an agent was stopped or kept working
///
/// Without a run, explains the last decision about the current project, or about any if it has none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis why
  aldis why --last --json
  aldis why 7f3kq2bn --all")]
pub(super) struct WhyArgs {
    /// The run
    #[arg(conflicts_with = "last")]
    run: Option<String>,

    /// The last decision about any project
    #[arg(long)]
    last: bool,

    /// All decisions about the run, oldest first
    #[arg(long, short)]
    all: bool,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &WhyArgs) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let now = clock::now()?;
    let run = match &args.run {
        Some(name) => Some(find(&store, name)?),
        None if args.last => None,
        None => around(&store, now)?,
    };
    let filter = DecisionFilter { run, limit: LOOK_BACK, ..DecisionFilter::default() };
    let mut forms: Vec<DecisionForm> =
        store.decisions(&filter)?.iter().filter_map(DecisionForm::new).collect();
    if args.all {
        forms.reverse();
    } else {
        // What was only listened to explains nothing, unless there is nothing else.
        let telling = forms.iter().position(|form| form.rule != LISTENING).unwrap_or(0);
        forms = forms.into_iter().skip(telling).take(1).collect();
    }
    if forms.is_empty() {
        writeln!(io.stderr, "no decision yet")?;
        return Ok(Outcome::No);
    }
    for form in &forms {
        if args.json {
            json::write_line(&mut io.stdout, form)?;
            continue;
        }
        let run = RunId::new(&*form.run).ok().map(|id| store.run(&id)).transpose()?.flatten();
        let phases = run.filter(|run| run.record.machine == driver::PHASES);
        let loaded = phases.map(driver::load).transpose()?;
        let about = loaded.as_ref().map(|loaded| (&loaded.run, &loaded.state));
        show::decision(io, now, form, about)?;
    }
    Ok(Outcome::Yes)
}

/// The latest run around the current directory.
fn around(
    store: &SqliteStore,
    now: aldis_core::time::Timestamp,
) -> Result<Option<RunId>, CommandError> {
    let Ok(directory) = env::current_dir() else { return Ok(None) };
    let place = Place::of(&directory, None);
    let driver = Driver { store, now };
    let loaded = match driver.live(&place, None)? {
        Some(live) => Some(live),
        None => driver.latest(&crate::project::name(place.root()))?,
    };
    Ok(loaded.map(|loaded| loaded.run.id))
}

/// The run of this name, or the only one whose name begins so.
pub(super) fn find(store: &dyn Store, name: &str) -> Result<RunId, CommandError> {
    let runs = store.runs(&aldis_store::RunFilter::default())?;
    let mut found = runs.iter().map(|run| &run.id).filter(|id| id.as_str().starts_with(name));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id.clone()),
        (Some(id), Some(_)) if id.as_str() == name => Ok(id.clone()),
        (Some(_), Some(_)) => Err(CommandError::new(format!("several runs begin with `{name}`"))
            .with_help("write more of the name; `aldis status --all` lists them")),
        (None, _) => Err(CommandError::new(format!("there is no run `{name}`"))
            .with_help("`aldis status --all` lists the runs")),
    }
}
