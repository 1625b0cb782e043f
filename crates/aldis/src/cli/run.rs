//! `aldis run`: supervise one agent until it is verifiably done.

mod flags;
mod launch;

use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use aldis_engine::{Engine, Handle, NewRun};
use aldis_machine::Machine as _;
use aldis_machine::run::{Ending, Event, Start, State};
use aldis_signal::{Rules, prompt};
use aldis_store::Driver;
use aldis_transcript::Input;
use clap::{Args, ValueHint};

pub(super) use self::flags::Flags;
use self::launch::RunLaunch;
use super::check_flags::check_proof;
use super::deliver::headless_host;
use super::host_flags::HostFlags;
use super::{Outcome, detach, tasks, why};
use crate::agents::git::Git;
use crate::app::retention::Retention;
use crate::app::selection;
use crate::coordinate::run::{RunPlan, supervise};
use crate::error::CommandError;
use crate::hosts::Host;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::config::Layered;
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::settings::trust::Trusted;
use crate::telemetry;
use crate::view::live::run::RunReporter;
use crate::view::live::{Detail, OutputOptions};

/// Supervise an agent until its work is verifiably done
///
/// Starts the agent again and again, each time with the task and what is still wrong, until the agent
/// reports that it is done and the check agrees, or until a limit is reached. The agent may edit the
/// files of the project; --allow and --yolo allow more. Exit codes: 0 done, 1 failed or crashed, 2 usage
/// or input error, 3 blocked, needs a human or lacks a permission, 4 stagnated or timed out, 5
/// iterations or budget used up, 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis run --host claude-code --allow Bash --verify \"npm test\" \"Make the tests pass\"
  aldis run --host codex --prompt task.md
  aldis run --continue --max-iterations 80
  aldis run --dialect promise=DONE \"Fix the typo\" -- ./my-agent.sh")]
pub(super) struct RunArgs {
    /// The task
    #[arg(value_name = "TASK", conflicts_with_all = ["task", "prompt", "go_on"])]
    text: Option<String>,

    /// The task, as an option
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["prompt", "go_on"])]
    task: Option<String>,

    /// A file with the task; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "go_on")]
    prompt: Option<PathBuf>,

    /// The agent (default: `host` in [run] of aldis.toml, else the only installed one)
    #[arg(long, value_parser = headless_host())]
    host: Option<Host>,

    #[command(flatten)]
    may: HostFlags,

    /// Begin a new session in each iteration
    ///
    /// By default an iteration continues the session of the one before, if the host can, so the agent
    /// remembers what it learned.
    #[arg(long)]
    fresh: bool,

    /// Run in the background, independent of this terminal; `aldis attach` shows the run
    #[arg(long, conflicts_with = "json")]
    detach: bool,

    /// Hide what the agent says and does (-v shows all of it, with the time)
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Continue this run (default: this project's most recent run)
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1)]
    go_on: Option<Option<String>>,

    /// The agent's command instead of a host; with --host, further arguments of the host
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    flags: Flags,
}

pub(super) fn run(io: &mut Io, args: &RunArgs) -> Result<Outcome, CommandError> {
    let place = project::here()?;
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let (run, launch, first) = if args.go_on.is_some() {
        go_on(&engine, &place, args)?
    } else {
        begin(io, &engine, &place, args)?
    };
    let directory = launch.directory(run.project())?;
    if args.detach {
        let command = ["run", "--quiet", "--continue", run.id().as_str()].map(OsString::from);
        return detach::detach(io, engine.store(), run.id(), command.to_vec());
    }
    let dialect = selection::find(&run.state().setup().dialect)?;
    let out = std::mem::replace(&mut io.stdout, Box::new(std::io::sink()));
    let live = RunReporter::new(out, output_options(io, args.quiet, args.json), &dialect);
    let notify = launch.settings.notify.clone();
    let state = home::state_directory(io.state_dir.as_deref())?;
    let _beside = Retention::new(engine.shared_store(), state.clone())?.spawn();
    let ask_here = !args.json && !launch.settings.run.no_wait;
    let rules = Rules::new([dialect]).strict(launch.settings.strict);
    let plan = RunPlan { ask_here, ..launch.plan((directory, state), rules)? };
    let ending = supervise(engine, run, &plan, (&notify, live), first)?;
    Ok(Outcome::Code(ending.exit_code()))
}

/// Returns how a run is shown.
pub(super) fn output_options(io: &Io, quiet: bool, json: bool) -> OutputOptions {
    let (color, detail) = (io.color_stdout, Detail::of(quiet, io.verbose));
    OutputOptions { color, detail, json, terminal: std::io::stdout().is_terminal() }
}

