//! `aldis pause`, `resume`, `abort`, `answer` and `tell`: what a human wants of a run.

use std::io::Write as _;

use aldis_engine::{Engine, EngineError, Snapshot};
use aldis_machine::HumanCommand;
use aldis_store::RunFilter;
use clap::Args;

use super::{Outcome, why};
use crate::app::control::{self, Commanded, ControlError};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::notify::courier::{Courier, CourierRole};
use crate::settings::clock;
use crate::settings::home;
use crate::settings::project;
use crate::view::display;
use crate::view::run_view::RunView;

/// How many runs of a project are looked at for the one that is meant.
const RUNS_MAX: usize = 20;

/// Names the run.
#[derive(Debug, Args)]
pub(super) struct ControlArgs {
    /// The run (default: the latest of this project)
    run: Option<String>,
}

/// Answer a run's question
///
/// The agent gets the answer with its next prompt.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// The id of the question, as it was shown
    id: String,

    /// The answer
    text: String,

    /// The run (default: the run of this project that asks)
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Send a message to the agents of a run
///
/// They get it with their next prompt; in a channel it is posted as a human's message.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis tell 7f3kq2bn \"The API has moved to /v2.\"
  aldis tell 7f3kq2bn --to csv-writer \"Quote every field.\"")]
pub(super) struct TellArgs {
    /// The run
    run: String,

    /// The message
    text: String,

    /// Only to this task or role of a delivery, or this agent of a channel
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
}

/// Suspends the agent, or starts no further ones.
pub(super) fn pause(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    perform(io, args.run.as_deref(), &HumanCommand::Pause)
}

/// Lets it continue.
pub(super) fn resume(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    perform(io, args.run.as_deref(), &HumanCommand::Resume)
}

/// Ends the run.
pub(super) fn abort(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    perform(io, args.run.as_deref(), &HumanCommand::Abort)
}

/// Answers a question.
pub(super) fn answer(io: &mut Io, args: &AnswerArgs) -> Result<Outcome, CommandError> {
    let (id, text) = (args.id.clone(), args.text.clone());
    perform(io, args.run.as_deref(), &HumanCommand::Answer { id, text })
}

/// Passes a message on.
pub(super) fn tell(io: &mut Io, args: &TellArgs) -> Result<Outcome, CommandError> {
    let (text, to) = (args.text.clone(), args.to.clone());
    perform(io, Some(&args.run), &HumanCommand::Tell { text, to })
}

/// Commands the run that is meant, and says what came of it.
fn perform(
    io: &mut Io,
    name: Option<&str>,
    command: &HumanCommand,
) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let Some(Snapshot { run, .. }) = meant(&engine, name, command)? else {
        let none = match command {
            HumanCommand::Answer { id, .. } => format!("no open question `{id}`"),
            _ => "this project has no run".to_owned(),
        };
        writeln!(io.stderr, "{none}; `aldis status` lists the runs")?;
        return Ok(Outcome::No);
    };
    let by = format!("`aldis {}`", command.as_str());
    let done = control::command(&engine, clock::wall(), &run.id, command, &by, None);
    let Commanded { answer, mut warnings, report } = match done {
        Ok(done) => done,
        Err(ControlError::Engine(EngineError::NotPossible(why))) => {
            writeln!(io.stderr, "run {}: {why}; `aldis status` lists the runs", run.id)?;
            return Ok(Outcome::No);
        }
        Err(error @ ControlError::Unsupervised { .. }) => {
            writeln!(io.stderr, "{error}")?;
            return Ok(Outcome::No);
        }
        Err(ControlError::Engine(error)) => return Err(error.into()),
    };
    let now = clock::wall();
    let view = RunView::new(&Snapshot::from(&answer.run), now);
    if *command == HumanCommand::Abort && !view.live {
        // Its supervisor may be gone, and nobody else there to send the last notice.
        let state = home::state_directory(io.state_dir.as_deref())?;
        let role = CourierRole::Supervisor(run.id.clone());
        let courier = Courier::start(engine.shared_store(), &state, role, |_| {});
        warnings.extend(courier.finish(&run.id));
    }
    for warning in warnings {
        writeln!(io.stderr, "warning: {}", display::line(&warning))?;
    }
    writeln!(io.stdout, "{}", display::line(&report.text))?;
    if let Some(command) = report.continues {
        writeln!(io.stdout, "  continue it: {command}")?;
    }
    Ok(Outcome::Yes)
}

/// The run that is meant: the one named, else one of this project. A question says by itself which
/// run is meant, of whatever project.
fn meant(
    engine: &Engine,
    name: Option<&str>,
    command: &HumanCommand,
) -> Result<Option<Snapshot>, CommandError> {
    if let Some(name) = name {
        return Ok(engine.snapshot(&why::find(engine.store(), name)?)?);
    }
    let place = project::here()?;
    let projects = place.around().map(project::name).collect();
    let filter = RunFilter { projects, limit: RUNS_MAX, ..RunFilter::default() };
    let mut runs = engine.snapshots(&filter)?;
    // One that goes on is meant before one that ended later.
    runs.sort_by_key(|run| !run.run.record.active);
    let HumanCommand::Answer { id, .. } = command else { return Ok(runs.into_iter().next()) };
    let asks = |run: &Snapshot| run.questions().iter().any(|question| question.id == *id);
    if let Some(run) = runs.into_iter().find(asks) {
        return Ok(Some(run));
    }
    let active = RunFilter { active: Some(true), ..RunFilter::default() };
    let mut runs = engine.snapshots(&active)?;
    runs.retain(asks);
    if runs.len() > 1 {
        let names: Vec<&str> = runs.iter().map(|run| run.id().as_str()).collect();
        let message = format!("question `{id}` is open in several runs: {}", names.join(", "));
        return Err(
            CommandError::new(message).with_help("name the run: aldis answer --run RUN ID TEXT")
        );
    }
    Ok(runs.pop())
}
