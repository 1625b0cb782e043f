//! `aldis output`: what the agents of a run wrote.

use std::io::{IsTerminal as _, Write as _};
use std::thread;
use std::time::Duration;

use aldis_machine::{Machine as _, delivery};
use aldis_signal::Rules;
use aldis_store::{RunId, Store};
use clap::Args;

use super::{Outcome, tasks, why};
use crate::agents::output_log::LoggedAgent;
use crate::app::output::{OutputReader, Written};
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::home;
use crate::view::display;
use crate::view::paint::Paint;

/// How often output that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Show what the agents of a run wrote
///
/// Shows what agents said, without the prompts, tool output and records of their hosts, and without
/// secrets of known shapes. Exits with 1 if nothing is kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis output
  aldis output 7f3kq2bn --follow
  aldis output --task csv-writer --raw")]
pub(super) struct OutputArgs {
    /// The run (default: the active run of this project, else its latest)
    run: Option<String>,

    /// Only of the agents that worked on this task of a delivery
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// Keep printing what the agents write, until the run ends
    #[arg(long, short)]
    follow: bool,

    /// Show what the host printed, line by line, as it is kept
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(io: &mut Io, args: &OutputArgs) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let store = &*store;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let run = match (&args.run, &args.task) {
        (Some(name), _) => Some(why::find(store, name)?),
        (None, Some(_)) => tasks::latest(store, &tasks::here()?, delivery::State::NAME)?,
        (None, None) => why::around(store)?,
    };
    let Some(run) = run else {
        writeln!(io.stderr, "no run in this project; `aldis status --all` lists all runs")?;
        return Ok(Outcome::No);
    };
    let rules = Rules::new([]);
    let rules = (!args.raw).then_some(&rules);
    let mut reader = OutputReader::new(&state, &run, args.task.as_deref(), rules);
    let mut last = None;
    loop {
        // Asked first: what an agent writes until its run ends is read after that.
        let is_over = !args.follow || !goes_on(store, &run)?;
        let failed = |error| CommandError::new(format!("the output of run {run}: {error}"));
        let mut written = reader.read().map_err(failed)?;
        while !written.is_empty() {
            show(io, &mut last, written)?;
            written = reader.read().map_err(failed)?;
        }
        io.stdout.flush()?;
        if is_over {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    show(io, &mut last, reader.finish())?;
    if last.is_none() {
        let of_task = args.task.as_ref().map(|task| format!(" about task {}", display::line(task)));
        writeln!(io.stderr, "no output of run {run}{} is kept", of_task.unwrap_or_default())?;
        return Ok(Outcome::No);
    }
    Ok(Outcome::Yes)
}

fn goes_on(store: &dyn Store, run: &RunId) -> Result<bool, CommandError> {
    Ok(store.run(run)?.is_some_and(|run| run.record.active))
}

/// Shows what agents wrote, each with its name where there are several. `last` is whose was shown last.
fn show(
    io: &mut Io,
    last: &mut Option<LoggedAgent>,
    all: Vec<(LoggedAgent, Written)>,
) -> std::io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let out = &mut io.stdout;
    for (agent, written) in all {
        if let (LoggedAgent { agent: Some(number), role, task }, Written::Text { .. }) =
            (&agent, &written)
            && last.as_ref() != Some(&agent)
        {
            let task = task.as_ref().map(|task| format!("{}: ", display::line(task)));
            let title = format!("== {}{role} (agent {number})", task.unwrap_or_default());
            writeln!(out, "{}", paint.strong(title))?;
        }
        *last = Some(agent);
        match written {
            Written::Text { text, own: true } => write!(out, "{}", display::lines(&text))?,
            Written::Text { text, own: false } => text
                .lines()
                .try_for_each(|line| writeln!(out, "{}", paint.dim(display::line(line))))?,
            Written::Raw(bytes) if std::io::stdout().is_terminal() => {
                write!(out, "{}", display::lines(&String::from_utf8_lossy(&bytes)))?;
            }
            Written::Raw(bytes) => out.write_all(&bytes)?,
            Written::Tool(_) | Written::ToolEnded(..) => {}
        }
    }
    Ok(())
}
