//! What is asked of the tables. Every answer is of one moment: one statement.

use tokio_postgres::Row;

use super::link::Link;
use super::values::{Columns, Decoded, Values};
use crate::claim::{Claim, PendingCount};
use crate::cursor::{Continuity, Cursor, PageCursor};
use crate::error::StoreError;
use crate::record::{
    Decision, DecisionFilter, Effect, EffectFilter, EffectState, Event, Lease, Loaded, Part, Run,
    RunFilter, RunSummary, StoreSize, Timer,
};
use crate::step::{Driver, Revision, RunId, RunRecord};

const RUN: &str = "id, revision, last_event, created, updated, fence, project, session, machine, \
                   driver, title, active, lease_holder, lease_until, state";
const SUMMARY: &str = "id, revision, last_event, created, updated, fence, project, session, \
                       machine, driver, title, active, lease_holder, lease_until, number";
/// The parts of a run in the same statement, and so of the same moment.
const PARTS: &str = "ARRAY(SELECT key FROM {s}.parts WHERE run = id ORDER BY key), \
                     ARRAY(SELECT body FROM {s}.parts WHERE run = id ORDER BY key)";
const EVENT: &str = "SELECT run, seq, at, kind, body, source, digest, revision FROM {s}.events";
const DECISION: &str = "SELECT tx, seq, run, revision, at, body FROM {s}.decisions";
/// A parameter that is not given is folded away before the statement is planned.
const FILTER: &str = "FROM {s}.runs WHERE ($1 IS NULL OR project = ANY ($1)) \
                      AND ($2 IS NULL OR machine = $2) AND ($3 IS NULL OR driver = $3) \
                      AND ($4 IS NULL OR active = $4) AND ($5 IS NULL OR session = $5) \
                      AND ($6 IS NULL OR updated < $6) AND ($7 IS NULL OR number < $7)";
pub(super) const EFFECT: &str = "key, run, kind, body, due, attempts, error, state, lane, requires, \
                                 worker";

pub(super) fn run(link: &Link, id: &RunId) -> Result<Option<Run>, StoreError> {
    let sql = format!("SELECT {RUN} FROM {{s}}.runs WHERE id = $1");
    link.read("read a run", &sql, Values::default().text(id.as_str()), first(to_run))
}

pub(super) fn load(link: &Link, id: &RunId) -> Result<Option<Loaded>, StoreError> {
    let sql = format!("SELECT {RUN}, {PARTS} FROM {{s}}.runs WHERE id = $1");
    link.read("read a run", &sql, Values::default().text(id.as_str()), first(to_loaded))
}

pub(super) fn loaded(link: &Link, filter: &RunFilter) -> Result<Vec<Loaded>, StoreError> {
    let sql = format!("SELECT {RUN}, {PARTS} {FILTER} ORDER BY number DESC LIMIT $8");
    link.read("read runs", &sql, filtered(filter).limit(filter.limit), all(to_loaded))
}

pub(super) fn list(link: &Link, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
    let sql = format!("SELECT {SUMMARY} {FILTER} ORDER BY number DESC LIMIT $8");
    link.read("list runs", &sql, filtered(filter).limit(filter.limit), all(to_summary))
}

pub(super) fn count_runs(link: &Link, filter: &RunFilter) -> Result<u64, StoreError> {
    let sql = format!("SELECT count(*) {FILTER}");
    link.read("count runs", &sql, filtered(filter), |rows| {
        Ok(first(|columns| columns.number())(rows)?.unwrap_or_default())
    })
}

fn filtered(filter: &RunFilter) -> Values {
    Values::default()
        .texts_or_any(&filter.projects)
        .maybe_text(filter.machine.as_deref())
        .maybe_text(filter.driver.map(Driver::as_str))
        .maybe_flag(filter.active)
        .maybe_text(filter.session.as_deref())
        .maybe_signed(filter.updated_before.map(|before| before.as_millis()))
        .maybe_number(filter.after.map(PageCursor::number))
}

pub(super) fn find(link: &Link, prefix: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
    // Every character of an id is below the last one, so that the range holds all that begin so.
    let sql =
        format!("SELECT {SUMMARY} FROM {{s}}.runs WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3");
    let values = Values::default().text(prefix).text(&format!("{prefix}\u{7f}")).limit(limit);
    link.read("find runs", &sql, values, all(to_summary))
}

pub(super) fn events(
    link: &Link,
    run: &RunId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let sql = format!("{EVENT} WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3");
    let values = Values::default().text(run.as_str()).number(after).limit(limit);
    link.read("read events", &sql, values, all(to_event))
}

