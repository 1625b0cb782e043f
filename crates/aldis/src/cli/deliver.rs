//! `aldis deliver`: a plan, delivered by a developer, a critic and an auditor.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_engine::{Engine, Handle, NewRun};
use aldis_machine::Machine as _;
use aldis_machine::delivery::{
    BudgetLimit as Limit, Config, DIALECT, Ending, Event, Plan as Tasks, Role, Start, State,
};
use aldis_signal::{Dialect, Rules};
use aldis_store::Driver;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run::{input_format, output_options};
use super::{Outcome, plan, tasks, why};
use crate::agents::command::{AgentCommand, SESSION};
use crate::app::retention::Retention;
use crate::coordinate::delivery::{self, Delivered, DeliveryPlan, PlanBoxes};
use crate::coordinate::repository::Isolation;
use crate::error::CommandError;
use crate::hosts::Host;
use crate::hosts::install::locations::Locations;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::config::{Count, Dollars, Layered, Notify, RoleTable, Seconds, Tokens};
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::settings::prompt_by::PromptBy;
use crate::settings::trust::Trusted;
use crate::view::display;
use crate::view::live::OutputOptions;
use crate::view::live::delivery::DeliveryReporter;

/// How long to wait for a service that does not say when it will work again.
const LIMIT_WAIT: Duration = Duration::from_secs(15 * 60);

/// Deliver a plan: developer, critic and auditor, until every task is accepted
///
/// Starts agents as processes, one for each step of a task: a developer's work goes to a critic, what
/// the critic accepts goes to an auditor, and what either rejects goes back to the developer. When a
/// task does not converge, a human is asked. In a git repository each task has a work tree of its own,
/// merged when it is accepted; elsewhere one agent works at a time. Boxes of a Markdown plan are ticked
/// when their tasks are complete. Exit codes: 0 complete, 1 some tasks
/// were given up, 3 waiting for a human or halted by one, 4 timed out, 5 over budget, 130 interrupted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis deliver plan.md
  aldis deliver plan.toml --slots 3 -- codex exec --json -
  aldis deliver --continue --max-cost 20")]
pub(super) struct DeliverArgs {
    /// The plan: TOML, YAML, JSON, or Markdown with check boxes
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "go_on")]
    plan: Option<PathBuf>,

    /// The host whose command starts agents where none is given
    #[arg(long, value_parser = headless_host(), default_value_t = Host::original())]
    host: Host,

    /// How agents get their prompt (default: as the host wants it, else on standard input)
    #[arg(long, value_enum, value_name = "HOW")]
    prompt_by: Option<PromptBy>,

    /// What agents write: auto, text, or a host (default: as the host does, else auto)
    #[arg(long, value_name = "FORMAT")]
    input: Option<String>,

    /// How many agents work at the same time (default: 5 with work trees, else 1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    #[arg(conflicts_with = "go_on")]
    slots: Option<u32>,

    /// Give each task its own git work tree, merged when the task is accepted (default in a git
    /// repository with a commit)
    #[arg(long, conflicts_with = "go_on")]
    worktrees: bool,

    /// Let all agents work in this directory
    #[arg(long, conflicts_with_all = ["go_on", "worktrees"])]
    no_worktrees: bool,

    /// Do not tick the boxes of a Markdown plan
    #[arg(long, conflicts_with = "go_on")]
    no_tick: bool,

    /// Send tasks without acceptance criteria to a business analyst first
    #[arg(long, conflicts_with = "go_on")]
    business_analyst: bool,

    /// Total time that agents may work: seconds, or a span such as 2h
    #[arg(long, value_name = "TIME")]
    total_timeout: Option<Seconds<1>>,

    /// Total token budget (needs hosts that report usage)
    #[arg(long, value_name = "N")]
    max_tokens: Option<Tokens>,

    /// Total budget in dollars (needs hosts that report costs)
    #[arg(long, value_name = "DOLLARS")]
    max_cost: Option<Dollars>,

    /// Exit with 3 instead of waiting for an answer
    #[arg(long)]
    no_wait: bool,

    /// Do not show each decision (-v shows what the agents say and do, too)
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Continue this delivery (default: this project's most recent delivery)
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, conflicts_with = "plan")]
    go_on: Option<Option<String>>,

    /// The agents' command
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "go_on")]
    command: Vec<String>,
}

