//! The schema, as the numbered steps that lead to it. Forward only; the number is `user_version`.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::read::count;

/// Every version that was ever released, in order. Append, never edit.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_init.sql"),
    include_str!("../../migrations/sqlite/0002_parts.sql"),
    include_str!("../../migrations/sqlite/0003_coordination.sql"),
    include_str!("../../migrations/sqlite/0004_workers.sql"),
    include_str!("../../migrations/sqlite/0005_tickets.sql"),
];

/// The version this program reads and writes.
pub(super) const KNOWN: u32 = MIGRATIONS.len() as u32;

/// Settings of each connection.
///
/// `FULL` is what makes a commit durable. SQLite does not copy the log back by itself, because it
/// could never start the log anew: see [`shorten_log`].
pub(super) const SETTINGS: &str = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;";

/// How long SQLite waits where the gate does not: while a crashed process's log is read again, or
/// the last one to leave copies the log back.
const PATIENCE: Duration = Duration::from_secs(5);

/// Copies the log back into the database and empties it, unless somebody is reading in it.
///
/// SQLite's automatic checkpoint leaves the emptying to the next writer. When each writer is a
/// process of its own, as hooks are, the next one reads the log as if nothing had been copied back,
/// appends, and the log grows for ever: 300 hooks left 16 MB, and each took longer than the last.
pub(super) fn shorten_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    let result = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(PATIENCE)?;
    result
}

/// Copies the log back and leaves the file as it is: the next writer begins it anew unless somebody is
/// reading in it or something was written meanwhile, and writing over a file costs a good deal less than
/// letting it grow again. For those who go on writing.
pub(super) fn copy_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Returns how many pages the log has, and how many of them are not copied back yet.
pub(super) fn log_pages(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| {
        let length = count(row, 1)?;
        Ok((length, length.saturating_sub(count(row, 2)?)))
    })
}

/// Returns the schema version of the database; 0 when it is empty.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Takes the database through the migrations it lacks, each in a transaction of its own: killed at
/// any point, it is at one version or the next. The inner error says why it is not ours to change.
///
/// The caller keeps other writers out.
pub(super) fn migrate(
    connection: &mut Connection,
    migrations: &[&str],
) -> rusqlite::Result<Result<(), &'static str>> {
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    if version(connection)? == 0 && !is_empty(connection)? {
        return Ok(Err("it holds somebody else's tables"));
    }
    // Only a file without a page takes this: older databases need `VACUUM` once.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    // Remembered in the file; a change of mode cannot be part of a transaction.
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Ok(Err("its file system cannot share a write-ahead log; use a local disk"));
    }
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = version(&transaction)?;
        let Some(sql) = migrations.get(found as usize) else { return Ok(Ok(())) };
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
        tracing::debug!(from = found, to = found + 1, "schema migrated");
    }
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    //! Migrations from every version to every later one, with steps that fail on the way.

    use super::*;

    const STEPS: &[&str] = &[
        "CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (1)",
        "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7",
        "UPDATE a SET y = y + x",
    ];

    fn at_version(directory: &tempfile::TempDir, version: usize) -> Connection {
        let mut connection =
            Connection::open(directory.path().join(format!("{version}.db"))).unwrap();
        migrate(&mut connection, &STEPS[..version]).unwrap().unwrap();
        connection
    }

    #[test]
    fn every_version_reaches_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        for from in 0..=STEPS.len() {
            let mut connection = at_version(&directory, from);
            assert_eq!(version(&connection).unwrap() as usize, from);
            // Twice: the second time there is nothing to do.
            for _ in 0..2 {
                migrate(&mut connection, STEPS).unwrap().unwrap();
                assert_eq!(version(&connection).unwrap() as usize, STEPS.len());
                let y = connection.query_row("SELECT y FROM a", [], |row| row.get::<_, i64>(0));
                assert_eq!(y.unwrap(), 8);
            }
        }
    }

    #[test]
    fn a_migration_that_fails_halfway_leaves_the_version_before() {
        let directory = tempfile::tempdir().unwrap();
        let mut connection = at_version(&directory, 1);
        let broken = [STEPS[0], "UPDATE a SET x = 99; UPDATE missing SET x = 1"];
        assert!(migrate(&mut connection, &broken).is_err());
        assert_eq!(version(&connection).unwrap(), 1);
        let x = connection.query_row("SELECT x FROM a", [], |row| row.get::<_, i64>(0));
        assert_eq!(x.unwrap(), 1);
        migrate(&mut connection, STEPS).unwrap().unwrap();
    }

    #[test]
    fn a_commit_waits_for_the_disk() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SETTINGS).unwrap();
        let level = connection.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0));
        assert_eq!(level.unwrap(), 2);
    }
}
