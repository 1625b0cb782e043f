//! Deletes old runs, a few rows at a time, so that writers never wait long.
//!
//! The row of a run goes first: from then on nobody finds the run, and its name is in `doomed` until
//! the last row of its history is deleted, by this call or a later one.

use aldis_signal::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::outbox;
use super::read::{clamp, run_id};
use super::statements::Statements;
use crate::step::RunId;

/// Rows deleted in one transaction, at most.
pub(super) const ROWS: usize = 2_000;
/// Transactions in one call, at most.
pub(super) const TRANSACTIONS: usize = 16;
/// Pages given back in one transaction, and free pages that are kept for the next writes.
const PAGES: u32 = 256;

/// The rows of a run but for its own: each statement deletes up to `?2` of them.
const HISTORY: [&str; 4] = [
    "DELETE FROM events WHERE run = ?1 AND seq IN \
     (SELECT seq FROM events WHERE run = ?1 ORDER BY seq LIMIT ?2)",
    "DELETE FROM decisions WHERE seq IN \
     (SELECT seq FROM decisions WHERE run = ?1 ORDER BY seq LIMIT ?2)",
    "DELETE FROM outbox WHERE seq IN \
     (SELECT seq FROM outbox WHERE state IN (0, 1, 2) AND run = ?1 LIMIT ?2)",
    "DELETE FROM parts WHERE run = ?1 AND key IN \
     (SELECT key FROM parts WHERE run = ?1 LIMIT ?2)",
];

/// Deletes up to [`ROWS`] rows of runs that ended before, and of up to `limit` runs that were not
/// doomed yet. Returns those, and whether there may be more to do.
pub(super) fn batch(
    statements: &mut Statements<'_>,
    ended_before: Timestamp,
    limit: usize,
) -> rusqlite::Result<(Vec<RunId>, bool)> {
    let (mut left, mut gone) = (ROWS, Vec::new());
    loop {
        while let Some(run) = first(statements, "SELECT run FROM doomed LIMIT 1", &[])? {
            finish(statements, &run, &mut left)?;
            if left == 0 {
                return Ok((gone, true));
            }
        }
        let oldest = "SELECT id FROM runs INDEXED BY runs_ended WHERE active = 0 AND updated < ?1 \
                      ORDER BY updated, number LIMIT 1";
        let next = match gone.len() < limit {
            true => first(statements, oldest, &[ended_before.as_millis()])?,
            false => None,
        };
        let Some(run) = next else { return Ok((gone, false)) };
        if !doom(statements, &run, &mut left)? {
            return Ok((gone, true));
        }
        gone.push(run);
    }
}

fn first(
    statements: &mut Statements<'_>,
    sql: &'static str,
    values: &[i64],
) -> rusqlite::Result<Option<RunId>> {
    let values = rusqlite::params_from_iter(values);
    statements.get(sql)?.query_row(values, |row| run_id(row, 0)).optional()
}

/// Deletes what others would act on, then the run itself. Returns false if there are more than
/// `left` rows: the run stays until all of them are gone.
fn doom(statements: &mut Statements<'_>, run: &RunId, left: &mut usize) -> rusqlite::Result<bool> {
    let id = run.as_str();
    *left -= statements
        .get(
            "DELETE FROM timers WHERE run = ?1 AND key IN \
             (SELECT key FROM timers WHERE run = ?1 LIMIT ?2)",
        )?
        .execute(params![id, clamp(*left as u64)])?;
    let lanes: Vec<String> = statements
        .get(
            "DELETE FROM outbox WHERE seq IN \
             (SELECT seq FROM outbox WHERE state = 0 AND run = ?1 LIMIT ?2) RETURNING lane",
        )?
        .query_map(params![id, clamp(*left as u64)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    *left -= lanes.len();
    for lane in lanes {
        outbox::promote(statements, Some(lane))?;
    }
    if *left == 0 {
        return Ok(false);
    }
    *left -= 1;
    for sql in [
        "UPDATE marks SET value = max(value, ifnull((SELECT max(seq) FROM decisions \
         WHERE run = ?1), 0)) WHERE name = 'pruned_to'",
        "INSERT INTO doomed VALUES (?1)",
        "DELETE FROM runs WHERE id = ?1",
    ] {
        statements.get(sql)?.execute([id])?;
    }
    Ok(true)
}

/// Deletes up to `left` rows of the history of a doomed run. The last ones take its name with them.
pub(super) fn finish(
    statements: &mut Statements<'_>,
    run: &RunId,
    left: &mut usize,
) -> rusqlite::Result<()> {
    for sql in HISTORY {
        *left -= statements.get(sql)?.execute(params![run.as_str(), clamp(*left as u64)])?;
    }
    if *left > 0 {
        statements.get("DELETE FROM doomed WHERE run = ?1")?.execute([run.as_str()])?;
    }
    Ok(())
}

/// Returns whether there is something left of a run of that name.
pub(super) fn is_doomed(statements: &mut Statements<'_>, run: &RunId) -> rusqlite::Result<bool> {
    statements.get("SELECT 1 FROM doomed WHERE run = ?1")?.exists([run.as_str()])
}

/// Gives some free pages back to the file system, if the database was created for that and there are
/// many. Returns whether there may be more.
pub(super) fn give_back(statements: &mut Statements<'_>) -> rusqlite::Result<bool> {
    let free = |statements: &mut Statements<'_>| -> rusqlite::Result<u32> {
        statements.get("PRAGMA freelist_count")?.query_row([], |row| row.get(0))
    };
    let before = free(statements)?;
    if before <= PAGES {
        return Ok(false);
    }
    // One row for each page: all of them must be asked for.
    let statement = statements.get("PRAGMA incremental_vacuum(256)")?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    Ok(free(statements)? < before)
}
