//! `aldis demo`: a small plan, delivered by built-in agents that follow a script.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use aldis_machine::delivery::{Config, Event};
use clap::Args;

use super::deliver::launch::{self, DeliveryLaunch};
use super::run::output_options;
use super::{Outcome, deliver};
use crate::app::formats::plan::{PlanFormat, read_plan};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::config::Notify;
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::settings::prompt_by::PromptBy;

/// What is delivered.
const PLAN: &str = include_str!("demo.md");
/// What is about to be seen.
const INTRODUCTION: &str = "\
A demonstration: five tasks, delivered by agents that follow a script. For each task a developer
works, a critic reviews, an auditor accepts. On the way one review fails, the database breaks and is
repaired, and a question is answered by itself. Nothing in this directory is changed.
";
/// The hidden command that plays an agent.
const AGENT: &str = "demo-agent";
/// How long a question waits, and the answer it gets.
const ANSWER: (Duration, &str) = (Duration::from_secs(2), "Drop the old address.");
/// How long an agent pretends to work.
const WORK: Duration = Duration::from_millis(700);

/// Watch a plan being delivered by built-in scripted agents
///
/// Needs nothing but this program and takes less than a minute. One review fails and is reworked, one
/// task finds the database down and is repaired, one question is asked and answered automatically.
/// Nothing in the current directory changes. The delivery is kept, so `aldis why` can explain it.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Do not wait while agents pretend to work
    #[arg(long)]
    fast: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Plays an agent of the demonstration.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct DemoAgentArgs {
    /// Where it is noted what was done before
    notes: PathBuf,

    /// How many milliseconds to work
    pause: u64,
}

pub(super) fn run(io: &mut Io, args: &DemoArgs) -> Result<Outcome, CommandError> {
    let failed = |what: &str, error: std::io::Error| CommandError::new(format!("{what}: {error}"));
    let directory = project::current()?;
    let notes = tempfile::tempdir().map_err(|error| failed("a temporary directory", error))?;
    let program = env::current_exe().map_err(|error| failed("this program's path", error))?;
    let pause = if args.fast { 0 } else { WORK.as_millis() };
    let launch = DeliveryLaunch {
        directory: None,
        command: vec![
            program.to_string_lossy().into_owned(),
            AGENT.to_owned(),
            notes.path().to_string_lossy().into_owned(),
            pause.to_string(),
        ],
        host: None,
        prompt_by: PromptBy::Stdin,
        input: "text".to_owned(),
        resume: None,
        notify: Notify { terminal: false, ..Notify::default() },
        roles: BTreeMap::new(),
        strict: false,
        boxes: None,
        labels: Vec::new(),
        environment: Vec::new(),
        repository: None,
    };
    let tasks = read_plan(PlanFormat::Markdown, PLAN)
        .plan
        .ok_or_else(|| CommandError::new("the built-in plan cannot be read"))?;
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let place = Place::of(&directory, None);
    let run = deliver::create(&engine, &place, tasks, Config::default(), &launch)?;
    let id = run.id().clone();
    let state = home::state_directory(io.state_dir.as_deref())?;
    let mut plan = launch::plan(state, &launch, directory)?;
    let wait = if args.fast { Duration::ZERO } else { ANSWER.0 };
    plan.answer = Some((wait, ANSWER.1.to_owned()));
    let options = output_options(io, false, args.json);
    if !args.json {
        writeln!(io.stderr, "{INTRODUCTION}")?;
        io.stderr.flush()?;
    }
    let outcome =
        deliver::drive(io, (engine, run), &plan, (&launch.notify, options), Event::Begin)?;
    if !args.json {
        writeln!(
            io.stderr,
            "\nNow ask why, in this directory:\n  aldis why writer     the whole history of a task: every signal and every rule\n  \
             aldis why nightly    an infrastructure failure that counts against no task\n  aldis log {id}   everything that was decided"
        )?;
    }
    Ok(outcome)
}

/// Plays one agent: says what its role says about its task, the first time sometimes something else.
pub(super) fn agent(io: &mut Io, args: &DemoAgentArgs) -> Result<Outcome, CommandError> {
    let mut prompt = String::new();
    // What it is told does not matter to a script.
    let _read = io.stdin.read_to_string(&mut prompt);
    thread::sleep(Duration::from_millis(args.pause));
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let (role, task) = (variable("ALDIS_ROLE"), variable("ALDIS_TASK"));
    let first = is_first(&args.notes, &role, &task);
    writeln!(io.stdout, "{}", words(&role, &task, first))?;
    Ok(Outcome::Yes)
}

/// Notes that this role has seen this task; returns whether it never had.
fn is_first(notes: &Path, role: &str, task: &str) -> bool {
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(notes.join(format!("{role}-{task}")))
        .is_ok()
}

fn words(role: &str, task: &str, first: bool) -> String {
    match (role, task, first) {
        ("developer", "nightly", true) => "The database does not answer.\n\nINFRA_BLOCKED: nightly\n\
             Issue: nothing listens on the database's port\nCommand: make migrate\nOutput: connection refused"
            .to_owned(),
        ("developer", "button", true) => "Two ways are possible.\n\nSEEKING_DIVINE_CLARIFICATION\n\
             Task: button\nQuestion: keep or drop the old address?\nContext: two clients still use it"
            .to_owned(),
        ("developer", ..) => format!(
            "The change is made and tested.\n\nREADY_FOR_REVIEW: {task}\nFiles Modified:\n- src/{task}.rs\n\
             Tests Written:\n- tests/{task}.rs\nSummary: done as described"
        ),
        ("critic", "writer", true) => "One case is missing.\n\nREVIEW_FAILED: writer\nIssues Found:\n\
             - src/writer.rs:42: a line end inside a field is not escaped\nRequired Fixes:\n\
             - escape line ends and test it\nPriority: HIGH"
            .to_owned(),
        ("critic", ..) => format!("REVIEW_PASSED: {task}\nSummary: clear and tested"),
        ("auditor", ..) => format!("AUDIT_PASSED: {task}\nSummary: every criterion is met"),
        ("remediation", ..) => {
            "The database runs again.\n\nREMEDIATION_COMPLETE\nSummary: it was started".to_owned()
        }
        ("health_auditor", ..) => "HEALTH_AUDIT: HEALTHY\nSummary: it answers".to_owned(),
        _ => format!("I do not know what a {role} says."),
    }
}
