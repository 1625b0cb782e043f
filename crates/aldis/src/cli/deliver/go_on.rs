//! `aldis deliver --continue`: a delivery is taken up again, with what it had and what is asked for now.

use aldis_engine::{Engine, Handle};
use aldis_machine::Machine as _;
use aldis_machine::delivery::{BudgetLimit as Limit, Ending, Event, State};

use super::launch::launch;
use super::{DeliverArgs, LAUNCH, budgets};
use crate::cli::check_flags::check_proof;
use crate::cli::host_flags::{HostFlags, refuse_without_host};
use crate::cli::{tasks, why};
use crate::error::CommandError;
use crate::settings::clock;
use crate::settings::config::Dollars;
use crate::settings::project::Place;

/// Takes a delivery up again, with the limits it had, changed by what is asked for now.
pub(super) fn go_on(
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
    let mut run: Handle<State> = engine.open(&run.id)?;
    // The delivery may have been started elsewhere.
    let directory = launch(&run)?.directory(run.project())?;
    allow_more(engine, &mut run, &args.may)?;
    let stored = &run.state().run().config;
    let config = budgets(args, stored.clone());
    check_proof(&config.proof, Place::of(&directory, None).root())?;
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
        Limit::Tokens => {
            (format!("{} tokens used", run.spending.spent.tokens), "--max-tokens N".to_owned())
        }
        Limit::Cost => {
            let spent = Dollars(run.spending.spent.micro_dollars);
            (format!("{spent} dollars spent"), "--max-cost DOLLARS".to_owned())
        }
        Limit::Time => (
            format!("agents worked for {} s", run.spending.worked_millis / 1_000),
            "--total-timeout TIME".to_owned(),
        ),
    };
    let what = format!("delivery {} has reached its limit: {used}", delivery.id());
    let help = format!("raise the limit: aldis deliver --continue {} {option}", delivery.id());
    CommandError::new(what).with_help(help)
}

/// Starts the agents of a delivery that goes on with what is asked for now.
fn allow_more(
    engine: &Engine,
    run: &mut Handle<State>,
    flags: &HostFlags,
) -> Result<(), CommandError> {
    if flags.given().is_none() {
        return Ok(());
    }
    let mut changed = launch(run)?;
    let Some(host) = &mut changed.host else { return refuse_without_host(flags.given()) };
    host.change(flags, &[])?;
    (changed.command, changed.resume) = host.commands()?;
    Ok(run.set_notes(engine, clock::wall(), vec![aldis_engine::note(LAUNCH, &changed)?])?)
}
