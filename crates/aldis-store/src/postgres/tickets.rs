//! Tickets in the shared database.

use super::PostgresStore;
use super::link::Repeat;
use super::read::{all, first};
use super::values::{Columns, Decoded, Values};
use crate::error::StoreError;
use crate::ticket::{FORGOTTEN, Ticket, Tickets};

/// One statement, and so one transaction: whoever comes second at the same moment finds the first one's.
const PUT: &str = "WITH forgotten AS ( \
    DELETE FROM {s}.tickets WHERE (kind, key) IN ( \
        SELECT kind, key FROM {s}.tickets WHERE kind = $1 AND until <= $3 AND key <> $2 \
        LIMIT $6 FOR UPDATE SKIP LOCKED)) \
    INSERT INTO {s}.tickets AS known (kind, key, created, until, body) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (kind, key) DO UPDATE \
    SET created = excluded.created, until = excluded.until, body = excluded.body \
    WHERE known.until <= excluded.created RETURNING true";

impl Tickets for PostgresStore {
    fn put_ticket(&self, ticket: &Ticket) -> Result<bool, StoreError> {
        let Ticket { kind, key, created, until, body } = ticket;
        let values = Values::default().text(kind).text(key).moment(*created).moment(*until);
        let values = values.text(body).limit(FORGOTTEN);
        let put = first(|columns| columns.flag());
        Ok(self.link.call("put a ticket", Repeat::Write, PUT, values, put)?.unwrap_or(false))
    }

    fn ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        let sql = "SELECT kind, key, created, until, body FROM {s}.tickets \
                   WHERE kind = $1 AND key = $2";
        let values = Values::default().text(kind).text(key);
        self.link.read("read a ticket", sql, values, first(to_ticket))
    }

    fn tickets(&self, kind: &str, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        let sql = "SELECT kind, key, created, until, body FROM {s}.tickets \
                   WHERE kind = $1 ORDER BY created DESC, key LIMIT $2";
        let values = Values::default().text(kind).limit(limit);
        self.link.read("list tickets", sql, values, all(to_ticket))
    }

    fn take_ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        let sql = "DELETE FROM {s}.tickets WHERE kind = $1 AND key = $2 \
                   RETURNING kind, key, created, until, body";
        let values = Values::default().text(kind).text(key);
        self.link.call("take a ticket", Repeat::Write, sql, values, first(to_ticket))
    }
}

fn to_ticket(columns: &mut Columns<'_>) -> Decoded<Ticket> {
    Ok(Ticket {
        kind: columns.text()?,
        key: columns.text()?,
        created: columns.moment()?,
        until: columns.moment()?,
        body: columns.text()?,
    })
}