pub(super) fn event_by_source(
    link: &Link,
    run: &RunId,
    source: &str,
) -> Result<Option<Event>, StoreError> {
    let sql = format!("{EVENT} WHERE run = $1 AND source = $2");
    let values = Values::default().text(run.as_str()).text(source);
    link.read("find an event", &sql, values, first(to_event))
}

pub(super) fn decisions(link: &Link, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
    let sql = format!(
        "{DECISION} WHERE ($1 IS NULL OR run = $1) AND ($2 IS NULL OR (tx, seq) < ($2, $3)) \
         ORDER BY tx DESC, seq DESC LIMIT $4"
    );
    let before = filter.before.map(Cursor::pair);
    let values = Values::default()
        .maybe_text(filter.run.as_ref().map(RunId::as_str))
        .maybe_number(before.map(|(tx, _)| tx))
        .maybe_number(before.map(|(_, seq)| seq))
        .limit(filter.limit);
    link.read("read decisions", &sql, values, all(to_decision))
}

/// Reads on. Of one run all that is visible is in order, because its steps are committed one after the
/// other. Across runs that holds only for what is older than every transaction that still runs.
pub(super) fn decisions_within(
    link: &Link,
    run: Option<&RunId>,
    after: &Cursor,
    limit: usize,
    bytes: usize,
) -> Result<Vec<Decision>, StoreError> {
    let scope = match run {
        Some(_) => "run = $3",
        None => {
            "$3 IS NULL AND tx < (SELECT tx_offset FROM {s}.store) \
             + pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
        }
    };
    let page =
        format!("{DECISION} WHERE (tx, seq) > ($1, $2) AND {scope} ORDER BY tx, seq LIMIT $4");
    // Up to the one that makes the bodies so long together.
    let sql = format!(
        "SELECT tx, seq, run, revision, at, body FROM (SELECT page.*, \
         sum(octet_length(body)) OVER (ORDER BY tx, seq) - octet_length(body) AS before \
         FROM ({page}) AS page) AS measured WHERE before < $5 ORDER BY tx, seq"
    );
    let (tx, seq) = after.pair();
    let values = Values::default().number(tx).number(seq).maybe_text(run.map(RunId::as_str));
    let values = values.limit(limit).limit(bytes);
    link.read("read decisions", &sql, values, all(to_decision))
}

/// Returns the last transaction that decided something, and the oldest that still runs.
pub(super) fn horizon(link: &Link) -> Result<(u64, u64), StoreError> {
    let sql = "SELECT coalesce((SELECT tx FROM {s}.decisions ORDER BY tx DESC, seq DESC LIMIT 1), 0), \
               tx_offset + pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM {s}.store";
    let both = |columns: &mut Columns<'_>| Ok((columns.number()?, columns.number()?));
    link.read("read decisions", sql, Values::default(), |rows| {
        first(both)(rows)?.ok_or_else(|| "the row about the store is missing".to_owned())
    })
}

pub(super) fn decisions_of(
    link: &Link,
    run: &RunId,
    revision: Revision,
) -> Result<Vec<Decision>, StoreError> {
    let sql = format!("{DECISION} WHERE run = $1 AND revision = $2 ORDER BY tx, seq");
    let values = Values::default().text(run.as_str()).number(revision.0);
    link.read("read decisions", &sql, values, all(to_decision))
}

/// A cursor is known if its decision is there, or was pruned.
pub(super) fn continuity(link: &Link, after: &Cursor) -> Result<Continuity, StoreError> {
    let sql = "SELECT (pruned_tx, pruned_seq) > ($1, $2), \
               ($1, $2) IN ((0, 0), (pruned_tx, pruned_seq)) \
               OR EXISTS (SELECT 1 FROM {s}.decisions WHERE tx = $1 AND seq = $2), \
               (SELECT CASE WHEN is_called THEN last_value ELSE 0 END \
               FROM {s}.decisions_seq_seq) >= $2 FROM {s}.store";
    let (tx, seq) = after.pair();
    let values = Values::default().number(tx).number(seq);
    link.read("read decisions", sql, values, |rows| {
        let all =
            |columns: &mut Columns<'_>| Ok((columns.flag()?, columns.flag()?, columns.flag()?));
        Ok(match first(all)(rows)? {
            Some((true, _, true)) if (tx == 0) == (seq == 0) => Continuity::Pruned,
            Some((_, true, _)) => Continuity::Complete,
            _ => Continuity::Unknown,
        })
    })
}

