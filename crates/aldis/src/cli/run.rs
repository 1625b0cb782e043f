//! `aldis run`: supervise one agent until it is verifiably done.

mod flags;

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
use serde::{Deserialize, Serialize};

pub(super) use self::flags::Flags;
use super::{Outcome, tasks, why};
use crate::agents::command::AgentCommand;
use crate::agents::git::Git;
use crate::app::retention::Retention;
use crate::app::selection;
use crate::coordinate::run::{RunPlan, supervise};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::config::{Layered, Node, Supervision, decode};
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::settings::trust::Trusted;
use crate::view::live::run::RunReporter;
use crate::view::live::{Detail, OutputOptions};

/// Supervise an agent until its work is verifiably done
///
/// Starts the command again and again, each time with the task and what was wrong so far, until the
/// agent reports that it is done and the check agrees, or a limit is reached. Exit codes: 0 done, 1
/// failed or crashed, 3 blocked or needs a human, 4 stagnated or timed out, 5 iterations or budget
/// used up, 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis run --prompt task.md --verify \"npm test\" -- claude -p --output-format stream-json --verbose --permission-mode acceptEdits
  aldis run --dialect promise=DONE --task \"Fix the typo\" -- codex exec --json -
  aldis run --continue
  aldis run --continue -- claude -p --output-format stream-json --verbose --allowedTools Bash")]
pub(super) struct RunArgs {
    /// The task
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt")]
    task: Option<String>,

    /// A file with the task
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    prompt: Option<PathBuf>,

    /// Do not show what the agent says and does (-v shows all of it, with the time)
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Continue this run (default: this project's most recent run)
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1)]
    go_on: Option<Option<String>>,

    /// The agent's command; with --continue, the one to use from now on
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    flags: Flags,
}

/// How a run's agent is started, as the store keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunLaunch {
    command: Vec<String>,
    settings: Supervision,
}

pub(super) fn run(io: &mut Io, args: &RunArgs) -> Result<Outcome, CommandError> {
    let directory = project::current()?;
    let place = Place::of(&directory, None);
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let (run, first) = if args.go_on.is_some() {
        go_on(&engine, &place, args)?
    } else {
        (begin(io, &engine, &place, args)?, Event::Begin)
    };
    let dialect = selection::find(&run.state().setup().dialect)?;
    let out = std::mem::replace(&mut io.stdout, Box::new(std::io::sink()));
    let live = RunReporter::new(out, output_options(io, args.quiet, args.json), &dialect);
    let launch = launch(args, run.state())?;
    let notify = launch.settings.notify.clone();
    let state = home::state_directory(io.state_dir.as_deref())?;
    let _beside = Retention::new(engine.shared_store(), state.clone())?.spawn();
    let ask_here = !args.json && !launch.settings.run.no_wait;
    let plan = RunPlan { ask_here, ..plan(launch, (directory, state), Rules::new([dialect]))? };
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
) -> Result<Handle<State>, CommandError> {
    if args.command.is_empty() {
        return Err(CommandError::new("no agent command was given")
            .with_help("write it after `--`: aldis run --task TEXT -- COMMAND"));
    }
    let trusted = Trusted::of_user(io.state_dir.as_deref())?;
    let settings = Layered::load(place, Some(args.flags.layer()))?.supervision(&trusted)?;
    let dialect = selection::find(&settings.run.dialect)?;
    let instructions = prompt::instructions(&dialect);
    let config = settings.limits();
    if (config.require_commit || config.require_clean) && Git::around(place.root()).is_none() {
        let what = if config.require_commit { "--require-commit" } else { "--require-clean" };
        return Err(CommandError::new(format!("{what}: there is no git repository here"))
            .with_help("run `git init`, or leave the option out"));
    }
    let launch = RunLaunch { command: args.command.clone(), settings };
    let start = Start {
        task: task(io, args)?,
        dialect: launch.settings.run.dialect.clone(),
        instructions,
        launch: serde_json::to_string(&launch)?,
        config,
    };
    let new = NewRun {
        notes: vec![notify::note(&launch.settings.notify)?],
        ..NewRun::of(project::name(place.root()), Driver::Process)
    };
    Ok(engine.begin(clock::wall(), &new, start)?.0)
}

fn task(io: &mut Io, args: &RunArgs) -> Result<String, CommandError> {
    let text = match (&args.task, &args.prompt) {
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
        return Err(
            CommandError::new("no task was given").with_help("use --task TEXT or --prompt FILE")
        );
    }
    Ok(text)
}

/// What a run goes by: what it began with, changed by what is asked for now.
fn launch(args: &RunArgs, state: &State) -> Result<RunLaunch, CommandError> {
    let mut launch: RunLaunch = serde_json::from_str(&state.setup().launch)
        .map_err(|error| CommandError::new(format!("the stored command: {error}")))?;
    if !args.command.is_empty() {
        launch.command.clone_from(&args.command);
    }
    let mut tree = Node::of(&launch.settings)?;
    tree.overlay(args.flags.layer());
    launch.settings = decode(&tree)?;
    Ok(launch)
}

/// Takes the last run of the project up again: ends what is left of its agent, and goes on with the
/// same iteration and what was spent.
fn go_on(
    engine: &Engine,
    place: &Place,
    args: &RunArgs,
) -> Result<(Handle<State>, Event), CommandError> {
    let id = match args.go_on.as_ref().and_then(Option::as_ref) {
        Some(name) => Some(why::find(engine.store(), name)?),
        None => tasks::latest(engine.store(), place, State::NAME)?,
    };
    let Some(id) = id else {
        return Err(CommandError::new("there is no run to continue in this project")
            .with_help("start one: aldis run --task TEXT -- COMMAND"));
    };
    let run: Handle<State> = engine.open(&id)?;
    let first = match run.state().ending() {
        Some(Ending::Done) => {
            return Err(CommandError::new(format!("run {} is done", run.id())));
        }
        Some(_) => {
            let config = Box::new(launch(args, run.state())?.settings.limits());
            if let Some(limit) = run.state().reached(&config) {
                return Err(still_reached(&run, limit));
            }
            Event::Reopen { config }
        }
        None => Event::Recovered,
    };
    Ok((run, first))
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

fn plan(
    launch: RunLaunch,
    (directory, state): (PathBuf, PathBuf),
    rules: Rules,
) -> Result<RunPlan, CommandError> {
    let RunLaunch { command, settings: Supervision { run, .. } } = launch;
    let input = input_format(&run.input)?;
    Ok(RunPlan {
        command: AgentCommand {
            command: command.into_iter().map(OsString::from).collect(),
            prompt: run.prompt_by,
            pty: run.pty,
            input,
            resume: None,
        },
        verify: run.verify,
        directory,
        state,
        rules,
        zone: clock::local_zone(),
        ask_here: false,
    })
}
