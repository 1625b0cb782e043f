//! What changes the tables. Each function is one transaction: a `Refused` result has changed nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use aldis_core::time::Timestamp;
use rusqlite::{
    Connection, OptionalExtension, Transaction, TransactionBehavior, named_params, params,
};

use super::read::{clamp, count};
use crate::error::{CommitError, LeaseError};
use crate::record::Lease;
use crate::step::{Committed, NewEffect, PartChange, Revision, RunId, Step, TimerChange};

/// Runs deleted in one transaction.
const PRUNE_BATCH: usize = 100;

/// SQLite failed, or the write was refused for a reason.
pub(super) type Refusable<T, E> = rusqlite::Result<Result<T, E>>;

/// Where a run stands, as far as a write must know.
struct Standing {
    revision: u64,
    last_event: u64,
    fence: u64,
}

pub(super) fn step(connection: &mut Connection, step: &Step) -> Refusable<Committed, CommitError> {
    let transaction = begin(connection)?;
    let result = step_within(&transaction, step)?;
    if result.is_ok() {
        transaction.commit()?;
    }
    Ok(result)
}

/// Writes a step as part of a transaction. A refusal has changed nothing.
pub(super) fn step_within(
    transaction: &Transaction<'_>,
    step: &Step,
) -> Refusable<Committed, CommitError> {
    let standing = standing(transaction, &step.run)?;
    if let Some(refusal) = refusal(transaction, step, standing.as_ref())? {
        return Ok(Err(refusal));
    }
    let revision = Revision(step.expected.0 + 1);
    let mut last_event = standing.as_ref().map_or(0, |standing| standing.last_event);
    append_events(transaction, step, &mut last_event)?;
    save_run(transaction, step, revision, last_event, standing.is_none())?;
    append_decisions(transaction, step, revision)?;
    for effect in &step.effects {
        enqueue(transaction, &step.run, effect)?;
    }
    for key in &step.done {
        effect_done(transaction, key, Some(&step.run))?;
    }
    for change in &step.timers {
        set_timer(transaction, &step.run, change)?;
    }
    for change in &step.parts {
        keep_part(transaction, &step.run, change)?;
    }
    Ok(Ok(Committed { revision, last_event }))
}

/// Decides whether the step must not be written, in the order the trait promises.
fn refusal(
    transaction: &Transaction<'_>,
    step: &Step,
    standing: Option<&Standing>,
) -> rusqlite::Result<Option<CommitError>> {
    let current = standing.map_or(0, |standing| standing.fence);
    if step.fence.is_some_and(|fence| fence != current) {
        return Ok(Some(CommitError::Fenced { current }));
    }
    let mut fresh = BTreeSet::new();
    for source in step.events.iter().filter_map(|event| event.source.as_ref()) {
        if !fresh.insert(source) || is_known(transaction, &step.run, source)? {
            return Ok(Some(CommitError::Duplicate { source_key: source.clone() }));
        }
    }
    let found = standing.map_or(0, |standing| standing.revision);
    if found == step.expected.0 {
        return Ok(None);
    }
    Ok(Some(match standing {
        Some(_) => CommitError::Conflict { found: Revision(found) },
        None => CommitError::NoSuchRun { run: step.run.clone() },
    }))
}

fn is_known(transaction: &Transaction<'_>, run: &RunId, source: &str) -> rusqlite::Result<bool> {
    transaction
        .prepare_cached("SELECT 1 FROM events WHERE run = ?1 AND source = ?2")?
        .exists(params![run.as_str(), source])
}

fn save_run(
    transaction: &Transaction<'_>,
    step: &Step,
    revision: Revision,
    last_event: u64,
    new: bool,
) -> rusqlite::Result<()> {
    let record = &step.record;
    let save = |sql: &str| {
        transaction.prepare_cached(sql)?.execute(named_params! {
            ":id": step.run.as_str(),
            ":project": record.project,
            ":session": record.session,
            ":machine": record.machine,
            ":active": record.active,
            ":revision": clamp(revision.0),
            ":last_event": clamp(last_event),
            ":at": step.at.as_millis(),
            ":title": record.title,
            ":state": record.state,
        })
    };
    if new {
        save(
            "INSERT INTO runs (id, project, session, machine, active, revision, last_event, \
             created, updated, title, state) VALUES (:id, :project, :session, :machine, :active, \
             :revision, :last_event, :at, :at, :title, :state)",
        )?;
        return Ok(());
    }
    // Most steps leave the run where it was: its entries in the indexes need not be written anew.
    let stayed = save(
        "UPDATE runs SET machine = :machine, active = :active, revision = :revision, \
         last_event = :last_event, updated = :at, title = :title, state = :state \
         WHERE id = :id AND project = :project AND session IS :session",
    )?;
    if stayed == 0 {
        save(
            "UPDATE runs SET project = :project, session = :session, machine = :machine, \
             active = :active, revision = :revision, last_event = :last_event, updated = :at, \
             title = :title, state = :state WHERE id = :id",
        )?;
    }
    Ok(())
}

