//! `aldis deliver`: a plan, delivered by a developer, a critic and an auditor.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_core::machine::delivery::{
    Config, DIALECT, Event, Format, Plan as Tasks, Role, Start, State,
};
use aldis_core::transcript::Input;
use aldis_core::{Dialect, Rules};
use aldis_store::{RunFilter, Store};
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::config::{Layered, RoleTable};
use crate::delivering::book::{self, Book};
use crate::delivering::{Board, Budget, Delivered, Delivery, Plan};
use crate::error::CommandError;
use crate::io::Io;
use crate::project::{self, Place};
use crate::recipe::{PromptBy, Recipe};
use crate::running::Manner;
use crate::trust::Trusted;
use crate::{clock, home, secret};

/// How long to wait for a service that does not say when it will work again.
const LIMIT_WAIT: Duration = Duration::from_secs(15 * 60);

/// Deliver a plan: developer, critic and auditor, until every task is accepted
///
/// Agents are started as processes, one for each dispatch, and what they say moves the tasks: a
/// developer's work goes to a critic, what the critic accepts goes to an auditor, and what either
/// rejects goes back. A human is asked when it does not converge. Exit codes: 0 complete, 1 some tasks
/// were given up, 3 waits for a human or was halted, 4 timed out, 5 over budget, 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis deliver plan.md
  aldis deliver plan.toml --worktrees --slots 3 -- codex exec --json -
  aldis deliver --continue")]
pub(super) struct DeliverArgs {
    /// The plan: TOML, YAML, JSON, or Markdown with check boxes
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "go_on")]
    plan: Option<PathBuf>,

    /// Whose command starts agents where none is given: claude-code, codex or gemini
    #[arg(long, value_enum, default_value_t = Host::ClaudeCode, value_name = "HOST")]
    host: Host,

    /// How agents get their prompt
    #[arg(long, value_enum, default_value_t = PromptBy::Stdin, value_name = "HOW")]
    prompt_by: PromptBy,

    /// What agents write: auto, text, or a host
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    input: String,

    /// Agents at work at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    slots: Option<u32>,

    /// Give each task a git work tree of its own, merged when it is accepted
    #[arg(long)]
    worktrees: bool,

    /// Send tasks without acceptance criteria to a business analyst first
    #[arg(long)]
    business_analyst: bool,

    /// Seconds in all
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    total_timeout: Option<u64>,

    /// Tokens in all, as far as hosts report them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,

    /// Exit with 3 instead of waiting for an answer
    #[arg(long)]
    no_wait: bool,

    /// Do not show each decision
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,

    /// Go on with the last delivery of this project
    #[arg(long = "continue", conflicts_with = "plan")]
    go_on: bool,

    /// The agents' command
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A host whose command is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Host {
    /// claude -p
    ClaudeCode,
    /// codex exec
    Codex,
    /// gemini
    Gemini,
}

impl Host {
    /// Returns the command that reads a prompt on standard input and may change files.
    fn command(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::ClaudeCode => &[
                "claude",
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--permission-mode",
                "acceptEdits",
            ],
            Self::Codex => &["codex", "exec", "--json", "--sandbox", "workspace-write", "-"],
            Self::Gemini => {
                &["gemini", "--output-format", "stream-json", "--approval-mode", "auto_edit"]
            }
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }
}

/// How agents are started, as the store keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) prompt_by: PromptBy,
    #[serde(default)]
    pub(super) input: String,
    /// What is different for some roles.
    #[serde(default)]
    pub(super) roles: BTreeMap<Role, RoleTable>,
}

pub(super) fn run(io: &mut Io, args: &DeliverArgs) -> Result<Outcome, CommandError> {
    let directory = env::current_dir()
        .map_err(|error| CommandError::new(format!("the current directory: {error}")))?;
    let place = Place::of(&directory, None);
    let store = home::open_store(io.state_dir.as_deref())?;
    let (book, first) = match &args.plan {
        Some(path) => (begin(io, &store, &place, args, path)?, Event::Begin),
        None => (go_on(&store, &place)?, Event::Recovered),
    };
    let manner = Manner {
        color: io.color_stdout,
        quiet: args.quiet,
        json: args.json,
        terminal: std::io::stdout().is_terminal(),
    };
    let budget = Budget {
        tokens: args.max_tokens,
        micro_dollars: None,
        time: args.total_timeout.map(Duration::from_secs),
    };
    let mut plan = plan(io, &book, directory)?;
    (plan.budget, plan.no_wait) = (budget, args.no_wait);
    drive(io, &store, book, &plan, manner, &first)
}

/// Coordinates a delivery to its end.
pub(super) fn drive(
    io: &mut Io,
    store: &dyn Store,
    book: Book,
    plan: &Plan,
    manner: Manner,
    first: &Event,
) -> Result<Outcome, CommandError> {
    let out = std::mem::replace(&mut io.stdout, Box::new(std::io::sink()));
    let board = Board::new(out, manner);
    Ok(match Delivery::new(plan, store, book, board)?.drive(first)? {
        Delivered::Ended(ending) => Outcome::Code(ending.exit_code()),
        Delivered::Waits => Outcome::Code(3),
    })
}

