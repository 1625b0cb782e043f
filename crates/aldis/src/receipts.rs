//! Receipts: what was done and what that rests on, signed, so that a later edit shows.
//!
//! A step that decides that something is done puts an effect into the outbox in the same transaction
//! ([`is_done`]); [`settle`] writes the receipt and marks the effect as performed. Whoever is killed in
//! between leaves an effect that the next process performs, and a receipt that is there already is not
//! written twice. Receipts are files of the state directory and no rows of the store: they outlive the
//! run, are copied with `cp`, and say the same whatever database the runs are in.

pub(crate) mod build;
pub(crate) mod canonical;
pub(crate) mod chain;
mod facts;
mod key;
pub(crate) mod verify;

use std::path::Path;
use std::time::Duration;

use aldis_engine::RECEIPT;
use aldis_machine::{delivery, phases, run};
use aldis_signal::time::Timestamp;
use aldis_store::{CommitError, Effect, EffectFilter, RunId, Store};

use self::chain::{Chain, Name};
pub(crate) use self::facts::{judged_changes, judged_checks};
use self::key::Key;
use crate::error::CommandError;
use crate::failures::{self, Failure};
use crate::view::wire::receipt::{Receipt, ReceiptLine};

/// How recorded failures name this part.
const PART: &str = "receipts";

/// Returns whether a decision by this rule says that something is done.
pub(crate) fn is_done(rule: &str) -> bool {
    let rules = [
        run::Rule::Done.as_str(),
        phases::Rule::AllPhasesComplete.as_str(),
        phases::Rule::AutoComplete.as_str(),
        delivery::Rule::TaskComplete.as_str(),
        delivery::Rule::AllTasksComplete.as_str(),
    ];
    rules.contains(&rule)
}

/// Writes the receipts that wait in the outbox, of this run or of all. Returns how many. `when` is now, and
/// how long git may take.
///
/// # Errors
///
/// Fails if the store, the key or the disk does; what waits is written later.
pub(crate) fn settle(
    store: &dyn Store,
    state: &Path,
    run: Option<&RunId>,
    when: (Timestamp, Duration),
) -> Result<usize, CommandError> {
    let filter = EffectFilter {
        run: run.cloned(),
        kinds: vec![RECEIPT.to_owned()],
        ..EffectFilter::due_by(Timestamp::from_millis(i64::MAX))
    };
    let waiting = store.pending_effects(&filter)?;
    if waiting.is_empty() {
        return Ok(0);
    }
    let key = Key::of(state)?;
    for effect in &waiting {
        perform(store, state, &key, (effect, when))?;
    }
    Ok(waiting.len())
}

/// As [`settle`], for whoever must go on whatever happens: a failure is recorded.
pub(crate) fn settle_or_record(
    store: &dyn Store,
    state: &Path,
    run: &RunId,
    (now, patience): (Timestamp, Duration),
) {
    if let Err(error) = settle(store, state, Some(run), (now, patience)) {
        let what = format!("the receipt of run {run} was not written: {error}");
        failures::record(state, &Failure { at: now, part: PART.to_owned(), what });
    }
}

/// Writes one receipt unless it is there, and notes that it is.
fn perform(
    store: &dyn Store,
    state: &Path,
    key: &Key,
    (effect, when): (&Effect, (Timestamp, Duration)),
) -> Result<(), CommandError> {
    let chain = Chain::of(state, &effect.run);
    if let Some(name) = Name::of_effect(effect) {
        let chain = chain.lock()?;
        let known = chain.entries()?;
        let is_there = |entry: &&chain::ReceiptFile| entry.name.is_of(&name);
        if known.iter().find(is_there).is_none() {
            let previous = known.last();
            let sealed = build::build(store, key, effect, (previous, when))?;
            if let Some(sealed) = sealed {
                chain.append(&Name { number: sealed.receipt.number, ..name }, &sealed)?;
            }
        }
    }
    match store.effects_done(&effect.run, None, std::slice::from_ref(&effect.key)) {
        Ok(_) | Err(CommitError::NoSuchRun { .. }) => Ok(()),
        Err(CommitError::Store(error)) => Err(error.into()),
        Err(error) => Err(CommandError::new(error.to_string())),
    }
}

/// Returns how many receipts a run has.
pub(crate) fn count(state: &Path, run: &RunId) -> usize {
    Chain::of(state, run).entries().map_or(0, |entries| entries.len())
}

/// Returns a receipt in short.
pub(crate) fn line_of(receipt: &Receipt, file: &Path) -> ReceiptLine {
    let repository = receipt.repository.as_ref();
    let passed = receipt.checks.iter().filter(|check| check.status == "passed").count();
    ReceiptLine {
        v: 1,
        kind: "receipt_summary".to_owned(),
        run: receipt.run.clone(),
        number: receipt.number,
        task: receipt.task.clone(),
        title: receipt.title.clone(),
        project: receipt.project.clone(),
        ended: receipt.ended,
        commit: repository.and_then(|it| it.commit.clone()),
        clean: repository.map(|it| it.clean),
        checks_passed: passed as u64,
        checks: receipt.checks.len() as u64,
        file: file.display().to_string(),
    }
}