/// Takes the name of a host whose command is known.
fn headless_host() -> impl TypedValueParser<Value = Host> {
    let known = Host::all().iter().filter(|host| host.spec().headless.is_some());
    PossibleValuesParser::new(known.map(|host| host.name())).try_map(|name| name.parse::<Host>())
}

/// The note that keeps how agents are started.
const LAUNCH: &str = "launch";

/// How agents are started, as the store keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeliveryLaunch {
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) prompt_by: PromptBy,
    #[serde(default)]
    pub(super) input: String,
    /// The command that goes on with an earlier session.
    #[serde(default)]
    pub(super) resume: Option<Vec<String>>,
    /// Who is told of notices.
    #[serde(default)]
    pub(super) notify: Notify,
    /// What is different for some roles.
    #[serde(default)]
    pub(super) roles: BTreeMap<Role, RoleTable>,
    /// The boxes of the plan that are ticked when their tasks are complete.
    #[serde(default)]
    pub(super) boxes: Option<PlanBoxes>,
}

pub(super) fn run(io: &mut Io, args: &DeliverArgs) -> Result<Outcome, CommandError> {
    let directory = project::current()?;
    let place = Place::of(&directory, None);
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let (run, first) = match &args.plan {
        Some(path) => (begin(io, &engine, &place, args, path)?, Event::Begin),
        None => go_on(&engine, &place, args)?,
    };
    let options = output_options(io, args.quiet, args.json);
    let launch = launch(&run)?;
    let mut plan = plan(io, &launch, directory)?;
    let _beside = Retention::new(engine.shared_store(), plan.state.clone())?.spawn();
    (plan.no_wait, plan.ask_here) = (args.no_wait, !args.no_wait && !args.json);
    drive(io, (engine, run), &plan, (&launch.notify, options), first)
}

/// Coordinates a delivery to its end.
pub(super) fn drive(
    io: &mut Io,
    (engine, run): (Engine, Handle<State>),
    plan: &DeliveryPlan,
    (notify, options): (&Notify, OutputOptions),
    first: Event,
) -> Result<Outcome, CommandError> {
    let out = std::mem::replace(&mut io.stdout, Box::new(std::io::sink()));
    let board = DeliveryReporter::new(out, options);
    Ok(match delivery::deliver(engine, run, plan, (notify, board), first)? {
        Delivered::Ended(ending) => Outcome::Code(ending.exit_code()),
        Delivered::Waits => Outcome::Code(3),
    })
}

/// Starts a new delivery.
fn begin(
    io: &mut Io,
    engine: &Engine,
    place: &Place,
    args: &DeliverArgs,
    path: &Path,
) -> Result<Handle<State>, CommandError> {
    let (tasks, boxes) = read(io, path)?;
    let trusted = Trusted::of_user(io.state_dir.as_deref())?;
    let settings = Layered::load(place, None)?.delivering(&trusted)?;
    check_roles(&settings.roles)?;
    let usual = settings.limits();
    let said = if args.no_worktrees { Some(false) } else { args.worktrees.then_some(true) };
    let isolation = Isolation::of(said.or(settings.deliver.worktrees), place.root())?;
    let at_once = if isolation.worktrees() { usual.slots } else { 1 };
    let set = settings.deliver.slots.map_or(at_once, Count::small);
    let config = Config {
        slots: args.slots.unwrap_or(set),
        worktrees: isolation.worktrees(),
        business_analyst: args.business_analyst || usual.business_analyst,
        ..budgets(args, usual)
    };
    if !args.quiet && !args.json {
        writeln!(io.stderr, "{}", display::line(&isolation.said(config.slots)))?;
        io.stderr.flush()?;
    }
    let host = args.host.spec().headless.filter(|_| args.command.is_empty());
    let own_developer = settings.roles.get(&Role::Developer).is_some_and(|it| it.command.is_some());
    if host.is_some() && !own_developer {
        check_program(args.host)?;
    }
    let launch = DeliveryLaunch {
        command: host.map_or_else(|| from_here(&args.command), |host| Ok(host.command()))?,
        prompt_by: args.prompt_by.or_else(|| host.map(|host| host.prompt_by)).unwrap_or_default(),
        input: args
            .input
            .clone()
            .unwrap_or_else(|| host.map_or("auto", |host| host.output.name()).to_owned()),
        // Nobody knows how a command of the user's own continues a session.
        resume: host.and_then(|host| host.resume()),
        notify: settings.notify,
        roles: settings.roles,
        boxes: boxes.filter(|_| !args.no_tick),
    };
    create(engine, place, tasks, config, &launch)
}

