//! Entries that a host writes again when they have changed.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use aldis_signal::message::{Message, Origin};

/// Entries that may be written again, by node.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// The index that all versions share.
    pub(super) indices: HashMap<u32, u64>,
    /// Hashes of what was given out while the input is followed: it is not given out again.
    given_out: HashMap<u32, HashSet<u64>>,
    pub(super) replaced: HashSet<u32>,
}

impl Versions {
    /// Notes a new version of an entry, or the first one.
    pub(super) fn add(&mut self, node: u32, of: Option<u32>) {
        let before = of.and_then(|of| self.given_out.remove(&of));
        self.given_out.insert(node, before.unwrap_or_default());
        self.replaced.extend(of);
    }

    /// Returns whether a version said this already, and notes that one does.
    pub(super) fn is_given_out(&mut self, node: u32, message: &Message) -> bool {
        let Some(given_out) = self.given_out.get_mut(&node) else { return false };
        let Origin { role, detail, .. } = &message.origin;
        let mut hasher = DefaultHasher::new();
        (role, detail, &message.text).hash(&mut hasher);
        !given_out.insert(hasher.finish())
    }
}
