//! How a step is written.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::read::{clamp, count, revision};
use super::statements::Statements;
use super::{outbox, prune};
use crate::error::CommitError;
use crate::step::{Committed, PartChange, Revision, RunId, Source, Step, TimerChange};

/// SQLite failed, or the write was refused for a reason.
pub(super) type Refusable<T, E> = rusqlite::Result<Result<T, E>>;

/// Where a run stands, as far as a write must know.
struct RunPosition {
    number: i64,
    revision: u64,
    last_event: u64,
    fence: u64,
    /// Whether the step leaves what runs are found by: project, session, machine, driver, active.
    stays: bool,
}

/// Writes a step as part of a transaction. A refusal has changed nothing. Nothing is returned, and
/// nothing was written, if what is left of a run of the same name must be deleted first.
pub(super) fn step(
    statements: &mut Statements<'_>,
    step: &Step,
) -> Refusable<Option<Committed>, CommitError> {
    let standing = standing(statements, step)?;
    // Before anything else: the sources of the old run are still there.
    if standing.is_none() && prune::is_doomed(statements, &step.run)? {
        return Ok(Ok(None));
    }
    if let Some(refusal) = refusal(statements, step, standing.as_ref())? {
        return Ok(Err(refusal));
    }
    let revision = Revision(step.expected.0 + 1);
    let before = standing.as_ref().map_or(0, |standing| standing.last_event);
    let last_event = match append_events(statements, step, before)? {
        Ok(last_event) => last_event,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let committed = Committed { revision, last_event };
    match standing {
        None => create_run(statements, step, committed)?,
        Some(standing) => save_run(statements, step, committed, &standing)?,
    }
    append_decisions(statements, step, revision)?;
    for effect in &step.effects {
        outbox::enqueue(statements, &step.run, effect)?;
    }
    for key in &step.done {
        outbox::close(statements, &step.run, key)?;
    }
    for change in &step.timers {
        set_timer(statements, &step.run, change)?;
    }
    for change in &step.parts {
        keep_part(statements, &step.run, change)?;
    }
    Ok(Ok(Some(committed)))
}

/// Decides whether the step must not be written, in the order the trait promises. Whether the first
/// event of a step that is in time is known shows when it is appended.
fn refusal(
    statements: &mut Statements<'_>,
    step: &Step,
    standing: Option<&RunPosition>,
) -> rusqlite::Result<Option<CommitError>> {
    let current = standing.map_or(0, |standing| standing.fence);
    if step.fence.is_some_and(|fence| fence != current) {
        return Ok(Some(CommitError::Fenced { current }));
    }
    let found = standing.map_or(0, |standing| standing.revision);
    let in_time = found == step.expected.0;
    let mut fresh = BTreeSet::new();
    for (index, event) in step.events.iter().enumerate() {
        let Some(Source { key, .. }) = &event.source else { continue };
        let shows_later = in_time && index == 0;
        let twice = !fresh.insert(key);
        if twice || !shows_later {
            let known = duplicate(statements, &step.run, key)?;
            let in_step =
                || CommitError::Duplicate { source_key: key.clone(), digest: None, revision: None };
            if let Some(refusal) = known.or_else(|| twice.then(in_step)) {
                return Ok(Some(refusal));
            }
        }
    }
    if in_time {
        return Ok(None);
    }
    Ok(Some(match standing {
        Some(_) => CommitError::Conflict { found: Revision(found) },
        None => CommitError::NoSuchRun { run: step.run.clone() },
    }))
}

/// Returns the refusal of a source that is known.
fn duplicate(
    statements: &mut Statements<'_>,
    run: &RunId,
    source: &str,
) -> rusqlite::Result<Option<CommitError>> {
    statements
        .get("SELECT digest, revision FROM events WHERE run = ?1 AND source = ?2")?
        .query_row(params![run.as_str(), source], |row| {
            let (source_key, revision) = (source.to_owned(), revision(row, 1)?);
            Ok(CommitError::Duplicate { source_key, digest: row.get(0)?, revision })
        })
        .optional()
}

fn create_run(
    statements: &mut Statements<'_>,
    step: &Step,
    committed: Committed,
) -> rusqlite::Result<()> {
    let record = &step.record;
    statements
        .get(
            "INSERT INTO runs (id, project, session, machine, driver, active, revision, last_event, \
             created, updated, title, state) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11)",
        )?
        .execute(params![
            step.run.as_str(),
            record.project,
            record.session,
            record.machine,
            record.driver.as_str(),
            record.active,
            clamp(committed.revision.0),
            clamp(committed.last_event),
            step.at.as_millis(),
            record.title,
            record.state,
        ])?;
    Ok(())
}

fn save_run(
    statements: &mut Statements<'_>,
    step: &Step,
    committed: Committed,
    standing: &RunPosition,
) -> rusqlite::Result<()> {
    let record = &step.record;
    // Most steps leave the run where it was: its entries in the indexes need not be written anew.
    if !standing.stays {
        statements
            .get(
                "UPDATE runs SET project = ?2, session = ?3, machine = ?4, driver = ?5, \
                 active = ?6 WHERE number = ?1",
            )?
            .execute(params![
                standing.number,
                record.project,
                record.session,
                record.machine,
                record.driver.as_str(),
                record.active,
            ])?;
    }
    statements
        .get(
            "UPDATE runs SET revision = ?2, last_event = ?3, updated = ?4, title = ?5, \
             state = ?6 WHERE number = ?1",
        )?
        .execute(params![
            standing.number,
            clamp(committed.revision.0),
            clamp(committed.last_event),
            step.at.as_millis(),
            record.title,
            record.state,
        ])?;
    Ok(())
}

/// Appends the events after number `last`, and returns the number of the last one. Only the first can
/// be refused: the others were looked for.
fn append_events(
    statements: &mut Statements<'_>,
    step: &Step,
    mut last: u64,
) -> Refusable<u64, CommitError> {
    for event in &step.events {
        last += 1;
        let source = event.source.as_ref();
        let appended = statements
            .get(
                "INSERT INTO events (run, seq, at, kind, source, body, revision, digest) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
                 ON CONFLICT (run, source) WHERE source IS NOT NULL DO NOTHING",
            )?
            .execute(params![
                step.run.as_str(),
                clamp(last),
                event.at.as_millis(),
                event.kind,
                source.map(|source| &source.key),
                event.body,
                clamp(step.expected.0 + 1),
                source.map(|source| &source.digest),
            ])?;
        if appended == 0
            && let Some(source) = source
            && let Some(refusal) = duplicate(statements, &step.run, &source.key)?
        {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(last))
}

fn append_decisions(
    statements: &mut Statements<'_>,
    step: &Step,
    revision: Revision,
) -> rusqlite::Result<()> {
    for decision in &step.decisions {
        statements
            .get("INSERT INTO decisions (run, revision, at, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![
                step.run.as_str(),
                clamp(revision.0),
                decision.at.as_millis(),
                decision.body,
            ])?;
    }
    Ok(())
}

fn set_timer(
    statements: &mut Statements<'_>,
    run: &RunId,
    change: &TimerChange,
) -> rusqlite::Result<()> {
    match change {
        TimerChange::Set { key, due } => statements
            .get(
                "INSERT INTO timers (run, key, due) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (run, key) DO UPDATE SET due = excluded.due",
            )?
            .execute(params![run.as_str(), key, due.as_millis()])?,
        TimerChange::Clear { key } => statements
            .get("DELETE FROM timers WHERE run = ?1 AND key = ?2")?
            .execute(params![run.as_str(), key])?,
    };
    Ok(())
}

fn keep_part(
    statements: &mut Statements<'_>,
    run: &RunId,
    change: &PartChange,
) -> rusqlite::Result<()> {
    match change {
        PartChange::Set { key, body } => statements
            .get(
                "INSERT INTO parts (run, key, body) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (run, key) DO UPDATE SET body = excluded.body",
            )?
            .execute(params![run.as_str(), key, body])?,
        PartChange::Clear { key } => statements
            .get("DELETE FROM parts WHERE run = ?1 AND key = ?2")?
            .execute(params![run.as_str(), key])?,
    };
    Ok(())
}

/// Changes one row that means nothing.
pub(super) fn probe(statements: &mut Statements<'_>) -> rusqlite::Result<()> {
    let sql = "INSERT INTO probe VALUES (1, 1) ON CONFLICT DO UPDATE SET count = count + 1";
    statements.get(sql)?.execute([]).map(drop)
}

pub(super) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn standing(statements: &mut Statements<'_>, step: &Step) -> rusqlite::Result<Option<RunPosition>> {
    let record = &step.record;
    statements
        .get(
            "SELECT number, revision, last_event, fence, project = ?2 AND session IS ?3 \
             AND machine = ?4 AND driver = ?5 AND active = ?6 FROM runs WHERE id = ?1",
        )?
        .query_row(
            params![
                step.run.as_str(),
                record.project,
                record.session,
                record.machine,
                record.driver.as_str(),
                record.active,
            ],
            |row| {
                Ok(RunPosition {
                    number: row.get(0)?,
                    revision: count(row, 1)?,
                    last_event: count(row, 2)?,
                    fence: count(row, 3)?,
                    stays: row.get(4)?,
                })
            },
        )
        .optional()
}
