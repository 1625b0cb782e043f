//! Whole runs, out of the database and into it.

use super::PostgresStore;
use super::link::Link;
use super::read::{self, EFFECT, all};
use super::values::{Columns, Values};
use super::write;
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::record::{EffectState, Timer};
use crate::step::RunId;
use crate::transfer::{CopiedEffect, RunCopy, Transfer};

/// How often a run is read again that somebody writes to.
const ATTEMPTS: usize = 5;
/// Rows in one statement.
const CHUNK: usize = 1_000;

impl Transfer for PostgresStore {
    fn export(&self, run: &RunId) -> Result<Option<RunCopy>, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some(before) = read::load(&self.link, run)? else { return Ok(None) };
            let copy = RunCopy {
                events: read::events(&self.link, run, 0, usize::MAX)?,
                decisions: read::decisions_within(
                    &self.link,
                    Some(run),
                    &Cursor::START,
                    usize::MAX,
                    usize::MAX,
                )?,
                effects: effects(&self.link, run)?,
                timers: timers(&self.link, run)?,
                run: before.run,
                parts: before.parts,
            };
            let after = read::run(&self.link, run)?;
            if after.is_some_and(|after| after.revision == copy.run.revision) {
                return Ok(Some(copy));
            }
        }
        let location = self.link.location().to_owned();
        Err(StoreError::Busy { location })
    }

    fn import(&self, copy: &RunCopy) -> Result<(), StoreError> {
        let mut calls = forget(&copy.run.id);
        calls.push(run(copy));
        calls.extend(copy.events.chunks(CHUNK).map(|events| {
            let values = Values::default()
                .text(copy.run.id.as_str())
                .numbers(events.iter().map(|event| event.seq))
                .moments(events.iter().map(|event| event.at))
                .texts(events.iter().map(|event| &*event.kind))
                .maybe_texts(events.iter().map(|event| event.source.as_deref()))
                .maybe_texts(events.iter().map(|event| event.digest.as_deref()))
                .maybe_numbers(events.iter().map(|it| it.revision.map(|revision| revision.0)))
                .texts(events.iter().map(|event| &*event.body));
            let sql = "INSERT INTO {s}.events (run, seq, at, kind, source, digest, revision, body) \
                       SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8)";
            (sql, values)
        }));
        calls.extend(copy.decisions.chunks(CHUNK).map(|decisions| {
            let values = Values::default()
                .text(copy.run.id.as_str())
                .numbers(decisions.iter().map(|decision| decision.revision.0))
                .moments(decisions.iter().map(|decision| decision.at))
                .texts(decisions.iter().map(|decision| &*decision.body));
            let sql = "INSERT INTO {s}.decisions (tx, run, revision, at, body) \
                       SELECT pg_current_xact_id()::text::bigint + tx_offset, $1, revision, at, body \
                       FROM {s}.store, unnest($2, $3, $4) WITH ORDINALITY \
                       AS given (revision, at, body, place) ORDER BY place";
            (sql, values)
        }));
        calls.extend(copy.effects.chunks(CHUNK).map(|copied| import_effects(copy, copied)));
        calls.extend(rest(copy));
        self.link.transaction("import a run", calls)?;
        self.note(true);
        Ok(())
    }
}

fn effects(link: &Link, run: &RunId) -> Result<Vec<CopiedEffect>, StoreError> {
    let sql = format!("SELECT {EFFECT}, claim FROM {{s}}.outbox WHERE run = $1 ORDER BY seq");
    let to_copied = |columns: &mut Columns<'_>| {
        Ok(CopiedEffect { effect: read::to_effect(columns)?, fence: columns.number()? })
    };
    link.read("export a run", &sql, Values::default().text(run.as_str()), all(to_copied))
}

fn timers(link: &Link, run: &RunId) -> Result<Vec<Timer>, StoreError> {
    let sql = "SELECT run, key, due FROM {s}.timers WHERE run = $1 ORDER BY key";
    link.read("export a run", sql, Values::default().text(run.as_str()), all(read::to_timer))
}

