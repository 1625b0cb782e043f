//! `aldis auto`: starts, shows, resumes and ends phases under a Stop hook.

mod checks;

use std::collections::BTreeSet;
use std::io::Write as _;

use aldis_engine::{Engine, NewRun};
use aldis_machine::phases::{Config, Event, Pipeline, Start, State, TokenPolicy};
use aldis_machine::proof::Proof;
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, Turn};
use clap::{Args, Subcommand, ValueEnum};

use super::Outcome;
use super::check_flags::CheckFlags;
use crate::app::retention::Retention;
use crate::error::CommandError;
use crate::hosts::hook::fresh_token;
use crate::hosts::hook::live::{self, PhasesRun};
use crate::hosts::install::doctor::{HealthCheck, distrusted, is_registered};
use crate::hosts::install::locations::Locations;
use crate::hosts::{Env, Host, state_file};
use crate::io::Io;
use crate::notify;
use crate::settings::catalog::Catalog;
use crate::settings::clock;
use crate::settings::config::{Layered, Node, Origin, Settings};
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::settings::trust::Trusted;
use crate::telemetry;
use crate::view::display;
use crate::view::json;
use crate::view::run_view::RunView;
use crate::view::wire::run::RunForm;

/// The longest task.
const TASK_MAX: u64 = 64 * 1024;

/// Take an agent through phases, each completed by its signal
///
/// A run belongs to a project. While it is active, the Stop hook that `aldis install` registers lets
/// the agent stop only when the current phase is complete, and then starts the next one.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  aldis auto start \"Add CSV export\"
  aldis auto start --skip-review --max-iterations 10 \"Fix the typo\"
  aldis auto start --dialect promise=\"ALL TESTS PASS\" \"Make the tests pass\"
  aldis auto status --json
  aldis auto resume")]
pub(super) enum AutoCommand {
    /// Continue a run that was capped, went stale or failed
    ///
    /// Continues in the same phase with counters at zero. The next session that works in the project takes
    /// the run over.
    Resume(PlainArgs),
    Start(Box<StartArgs>),
    /// Show the run of the current project
    ///
    /// The active one, else the last that ended. Exits with 1 if there is none.
    Status(checks::StatusArgs),
    /// End the run of the current project
    ///
    /// The agent may stop from then on. Exits with 1 if there is no active run.
    Stop(PlainArgs),
}

/// The options of the subcommands that take nothing else.
#[derive(Debug, Args)]
pub(super) struct PlainArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Start a run in the current project
///
/// Prints what to tell the agent. If the hook is installed, the first prompt of the session brings it
/// automatically. Exits with 1 if the project has an active run already.
#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// The task; `-` reads it from standard input
    task: String,

    /// Start after the first phase
    #[arg(long)]
    skip_expansion: bool,

    /// Leave out qa
    #[arg(long)]
    skip_qa: bool,

    /// Leave out review, fix and check
    #[arg(long)]
    skip_review: bool,

    /// Leave out reflect
    #[arg(long)]
    skip_reflect: bool,

    /// Set a skip flag of your own pipeline (repeatable)
    #[arg(long, value_name = "FLAG")]
    skip: Vec<String>,

    /// Maximum number of blocked stops per phase, 1 to 50 (default: 20); then the run fails
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    max_iterations: Option<u32>,

    /// The pipeline: caw (nine phases), loop (one), or one that `aldis.toml` defines
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,

    /// The dialect in which the agent reports; any signal in it that means done completes a phase
    ///
    /// Named alone, it makes a loop: one phase, in which the agent works until it reports that it is
    /// done. `promise=TEXT` sets the text it has to promise.
    #[arg(long, short, value_name = "DIALECT")]
    dialect: Option<String>,

    /// Whether signals must carry a token that only this run's prompts contain
    #[arg(long, value_enum, value_name = "POLICY")]
    token: Option<TokenArg>,

    /// Bind the run to this session of the host
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Tell the agent to decide for itself instead of asking
    #[arg(long)]
    no_questions: bool,

    /// Ask for functional, security and quality verdicts in the review
    #[arg(long)]
    parallel_validation: bool,

    /// Show the counters in prompts
    #[arg(long)]
    verbose: bool,

    /// End an active run of the project first
    #[arg(long)]
    replace: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    checks: CheckFlags,
}