fn append_events(
    transaction: &Transaction<'_>,
    step: &Step,
    last_event: &mut u64,
) -> rusqlite::Result<()> {
    if step.events.is_empty() {
        return Ok(());
    }
    let mut insert = transaction.prepare_cached(
        "INSERT INTO events (run, seq, at, kind, source, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for event in &step.events {
        *last_event += 1;
        insert.execute(params![
            step.run.as_str(),
            clamp(*last_event),
            event.at.as_millis(),
            event.kind,
            event.source,
            event.body,
        ])?;
    }
    Ok(())
}

fn append_decisions(
    transaction: &Transaction<'_>,
    step: &Step,
    revision: Revision,
) -> rusqlite::Result<()> {
    for decision in &step.decisions {
        transaction
            .prepare_cached(
                "INSERT INTO decisions (run, revision, at, body) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                step.run.as_str(),
                clamp(revision.0),
                decision.at.as_millis(),
                decision.body,
            ])?;
    }
    Ok(())
}

fn enqueue(transaction: &Transaction<'_>, run: &RunId, effect: &NewEffect) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO outbox (key, run, due, kind, body) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (key) DO NOTHING",
        )?
        .execute(params![
            effect.key,
            run.as_str(),
            effect.due.as_millis(),
            effect.kind,
            effect.body,
        ])?;
    Ok(())
}

/// Marks an effect, of `run` only if one is given.
pub(super) fn effect_done(
    connection: &Connection,
    key: &str,
    run: Option<&RunId>,
) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE outbox SET state = 1 WHERE key = ?1 AND state = 0 AND run = ifnull(?2, run)",
        )?
        .execute(params![key, run.map(RunId::as_str)])?;
    Ok(changed > 0)
}

pub(super) fn effect_failed(
    connection: &Connection,
    key: &str,
    next: Option<Timestamp>,
    error: &str,
) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE outbox SET attempts = attempts + 1, error = ?2, due = ifnull(?3, due), \
             state = iif(?3 IS NULL, 2, 0) WHERE key = ?1 AND state = 0",
        )?
        .execute(params![key, error, next.map(Timestamp::as_millis)])?;
    Ok(changed > 0)
}

fn set_timer(
    transaction: &Transaction<'_>,
    run: &RunId,
    change: &TimerChange,
) -> rusqlite::Result<()> {
    match change {
        TimerChange::Set { key, due } => transaction
            .prepare_cached(
                "INSERT INTO timers (run, key, due) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (run, key) DO UPDATE SET due = excluded.due",
            )?
            .execute(params![run.as_str(), key, due.as_millis()])?,
        TimerChange::Clear { key } => transaction
            .prepare_cached("DELETE FROM timers WHERE run = ?1 AND key = ?2")?
            .execute(params![run.as_str(), key])?,
    };
    Ok(())
}

fn keep_part(
    transaction: &Transaction<'_>,
    run: &RunId,
    change: &PartChange,
) -> rusqlite::Result<()> {
    match change {
        PartChange::Set { key, body } => transaction
            .prepare_cached(
                "INSERT INTO parts (run, key, body) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (run, key) DO UPDATE SET body = excluded.body",
            )?
            .execute(params![run.as_str(), key, body])?,
        PartChange::Clear { key } => transaction
            .prepare_cached("DELETE FROM parts WHERE run = ?1 AND key = ?2")?
            .execute(params![run.as_str(), key])?,
    };
    Ok(())
}