/// Statements that delete a run and whatever is left of an earlier one of that name.
fn forget(run: &RunId) -> Vec<(&'static str, Values)> {
    [
        "SELECT 1 FROM {s}.runs WHERE id = $1 FOR UPDATE",
        "SELECT {s}.lock_lanes(ARRAY(SELECT lane FROM {s}.outbox WHERE run = $1))::text",
        "DELETE FROM {s}.runs WHERE id = $1",
        "DELETE FROM {s}.doomed WHERE run = $1",
        "DELETE FROM {s}.events WHERE run = $1",
        "DELETE FROM {s}.decisions WHERE run = $1",
        "DELETE FROM {s}.timers WHERE run = $1",
        "DELETE FROM {s}.parts WHERE run = $1",
        "WITH gone AS (DELETE FROM {s}.outbox WHERE run = $1 AND state = 0 RETURNING lane) \
         SELECT {s}.promote(array_agg(lane))::text FROM gone",
        "DELETE FROM {s}.outbox WHERE run = $1",
    ]
    .into_iter()
    .map(|sql| (sql, Values::default().text(run.as_str())))
    .collect()
}

fn run(copy: &RunCopy) -> (&'static str, Values) {
    let (run, record) = (&copy.run, &copy.run.record);
    let values = Values::default()
        .text(run.id.as_str())
        .text(&record.project)
        .maybe_text(record.session.as_deref())
        .text(&record.machine)
        .text(record.driver.as_str())
        .flag(record.active)
        .number(run.revision.0)
        .number(run.last_event)
        .moment(run.created)
        .moment(run.updated)
        .number(run.fence)
        .text(&record.title)
        .text(&record.state);
    let sql = "INSERT INTO {s}.runs (id, project, session, machine, driver, active, revision, \
               last_event, created, updated, fence, title, state, ended) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
               CASE WHEN $6 THEN NULL ELSE $10 END)";
    (sql, values)
}

fn import_effects(copy: &RunCopy, copied: &[CopiedEffect]) -> (&'static str, Values) {
    let effects = || copied.iter().map(|copied| &copied.effect);
    let state = |state| match state {
        EffectState::Pending => 0,
        EffectState::Done => 1,
        EffectState::GivenUp => 2,
    };
    let values = Values::default()
        .text(copy.run.id.as_str())
        .texts(effects().map(|effect| &*effect.key))
        .numbers(effects().map(|effect| state(effect.state)))
        .moments(effects().map(|effect| effect.due))
        .numbers(effects().map(|effect| effect.attempts.into()))
        .texts(effects().map(|effect| &*effect.kind))
        .maybe_texts(effects().map(|effect| effect.error.as_deref()))
        .texts(effects().map(|effect| &*effect.lane))
        .raw_texts(effects().map(|effect| write::labels(&effect.requires)).collect())
        .numbers(copied.iter().map(|copied| copied.fence))
        .maybe_texts(effects().map(|effect| effect.worker.as_deref()))
        .texts(effects().map(|effect| &*effect.body));
    let sql = "INSERT INTO {s}.outbox (run, key, state, due, attempts, kind, error, lane, requires, \
               claim, worker, body, head) \
               SELECT $1, key, state, due, attempts, kind, error, lane, {s}.labels(requires), claim, \
               worker, body, lane = '' \
               FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) WITH ORDINALITY AS given \
               (key, state, due, attempts, kind, error, lane, requires, claim, worker, body, place) \
               ORDER BY place";
    (sql, values)
}

/// The parts and timers, and the heads of the lanes.
fn rest(copy: &RunCopy) -> Vec<(&'static str, Values)> {
    let id = copy.run.id.as_str();
    let parts = Values::default()
        .text(id)
        .texts(copy.parts.iter().map(|part| &*part.key))
        .texts(copy.parts.iter().map(|part| &*part.body));
    let timers = Values::default()
        .text(id)
        .texts(copy.timers.iter().map(|timer| &*timer.key))
        .moments(copy.timers.iter().map(|timer| timer.due));
    let lanes = || {
        let lanes = copy.effects.iter().map(|copied| &*copied.effect.lane);
        Values::default().texts(lanes)
    };
    vec![
        ("INSERT INTO {s}.parts (run, key, body) SELECT $1, * FROM unnest($2, $3)", parts),
        ("INSERT INTO {s}.timers (run, key, due) SELECT $1, * FROM unnest($2, $3)", timers),
        ("SELECT {s}.lock_lanes($1)::text", lanes()),
        ("SELECT {s}.promote($1)::text", lanes()),
        ("SELECT {s}.changed()::text", Values::default()),
    ]
}