/// What is done about run tokens.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TokenArg {
    /// No token
    Off,
    /// Refuse a wrong token
    Accept,
    /// Refuse a wrong or missing token
    Require,
}

impl From<TokenArg> for TokenPolicy {
    fn from(arg: TokenArg) -> Self {
        match arg {
            TokenArg::Off => Self::Off,
            TokenArg::Accept => Self::Accept,
            TokenArg::Require => Self::Require,
        }
    }
}

/// What every subcommand needs.
struct Scene {
    engine: Engine,
    place: Place,
    now: Timestamp,
}

impl Scene {
    fn open(io: &Io) -> Result<Self, CommandError> {
        Ok(Self {
            engine: notify::open_engine(io.state_dir.as_deref())?,
            place: project::here()?,
            now: clock::now()?,
        })
    }

    /// The project of this place.
    fn project(&self) -> String {
        project::name(self.place.root())
    }

    /// Waits for the turn of the project whose run is meant.
    fn turn(&self) -> Result<Box<dyn Turn + '_>, CommandError> {
        let project = self.run()?.map_or_else(|| self.project(), |run| run.project().to_owned());
        Ok(live::turn(self.engine.store(), &project)?)
    }

    /// The live run of this place.
    fn live(&self) -> Result<Option<PhasesRun>, CommandError> {
        Ok(live::live(self.engine.store(), &self.place, None)?)
    }

    /// The run of this place: the live one, else the latest.
    fn run(&self) -> Result<Option<PhasesRun>, CommandError> {
        match self.live()? {
            Some(live) => Ok(Some(live)),
            None => Ok(live::latest(self.engine.store(), &self.project())?),
        }
    }

    /// Says that this place has no such run.
    fn none(&self, io: &mut Io, what: &str) -> Result<Outcome, CommandError> {
        let place = display::line(&self.place.root().to_string_lossy());
        writeln!(io.stderr, "no {what} in `{place}`")?;
        Ok(Outcome::No)
    }

    /// Lets a run take an event.
    fn step(&self, run: &mut PhasesRun, event: Event) -> Result<(), CommandError> {
        self.engine.step(self.now, run, event, None)?;
        Ok(())
    }

    /// Writes the state file, outside the turn. The run goes on without it.
    fn write_view(&self, io: &mut Io, run: &mut PhasesRun) -> Result<(), CommandError> {
        if let Err(why) = state_file::refresh(&self.engine, self.now, run) {
            let why = display::lines(&why);
            writeln!(io.stderr, "warning: the state file was not written: {why}")?;
        }
        Ok(())
    }
}

pub(super) fn run(io: &mut Io, command: AutoCommand) -> Result<Outcome, CommandError> {
    match command {
        AutoCommand::Resume(args) => resume(io, &args),
        AutoCommand::Start(args) => start(io, *args),
        AutoCommand::Status(args) => checks::status(io, &args),
        AutoCommand::Stop(args) => stop(io, &args),
    }
}

fn start(io: &mut Io, args: StartArgs) -> Result<Outcome, CommandError> {
    let scene = Scene::open(io)?;
    let turn = scene.turn()?;
    let mut live = scene.live()?;
    if let (Some(live), false) = (&live, args.replace) {
        let (id, state) = (live.id(), live.state());
        let task = display::line(state.task());
        writeln!(io.stderr, "run {id} is active here: {task} (phase {})", state.phase())?;
        writeln!(io.stderr, "end it with `aldis auto stop`, or start with --replace")?;
        return Ok(Outcome::No);
    }
    let json = args.json;
    // Before the other run ends: nothing ends for a run that cannot begin.
    let trusted = Trusted::of_user(io.state_dir.as_deref())?;
    let mut flags = Node::empty(Origin::Default);
    args.checks.put(&mut flags);
    let layered = Layered::load(&scene.place, Some(flags))?;
    let proof = layered.checks(&trusted)?;
    let mut start = begin(io, &scene, args)?;
    let mut new = NewRun::of(scene.project(), Driver::Hook);
    new.notes.extend(telemetry::note_of_caller()?);
    if proof.is_active() {
        checks::pin(io, &scene, (&mut start, &mut new), proof)?;
    }
    if let Some(notify) = layered.notices(&trusted)? {
        notify::check(&notify, scene.place.root())?;
        new.notes.push(notify::note(&notify)?);
    }
    if let Some(live) = &mut live {
        scene.step(live, Event::Cancel { by: "`aldis auto start --replace`".to_owned() })?;
    }
    let (mut run, _) = scene.engine.begin::<State>(scene.now, &new, start)?;
    drop(turn);
    if let Some(ended) = &mut live {
        scene.write_view(io, ended)?;
    }
    scene.write_view(io, &mut run)?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    Retention::new(scene.engine.shared_store(), state)?.once(scene.now)?;
    if json {
        show_form(io, &scene, &run, true)?;
    } else {
        let title = display::line(run.state().task());
        writeln!(io.stdout, "Started run {}: {title}", run.id())?;
        show_prompt(io, &run)?;
    }
    warn_without_hook(io)
}

