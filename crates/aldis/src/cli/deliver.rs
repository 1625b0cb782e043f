//! `aldis deliver`: a plan, delivered by a developer, a critic and an auditor.

mod go_on;
pub(super) mod launch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use aldis_engine::{Engine, Handle, LAUNCH, NewRun};
use aldis_machine::delivery::{Config, Event, Plan as Tasks, Role, Start, State};
use aldis_store::Driver;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};

use self::launch::DeliveryLaunch;
use super::check_flags::{CheckFlags, check_proof};
use super::host_flags::{HostFlags, HostLaunch, refuse_without_host, usual_host};
use super::run::output_options;
use super::{Outcome, detach, plan};
use crate::agents::command::SESSION;
use crate::app::retention::Retention;
use crate::coordinate::delivery::{self, Delivered, DeliveryPlan, PlanBoxes};
use crate::coordinate::remote::SharedRepository;
use crate::coordinate::repository::Isolation;
use crate::error::CommandError;
use crate::hosts::Host;
use crate::hosts::headless::check_program;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::config::{Count, Dollars, Layered, Notify, RoleTable, Seconds, Tokens};
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::settings::prompt_by::PromptBy;
use crate::settings::trust::Trusted;
use crate::telemetry;
use crate::view::display;
use crate::view::live::OutputOptions;
use crate::view::live::delivery::DeliveryReporter;

/// How long a label may be.
const LABEL_MAX: usize = 64;

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
  aldis deliver plan.md --host claude-code --allow Bash
  aldis deliver plan.toml --slots 3 -- ./my-agent.sh
  aldis deliver --continue --max-cost 20")]
pub(super) struct DeliverArgs {
    /// The plan: TOML, YAML, JSON, or Markdown with check boxes
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "go_on")]
    plan: Option<PathBuf>,

    /// The agent (default: `host` in [run] of aldis.toml, else the only installed one)
    #[arg(long, value_parser = headless_host(), conflicts_with = "go_on")]
    host: Option<Host>,

    #[command(flatten)]
    may: HostFlags,

    /// How agents get their prompt (--host knows; default: on standard input)
    #[arg(long, value_enum, value_name = "HOW")]
    prompt_by: Option<PromptBy>,

    /// What agents write: auto, text, or a host (--host knows; default: auto)
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

    /// Only coordinate: `aldis worker` runs the agents, here or on other machines
    ///
    /// They get the project from a git remote and push the work of each task to a branch there.
    #[arg(long, conflicts_with_all = ["go_on", "no_worktrees"])]
    workers: bool,

    /// Labels that workers must have, separated by commas
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = label)]
    #[arg(requires = "workers")]
    labels: Vec<String>,

    /// The git repository from which workers get the project (default: the remote `origin`)
    #[arg(long, value_name = "URL", requires = "workers")]
    remote: Option<String>,

    /// Variables that must be set where agents run, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "workers")]
    needs_env: Vec<String>,

    /// Let all agents work in this directory
    #[arg(long, conflicts_with_all = ["go_on", "worktrees"])]
    no_worktrees: bool,

    /// Do not tick the boxes of a Markdown plan
    #[arg(long, conflicts_with = "go_on")]
    no_tick: bool,

    /// Send tasks without acceptance criteria to a business analyst first
    #[arg(long, conflicts_with = "go_on")]
    business_analyst: bool,

    /// Time limit for the agents' work: seconds, or a span such as 2h
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

    /// Run in the background, independent of this terminal; `aldis attach` shows the delivery
    #[arg(long, conflicts_with = "json")]
    detach: bool,

    /// Hide the decisions (-v also shows what the agents say and do)
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Continue this delivery (default: this project's most recent delivery)
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, conflicts_with = "plan")]
    go_on: Option<Option<String>>,

    /// The agents' command instead of a host; with --host, further arguments of the host
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "go_on")]
    command: Vec<String>,

    #[command(flatten)]
    checks: CheckFlags,
}

/// Takes a label: a word, so that it can be one of several.
pub(super) fn label(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match !text.is_empty() && text.len() <= LABEL_MAX && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err(format!("use 1 to {LABEL_MAX} letters, digits, `.`, `_` or `-`")),
    }
}

/// Takes the name of a host whose command is known.
pub(super) fn headless_host() -> impl TypedValueParser<Value = Host> {
    let known = Host::all_headless();
    let names = PossibleValuesParser::new(known.iter().map(|host| host.name()));
    names.try_map(|name| Host::headless(&name).map(|(host, _)| host))
}

