//! `--detach`: the run goes on in the background, whatever becomes of the terminal.
//!
//! The process in the background continues a run that this one has begun: there is one way to
//! supervise a run, and one to take it over.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use aldis_machine::Machine as _;
use aldis_machine::run::State;
use aldis_process::Background;
use aldis_store::{Run, RunFilter, RunId, RunSummary, Store};

use super::Outcome;
use crate::agents::output_log;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::clock;
use crate::settings::home;
use crate::view::display;
use crate::view::run_view::is_supervised;

/// How long the process in the background may take until it supervises the run.
const STEPS: u32 = 200;
const STEP: Duration = Duration::from_millis(100);
/// How much of what it printed is told if it did not.
const PRINTED_MAX: usize = 2_000;

/// Lets a process in the background supervise a run with this command, and says how to look at it.
pub(super) fn detach(
    io: &mut Io,
    store: &dyn Store,
    id: &RunId,
    command: Vec<OsString>,
) -> Result<Outcome, CommandError> {
    refuse_supervised(store, id)?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let failed = |error| CommandError::new(format!("cannot start a process: {error}"));
    let log = output_log::of_supervisor(&state, id).map_err(failed)?;
    let printed = log.metadata().map_err(failed)?.len();
    let global = ["--color", "never", "--state-dir"].map(OsString::from);
    let args: Vec<OsString> =
        global.into_iter().chain([state.clone().into()]).chain(command).collect();
    let program = env::current_exe().map_err(failed)?;
    let mut process = Background::start(&program, &args, &log).map_err(failed)?;
    for _ in 0..STEPS {
        let ended = process.ended().map_err(failed)?;
        let run = store.run(id)?;
        let is_over = run.as_ref().is_some_and(|run| !run.record.active);
        let works = run.as_ref().is_some_and(|run| is_supervised(run, clock::wall()));
        match ended {
            None if works => return say(io, id, run.as_ref()),
            Some(_) if is_over => return say(io, id, run.as_ref()),
            Some(_) => return Err(not_started(id, &state, printed)),
            None => thread::sleep(STEP),
        }
    }
    Err(not_started(id, &state, printed))
}

/// Refuses to supervise a run that somebody supervises.
pub(super) fn refuse_supervised(store: &dyn Store, id: &RunId) -> Result<(), CommandError> {
    let run = store.run(id)?;
    let supervised =
        run.is_some_and(|run| run.lease.is_some() && is_supervised(&run, clock::wall()));
    if !supervised {
        return Ok(());
    }
    Err(CommandError::new(format!("run {id} is running"))
        .with_help(format!("watch it with `aldis attach {id}`, or end it with `aldis abort {id}`")))
}

/// Warns of another agent that works in the same work tree.
pub(super) fn warn_of_others(
    io: &mut Io,
    store: &dyn Store,
    project: &str,
) -> Result<(), CommandError> {
    let (projects, machine) = (vec![project.to_owned()], Some(State::NAME.to_owned()));
    let filter = RunFilter { projects, machine, active: Some(true), ..RunFilter::default() };
    for RunSummary { id, .. } in store.list(&filter)? {
        let run = store.run(&id)?;
        if !run.is_some_and(|run| is_supervised(&run, clock::wall())) {
            continue;
        }
        writeln!(
            io.stderr,
            "warning: run {id} works here, too: two agents in one work tree overwrite each other's changes\n  \
             use another work tree (git worktree add), or end that run: aldis abort {id}"
        )?;
    }
    Ok(())
}

fn say(io: &mut Io, id: &RunId, run: Option<&Run>) -> Result<Outcome, CommandError> {
    let title = run.and_then(|run| run.record.title.trim().lines().next()).unwrap_or_default();
    let out = &mut io.stdout;
    writeln!(out, "run {id} works in the background: {}", display::excerpt(title, 60))?;
    writeln!(out, "  aldis attach {id}      shows it live; Ctrl-C leaves it running")?;
    writeln!(out, "  aldis tell {id} TEXT   sends the agent a message")?;
    writeln!(out, "  aldis abort {id}       ends it")?;
    Ok(Outcome::Yes)
}

fn not_started(id: &RunId, state: &Path, before: u64) -> CommandError {
    let text = fs::read(output_log::all(state).join(id.as_str()).join("supervisor.log"));
    let text = text.unwrap_or_default();
    let new = text.get(usize::try_from(before).unwrap_or(usize::MAX)..).unwrap_or_default();
    let new = String::from_utf8_lossy(new);
    let what = format!("run {id} does not work in the background: {}", new.trim());
    CommandError::new(display::excerpt(&what, PRINTED_MAX))
        .with_help("run it in the foreground to see more: the same command without --detach")
}
