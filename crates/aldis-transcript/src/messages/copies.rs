//! Words that a host writes again: they count only where nothing else said them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::context::{Context, Where};
use aldis_signal::message::Origin;

/// What was said in this turn, and what else is said to have been said.
#[derive(Debug, Default)]
pub(super) struct Copies {
    hasher: RandomState,
    /// Hashed without the blanks at the end: copies lose them.
    said: HashSet<u64>,
    /// Copies of nothing so far, in order.
    waiting: BTreeMap<u64, Pending>,
    places: HashMap<u64, u64>,
    next: u64,
    /// The turn began before the lines that are read: what is repeated may have been said there.
    pub(super) is_blind: bool,
}

/// A copy of which the original may still come.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) at: Where,
    pub(super) by: Origin,
    pub(super) id: Option<String>,
    pub(super) text: String,
}

impl Copies {
    /// Notes that something was said.
    pub(super) fn note_said(&mut self, text: &str) {
        let key = self.hasher.hash_one(text.trim_end());
        if let Some(place) = self.places.remove(&key) {
            self.waiting.remove(&place);
        }
        self.said.insert(key);
    }

    /// Notes what a host says was said.
    pub(super) fn note_copy(&mut self, context: &Context<'_>, by: Origin, text: String) {
        let key = self.hasher.hash_one(text.trim_end());
        if text.is_empty()
            || self.is_blind
            || self.said.contains(&key)
            || self.places.contains_key(&key)
        {
            return;
        }
        let pending = Pending { at: context.at, by, id: context.id.map(str::to_owned), text };
        self.places.insert(key, self.next);
        self.waiting.insert(self.next, pending);
        self.next += 1;
    }

    /// Takes the copies of which no original came, in order.
    pub(super) fn take_unconfirmed(&mut self) -> Vec<Pending> {
        self.places.clear();
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    /// A turn begins: what was said before it is not repeated in it.
    pub(super) fn begin_turn(&mut self) {
        self.said.clear();
        self.is_blind = false;
    }
}
