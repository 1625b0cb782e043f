//! What is asked of the tables. Every answer is of one moment: one statement, or a transaction.

use aldis_signal::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Row, ToSql, params};

use super::labels;
use crate::claim::PendingCount;
use crate::cursor::{Continuity, Cursor, PageCursor};
use crate::record::{
    Decision, DecisionFilter, Effect, EffectFilter, EffectState, Event, Lease, Loaded, Part, Run,
    RunFilter, RunSummary, StoreSize, Timer,
};
use crate::step::{Driver, Revision, RunId, RunRecord};

const RUN: &str = "SELECT id, revision, last_event, created, updated, fence, project, session, \
                   machine, driver, title, active, lease_holder, lease_until, state FROM runs";
/// The state is the last column of the table, so that this does not read its pages.
const SUMMARY: &str = "SELECT id, revision, last_event, created, updated, fence, project, session, \
                       machine, driver, title, active, lease_holder, lease_until, number FROM runs";
const EVENT: &str = "SELECT run, seq, at, kind, body, source, digest, revision FROM events";
const DECISION: &str = "SELECT seq, run, revision, at, body FROM decisions";
const EFFECT: &str = "SELECT key, run, kind, body, due, attempts, error, state, lane, requires, \
                      worker FROM outbox";

pub(super) fn run(connection: &Connection, id: &RunId) -> rusqlite::Result<Option<Run>> {
    let mut statement = connection.prepare_cached(&format!("{RUN} WHERE id = ?1"))?;
    statement.query_row([id.as_str()], to_run).optional()
}

pub(super) fn load(connection: &mut Connection, id: &RunId) -> rusqlite::Result<Option<Loaded>> {
    let snapshot = connection.transaction()?;
    let found = run(&snapshot, id)?;
    found.map(|run| Ok(Loaded { parts: parts(&snapshot, id)?, run })).transpose()
}

