//! What `aldis auto` does about claims that are checked: pin before the work, wait for a verdict.

use std::io::Write as _;
use std::time::Duration;

use aldis_engine::NewRun;
use aldis_machine::phases::Start;
use aldis_machine::proof;
use clap::Args;

use super::{PlainArgs, Scene, show_form};
use crate::app::phase_checks::CheckPlace;
use crate::cli::Outcome;
use crate::error::CommandError;
use crate::hosts::hook::adoption;
use crate::hosts::hook::live::PhasesRun;
use crate::io::Io;
use crate::settings::clock::Stopwatch;
use crate::settings::home;
use crate::view::display;
use crate::view::run_view::RunView;
use crate::view::show;

/// How long `status --wait` waits, and how long before it looks again.
const WAIT_MAX: Duration = Duration::from_secs(90);
const WAIT_STEP: Duration = Duration::from_secs(1);

/// The options of `status`.
#[derive(Debug, Args)]
pub(in crate::cli) struct StatusArgs {
    /// Wait until no claim is being checked any more, 90 seconds at most
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    plain: PlainArgs,
}

pub(super) fn status(io: &mut Io, args: &StatusArgs) -> Result<Outcome, CommandError> {
    let scene = Scene::open(io)?;
    let (store, watch) = (scene.engine.store(), Stopwatch::start());
    while args.wait && watch.elapsed() < WAIT_MAX {
        let stamp = store.change()?;
        let checks = |run: &PhasesRun| run.state().checks().claim.is_some();
        if !scene.run()?.as_ref().is_some_and(checks) {
            break;
        }
        store.wait_for_change(&stamp, WAIT_STEP)?;
    }
    if let Some(note) = adoption::explain(Some(store), &scene.place, scene.now) {
        writeln!(io.stderr, "note: {}", display::line(&note))?;
    }
    let Some(run) = scene.run()? else {
        return scene.none(io, "run");
    };
    if args.plain.json {
        show_form(io, &scene, &run, false)?;
    } else if let Some(snapshot) = scene.engine.snapshot(run.id())? {
        show::run(io, scene.now, &RunView::new(&snapshot, scene.now))?;
    }
    Ok(Outcome::Yes)
}

/// Pins what the checks of the run are made of, and runs them first where that is wanted.
pub(super) fn pin(
    io: &mut Io,
    scene: &Scene,
    (start, new): (&mut Start, &mut NewRun),
    config: proof::Config,
) -> Result<(), CommandError> {
    let state = home::state_directory(io.state_dir.as_deref())?;
    let random = |error| CommandError::new(format!("the system gives no random numbers: {error}"));
    let run = aldis_engine::run_id().map_err(random)?;
    let place = CheckPlace { run: run.clone(), project: scene.place.root().to_owned(), state };
    let (known, notes) = place.begin(&config)?;
    if known.proves_nothing(&config) {
        writeln!(
            io.stderr,
            "warning: the checks pass before the work starts, so they prove nothing"
        )?;
    }
    new.id = Some(run);
    new.notes.extend(notes);
    (start.config.proof, start.proof) = (config, known);
    Ok(())
}