/// Prints the run for programs, with what the agent is told where that comes next.
fn show_form(
    io: &mut Io,
    scene: &Scene,
    run: &PhasesRun,
    with_prompt: bool,
) -> Result<(), CommandError> {
    let Some(snapshot) = scene.engine.snapshot(run.id())? else { return Ok(()) };
    let view = RunView::new(&snapshot, scene.now);
    let Some(mut form) = RunForm::new(&snapshot, &view) else { return Ok(()) };
    form.prompt = with_prompt.then(|| run.state().start_prompt());
    Ok(json::write_line(&mut io.stdout, &form)?)
}

/// Shows what the agent is told, and says to people how it gets there.
fn show_prompt(io: &mut Io, run: &PhasesRun) -> Result<(), CommandError> {
    let hosts = registered_hosts(&Locations::new()?);
    let programs: Vec<String> = hosts
        .iter()
        .filter_map(|host| Some(format!("`{}`", host.spec().programs.first()?)))
        .collect();
    if !programs.is_empty() {
        let programs = programs.join(" or ");
        writeln!(
            io.stdout,
            "Next: start {programs} here and send any prompt. It brings these instructions:"
        )?;
    }
    write!(io.stdout, "\n{}", display::lines(&run.state().start_prompt()))?;
    Ok(())
}

/// The hosts that call the hook in this project.
fn registered_hosts(locations: &Locations) -> Vec<Host> {
    Host::all().iter().copied().filter(|host| is_registered(locations, *host)).collect()
}

/// Says that nothing will keep the agent working where no host calls the hook, or where the host
/// ignores it.
fn warn_without_hook(io: &mut Io) -> Result<Outcome, CommandError> {
    let locations = Locations::new()?;
    let hosts = registered_hosts(&locations);
    if hosts.is_empty() {
        let names: Vec<&str> = Host::all().iter().map(|host| host.name()).collect();
        writeln!(io.stderr, "warning: no host calls aldis here, so nothing enforces this run")?;
        writeln!(io.stderr, "help: aldis install HOST ({})", names.join(", "))?;
    }
    for HealthCheck { message, fix, .. } in
        hosts.iter().flat_map(|host| distrusted(&locations, *host))
    {
        writeln!(io.stderr, "warning: {}", display::line(&message))?;
        writeln!(io.stderr, "help: {}", display::line(&fix.unwrap_or_default()))?;
    }
    Ok(Outcome::Yes)
}

/// Checks what was asked for and makes it the beginning of a run.
fn begin(io: &mut Io, scene: &Scene, args: StartArgs) -> Result<Start, CommandError> {
    let settings = Settings::load(&scene.place)?;
    let catalog = Catalog::load(scene.place.root())?;
    let pipeline = pipeline(&settings, &args)?;
    let checked = pipeline.check(&*catalog.choose(&pipeline.dialect)?);
    checked.map_err(|error| CommandError::new(format!("pipeline `{}`: {error}", pipeline.name)))?;
    let mut config = config(&settings, &pipeline, &args)?;
    // Which host it will be is not known. Whoever lacks the tools is told what to write.
    let locations = Locations::new()?;
    config.prefer_calls = Host::all().iter().any(|host| locations.has_server(*host));
    let mut phase = pipeline.first(&config.skip);
    if args.skip_expansion {
        phase = pipeline.next(phase, &config.skip).unwrap_or(phase);
    }
    let phase = phase.to_owned();
    let token = fresh_token(config.token)?;
    Ok(Start {
        task: task(io, args.task)?,
        phase,
        config,
        pipeline,
        max_iterations: args
            .max_iterations
            .unwrap_or_else(|| settings.phases.max_iterations.small()),
        session: args.session.or_else(|| Env::of_process().session().map(str::to_owned)),
        token,
        proof: Proof::default(),
    })
}