pub(super) fn pending_effects(
    link: &Link,
    filter: &EffectFilter,
) -> Result<Vec<Effect>, StoreError> {
    let sql = format!(
        "SELECT {EFFECT} FROM {{s}}.outbox WHERE state = 0 AND due <= $1 \
         AND ($2 IS NULL OR kind = ANY ($2)) AND ($3 IS NULL OR run = $3) ORDER BY seq LIMIT $4"
    );
    let values = Values::default()
        .moment(filter.due_by)
        .texts_or_any(&filter.kinds)
        .maybe_text(filter.run.as_ref().map(RunId::as_str))
        .limit(filter.limit);
    link.read("read the outbox", &sql, values, all(to_effect))
}

pub(super) fn pending_count(link: &Link) -> Result<Vec<PendingCount>, StoreError> {
    let sql = "SELECT kind, lane, count(*), (SELECT first.error FROM {s}.outbox AS first \
               WHERE first.state = 0 AND first.lane <> '' AND first.lane = outbox.lane \
               ORDER BY first.seq LIMIT 1) \
               FROM {s}.outbox WHERE state = 0 GROUP BY kind, lane ORDER BY kind, lane";
    let to_count = |columns: &mut Columns<'_>| {
        let (kind, lane) = (columns.text()?, columns.text()?);
        Ok(PendingCount { kind, lane, count: columns.number()?, error: columns.maybe_text()? })
    };
    link.read("count effects", sql, Values::default(), all(to_count))
}

pub(super) fn effect(link: &Link, key: &str) -> Result<Option<Effect>, StoreError> {
    let sql = format!("SELECT {EFFECT} FROM {{s}}.outbox WHERE key = $1");
    link.read("read the outbox", &sql, Values::default().text(key), first(to_effect))
}

pub(super) fn due_timers(link: &Link, now: i64, limit: usize) -> Result<Vec<Timer>, StoreError> {
    let sql =
        "SELECT run, key, due FROM {s}.timers WHERE due <= $1 ORDER BY due, run, key LIMIT $2";
    link.read("read timers", sql, Values::default().signed(now).limit(limit), all(to_timer))
}

pub(super) fn size(link: &Link) -> Result<StoreSize, StoreError> {
    let sql = "SELECT coalesce((SELECT sum(pg_total_relation_size(pg_class.oid)) FROM pg_class \
               JOIN pg_namespace ON pg_namespace.oid = relnamespace \
               WHERE nspname = $1 AND relkind = 'r'), 0)::bigint, \
               (SELECT count(*) FROM {s}.runs), (SELECT count(*) FROM {s}.doomed)";
    let to_size = |columns: &mut Columns<'_>| {
        let (bytes, runs, unfinished) = (columns.number()?, columns.number()?, columns.number()?);
        Ok(StoreSize { bytes, free_bytes: 0, log_bytes: 0, runs, unfinished })
    };
    let values = Values::default().text(&link.address.schema);
    link.read("measure the database", sql, values, |rows| {
        Ok(first(to_size)(rows)?.unwrap_or_default())
    })
}

/// Looks for what cannot be: each row is one kind of finding, with how many there are.
pub(super) fn findings(link: &Link) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT what, count FROM ( \
        SELECT 'events whose numbers have gaps, in runs' AS what, count(*) FROM {s}.runs \
        WHERE last_event <> (SELECT count(*) FROM {s}.events WHERE run = id) \
        UNION ALL SELECT 'rows of runs that are not there', count(*) FROM ( \
            SELECT run FROM {s}.events UNION SELECT run FROM {s}.decisions \
            UNION SELECT run FROM {s}.outbox UNION SELECT run FROM {s}.timers \
            UNION SELECT run FROM {s}.parts) AS known \
        WHERE NOT EXISTS (SELECT 1 FROM {s}.runs WHERE id = run) \
            AND NOT EXISTS (SELECT 1 FROM {s}.doomed WHERE doomed.run = known.run) \
        UNION ALL SELECT 'effects that are marked wrongly as first of their lane, or not', count(*) \
        FROM {s}.outbox AS one WHERE state = 0 AND head <> (lane = '' OR NOT EXISTS ( \
            SELECT 1 FROM {s}.outbox AS earlier WHERE earlier.state = 0 AND earlier.lane <> '' \
            AND earlier.lane = one.lane AND earlier.seq < one.seq)) \
        UNION ALL SELECT 'decisions of later revisions than their run has', count(*) \
        FROM {s}.decisions JOIN {s}.runs ON id = run WHERE decisions.revision > runs.revision \
        ) AS findings WHERE count > 0";
    let finding = |columns: &mut Columns<'_>| {
        let (what, count) = (columns.text()?, columns.number()?);
        Ok(format!("{what}: {count}"))
    };
    link.read("check the database", sql, Values::default(), all(finding))
}

