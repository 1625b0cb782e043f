//! The search for the next place that is worth a look, which never goes over the same text twice.

use super::engine::Engine;
use super::prefilter::{Kinds, Prefilter};
use super::rules::retractions;
use super::window::Window;

/// A place worth a look, in offsets from the start of the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) start: u64,
    pub(super) place: u64,
    pub(super) end: u64,
    pub(super) kinds: Kinds,
}

impl Engine<'_> {
    /// Returns the next place before `end` that is worth a look.
    pub(super) fn next_found(&mut self, window: &Window<'_>, end: u64) -> Option<Found> {
        let place = self.next_place(window, end);
        // What stands in a fence takes nothing back.
        if self.unsettled == 0 || self.context.fence.is_some() {
            return place;
        }
        let end = place.map_or(end, |place| place.start).min(self.watched + 1);
        find(retractions(), window, self.at, end).or(place)
    }

    /// Returns the next literal that starts before `end`. Nothing is searched twice.
    fn next_place(&mut self, window: &Window<'_>, end: u64) -> Option<Found> {
        if let Some(ahead) = self.ahead.filter(|ahead| ahead.place >= self.at) {
            return (ahead.start < end).then_some(ahead);
        }
        // The byte before a line start only matters for literals that begin with it.
        let after_line = self.at > window.base() && window.byte(self.at - 1) == Some(b'\n');
        let from = self.searched.max(self.at - u64::from(after_line));
        self.ahead = find(&self.rules.places, window, from, end);
        if self.ahead.is_some_and(|early| early.place < self.at) {
            self.ahead = find(&self.rules.places, window, self.at, end);
        }
        self.searched = self.ahead.map_or(end, |ahead| ahead.start);
        self.ahead
    }
}

/// Returns the first literal that starts in a range.
fn find(filter: &Prefilter, window: &Window<'_>, from: u64, to: u64) -> Option<Found> {
    let base = window.base();
    let hit =
        filter.find(window.bytes(), (from - base) as usize, to.saturating_sub(base) as usize)?;
    let [start, place, end] = [hit.start, hit.place, hit.end].map(|offset| base + offset as u64);
    Some(Found { start, place, end, kinds: hit.kinds })
}
