//! The schema, as the numbered steps that lead to it. Forward only.
//!
//! An empty database is set up by whoever comes first. An older one is left alone until somebody says
//! `migrate`: others may be using it with the program that made it.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use super::error::CallError;
use super::link::{Link, Repeat, ask};
use super::values::{Columns, Decoded, Values};
use crate::error::StoreError;

/// Every version that was ever released, in order. Append, never edit.
const MIGRATIONS: &[&[&str]] = &[
    &[
        include_str!("../../migrations/postgres/0001_tables.sql"),
        include_str!("../../migrations/postgres/0001_functions.sql"),
    ],
    &[include_str!("../../migrations/postgres/0002_workers.sql")],
    &[include_str!("../../migrations/postgres/0003_tickets.sql")],
    &[include_str!("../../migrations/postgres/0004_projects.sql")],
];

/// The version this program reads and writes.
const KNOWN: u32 = MIGRATIONS.len() as u32;

const DOING: &str = "open the database";

/// How the database stands, as far as opening it must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// The schema's version; 0 when there is none.
    pub(super) version: u32,
    /// Whether a commit is durable when it is acknowledged.
    pub(super) durable: bool,
    /// Whether text can be any text.
    pub(super) utf8: bool,
    /// Whether decisions are here that are later than every transaction: a backup was restored.
    pub(super) restored: bool,
}

/// Looks at the database.
pub(super) fn look(link: &Link) -> Result<Condition, StoreError> {
    let sql = "SELECT store.version, current_setting('synchronous_commit') <> 'off', \
               current_setting('server_encoding') = 'UTF8', \
               coalesce((SELECT tx FROM {s}.decisions ORDER BY tx DESC, seq DESC LIMIT 1) >= \
               pg_snapshot_xmax(pg_current_snapshot())::text::bigint + tx_offset, false) \
               FROM {s}.store";
    let (pool, statement) = (link.pool.clone(), link.sql(sql));
    let found = link.wait(async move {
        match ask(&pool, &statement, &Values::default(), Repeat::Read).await {
            Err(CallError::Database(error)) if is_missing(&error) => Ok(None),
            result => result.map(Some),
        }
    });
    let found = found.map_err(|error| error.sort(link.location(), DOING))?;
    match found {
        Some(rows) => understand(rows.first()).map_err(|detail| link.corrupt(detail)),
        None => Ok(Condition { version: 0, durable: true, utf8: true, restored: false }),
    }
}

fn understand(row: Option<&Row>) -> Decoded<Condition> {
    let row = row.ok_or("the row about the store is missing")?;
    let mut columns = Columns::of(row);
    Ok(Condition {
        version: columns.small()?,
        durable: columns.flag()?,
        utf8: columns.flag()?,
        restored: columns.flag()?,
    })
}

/// Whether the tables are not there, as opposed to not being ours to read.
fn is_missing(error: &tokio_postgres::Error) -> bool {
    let missing = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
    error.code().is_some_and(|state| missing.contains(state))
}

/// Checks that the database can be used as it stands, and sets up an empty one.
pub(super) fn open(link: &Link) -> Result<(), StoreError> {
    let mut condition = look(link)?;
    if condition.version == 0 {
        migrate(link)?;
        condition = look(link)?;
    }
    let location = link.location().to_owned();
    let Condition { version: found, durable, utf8, restored } = condition;
    if found > KNOWN {
        return Err(StoreError::NewerSchema { location, found, known: KNOWN });
    }
    if found < KNOWN || restored {
        return Err(StoreError::OlderSchema { location });
    }
    if !durable {
        let why = "synchronous_commit is off, so a crash of the server would lose what was acknowledged; \
                   set it to on for this role or database";
        return Err(StoreError::Unsafe { location, why });
    }
    if !utf8 {
        let why = "its encoding is not UTF8; create the database with ENCODING 'UTF8'";
        return Err(StoreError::Unsafe { location, why });
    }
    Ok(())
}

/// Takes the database through the migrations it lacks, and lets one that was restored from a backup
/// count on from where it was. Killed at any point, it is at one version or the next. Returns the
/// version before and after.
pub(super) fn migrate(link: &Link) -> Result<(u32, u32), StoreError> {
    let before = look(link)?.version;
    if before > KNOWN {
        let location = link.location().to_owned();
        return Err(StoreError::NewerSchema { location, found: before, known: KNOWN });
    }
    for number in before..KNOWN {
        let steps: Vec<_> = MIGRATIONS[number as usize].iter().map(|step| link.sql(step)).collect();
        let version = link.sql(&format!("UPDATE {{s}}.store SET version = {}", number + 1));
        let current = link.sql("SELECT version FROM {s}.store");
        let create = link.sql("CREATE SCHEMA IF NOT EXISTS {s}");
        let schema = link.address.schema.clone();
        let pool = link.pool.clone();
        let migrated = link.wait(async move {
            let mut client = pool.get().await.map_err(CallError::Pool)?;
            let transaction = client.transaction().await.map_err(CallError::Database)?;
            let client = transaction.client();
            // One at a time: whoever waited finds it done.
            lock(client, &schema).await.map_err(CallError::Database)?;
            let found = found(client, &schema, &current).await.map_err(CallError::Database)?;
            if found == number {
                for step in std::iter::once(&create).chain(&steps).chain([&version]) {
                    // An administrator may have made the schema for a role that may not.
                    if *step != create || !exists(client, &schema).await? {
                        client.batch_execute(step).await.map_err(CallError::Database)?;
                    }
                }
            }
            transaction.commit().await.map_err(CallError::Database)
        });
        migrated.map_err(|error| error.sort(link.location(), "migrate the database"))?;
        tracing::debug!(from = number, to = number + 1, "schema migrated");
    }
    let catch_up = "UPDATE {s}.store SET tx_offset = greatest(tx_offset, coalesce(( \
                    SELECT tx FROM {s}.decisions ORDER BY tx DESC, seq DESC LIMIT 1), 0))";
    if look(link)?.restored {
        link.call("migrate the database", Repeat::Write, catch_up, Values::default(), |_| Ok(()))?;
    }
    Ok((before, KNOWN))
}

async fn lock(client: &Client, schema: &str) -> Result<(), tokio_postgres::Error> {
    let key = format!("aldis migrates {schema}");
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    client.query_typed(sql, &[(&key, tokio_postgres::types::Type::TEXT)]).await.map(drop)
}

async fn exists(client: &Client, schema: &str) -> Result<bool, CallError> {
    let sql = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    let rows = client.query_typed(sql, &[(&schema, tokio_postgres::types::Type::TEXT)]).await;
    rows.map(|rows| !rows.is_empty()).map_err(CallError::Database)
}

/// The version inside the transaction, where a failed look would end it.
async fn found(client: &Client, schema: &str, current: &str) -> Result<u32, tokio_postgres::Error> {
    let table = format!("\"{schema}\".store");
    let sql = "SELECT to_regclass($1) IS NOT NULL";
    let rows = client.query_typed(sql, &[(&table, tokio_postgres::types::Type::TEXT)]).await?;
    let there = rows.first().is_some_and(|row| row.get::<_, bool>(0));
    if !there {
        return Ok(0);
    }
    let rows = client.query_typed(current, &[]).await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i32>(0).unsigned_abs()))
}
