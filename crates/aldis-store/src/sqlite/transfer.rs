//! Whole runs, out of the database and into it.

use rusqlite::{Connection, Row, params};

use super::read::{clamp, count, to_effect};
use super::statements::Statements;
use super::{SqliteStore, labels, outbox, read};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::record::{EffectState, Timer};
use crate::step::RunId;
use crate::transfer::{CopiedEffect, RunCopy, Transfer};

impl Transfer for SqliteStore {
    fn export(&self, run: &RunId) -> Result<Option<RunCopy>, StoreError> {
        self.with("export a run", |connection| {
            let snapshot = connection.transaction()?;
            export(&snapshot, run)
        })
    }

    fn import(&self, copy: &RunCopy) -> Result<(), StoreError> {
        self.write("import a run", |statements| {
            forget(statements, &copy.run.id)?;
            import(statements, copy)
        })
    }
}

fn export(connection: &Connection, id: &RunId) -> rusqlite::Result<Option<RunCopy>> {
    let Some(run) = read::run(connection, id)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT key, run, kind, body, due, attempts, error, state, lane, requires, worker, claim \
         FROM outbox WHERE state IN (0, 1, 2) AND run = ?1 ORDER BY seq",
    )?;
    let to_copied =
        |row: &Row<'_>| Ok(CopiedEffect { effect: to_effect(row)?, fence: count(row, 11)? });
    let effects = statement.query_map([id.as_str()], to_copied)?.collect::<Result<_, _>>()?;
    let mut statement = connection
        .prepare_cached("SELECT run, key, due FROM timers WHERE run = ?1 ORDER BY key")?;
    let timers: Vec<Timer> =
        statement.query_map([id.as_str()], read::to_timer)?.collect::<Result<_, _>>()?;
    Ok(Some(RunCopy {
        parts: read::parts(connection, id)?,
        events: read::events(connection, id, 0, usize::MAX)?,
        decisions: read::decisions_within(
            connection,
            Some(id),
            &Cursor::START,
            usize::MAX,
            usize::MAX,
        )?,
        effects,
        timers,
        run,
    }))
}

/// Deletes a run and whatever is left of an earlier one of that name.
fn forget(statements: &mut Statements<'_>, id: &RunId) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM runs WHERE id = ?1",
        "DELETE FROM doomed WHERE run = ?1",
        "DELETE FROM events WHERE run = ?1",
        "DELETE FROM decisions WHERE run = ?1",
        "DELETE FROM timers WHERE run = ?1",
        "DELETE FROM parts WHERE run = ?1",
    ] {
        statements.get(sql)?.execute([id.as_str()])?;
    }
    let lanes: Vec<String> = statements
        .get("DELETE FROM outbox WHERE state IN (0, 1, 2) AND run = ?1 RETURNING lane")?
        .query_map([id.as_str()], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for lane in lanes {
        outbox::promote(statements, Some(lane))?;
    }
    Ok(())
}

fn import(statements: &mut Statements<'_>, copy: &RunCopy) -> rusqlite::Result<()> {
    let (run, record) = (&copy.run, &copy.run.record);
    let id = run.id.as_str();
    statements
        .get(
            "INSERT INTO runs (id, project, session, machine, driver, active, revision, last_event, \
             created, updated, fence, title, state) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            id,
            record.project,
            record.session,
            record.machine,
            record.driver.as_str(),
            record.active,
            clamp(run.revision.0),
            clamp(run.last_event),
            run.created.as_millis(),
            run.updated.as_millis(),
            clamp(run.fence),
            record.title,
            record.state,
        ])?;
    for event in &copy.events {
        let sql = "INSERT INTO events (run, seq, at, kind, source, body, revision, digest) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let (seq, at) = (clamp(event.seq), event.at.as_millis());
        let revision = event.revision.map(|revision| clamp(revision.0));
        let values =
            params![id, seq, at, event.kind, event.source, event.body, revision, event.digest];
        statements.get(sql)?.execute(values)?;
    }
    for decision in &copy.decisions {
        let sql = "INSERT INTO decisions (run, revision, at, body) VALUES (?1, ?2, ?3, ?4)";
        let (revision, at) = (clamp(decision.revision.0), decision.at.as_millis());
        statements.get(sql)?.execute(params![id, revision, at, decision.body])?;
    }
    for part in &copy.parts {
        let sql = "INSERT INTO parts (run, key, body) VALUES (?1, ?2, ?3)";
        statements.get(sql)?.execute(params![id, part.key, part.body])?;
    }
    for timer in &copy.timers {
        let sql = "INSERT INTO timers (run, key, due) VALUES (?1, ?2, ?3)";
        statements.get(sql)?.execute(params![id, timer.key, timer.due.as_millis()])?;
    }
    copy.effects.iter().try_for_each(|effect| import_effect(statements, id, effect))
}

fn import_effect(
    statements: &mut Statements<'_>,
    run: &str,
    copied: &CopiedEffect,
) -> rusqlite::Result<()> {
    let effect = &copied.effect;
    let state = match effect.state {
        EffectState::Pending => 0,
        EffectState::Done => 1,
        EffectState::GivenUp => 2,
    };
    statements
        .get(
            "INSERT INTO outbox (key, run, state, due, attempts, kind, error, body, lane, requires, \
             worker, claim, head) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?9 = '')",
        )?
        .execute(params![
            effect.key,
            run,
            state,
            effect.due.as_millis(),
            effect.attempts,
            effect.kind,
            effect.error,
            effect.body,
            effect.lane,
            labels::encode(&effect.requires),
            effect.worker,
            clamp(copied.fence),
        ])?;
    outbox::promote(statements, Some(effect.lane.clone())).map(drop)
}
