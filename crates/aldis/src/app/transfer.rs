//! Takes all runs from one store to another, one by one, and looks whether they arrived; and the tokens, once.

use std::sync::Arc;

use aldis_engine::Engine;
use aldis_signal::time::Timestamp;
use aldis_store::{RunFilter, RunId, RunSummary, Store, Transfer};

use crate::error::CommandError;
use crate::settings::tokens;

/// How many runs are listed at once.
const PAGE: usize = 500;

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transferred {
    /// Runs that were taken over.
    pub(crate) copied: u64,
    /// Runs that were there already, the same in all.
    pub(crate) present: u64,
    /// Tokens that were taken over.
    pub(crate) tokens: u64,
    /// Runs that were not taken over, or are not the same there, and why.
    pub(crate) problems: Vec<String>,
}

/// Copies every run, the oldest first. What is there already is left alone, so that a copy that was
/// interrupted goes on where it was. `on_run` is told after each.
///
/// # Errors
///
/// Fails if somebody coordinates a run at the moment, before anything is copied, or a store fails.
pub(crate) fn copy(
    from: &Arc<dyn Transfer>,
    to: &Arc<dyn Transfer>,
    now: Timestamp,
    mut on_run: impl FnMut(&Transferred),
) -> Result<Transferred, CommandError> {
    let runs = all_runs(&**from)?;
    refuse_coordinated(&runs, now)?;
    let there = all_runs(&**to)?;
    refuse_coordinated(&there, now)?;
    let engines = [from, to].map(|store| Engine::new(Arc::clone(store) as Arc<dyn Store>));
    let mut transferred = Transferred::default();
    if there.is_empty() {
        // Only then: one that was revoked there meanwhile must not come back.
        transferred.tokens = tokens::copy(&**from, &**to, now)?;
    }
    for run in runs.iter().rev() {
        match copy_run(&**from, &**to, &engines, &run.id)? {
            Arrived::Copied => transferred.copied += 1,
            Arrived::Present => transferred.present += 1,
            Arrived::Not(why) => transferred.problems.push(format!("{}: {why}", run.id)),
        }
        on_run(&transferred);
    }
    for run in &runs {
        let after = from.run(&run.id)?.map(|after| after.revision);
        if after != Some(run.revision) {
            let problem = format!("{}: it went on while it was copied; copy again", run.id);
            transferred.problems.push(problem);
        }
    }
    Ok(transferred)
}

/// Whether a run arrived.
enum Arrived {
    Copied,
    Present,
    Not(&'static str),
}

fn copy_run(
    from: &dyn Transfer,
    to: &dyn Transfer,
    engines: &[Engine; 2],
    id: &RunId,
) -> Result<Arrived, CommandError> {
    let Some(original) = from.export(id)? else { return Ok(Arrived::Not("it is gone")) };
    match to.export(id)? {
        Some(there) if there.is_same(&original) => return Ok(Arrived::Present),
        Some(there) if !there.is_older_than(&original) => {
            return Ok(Arrived::Not("another run of that name is there, or it went on there"));
        }
        _ => to.import(&original)?,
    }
    let arrived = to.export(id)?;
    if !arrived.is_some_and(|arrived| arrived.is_same(&original)) {
        return Ok(Arrived::Not("it is not the same there"));
    }
    // Today's machine need not decide as the one that wrote the journal did, but the same of both.
    let [was, is] = engines.each_ref().map(|engine| engine.replay(id).map_err(|it| it.to_string()));
    Ok(if was == is {
        Arrived::Copied
    } else {
        Arrived::Not("its journal replays otherwise there")
    })
}

/// Lists all runs, the latest created first.
fn all_runs(store: &dyn Transfer) -> Result<Vec<RunSummary>, CommandError> {
    let (mut runs, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(&RunFilter { after, limit: PAGE, ..RunFilter::default() })?;
        let Some(last) = page.last() else { return Ok(runs) };
        after = Some(last.page);
        runs.extend(page);
    }
}

/// Refuses to copy runs that are going on.
fn refuse_coordinated(runs: &[RunSummary], now: Timestamp) -> Result<(), CommandError> {
    let live = |run: &&RunSummary| run.lease.as_ref().is_some_and(|lease| lease.until > now);
    match runs.iter().find(live) {
        Some(run) => Err(CommandError::new(format!("run {} is being coordinated", run.id))
            .with_help("stop everything that uses the store, wait 30 seconds, then copy again")),
        None => Ok(()),
    }
}
