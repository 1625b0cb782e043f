//! What waits for another line: copies that may come, messages that go on.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// What waits for a line that may not come: found by its key, taken in the order in which it came.
#[derive(Debug)]
pub(super) struct Waiting<K, T> {
    items: BTreeMap<u64, T>,
    places: HashMap<K, u64>,
}

impl<K, T> Default for Waiting<K, T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), places: HashMap::new() }
    }
}

impl<K: Eq + Hash, T> Waiting<K, T> {
    /// Returns what waits under a key, made if there is nothing.
    pub(super) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> T) -> &mut T {
        let next = self.items.last_key_value().map_or(0, |(last, _)| last + 1);
        let place = *self.places.entry(key).or_insert(next);
        self.items.entry(place).or_insert_with(make)
    }

    /// Drops what waits under a key: its line has come.
    pub(super) fn remove(&mut self, key: &K) {
        if let Some(place) = self.places.remove(key) {
            self.items.remove(&place);
        }
    }

    /// Takes all that waits.
    pub(super) fn take(&mut self) -> impl Iterator<Item = T> + use<K, T> {
        std::mem::take(self).items.into_values()
    }
}
