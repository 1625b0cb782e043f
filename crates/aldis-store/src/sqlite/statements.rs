//! A cache of prepared statements.

use rusqlite::{CachedStatement, Connection};

/// The statements of one connection, each prepared when it is first asked for.
///
/// The connection remembers statements too, but looks each one up by its whole text: a writer of
/// thousands of steps a second notices.
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    ready: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> Statements<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, ready: Vec::new() }
    }

    pub(super) fn connection(&self) -> &'c Connection {
        self.connection
    }

    pub(super) fn get(&mut self, sql: &'static str) -> rusqlite::Result<&mut CachedStatement<'c>> {
        // They are few, and seldom two are of the same length.
        let known = self.ready.iter().position(|(text, _)| *text == sql);
        let index = match known {
            Some(index) => index,
            None => {
                self.ready.push((sql, self.connection.prepare_cached(sql)?));
                self.ready.len() - 1
            }
        };
        Ok(&mut self.ready[index].1)
    }
}
