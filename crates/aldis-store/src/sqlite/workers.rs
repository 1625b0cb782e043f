//! The registry of workers.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use rusqlite::{Connection, params};

use super::statements::Statements;
use crate::worker::{FORGOTTEN_AFTER, WorkerRecord};

pub(super) fn announce(
    statements: &mut Statements<'_>,
    (name, body): (&str, &str),
    now: Timestamp,
    ttl: Duration,
) -> rusqlite::Result<()> {
    let (seen, until) = (now.as_millis(), now.after(ttl).as_millis());
    let kept = i64::try_from(FORGOTTEN_AFTER.as_millis()).unwrap_or(i64::MAX);
    let forgotten = seen.saturating_sub(kept);
    statements.get("DELETE FROM workers WHERE until < ?1")?.execute([forgotten])?;
    statements
        .get(
            "INSERT INTO workers (name, seen, until, body) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT DO UPDATE SET seen = ?2, until = ?3, body = ?4",
        )?
        .execute(params![name, seen, until, body])
        .map(drop)
}

pub(super) fn withdraw(statements: &mut Statements<'_>, name: &str) -> rusqlite::Result<bool> {
    Ok(statements.get("DELETE FROM workers WHERE name = ?1")?.execute([name])? > 0)
}

pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<WorkerRecord>> {
    let sql = "SELECT name, body, seen, until FROM workers ORDER BY name";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(WorkerRecord {
            name: row.get(0)?,
            body: row.get(1)?,
            seen: Timestamp::from_millis(row.get(2)?),
            until: Timestamp::from_millis(row.get(3)?),
        })
    })?;
    rows.collect()
}