pub(super) fn acquire_lease(
    connection: &mut Connection,
    run: &RunId,
    holder: &str,
    now: Timestamp,
    ttl: Duration,
) -> Refusable<Lease, LeaseError> {
    let transaction = begin(connection)?;
    let found = transaction
        .prepare_cached("SELECT fence, lease_holder, lease_until FROM runs WHERE id = ?1")?
        .query_row([run.as_str()], |row| {
            Ok((count(row, 0)?, row.get::<_, Option<String>>(1)?, row.get::<_, Option<i64>>(2)?))
        })
        .optional()?;
    let Some((fence, current, until)) = found else {
        return Ok(Err(LeaseError::NoSuchRun { run: run.clone() }));
    };
    let until = until.map(Timestamp::from_millis);
    if let (Some(current), Some(until)) = (current, until)
        && current != holder
        && until > now
    {
        return Ok(Err(LeaseError::Held { holder: current, until }));
    }
    let until = now.after(ttl);
    let lease = Lease { run: run.clone(), holder: holder.to_owned(), fence: fence + 1, until };
    lend(&transaction, &lease)?;
    transaction.commit()?;
    Ok(Ok(lease))
}

pub(super) fn renew_lease(
    connection: &mut Connection,
    lease: &Lease,
    now: Timestamp,
    ttl: Duration,
) -> Refusable<Lease, LeaseError> {
    let transaction = begin(connection)?;
    let found = transaction
        .prepare_cached("SELECT fence, lease_holder FROM runs WHERE id = ?1")?
        .query_row([lease.run.as_str()], |row| {
            Ok((count(row, 0)?, row.get::<_, Option<String>>(1)?))
        })
        .optional()?;
    let Some((fence, holder)) = found else {
        return Ok(Err(LeaseError::NoSuchRun { run: lease.run.clone() }));
    };
    if fence != lease.fence || holder.as_ref() != Some(&lease.holder) {
        return Ok(Err(LeaseError::Lost { current: fence }));
    }
    let lease = Lease { until: now.after(ttl), ..lease.clone() };
    lend(&transaction, &lease)?;
    transaction.commit()?;
    Ok(Ok(lease))
}

pub(super) fn release_lease(connection: &Connection, lease: &Lease) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE runs SET lease_holder = NULL, lease_until = NULL \
             WHERE id = ?1 AND fence = ?2 AND lease_holder = ?3",
        )?
        .execute(params![lease.run.as_str(), clamp(lease.fence), lease.holder])?;
    Ok(changed > 0)
}

fn lend(transaction: &Transaction<'_>, lease: &Lease) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE runs SET fence = ?2, lease_holder = ?3, lease_until = ?4 WHERE id = ?1",
        )?
        .execute(params![
            lease.run.as_str(),
            clamp(lease.fence),
            lease.holder,
            lease.until.as_millis(),
        ])?;
    Ok(())
}

/// Deletes a batch of old runs and returns how many it were; 0 when none is left.
pub(super) fn prune(
    connection: &mut Connection,
    ended_before: Timestamp,
) -> rusqlite::Result<usize> {
    let transaction = begin(connection)?;
    let old: Vec<String> = transaction
        .prepare_cached(
            "SELECT id FROM runs WHERE active = 0 AND updated < ?1 AND NOT EXISTS \
             (SELECT 1 FROM outbox WHERE state = 0 AND run = runs.id) ORDER BY number LIMIT ?2",
        )?
        .query_map(params![ended_before.as_millis(), clamp(PRUNE_BATCH as u64)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in &old {
        for sql in [
            "DELETE FROM events WHERE run = ?1",
            "DELETE FROM decisions WHERE run = ?1",
            "DELETE FROM outbox WHERE state IN (0, 1, 2) AND run = ?1",
            "DELETE FROM timers WHERE run = ?1",
            "DELETE FROM parts WHERE run = ?1",
            "DELETE FROM runs WHERE id = ?1",
        ] {
            transaction.prepare_cached(sql)?.execute([id])?;
        }
    }
    transaction.commit()?;
    Ok(old.len())
}

pub(super) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn standing(transaction: &Transaction<'_>, run: &RunId) -> rusqlite::Result<Option<Standing>> {
    transaction
        .prepare_cached("SELECT revision, last_event, fence FROM runs WHERE id = ?1")?
        .query_row([run.as_str()], |row| {
            Ok(Standing {
                revision: count(row, 0)?,
                last_event: count(row, 1)?,
                fence: count(row, 2)?,
            })
        })
        .optional()
}