pub(super) fn run(io: &mut Io, args: &DeliverArgs) -> Result<Outcome, CommandError> {
    let place = project::here()?;
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let (run, first) = match &args.plan {
        Some(path) => (begin(io, &engine, &place, args, path)?, Event::Begin),
        None => go_on::go_on(&engine, &place, args)?,
    };
    if args.detach {
        let command = ["deliver", "--quiet", "--continue", run.id().as_str()].map(str::to_owned);
        let limits = [
            args.total_timeout.map(|time| format!("--total-timeout={time}")),
            args.max_tokens.map(|tokens| format!("--max-tokens={tokens}")),
            args.max_cost.map(|cost| format!("--max-cost={cost}")),
            args.no_wait.then(|| "--no-wait".to_owned()),
        ];
        let command = command.into_iter().chain(limits.into_iter().flatten());
        let command = command.map(OsString::from).collect();
        return detach::detach(io, engine.store(), run.id(), command);
    }
    let options = output_options(io, args.quiet, args.json);
    let launch = launch::launch(&run)?;
    let directory = launch.directory(run.project())?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let mut plan = launch::plan(state, &launch, directory)?;
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
    let settings = Layered::load(place, Some(args.checks.layer()))?.delivering(&trusted)?;
    check_roles(&settings.roles)?;
    let usual = settings.limits();
    let said = if args.no_worktrees { Some(false) } else { args.worktrees.then_some(true) };
    let said = if args.workers { Some(true) } else { said.or(settings.deliver.worktrees) };
    let isolation = Isolation::of(said, place.root())?;
    let at_once = if isolation.worktrees() { usual.slots } else { 1 };
    let set = settings.deliver.slots.map_or(at_once, Count::small);
    let mut config = Config {
        slots: args.slots.unwrap_or(set),
        worktrees: isolation.worktrees(),
        workers: args.workers,
        business_analyst: args.business_analyst || usual.business_analyst,
        ..budgets(args, usual)
    };
    check_proof(&config.proof, place.root())?;
    let own_developer = settings.roles.get(&Role::Developer).is_some_and(|it| it.command.is_some());
    let host = host_launch(io, args, settings.host.as_deref(), own_developer)?;
    let (command, resume) = match &host {
        Some(host) => host.commands()?,
        // Nobody knows how a command of the user's own continues a session.
        None if args.workers => (args.command.clone(), None),
        None => (from_here(&args.command)?, None),
    };
    // What workers start is there and not here.
    if let Some(program) = command.first().filter(|_| !own_developer && !args.workers) {
        check_program(program, place.root())?;
    }
    if !args.quiet && !args.json {
        writeln!(io.stderr, "{}", display::line(&isolation.said(config.slots)))?;
        io.stderr.flush()?;
    }
    let remote = args.remote.as_deref();
    let shared = args.workers.then(|| SharedRepository::of(place.root(), remote));
    let repository = shared.transpose()?;
    config.prefer_calls = host.as_ref().is_some_and(HostLaunch::reports_by_call);
    let facts = host.as_ref().map(HostLaunch::host).transpose()?.map(|(_, headless)| headless);
    let prompt_by = args.prompt_by.or_else(|| facts.map(|it| it.prompt_by)).unwrap_or_default();
    let input = args.input.as_deref().or_else(|| facts.map(|it| it.output.as_str()));
    let launch = DeliveryLaunch {
        directory: Some(place.directory().to_owned()),
        command,
        host,
        prompt_by,
        input: input.unwrap_or("auto").to_owned(),
        resume,
        notify: settings.notify,
        roles: settings.roles,
        strict: settings.strict,
        boxes: boxes.filter(|_| !args.no_tick),
        labels: args.labels.clone(),
        environment: args.needs_env.clone(),
        repository,
    };
    create(engine, place, tasks, config, &launch)
}

/// The host that starts agents, unless a command does. Where the developers have a command of their own
/// the host need not be there.
fn host_launch(
    io: &mut Io,
    args: &DeliverArgs,
    set: Option<&str>,
    own_developer: bool,
) -> Result<Option<HostLaunch>, CommandError> {
    let (host, extra) = match args.host {
        Some(host) => (host, &*args.command),
        None if !args.command.is_empty() => {
            refuse_without_host(args.may.given())?;
            return Ok(None);
        }
        None => {
            let quiet = args.quiet || args.json || own_developer;
            let usual = usual_host(io, quiet, set, "aldis deliver PLAN");
            let usual = if own_developer { usual.or_else(|_| Ok(Host::original())) } else { usual };
            (usual?, &[][..])
        }
    };
    let mut launch = HostLaunch::of(host);
    launch.change(&args.may, extra)?;
    Ok(Some(launch))
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
    let driver = if config.workers { Driver::Worker } else { Driver::Process };
    let token = aldis_engine::token().map_err(|error| CommandError::new(error.to_string()))?;
    let notes = [aldis_engine::note(LAUNCH, launch)?, notify::note(&launch.notify)?];
    let new = NewRun {
        notes: notes.into_iter().chain(telemetry::note_of_caller()?).collect(),
        ..NewRun::of(project::name(place.root()), driver)
    };
    let start = Start { plan, config, token: Some(token) };
    Ok(engine.begin(clock::wall(), &new, start)?.0)
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
    let mut proof = usual.proof;
    args.checks.change(&mut proof);
    Config {
        proof,
        max_tokens: args.max_tokens.map(|tokens| tokens.0).or(usual.max_tokens),
        max_micro_dollars: args.max_cost.map(|cost| cost.0).or(usual.max_micro_dollars),
        max_time: args.total_timeout.map(|time| time.0).or(usual.max_time),
        ..usual
    }
}