/// Refuses to start agents of a host that is not installed.
fn check_program(host: Host) -> Result<(), CommandError> {
    let program = host.spec().headless.and_then(|host| host.command.first().copied());
    let program = program.unwrap_or_default();
    if Locations::new()?.find_program(program).is_some() {
        return Ok(());
    }
    let get = host.spec().get_program;
    Err(CommandError::new(format!("`{program}` ({}) is not on the PATH", host.title()))
        .with_help(format!("install it ({get}), or write your own command after `--`")))
}

/// A command that names no session would begin a new one.
fn check_roles(roles: &BTreeMap<Role, RoleTable>) -> Result<(), CommandError> {
    let names_it = |words: &Vec<String>| words.iter().any(|word| word.contains(SESSION));
    let wrong =
        roles.iter().find(|(_, table)| table.resume.as_ref().is_some_and(|it| !names_it(it)));
    wrong.map_or(Ok(()), |(role, _)| {
        let key = format!("`roles.{}.resume`", role.as_str());
        Err(CommandError::new(format!("{key} does not name the session"))
            .with_help(format!("write {SESSION} where the session's id belongs")))
    })
}

/// Begins a delivery.
pub(super) fn create(
    engine: &Engine,
    place: &Place,
    plan: Tasks,
    config: Config,
    launch: &DeliveryLaunch,
) -> Result<Handle<State>, CommandError> {
    let token = aldis_engine::token().map_err(|error| CommandError::new(error.to_string()))?;
    let new = NewRun {
        notes: vec![aldis_engine::note(LAUNCH, launch)?, notify::note(&launch.notify)?],
        ..NewRun::of(project::name(place.root()), Driver::Process)
    };
    let start = Start { plan, config, token: Some(token) };
    Ok(engine.begin(clock::wall(), &new, start)?.0)
}

/// Returns how the agents of a stored delivery are started.
pub(super) fn launch(run: &Handle<State>) -> Result<DeliveryLaunch, CommandError> {
    let launch = match run.note(LAUNCH)?.unwrap_or_default() {
        // 0.1.0 kept it as a text within the text.
        Value::String(text) => serde_json::from_str(&text),
        launch => serde_json::from_value(launch),
    };
    launch.map_err(|error| CommandError::new(format!("the stored command: {error}")))
}

/// Names a program in this directory by its whole path: agents start in others, too.
fn from_here(command: &[String]) -> Result<Vec<String>, CommandError> {
    let mut command = command.to_vec();
    if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
        *program = project::current()?.join(&*program).to_string_lossy().into_owned();
    }
    Ok(command)
}

