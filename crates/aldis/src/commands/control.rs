//! `aldis pause`, `resume`, `abort` and `answer`: a human's word about a supervised run.

use std::env;
use std::io::Write as _;

use aldis_core::machine::run::{Event, Exit, State};
use aldis_store::{Run, RunFilter, Store};
use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::io::Io;
use crate::journal::{Machine as _, Open};
use crate::project::{self, Place};
use crate::supervise::{Found, Identity, find};
use crate::{clock, display, home};

/// Names the run.
#[derive(Debug, Args)]
pub(super) struct ControlArgs {
    /// The run; by default the active one of this project
    run: Option<String>,
}

/// Answer a question of a run
///
/// The agent is told the answer in its next prompt.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// The question, as it was shown
    id: String,

    /// The answer
    text: String,

    /// The run; by default the one of this project that asks
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Suspends the agent.
pub(super) fn pause(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    say(io, args.run.as_deref(), Event::Pause, "the run does not work at the moment")
}

/// Lets it go on.
pub(super) fn resume(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    say(io, args.run.as_deref(), Event::Resume, "the run is not suspended")
}

/// Ends the run.
pub(super) fn abort(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    let event = Event::Abort { by: "`aldis abort`".to_owned() };
    say(io, args.run.as_deref(), event, "the run has ended")
}

/// Answers a question.
pub(super) fn answer(io: &mut Io, args: &AnswerArgs) -> Result<Outcome, CommandError> {
    let (id, text) = (args.id.clone(), args.text.clone());
    say(io, args.run.as_deref(), Event::Answer { id, text }, "nobody asks that")
}

/// Tells a run something. Whoever supervises it notices.
fn say(
    io: &mut Io,
    name: Option<&str>,
    event: Event,
    refusal: &str,
) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let Some(run) = chosen(&store, name)? else {
        writeln!(io.stderr, "there is no supervised run here; `aldis status` lists the runs")?;
        return Ok(Outcome::No);
    };
    let mut open = Open::<State>::load(run)?;
    let aborts = matches!(event, Event::Abort { .. });
    // Where nobody supervises there is nobody to suspend; the time until somebody does is no work.
    if matches!(event, Event::Pause | Event::Resume) && is_gone(&open.state) {
        writeln!(io.stderr, "run {}: {refusal}", open.id)?;
        return Ok(Outcome::No);
    }
    if !open.advance(&store, clock::wall(), event)? {
        writeln!(io.stderr, "run {}: {refusal}", open.id)?;
        return Ok(Outcome::No);
    }
    // An agent that is not there any more will not report its end.
    if aborts && is_gone(&open.state) {
        open.advance(&store, clock::wall(), Event::Exited(Exit { code: None, signal: None }))?;
    }
    let task = display::excerpt(&open.state.task, 60);
    writeln!(io.stdout, "run {} is now {}: {task}", open.id, open.state.status.name())?;
    Ok(Outcome::Yes)
}

fn is_gone(state: &State) -> bool {
    let identity =
        state.agent.as_deref().and_then(|agent| serde_json::from_str::<Identity>(agent).ok());
    identity.is_none_or(|identity| matches!(find(&identity), Found::Gone))
}

/// The run that is meant: the one named, else the latest of this project.
fn chosen(store: &dyn Store, name: Option<&str>) -> Result<Option<Run>, CommandError> {
    if let Some(name) = name {
        return Ok(store.run(&why::find(store, name)?)?);
    }
    let directory = env::current_dir()
        .map_err(|error| CommandError::new(format!("the current directory: {error}")))?;
    let place = Place::of(&directory, None);
    let projects = place.around().map(project::name).collect();
    let machine = Some(State::NAME.to_owned());
    let filter = RunFilter { projects, machine, limit: 1, ..RunFilter::default() };
    Ok(store.runs(&filter)?.into_iter().next())
}