/// Understands the first row, if there is one.
pub(super) fn first<T>(
    understand: impl FnOnce(&mut Columns<'_>) -> Decoded<T>,
) -> impl FnOnce(Vec<Row>) -> Decoded<Option<T>> {
    move |rows| rows.first().map(|row| understand(&mut Columns::of(row))).transpose()
}

/// Understands every row.
pub(super) fn all<T>(
    mut understand: impl FnMut(&mut Columns<'_>) -> Decoded<T>,
) -> impl FnOnce(Vec<Row>) -> Decoded<Vec<T>> {
    move |rows| rows.iter().map(|row| understand(&mut Columns::of(row))).collect()
}

fn to_run(columns: &mut Columns<'_>) -> Decoded<Run> {
    let id = columns.run_id()?;
    let (revision, last_event) = (columns.revision()?, columns.number()?);
    let (created, updated, fence) = (columns.moment()?, columns.moment()?, columns.number()?);
    let (project, session, machine) = (columns.text()?, columns.maybe_text()?, columns.text()?);
    let (driver, title, active) = (columns.driver()?, columns.text()?, columns.flag()?);
    let lease = to_lease(columns, &id, fence)?;
    let state = columns.text()?;
    let record = RunRecord { project, session, machine, driver, title, active, state };
    Ok(Run { id, revision, last_event, created, updated, fence, lease, record })
}

fn to_loaded(columns: &mut Columns<'_>) -> Decoded<Loaded> {
    let run = to_run(columns)?;
    let (keys, bodies) = (columns.texts()?, columns.texts()?);
    let parts = keys.into_iter().zip(bodies).map(|(key, body)| Part { key, body }).collect();
    Ok(Loaded { run, parts })
}

fn to_lease(columns: &mut Columns<'_>, run: &RunId, fence: u64) -> Decoded<Option<Lease>> {
    let (holder, until) = (columns.maybe_text()?, columns.maybe_moment()?);
    Ok(holder.zip(until).map(|(holder, until)| Lease { run: run.clone(), holder, fence, until }))
}

fn to_summary(columns: &mut Columns<'_>) -> Decoded<RunSummary> {
    let id = columns.run_id()?;
    let (revision, last_event) = (columns.revision()?, columns.number()?);
    let (created, updated, fence) = (columns.moment()?, columns.moment()?, columns.number()?);
    let (project, session, machine) = (columns.text()?, columns.maybe_text()?, columns.text()?);
    let (driver, title, active) = (columns.driver()?, columns.text()?, columns.flag()?);
    Ok(RunSummary {
        lease: to_lease(columns, &id, fence)?,
        id,
        revision,
        last_event,
        created,
        updated,
        fence,
        project,
        session,
        machine,
        driver,
        title,
        active,
        page: PageCursor::of(columns.number()?),
    })
}

fn to_event(columns: &mut Columns<'_>) -> Decoded<Event> {
    Ok(Event {
        run: columns.run_id()?,
        seq: columns.number()?,
        at: columns.moment()?,
        kind: columns.text()?,
        body: columns.text()?,
        source: columns.maybe_text()?,
        digest: columns.maybe_text()?,
        revision: columns.maybe_number()?.map(Revision),
    })
}

fn to_decision(columns: &mut Columns<'_>) -> Decoded<Decision> {
    Ok(Decision {
        cursor: Cursor::of_transaction(columns.number()?, columns.number()?),
        run: columns.run_id()?,
        revision: columns.revision()?,
        at: columns.moment()?,
        body: columns.text()?,
    })
}

pub(super) fn to_effect(columns: &mut Columns<'_>) -> Decoded<Effect> {
    Ok(Effect {
        key: columns.text()?,
        run: columns.run_id()?,
        kind: columns.text()?,
        body: columns.text()?,
        due: columns.moment()?,
        attempts: columns.small()?,
        error: columns.maybe_text()?,
        state: match columns.tiny()? {
            0 => EffectState::Pending,
            1 => EffectState::Done,
            2 => EffectState::GivenUp,
            other => return Err(format!("an effect in state {other}")),
        },
        lane: columns.text()?,
        requires: columns.labels()?,
        worker: columns.maybe_text()?,
    })
}

pub(super) fn to_timer(columns: &mut Columns<'_>) -> Decoded<Timer> {
    Ok(Timer { run: columns.run_id()?, key: columns.text()?, due: columns.moment()? })
}

pub(super) fn to_claim(columns: &mut Columns<'_>) -> Decoded<Claim> {
    let effect = to_effect(columns)?;
    Ok(Claim { effect, fence: columns.number()?, until: columns.moment()? })
}
