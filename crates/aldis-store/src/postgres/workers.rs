//! The registry of workers. A heartbeat is no change that others must know of at once: it leaves the
//! change feed alone, or each of a thousand idle workers would wake all the others.

use std::time::Duration;

use aldis_signal::time::Timestamp;

use super::PostgresStore;
use super::link::Repeat;
use super::outbox::millis;
use super::read::all;
use super::values::{Columns, Decoded, Values};
use crate::error::StoreError;
use crate::worker::{FORGOTTEN_AFTER, WorkerRecord};

impl PostgresStore {
    pub(super) fn announce_worker(
        &self,
        (name, body): (&str, &str),
        now: Timestamp,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let values = Values::default()
            .text(name)
            .text(body)
            .maybe_signed(self.given(now))
            .signed(millis(ttl))
            .signed(millis(FORGOTTEN_AFTER));
        let sql = "WITH now AS MATERIALIZED (SELECT {s}.moment($3) AS at), forgotten AS ( \
                   DELETE FROM {s}.workers USING now \
                   WHERE until < now.at - $5 AND name <> $1) \
                   INSERT INTO {s}.workers (name, seen, until, body) \
                   SELECT $1, now.at, {s}.later(now.at, $4), $2 FROM now \
                   ON CONFLICT (name) DO UPDATE \
                   SET seen = excluded.seen, until = excluded.until, body = excluded.body";
        self.link.call("announce a worker", Repeat::Write, sql, values, |_| Ok(()))
    }

    pub(super) fn withdraw_worker(&self, name: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM {s}.workers WHERE name = $1 RETURNING name";
        let values = Values::default().text(name);
        let doing = "withdraw a worker";
        self.link.call(doing, Repeat::Write, sql, values, |rows| Ok(!rows.is_empty()))
    }

    pub(super) fn all_workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        let sql = "SELECT name, body, seen, until FROM {s}.workers ORDER BY name";
        self.link.read("list workers", sql, Values::default(), all(to_worker))
    }
}

fn to_worker(columns: &mut Columns<'_>) -> Decoded<WorkerRecord> {
    Ok(WorkerRecord {
        name: columns.text()?,
        body: columns.text()?,
        seen: columns.moment()?,
        until: columns.moment()?,
    })
}
