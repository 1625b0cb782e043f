//! `aldis worker`: runs the agents of deliveries that only coordinate, on this machine.

use std::io::Write as _;
use std::time::Duration;

use aldis_machine::delivery::Role;
use aldis_process::host_name;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::Outcome;
use super::deliver::{label, launch};
use crate::app::fleet;
use crate::coordinate::worker::threads::{ReadLaunch, Threads};
use crate::coordinate::worker::{Offer, work};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::config::Seconds;
use crate::settings::{clock, home};
use crate::view::wire::worker::WorkerLine;
use crate::view::{display, json};

/// Where clones and work trees of workers are, in the state directory.
const DIRECTORY: &str = "workers";

/// Run the agents of deliveries that were started with `aldis deliver --workers`
///
/// Claims agents from the store, makes their work trees from the git remote of the delivery, runs them,
/// and pushes their work. Any number of workers on any machines may share a store. SIGTERM or Ctrl-C
/// lets agents at work finish (--drain), a second one ends them. Exit code: 0 when it has left.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  aldis worker --slots 4
  aldis worker --slots 2 --labels linux,claude --roles developer,critic
  aldis worker list")]
pub(super) struct WorkerArgs {
    #[command(subcommand)]
    command: Option<WorkerCommand>,

    /// How many agents run at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
    slots: u16,

    /// What agents find here, separated by commas: an agent that needs more is left to others
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = label)]
    labels: Vec<String>,

    /// Run only agents of these roles, separated by commas (default: all)
    #[arg(long, value_name = "ROLES", value_delimiter = ',', value_parser = role())]
    roles: Vec<Role>,

    /// What this worker is called, unique in the store (default: the machine and the process)
    ///
    /// A name that stays the same lets agents continue their sessions after a restart.
    #[arg(long, value_name = "NAME", value_parser = label)]
    name: Option<String>,

    /// How long agents at work may go on when the worker is asked to leave
    #[arg(long, value_name = "TIME", default_value = "15m")]
    drain: Seconds<0>,
}

#[derive(Debug, Subcommand)]
enum WorkerCommand {
    List(WorkerListArgs),
}

/// List the workers and what they run
#[derive(Debug, Args)]
struct WorkerListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

fn role() -> impl TypedValueParser<Value = Role> {
    let names = PossibleValuesParser::new(Role::ALL.iter().map(|role| role.as_str()));
    names.try_map(|name| Role::named(&name).ok_or("unknown role"))
}

pub(super) fn run(io: &mut Io, args: &WorkerArgs) -> Result<Outcome, CommandError> {
    if let Some(WorkerCommand::List(args)) = &args.command {
        return list(io, args);
    }
    let state = home::state_directory(io.state_dir.as_deref())?;
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let machine = host_name();
    let own = || format!("{machine}-{}", std::process::id());
    let name = args.name.clone().unwrap_or_else(own);
    let variables = std::env::vars_os().filter_map(|(name, _)| name.to_str().map(str::to_owned));
    let offer = Offer {
        name: name.clone(),
        machine: machine.clone(),
        slots: usize::from(args.slots),
        labels: args.labels.clone(),
        environment: variables.collect(),
        roles: args.roles.clone(),
        drain: Duration::from_secs(args.drain.0),
    };
    let (directory, own_state) = (state.join(DIRECTORY).join(&name), state.clone());
    let read_launch: Box<ReadLaunch> = Box::new(move |stored| {
        let launch = launch::read(stored.clone())?;
        launch::plan(own_state.clone(), &launch, std::path::PathBuf::new())
    });
    let store = engine.shared_store();
    let mut slots = Threads::new(engine, &name, (directory, state), read_launch)?;
    writeln!(io.stdout, "worker {name} is ready ({} slots)", offer.slots)?;
    io.stdout.flush()?;
    work(&*store, &mut slots, &offer)?;
    Ok(Outcome::Yes)
}

fn list(io: &mut Io, args: &WorkerListArgs) -> Result<Outcome, CommandError> {
    let now = clock::now()?;
    let store = home::open_store(io.state_dir.as_deref())?;
    let workers = fleet::workers(&*store, now)?;
    for worker in &workers {
        if args.json {
            json::write_line(&mut io.stdout, worker)?;
        } else {
            writeln!(io.stdout, "{}", display::line(&in_words(worker)))?;
            for agent in &worker.agents {
                let task = agent.task.as_deref().unwrap_or("no task");
                let (run, role) = (&agent.run, agent.role.replace('_', " "));
                let line = format!("  {role} of {task}  {run}, agent {}", agent.agent);
                writeln!(io.stdout, "{}", display::line(&line))?;
            }
        }
    }
    if workers.is_empty() && !args.json {
        writeln!(io.stderr, "no workers; start one: aldis worker")?;
    }
    Ok(if workers.is_empty() { Outcome::No } else { Outcome::Yes })
}

fn in_words(worker: &WorkerLine) -> String {
    let WorkerLine { name, machine, state, slots, agents, .. } = worker;
    let mut text = format!("{name}  {state}  {}/{slots} slots  on {machine}", agents.len());
    for (what, listed) in [("labels", &worker.labels), ("roles", &worker.roles)] {
        if !listed.is_empty() {
            text = format!("{text}  {what} {}", listed.join(","));
        }
    }
    text
}