/// Starts a new delivery.
fn begin(
    io: &mut Io,
    store: &dyn Store,
    place: &Place,
    args: &DeliverArgs,
    path: &Path,
) -> Result<Book, CommandError> {
    let tasks = read(io, path)?;
    let trusted = Trusted::of_user(io.state_dir.as_deref())?;
    let settings = Layered::load(place, None)?.delivering(&trusted)?;
    let usual = settings.limits();
    let config = Config {
        slots: args.slots.unwrap_or(usual.slots),
        worktrees: args.worktrees || usual.worktrees,
        business_analyst: args.business_analyst || usual.business_analyst,
        ..usual
    };
    let command = if args.command.is_empty() { args.host.command() } else { args.command.clone() };
    let launch = Launch {
        command,
        prompt_by: args.prompt_by,
        input: args.input.clone(),
        roles: settings.roles,
    };
    create(store, place, tasks, config, &launch)
}

/// Keeps a new delivery in the store.
pub(super) fn create(
    store: &dyn Store,
    place: &Place,
    plan: Tasks,
    config: Config,
    launch: &Launch,
) -> Result<Book, CommandError> {
    config.check().map_err(|error| CommandError::new(error.to_string()))?;
    let token = secret::token().map_err(|error| CommandError::new(error.to_string()))?;
    let (now, project) = (clock::wall(), project::name(place.root()));
    let start = Start { plan, config, token: Some(token) };
    let state = State::start(now, start.clone());
    let launch = serde_json::to_string(launch).unwrap_or_default();
    Ok(Book::create(store, now, &project, &start, state, launch)?)
}

/// Reads a plan, and says what its author should know.
fn read(io: &mut Io, path: &Path) -> Result<Tasks, CommandError> {
    let name = path.to_string_lossy();
    let format = Format::of_name(&name).ok_or_else(|| {
        CommandError::new(format!("`{name}`: what kind of plan is this?"))
            .with_help("plans end in .toml, .yaml, .json or .md")
    })?;
    let text = fs::read_to_string(path).map_err(|error| CommandError::file(path, &error))?;
    let read = Tasks::read(format, &text);
    for problem in read.problems.iter().filter(|problem| !problem.fatal) {
        writeln!(io.stderr, "warning: `{name}` {problem}")?;
    }
    read.plan.ok_or_else(|| {
        let fatal: Vec<String> = read
            .problems
            .iter()
            .filter(|problem| problem.fatal)
            .map(|problem| format!("`{name}` {problem}"))
            .collect();
        let help =
            read.problems.iter().find(|problem| problem.fatal).map(|first| first.help.clone());
        CommandError::new(fatal.join("\n")).with_help(help.unwrap_or_default())
    })
}

/// Takes the last delivery of the project up again.
fn go_on(store: &dyn Store, place: &Place) -> Result<Book, CommandError> {
    let projects = place.around().map(project::name).collect();
    let machine = Some(book::NAME.to_owned());
    let filter = RunFilter { projects, machine, limit: 1, ..RunFilter::default() };
    let Some(run) = store.runs(&filter)?.into_iter().next() else {
        return Err(CommandError::new("there is no delivery to continue in this project")
            .with_help("start one: aldis deliver PLAN"));
    };
    let book = Book::load(store, &run.id)?;
    match book.state.ending() {
        Some(ending) => {
            Err(CommandError::new(format!("delivery {} is over: {}", book.id, ending.as_str()))
                .with_help("start a new one with what is left: aldis deliver PLAN"))
        }
        None => Ok(book),
    }
}

/// Returns how a stored delivery is driven.
pub(super) fn plan(io: &Io, book: &Book, project: PathBuf) -> Result<Plan, CommandError> {
    let launch: Launch = serde_json::from_str(&book.launch)
        .map_err(|error| CommandError::new(format!("the stored command: {error}")))?;
    let input = Input::from_name(&launch.input).ok_or_else(|| {
        CommandError::new(format!("there is no input format `{}`", launch.input))
            .with_help("auto, text, or the name of a host")
    })?;
    let recipe = |command: &[String], prompt: PromptBy| Recipe {
        command: command.iter().map(OsString::from).collect(),
        prompt,
        pty: false,
        input,
    };
    let role = |table: &RoleTable| {
        let command = table.command.as_ref().unwrap_or(&launch.command);
        let preface = table.prompt.clone().unwrap_or_default();
        (recipe(command, table.prompt_by.unwrap_or(launch.prompt_by)), preface)
    };
    Ok(Plan {
        roles: launch.roles.iter().map(|(name, table)| (*name, role(table))).collect(),
        recipe: recipe(&launch.command, launch.prompt_by),
        project,
        state: home::state_directory(io.state_dir.as_deref())?,
        rules: Rules::new(Dialect::builtin(DIALECT).cloned()),
        zone: clock::local_zone(),
        no_wait: false,
        limit_wait: LIMIT_WAIT,
        budget: Budget::default(),
        answer: None,
    })
}
