//! Tickets in the embedded database.

use aldis_signal::time::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::group::GroupStore;
use super::read::clamp;
use super::statements::Statements;
use crate::error::StoreError;
use crate::ticket::{FORGOTTEN, Ticket, Tickets};

impl Tickets for SqliteStore {
    fn put_ticket(&self, ticket: &Ticket) -> Result<bool, StoreError> {
        self.write("put a ticket", |statements| put(statements, ticket))
    }

    fn ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        self.with("read a ticket", |connection| {
            let sql = "SELECT kind, key, created, until, body FROM tickets \
                       WHERE kind = ?1 AND key = ?2";
            connection.prepare_cached(sql)?.query_row([kind, key], to_ticket).optional()
        })
    }

    fn tickets(&self, kind: &str, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.with("list tickets", |connection| {
            let sql = "SELECT kind, key, created, until, body FROM tickets \
                       WHERE kind = ?1 ORDER BY created DESC, key LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map(params![kind, clamp(limit as u64)], to_ticket)?.collect()
        })
    }

    fn take_ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        self.write("take a ticket", |statements| {
            let sql = "DELETE FROM tickets WHERE kind = ?1 AND key = ?2 \
                       RETURNING kind, key, created, until, body";
            statements.get(sql)?.query_row([kind, key], to_ticket).optional()
        })
    }
}

/// Rare, so they go straight through.
impl Tickets for GroupStore {
    fn put_ticket(&self, ticket: &Ticket) -> Result<bool, StoreError> {
        self.alone().put_ticket(ticket)
    }

    fn ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        self.alone().ticket(kind, key)
    }

    fn tickets(&self, kind: &str, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.alone().tickets(kind, limit)
    }

    fn take_ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        self.alone().take_ticket(kind, key)
    }
}

fn put(statements: &mut Statements<'_>, ticket: &Ticket) -> rusqlite::Result<bool> {
    let Ticket { kind, key, created, until, body } = ticket;
    let [created, until] = [created, until].map(|moment| moment.as_millis());
    let sql = "DELETE FROM tickets WHERE (kind, key) IN \
               (SELECT kind, key FROM tickets WHERE kind = ?1 AND until <= ?2 LIMIT ?3)";
    statements.get(sql)?.execute(params![kind, created, clamp(FORGOTTEN as u64)])?;
    let sql = "INSERT INTO tickets (kind, key, created, until, body) VALUES (?1, ?2, ?3, ?4, ?5) \
               ON CONFLICT (kind, key) DO UPDATE \
               SET created = excluded.created, until = excluded.until, body = excluded.body \
               WHERE tickets.until <= excluded.created";
    let put = statements.get(sql)?.execute(params![kind, key, created, until, body])?;
    Ok(put == 1)
}

fn to_ticket(row: &Row<'_>) -> rusqlite::Result<Ticket> {
    let moment = |millis| Timestamp::from_millis(millis);
    Ok(Ticket {
        kind: row.get(0)?,
        key: row.get(1)?,
        created: moment(row.get(2)?),
        until: moment(row.get(3)?),
        body: row.get(4)?,
    })
}
