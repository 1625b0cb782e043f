//! Tickets: what is known by the hash of a secret, for a while.
//!
//! Logins of browsers, links, tokens of programs, and what may be used only once. Whoever serves keeps
//! them here and not in files, so that any number of servers know the same ones.

use aldis_signal::time::Timestamp;

use crate::error::StoreError;

/// Something that holds until a time. What it means is its owner's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Of what sort it is.
    pub kind: String,
    /// What it is known by among those of its kind: a hash, never a secret.
    pub key: String,
    /// When it was made.
    pub created: Timestamp,
    /// Until when it holds; from then on it is as if it were not there.
    pub until: Timestamp,
    /// What else there is to know.
    pub body: String,
}

/// A place for tickets. Every method fails with a [`StoreError`] when the backend does.
pub trait Tickets {
    /// Puts a ticket there, unless one of this kind and key still holds when it is made. Returns whether
    /// it was put: of two that come at once, one is.
    ///
    /// Also forgets some of its kind that do not hold any more.
    fn put_ticket(&self, ticket: &Ticket) -> Result<bool, StoreError>;

    /// Returns the ticket, whether it still holds or not.
    fn ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError>;

    /// Returns those of this kind, the latest made first, and of one time in the order of their keys.
    fn tickets(&self, kind: &str, limit: usize) -> Result<Vec<Ticket>, StoreError>;

    /// Takes a ticket away and returns it: of two that come at once, one gets it.
    fn take_ticket(&self, kind: &str, key: &str) -> Result<Option<Ticket>, StoreError>;
}

/// How many that do not hold any more are forgotten at once.
pub(crate) const FORGOTTEN: usize = 100;