pub(super) fn parts(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<Part>> {
    let mut statement =
        connection.prepare_cached("SELECT key, body FROM parts WHERE run = ?1 ORDER BY key")?;
    let to_part = |row: &Row<'_>| Ok(Part { key: row.get(0)?, body: row.get(1)? });
    statement.query_map([run.as_str()], to_part)?.collect()
}

pub(super) fn loaded(
    connection: &mut Connection,
    filter: &RunFilter,
) -> rusqlite::Result<Vec<Loaded>> {
    let snapshot = connection.transaction()?;
    let runs = rows(&snapshot, RUN, filter, to_run)?.into_iter();
    runs.map(|run| Ok(Loaded { parts: parts(&snapshot, &run.id)?, run })).collect()
}

pub(super) fn list(
    connection: &Connection,
    filter: &RunFilter,
) -> rusqlite::Result<Vec<RunSummary>> {
    rows(connection, SUMMARY, filter, to_summary)
}

pub(super) fn count_runs(connection: &Connection, filter: &RunFilter) -> rusqlite::Result<u64> {
    let all = RunFilter { limit: usize::MAX, ..filter.clone() };
    let counted = rows(connection, "SELECT count(*) FROM runs", &all, |row| count(row, 0))?;
    Ok(counted.first().copied().unwrap_or_default())
}

pub(super) fn find(
    connection: &Connection,
    prefix: &str,
    limit: usize,
) -> rusqlite::Result<Vec<RunSummary>> {
    let mut query = Query::new(SUMMARY);
    // Every character of an id is below this one, so that the range holds all that begin so.
    let end = format!("{prefix}\u{7f}");
    query.and("id >= ? AND id < ?");
    query.values.extend([&prefix as &dyn ToSql, &end]);
    query.rows(connection, "id", limit, to_summary)
}

/// Selects the runs that pass, the latest created first.
fn rows<T>(
    connection: &Connection,
    select: &str,
    filter: &RunFilter,
    to_record: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    // Without statistics SQLite cannot know that few runs are active.
    let hint = match (&filter.session, filter.active) {
        (None, Some(true)) => " INDEXED BY runs_active",
        _ => "",
    };
    let mut query = Query::new(&format!("{select}{hint}"));
    let driver = filter.driver.map(Driver::as_str);
    let updated_before = filter.updated_before.map(Timestamp::as_millis);
    let after = filter.after.map(|after| clamp(after.number()));
    query.one_of("project", &filter.projects);
    if let Some(machine) = &filter.machine {
        query.and("machine = ?");
        query.values.push(machine);
    }
    if let Some(driver) = &driver {
        query.and("driver = ?");
        query.values.push(driver);
    }
    // As literals, so that SQLite sees which partial index holds the rows.
    if let Some(active) = filter.active {
        query.and(if active { "active = 1" } else { "active = 0" });
    }
    if let Some(before) = &updated_before {
        query.and("updated < ?");
        query.values.push(before);
    }
    if let Some(after) = &after {
        query.and("number < ?");
        query.values.push(after);
    }
    if let Some(session) = &filter.session {
        query.and("session = ?");
        query.values.push(session);
    }
    query.rows(connection, "number DESC", filter.limit, to_record)
}

pub(super) fn events(
    connection: &Connection,
    run: &RunId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Event>> {
    let mut query = Query::new(EVENT);
    let (run, after) = (run.as_str(), clamp(after));
    query.and("run = ? AND seq > ?");
    query.values.extend([&run as &dyn ToSql, &after]);
    query.rows(connection, "seq", limit, to_event)
}

pub(super) fn event_by_source(
    connection: &Connection,
    run: &RunId,
    source: &str,
) -> rusqlite::Result<Option<Event>> {
    let sql = format!("{EVENT} WHERE run = ?1 AND source = ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row(params![run.as_str(), source], to_event).optional()
}

pub(super) fn decisions(
    connection: &Connection,
    filter: &DecisionFilter,
) -> rusqlite::Result<Vec<Decision>> {
    let mut query = Query::new(DECISION);
    let run = filter.run.as_ref().map(RunId::as_str);
    let before = filter.before.map(|before| clamp(before.number()));
    if let Some(run) = &run {
        query.and("run = ?");
        query.values.push(run);
    }
    if let Some(before) = &before {
        query.and("seq < ?");
        query.values.push(before);
    }
    query.rows(connection, "seq DESC", filter.limit, to_decision)
}

pub(super) fn decisions_within(
    connection: &Connection,
    run: Option<&RunId>,
    after: &Cursor,
    limit: usize,
    bytes: usize,
) -> rusqlite::Result<Vec<Decision>> {
    let mut query = Query::new(DECISION);
    let (run, after) = (run.map(RunId::as_str), clamp(after.number()));
    query.and("seq > ?");
    query.values.push(&after);
    if let Some(run) = &run {
        query.and("run = ?");
        query.values.push(run);
    }
    let (mut page, mut length) = (Vec::new(), 0);
    query.visit(connection, &format!("seq LIMIT {}", clamp(limit as u64)), |row| {
        let decision = to_decision(row)?;
        length += decision.body.len();
        page.push(decision);
        Ok(length < bytes)
    })?;
    Ok(page)
}

pub(super) fn decisions_of(
    connection: &Connection,
    run: &RunId,
    revision: Revision,
) -> rusqlite::Result<Vec<Decision>> {
    let mut query = Query::new(DECISION);
    let (run, revision) = (run.as_str(), clamp(revision.0));
    query.and("run = ? AND revision = ?");
    query.values.extend([&run as &dyn ToSql, &revision]);
    query.rows(connection, "seq", usize::MAX, to_decision)
}

pub(super) fn continuity(connection: &Connection, after: &Cursor) -> rusqlite::Result<Continuity> {
    let sql = "SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'decisions'), 0), \
               (SELECT value FROM marks WHERE name = 'pruned_to')";
    let numbers = |row: &Row<'_>| Ok((count(row, 0)?, count(row, 1)?));
    let (newest, pruned_to) = connection.prepare_cached(sql)?.query_row([], numbers)?;
    Ok(match after.number() {
        number if number > newest => Continuity::Unknown,
        number if number < pruned_to => Continuity::Pruned,
        _ => Continuity::Complete,
    })
}

pub(super) fn pending_effects(
    connection: &Connection,
    filter: &EffectFilter,
) -> rusqlite::Result<Vec<Effect>> {
    let mut query = Query::new(EFFECT);
    let run = filter.run.as_ref().map(RunId::as_str);
    let due_by = filter.due_by.as_millis();
    query.and("state = 0 AND due <= ?");
    query.values.push(&due_by);
    query.one_of("kind", &filter.kinds);
    if let Some(run) = &run {
        query.and("run = ?");
        query.values.push(run);
    }
    query.rows(connection, "seq", filter.limit, to_effect)
}

pub(super) fn pending_count(connection: &Connection) -> rusqlite::Result<Vec<PendingCount>> {
    // The index holds all that is counted; of each lane one row is read.
    let sql = "SELECT kind, lane, count(*), (SELECT first.error FROM outbox AS first \
               INDEXED BY outbox_by_lane WHERE first.state = 0 AND first.lane <> '' \
               AND first.lane = outbox.lane ORDER BY first.seq LIMIT 1) \
               FROM outbox INDEXED BY outbox_pending WHERE state = 0 \
               GROUP BY kind, lane ORDER BY kind, lane";
    let to_count = |row: &Row<'_>| {
        let (kind, lane, error) = (row.get(0)?, row.get(1)?, row.get(3)?);
        Ok(PendingCount { kind, lane, count: count(row, 2)?, error })
    };
    connection.prepare_cached(sql)?.query_map([], to_count)?.collect()
}

pub(super) fn effect(connection: &Connection, key: &str) -> rusqlite::Result<Option<Effect>> {
    let mut statement = connection.prepare_cached(&format!("{EFFECT} WHERE key = ?1"))?;
    statement.query_row([key], to_effect).optional()
}

pub(super) fn due_timers(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Timer>> {
    let mut query = Query::new("SELECT run, key, due FROM timers");
    let now = now.as_millis();
    query.and("due <= ?");
    query.values.push(&now);
    query.rows(connection, "due, run, key", limit, to_timer)
}

pub(super) fn next_timer(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let mut statement = connection.prepare_cached("SELECT min(due) FROM timers")?;
    statement
        .query_row([], |row| row.get::<_, Option<i64>>(0))
        .map(|due| due.map(Timestamp::from_millis))
}

/// Returns the sizes but for that of the log.
pub(super) fn size(connection: &Connection) -> rusqlite::Result<StoreSize> {
    let sql = "SELECT page_count * page_size, freelist_count * page_size, \
               (SELECT count(*) FROM runs), (SELECT count(*) FROM doomed) \
               FROM pragma_page_count, pragma_page_size, pragma_freelist_count";
    connection.prepare_cached(sql)?.query_row([], |row| {
        Ok(StoreSize {
            bytes: count(row, 0)?,
            free_bytes: count(row, 1)?,
            log_bytes: 0,
            runs: count(row, 2)?,
            unfinished: count(row, 3)?,
        })
    })
}

/// A `SELECT` whose conditions are only known at run time.
pub(super) struct Query<'a> {
    sql: String,
    conditions: usize,
    pub(super) values: Vec<&'a dyn ToSql>,
}

impl<'a> Query<'a> {
    pub(super) fn new(select: &str) -> Self {
        Self { sql: select.to_owned(), conditions: 0, values: Vec::new() }
    }

    /// Adds a condition; its values follow.
    pub(super) fn and(&mut self, condition: &str) {
        self.sql += if self.conditions == 0 { " WHERE " } else { " AND " };
        self.sql += condition;
        self.conditions += 1;
    }

    /// Adds the condition that the column has one of these values, if there are any.
    pub(super) fn one_of(&mut self, column: &str, values: &'a [String]) {
        if !values.is_empty() {
            let marks = vec!["?"; values.len()].join(", ");
            self.and(&format!("{column} IN ({marks})"));
            self.values.extend(values.iter().map(|value| value as &dyn ToSql));
        }
    }

    fn rows<T>(
        self,
        connection: &Connection,
        order: &str,
        limit: usize,
        to_record: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut records = Vec::new();
        self.visit(connection, &format!("{order} LIMIT {}", clamp(limit as u64)), |row| {
            records.push(to_record(row)?);
            Ok(true)
        })?;
        Ok(records)
    }

    /// Looks at rows in this order for as long as `visit` returns true.
    pub(super) fn visit(
        self,
        connection: &Connection,
        order: &str,
        mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<()> {
        let sql = format!("{} ORDER BY {order}", self.sql);
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(&*self.values)?;
        while let Some(row) = rows.next()? {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }
}

fn to_run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let (id, fence) = (run_id(row, 0)?, count(row, 5)?);
    Ok(Run {
        lease: lease(row, &id, fence)?,
        id,
        revision: Revision(count(row, 1)?),
        last_event: count(row, 2)?,
        created: moment(row, 3)?,
        updated: moment(row, 4)?,
        fence,
        record: RunRecord {
            project: row.get(6)?,
            session: row.get(7)?,
            machine: row.get(8)?,
            driver: driver(row, 9)?,
            title: row.get(10)?,
            active: row.get(11)?,
            state: row.get(14)?,
        },
    })
}

fn lease(row: &Row<'_>, run: &RunId, fence: u64) -> rusqlite::Result<Option<Lease>> {
    let (holder, until): (Option<String>, Option<i64>) = (row.get(12)?, row.get(13)?);
    let until = until.map(Timestamp::from_millis);
    Ok(holder.zip(until).map(|(holder, until)| Lease { run: run.clone(), holder, fence, until }))
}

fn to_summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let (id, fence) = (run_id(row, 0)?, count(row, 5)?);
    Ok(RunSummary {
        lease: lease(row, &id, fence)?,
        id,
        revision: Revision(count(row, 1)?),
        last_event: count(row, 2)?,
        created: moment(row, 3)?,
        updated: moment(row, 4)?,
        fence,
        project: row.get(6)?,
        session: row.get(7)?,
        machine: row.get(8)?,
        driver: driver(row, 9)?,
        title: row.get(10)?,
        active: row.get(11)?,
        page: PageCursor::of(count(row, 14)?),
    })
}

fn to_event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        run: run_id(row, 0)?,
        seq: count(row, 1)?,
        at: moment(row, 2)?,
        kind: row.get(3)?,
        body: row.get(4)?,
        source: row.get(5)?,
        digest: row.get(6)?,
        revision: revision(row, 7)?,
    })
}

