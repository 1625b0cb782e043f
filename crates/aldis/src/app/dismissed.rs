//! What somebody took off the list of what needs a person, kept in the store: what is dismissed on a phone
//! is dismissed on a terminal, too, whichever server the phone asked.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{RunId, Store, StoreError, Ticket};

use crate::view::inbox::CHECK;
use crate::view::wire::card::InboxItem;

/// The kind of their tickets.
const KIND: &str = "dismissed";
/// How many are looked at, and how long they are kept: what is older is no news any more.
const KEPT_MAX: usize = 2_000;
const KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Where an older version kept them.
const FILE: &str = "dismissed.json";

/// What was dismissed. One that happens again later is another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dismissed(BTreeSet<String>);

impl Dismissed {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub(crate) fn read(store: &dyn Store) -> Result<Self, StoreError> {
        Ok(Self(store.tickets(KIND, KEPT_MAX)?.into_iter().map(|ticket| ticket.key).collect()))
    }

    /// Whether something was dismissed.
    pub(crate) fn has(&self, item: &InboxItem) -> bool {
        self.0.contains(&key(&item.run, &item.id, item.at.as_millis()))
    }
}

/// Dismisses something of a run that came up at a time, in milliseconds.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn dismiss(
    store: &dyn Store,
    now: Timestamp,
    run: &RunId,
    (id, at): (&str, i64),
) -> Result<(), StoreError> {
    put(store, now, key(run.as_str(), id, at))
}

fn put(store: &dyn Store, created: Timestamp, key: String) -> Result<(), StoreError> {
    let (kind, until, body) = (KIND.to_owned(), created.after(KEPT), String::new());
    store.put_ticket(&Ticket { kind, key, created, until, body }).map(drop)
}

/// Takes over what an older version kept in a file, once. What is lost by that is dismissed again.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn take_over(state: &Path, store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
    let path = state.join(FILE);
    let Ok(text) = fs::read(&path) else { return Ok(()) };
    for key in serde_json::from_slice::<Vec<String>>(&text).unwrap_or_default() {
        put(store, now, key)?;
    }
    if let Err(error) = fs::remove_file(&path) {
        tracing::warn!(%error, "a file of an older version cannot be deleted");
    }
    Ok(())
}

/// What a thing is known by. The failed check of an iteration is one thing, whenever it is looked at.
fn key(run: &str, id: &str, at: i64) -> String {
    match id.strip_prefix(CHECK) {
        Some(_) => format!("{run}/{id}"),
        None => format!("{run}/{id}@{at}"),
    }
}