/// The pipeline that is asked for. The phases of caw are no part of another dialect: who names only
/// that, and no phase to skip, gets a loop.
fn pipeline(settings: &Settings, args: &StartArgs) -> Result<Pipeline, CommandError> {
    let name = args.pipeline.as_deref().unwrap_or(&settings.phases.pipeline);
    let pipeline = settings.pipeline(name)?;
    let skips = [args.skip_expansion, args.skip_qa, args.skip_review, args.skip_reflect];
    let wants_phases = args.pipeline.is_some() || name != "caw" || skips.contains(&true);
    Ok(match &args.dialect {
        Some(dialect) if !wants_phases && *dialect != pipeline.dialect => {
            Pipeline::looping(dialect)
        }
        Some(dialect) => pipeline.in_dialect(dialect),
        None => pipeline,
    })
}

fn config(
    settings: &Settings,
    pipeline: &Pipeline,
    args: &StartArgs,
) -> Result<Config, CommandError> {
    let mut config = settings.phases_config();
    let asked = [
        (args.skip_qa, "skip_qa"),
        (args.skip_review, "skip_review"),
        (args.skip_reflect, "skip_reflect"),
    ];
    let asked = asked.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag);
    let skip: BTreeSet<String> =
        asked.chain(args.skip.iter().map(String::as_str)).map(str::to_owned).collect();
    let flags = pipeline.flags();
    if let Some(unknown) = skip.iter().find(|flag| !flags.contains(&***flag)) {
        let flags: Vec<&str> = flags.into_iter().collect();
        let name = &pipeline.name;
        return Err(CommandError::new(format!("pipeline `{name}` has no flag `{unknown}`"))
            .with_help(format!("the flags are {}", flags.join(", "))));
    }
    if pipeline.first(&skip) == aldis_machine::phases::COMPLETE {
        return Err(CommandError::new("every phase is skipped: there is nothing to do"));
    }
    config.skip = skip;
    config.verbose |= args.verbose;
    config.no_questions |= args.no_questions;
    config.parallel_validation |= args.parallel_validation;
    if let Some(policy) = args.token {
        config.token = policy.into();
    }
    Ok(config)
}

fn task(io: &mut Io, task: String) -> Result<String, CommandError> {
    let mut text = task;
    if text == "-" {
        text.clear();
        let mut input = std::io::Read::take(&mut io.stdin, TASK_MAX);
        std::io::Read::read_to_string(&mut input, &mut text)
            .map_err(|error| CommandError::new(format!("standard input: {error}")))?;
    }
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(CommandError::new("the task is empty")
            .with_help("describe it: aldis auto start \"Add CSV export\""));
    }
    Ok(text)
}

fn resume(io: &mut Io, args: &PlainArgs) -> Result<Outcome, CommandError> {
    let scene = Scene::open(io)?;
    let turn = scene.turn()?;
    let Some(mut run) = scene.run()? else {
        return scene.none(io, "run to resume");
    };
    if let Err(refused) = run.state().can_resume() {
        writeln!(io.stderr, "run {}: {refused}; start another: aldis auto start", run.id())?;
        return Ok(Outcome::No);
    }
    let fresh_token = fresh_token(run.state().config().token)?;
    scene.step(&mut run, Event::Resume { fresh_token, by: "`aldis auto resume`".to_owned() })?;
    drop(turn);
    scene.write_view(io, &mut run)?;
    if args.json {
        show_form(io, &scene, &run, true)?;
    } else {
        writeln!(io.stdout, "Resumed run {} in phase {}", run.id(), run.state().phase())?;
        show_prompt(io, &run)?;
    }
    warn_without_hook(io)
}

fn stop(io: &mut Io, args: &PlainArgs) -> Result<Outcome, CommandError> {
    let scene = Scene::open(io)?;
    let turn = scene.turn()?;
    let Some(mut run) = scene.live()? else {
        return scene.none(io, "active run");
    };
    scene.step(&mut run, Event::Cancel { by: "`aldis auto stop`".to_owned() })?;
    drop(turn);
    scene.write_view(io, &mut run)?;
    if args.json {
        show_form(io, &scene, &run, false)?;
    } else {
        writeln!(io.stdout, "Ended run {} in phase {}", run.id(), run.state().phase())?;
    }
    Ok(Outcome::Yes)
}