fn to_decision(row: &Row<'_>) -> rusqlite::Result<Decision> {
    Ok(Decision {
        cursor: Cursor::of(count(row, 0)?),
        run: run_id(row, 1)?,
        revision: Revision(count(row, 2)?),
        at: moment(row, 3)?,
        body: row.get(4)?,
    })
}

pub(super) fn to_effect(row: &Row<'_>) -> rusqlite::Result<Effect> {
    let state = match row.get::<_, i64>(7)? {
        0 => EffectState::Pending,
        1 => EffectState::Done,
        2 => EffectState::GivenUp,
        other => return Err(Error::IntegralValueOutOfRange(7, other)),
    };
    Ok(Effect {
        key: row.get(0)?,
        run: run_id(row, 1)?,
        kind: row.get(2)?,
        body: row.get(3)?,
        due: moment(row, 4)?,
        attempts: row.get(5)?,
        error: row.get(6)?,
        state,
        lane: row.get(8)?,
        requires: labels::decode(&row.get::<_, String>(9)?),
        worker: row.get(10)?,
    })
}

pub(super) fn to_timer(row: &Row<'_>) -> rusqlite::Result<Timer> {
    Ok(Timer { run: run_id(row, 0)?, key: row.get(1)?, due: moment(row, 2)? })
}

pub(super) fn run_id(row: &Row<'_>, column: usize) -> rusqlite::Result<RunId> {
    let text: String = row.get(column)?;
    RunId::new(text)
        .map_err(|error| Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

fn driver(row: &Row<'_>, column: usize) -> rusqlite::Result<Driver> {
    let name: String = row.get(column)?;
    Driver::named(&name).ok_or_else(|| {
        let error = format!("no driver `{name}`").into();
        Error::FromSqlConversionFailure(column, Type::Text, error)
    })
}

/// Reads a number that starts at 0 and counts up.
pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| Error::IntegralValueOutOfRange(column, number))
}

/// Reads a revision that rows of 0.1.0 do not have.
pub(super) fn revision(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Revision>> {
    let known = row.get::<_, Option<i64>>(column)?;
    known.map(|_| count(row, column).map(Revision)).transpose()
}

fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

/// Brings a number into SQLite's range. Nothing stored can lie beyond it.
pub(super) fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
