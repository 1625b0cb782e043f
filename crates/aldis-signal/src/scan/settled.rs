//! Where the first of the things starts that have been read and not been told yet.

use super::engine::Engine;
use super::tags::TagState;

impl Engine<'_> {
    /// Returns the offset before which nothing that was read waits for what follows it. Offsets of the
    /// scanned text, from which colours are gone, lie no later than those of the message.
    pub(crate) fn waits_from(&self) -> u64 {
        let pending = self.pending.iter().map(|pending| pending.place().span.start);
        let terminals = self.terminals.iter().map(|terminal| terminal.candidate.place.span.start);
        let tags = self.tags.iter().filter_map(TagState::oldest);
        let legacy = self.legacy.iter().filter(|(dialect, _)| !self.modern.contains(dialect));
        let legacy = legacy.map(|(_, signal)| signal.place.span.start);
        let held = self.held_from();
        held.into_iter()
            .chain(pending)
            .chain(terminals)
            .chain(tags)
            .chain(legacy)
            .min()
            .unwrap_or(u64::MAX)
    }
}