/// Reads a plan and its boxes, and says what its author should know.
fn read(io: &mut Io, path: &Path) -> Result<(Tasks, Option<PlanBoxes>), CommandError> {
    let name = path.to_string_lossy();
    let read = plan::read(path)?;
    let file = fs::canonicalize(path).map_err(|error| CommandError::file(path, &error))?;
    let boxes = PlanBoxes { file, tasks: read.boxes };
    let boxes = Some(boxes).filter(|boxes| !boxes.tasks.is_empty());
    for problem in read.problems.iter().filter(|problem| !problem.fatal) {
        writeln!(
            io.stderr,
            "{}",
            display::lines(&format!("warning: {}", plan::said(&name, problem)))
        )?;
    }
    let titled = |mut tasks: Tasks| {
        if tasks.title.is_empty() {
            tasks.title = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        (tasks, boxes)
    };
    read.plan.map(titled).ok_or_else(|| {
        let fatal: Vec<String> = read
            .problems
            .iter()
            .filter(|problem| problem.fatal)
            .map(|problem| plan::said(&name, problem))
            .collect();
        let help =
            read.problems.iter().find(|problem| problem.fatal).map(|first| first.help.clone());
        CommandError::new(fatal.join("\n")).with_help(help.unwrap_or_default())
    })
}

/// Lays the limits of the command line over others.
fn budgets(args: &DeliverArgs, usual: Config) -> Config {
    Config {
        max_tokens: args.max_tokens.map(|tokens| tokens.0).or(usual.max_tokens),
        max_micro_dollars: args.max_cost.map(|cost| cost.0).or(usual.max_micro_dollars),
        max_time: args.total_timeout.map(|time| time.0).or(usual.max_time),
        ..usual
    }
}

/// Takes a delivery up again, with the limits it had, changed by what is asked for now.
fn go_on(
    engine: &Engine,
    place: &Place,
    args: &DeliverArgs,
) -> Result<(Handle<State>, Event), CommandError> {
    let (named, store) = (args.go_on.as_ref().and_then(Option::as_ref), engine.store());
    let id = match named {
        Some(name) => Some(why::find(store, name)?),
        None => tasks::latest(store, place, State::NAME)?,
    };
    let run = id.map(|id| store.run(&id)).transpose()?.flatten();
    let Some(run) = run.filter(|run| run.record.machine == State::NAME) else {
        let what = named.map_or(
            "there is no delivery to continue in this project",
            |_| "that run is no delivery",
        );
        return Err(CommandError::new(what).with_help("start one: aldis deliver PLAN"));
    };
    let run: Handle<State> = engine.open(&run.id)?;
    let stored = &run.state().run().config;
    let config = budgets(args, stored.clone());
    match run.state().ending() {
        None if config == *stored => Ok((run, Event::Recovered)),
        Some(ending) if !ending.can_be_continued() => Err(over(&run, ending)),
        _ => match run.state().reached(&config) {
            Some(limit) => Err(still_reached(&run, limit)),
            None => Ok((run, Event::Reopen { config: Box::new(config) })),
        },
    }
}

/// A delivery that nothing can be added to.
fn over(run: &Handle<State>, ending: Ending) -> CommandError {
    let (what, help) = match ending {
        Ending::Complete => ("is complete", "aldis tasks shows it; a new plan: aldis deliver PLAN"),
        Ending::Halted => {
            ("was halted by a human", "start a new one with what is left: aldis deliver PLAN")
        }
        _ => (
            "cannot continue: the remaining tasks depend on a task that failed",
            "start a new one with what is left: aldis deliver PLAN",
        ),
    };
    CommandError::new(format!("delivery {} {what}", run.id())).with_help(help)
}

/// A delivery whose limit was not raised far enough.
fn still_reached(delivery: &Handle<State>, limit: Limit) -> CommandError {
    let run = delivery.state().run();
    let (used, option) = match limit {
        Limit::Tokens => (format!("{} tokens used", run.spent.tokens), "--max-tokens N".to_owned()),
        Limit::Cost => {
            let spent = Dollars(run.spent.micro_dollars);
            (format!("{spent} dollars spent"), "--max-cost DOLLARS".to_owned())
        }
        Limit::Time => (
            format!("agents worked for {} s", run.worked_millis / 1_000),
            "--total-timeout TIME".to_owned(),
        ),
    };
    let what = format!("delivery {} has reached its limit: {used}", delivery.id());
    let help = format!("raise the limit: aldis deliver --continue {} {option}", delivery.id());
    CommandError::new(what).with_help(help)
}

/// Returns how a stored delivery is driven.
pub(super) fn plan(
    io: &Io,
    launch: &DeliveryLaunch,
    project: PathBuf,
) -> Result<DeliveryPlan, CommandError> {
    let input = input_format(&launch.input)?;
    let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let agent = |command: &[String], resume: Option<&Vec<String>>, prompt: PromptBy| AgentCommand {
        command: words(command),
        prompt,
        pty: false,
        input,
        resume: resume.map(|resume| words(resume)),
    };
    let role = |table: &RoleTable| {
        // Who has another command goes on in another way too.
        let (command, resume) = match &table.command {
            Some(command) => (command, table.resume.as_ref()),
            None => (&launch.command, table.resume.as_ref().or(launch.resume.as_ref())),
        };
        let preface = table.prompt.clone().unwrap_or_default();
        (agent(command, resume, table.prompt_by.unwrap_or(launch.prompt_by)), preface)
    };
    Ok(DeliveryPlan {
        roles: launch.roles.iter().map(|(name, table)| (*name, role(table))).collect(),
        command: agent(&launch.command, launch.resume.as_ref(), launch.prompt_by),
        project,
        state: home::state_directory(io.state_dir.as_deref())?,
        rules: Rules::new(Dialect::builtin(DIALECT).cloned()),
        zone: clock::local_zone(),
        ask_here: false,
        no_wait: false,
        limit_wait: LIMIT_WAIT,
        boxes: launch.boxes.clone(),
        answer: None,
    })
}