/// Returns the format of this name.
pub(super) fn input_format(name: &str) -> Result<Input, CommandError> {
    Input::from_name(name).ok_or_else(|| {
        CommandError::new(format!("unknown input format `{name}`"))
            .with_help("use auto, text or the name of a host")
    })
}

/// Starts a new run.
fn begin(
    io: &mut Io,
    engine: &Engine,
    place: &Place,
    args: &RunArgs,
) -> Result<(Handle<State>, RunLaunch, Event), CommandError> {
    let trusted = Trusted::of_user(io.state_dir.as_deref())?;
    let settings = Layered::load(place, Some(args.flags.layer()))?.supervision(&trusted)?;
    let dialect = selection::find(&settings.run.dialect)?;
    let instructions = prompt::instructions(&dialect);
    let mut config = settings.limits();
    if (config.require_commit || config.require_clean) && Git::around(place.root()).is_none() {
        let what = if config.require_commit { "--require-commit" } else { "--require-clean" };
        return Err(CommandError::new(format!("{what}: there is no git repository here"))
            .with_help("run `git init`, or leave the option out"));
    }
    check_proof(&config.proof, place.root())?;
    let task = task(io, args)?;
    let launch = RunLaunch::new(io, args, settings)?;
    launch.agent(place.directory())?;
    config.prefer_calls = launch.reports_by_call();
    let start = Start {
        task,
        dialect: launch.settings.run.dialect.clone(),
        instructions,
        launch: serde_json::to_string(&launch)?,
        config,
    };
    let notes = [notify::note(&launch.settings.notify)?];
    let project = project::name(place.root());
    if !args.quiet && !args.json {
        detach::warn_of_others(io, engine.store(), &project)?;
    }
    let new = NewRun {
        notes: notes.into_iter().chain(telemetry::note_of_caller()?).collect(),
        ..NewRun::of(project, Driver::Process)
    };
    let run = engine.begin(clock::wall(), &new, start)?.0;
    Ok((run, launch, Event::Begin))
}

fn task(io: &mut Io, args: &RunArgs) -> Result<String, CommandError> {
    let text = match (args.text.as_ref().or(args.task.as_ref()), &args.prompt) {
        (Some(task), _) => task.clone(),
        (None, Some(path)) if path.as_os_str() == "-" => {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut io.stdin, &mut text)
                .map_err(|error| CommandError::new(format!("standard input: {error}")))?;
            text
        }
        (None, Some(path)) => {
            fs::read_to_string(path).map_err(|error| CommandError::file(path, &error))?
        }
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(CommandError::new("no task was given")
            .with_help("write it behind the options, or use --prompt FILE"));
    }
    Ok(text)
}

/// Takes the last run of the project up again: ends what is left of its agent, and goes on with the
/// same iteration and what was spent.
fn go_on(
    engine: &Engine,
    place: &Place,
    args: &RunArgs,
) -> Result<(Handle<State>, RunLaunch, Event), CommandError> {
    let id = match args.go_on.as_ref().and_then(Option::as_ref) {
        Some(name) => Some(why::find(engine.store(), name)?),
        None => tasks::latest(engine.store(), place, State::NAME)?,
    };
    let Some(id) = id else {
        return Err(CommandError::new("there is no run to continue in this project")
            .with_help("start one: aldis run TASK"));
    };
    detach::refuse_supervised(engine.store(), &id)?;
    let mut run: Handle<State> = engine.open(&id)?;
    let launch = RunLaunch::of(&run, args)?;
    // The run may have been started elsewhere.
    let directory = launch.directory(run.project())?;
    let place = Place::of(&directory, None);
    launch.agent(&directory)?;
    let first = match run.state().ending() {
        Some(Ending::Done) => {
            return Err(CommandError::new(format!("run {} is done", run.id())));
        }
        Some(_) => {
            let config = Box::new(launch.settings.limits());
            check_proof(&config.proof, place.root())?;
            if let Some(limit) = run.state().reached(&config) {
                return Err(still_reached(&run, limit));
            }
            Event::Reopen { config }
        }
        None => Event::Recovered,
    };
    launch.keep(engine, &mut run)?;
    Ok((run, launch, first))
}

/// A run whose limit was not raised.
fn still_reached(run: &Handle<State>, limit: Ending) -> CommandError {
    let (used, option) = match limit {
        Ending::IterationsUsedUp => (
            format!("has used up its iterations ({})", run.state().iteration()),
            "--max-iterations N",
        ),
        _ => ("has used its budget".to_owned(), "--max-cost DOLLARS or --max-tokens N"),
    };
    CommandError::new(format!("run {} {used}", run.id()))
        .with_help(format!("raise the limit: aldis run --continue {} {option}", run.id()))
}
