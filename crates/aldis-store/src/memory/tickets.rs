//! Tickets in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::MemoryStore;
use crate::error::StoreError;
use crate::ticket::{FORGOTTEN, Ticket, Tickets};

/// All tickets, by kind and key.
pub(super) type TicketTable = BTreeMap<(String, String), Ticket>;

fn name(kind: &str, key: &str) -> (String, String) {
    (kind.to_owned(), key.to_owned())
}

impl Tickets for MemoryStore {
    fn put_ticket(&self, ticket: &Ticket) -> Result<bool, StoreError> {
        self.write(|tables| {
            let table = &mut tables.tickets;
            let over = |known: &&Ticket| known.kind == ticket.kind && known.until <= ticket.created;
            let over = table.values().filter(over).take(FORGOTTEN);
            let over: Vec<_> = over.map(|it| name(&it.kind, &it.key)).collect();
            table.retain(|name, _| !over.contains(name));
            let name = name(&ticket.kind, &ticket.key);
            let is_free = table.get(&name).is_none_or(|known| known.until <= ticket.created);
            if is_free {
                table.insert(name, ticket.clone());
            }
            Ok(is_free)
        })
    }

    fn ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        Ok(self.read(|tables| tables.tickets.get(&name(kind, key)).cloned()))
    }

    fn tickets(&self, kind: &str, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        let of_kind = |ticket: &&Ticket| ticket.kind == kind;
        let mut found: Vec<Ticket> =
            self.read(|tables| tables.tickets.values().filter(of_kind).cloned().collect());
        found.sort_by_key(|ticket| Reverse(ticket.created));
        found.truncate(limit);
        Ok(found)
    }

    fn take_ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError> {
        self.write(|tables| Ok(tables.tickets.remove(&name(kind, key))))
    }
}
