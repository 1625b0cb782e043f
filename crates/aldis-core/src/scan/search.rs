//! The search for places that are worth a look.
//!
//! It runs ahead of the engine, stride by stride: a tight loop reads memory much faster than one that
//! stops at every place to think, and what it has read is in the cache when the engine comes.

use super::engine::Engine;
use super::prefilter::{Hit, Kinds, Prefilter};
use super::rules::retractions;
use super::window::Window;

/// A place worth a look, in offsets from the start of the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    start: u64,
    pub(super) place: u64,
    pub(super) end: u64,
    pub(super) kinds: Kinds,
}

impl Found {
    fn new(hit: Hit, base: u64) -> Self {
        let [start, place, end] =
            [hit.start, hit.place, hit.end].map(|offset| base + offset as u64);
        Self { start, place, end, kinds: hit.kinds }
    }
}

impl Engine<'_> {
    /// Returns the next place before `end` that is worth a look. Text before `limit` is at hand.
    pub(super) fn next_found(
        &mut self,
        window: &Window<'_>,
        end: u64,
        limit: u64,
    ) -> Option<Found> {
        let place = self.next_place(window, limit).filter(|place| place.start < end);
        // What stands in a fence takes nothing back.
        if self.unsettled == 0 || self.context.fence.is_some() {
            return place;
        }
        let end = place.map_or(end, |place| place.start).min(self.watched + 1);
        find(retractions(), window, self.at - self.line_break(window), end).or(place)
    }

    /// Returns the length of the line end directly before the current place: literals may begin with
    /// it.
    fn line_break(&self, window: &Window<'_>) -> u64 {
        u64::from(self.at > window.base() && window.byte(self.at - 1) == Some(b'\n'))
    }

    fn next_place(&mut self, window: &Window<'_>, limit: u64) -> Option<Found> {
        let places = &self.rules.places;
        while let Some(found) = self.ahead.front().copied() {
            if found.place >= self.at {
                return Some(found);
            }
            self.ahead.pop_front();
            // It was passed, but may have hidden another that was not.
            if found.end > self.at
                && let Some(hidden) = find(places, window, self.at, found.end.min(limit))
            {
                self.ahead.push_front(hidden);
            }
        }
        let base = window.base();
        let from = self.searched.max(self.at - self.line_break(window));
        let (from, to) = ((from - base) as usize, (limit.max(from) - base) as usize);
        places.sweep(window.bytes(), from, to, |hit| {
            let found = Found::new(hit, base);
            if found.place < self.at {
                return (self.at - base) as usize;
            }
            self.ahead.push_back(found);
            let fence = found.kinds == Kinds::FENCE;
            if fence { (run_end(window, found.end) - base) as usize } else { hit.end }
        });
        self.searched = limit;
        self.ahead.front().copied()
    }
}

/// Returns where the run of equal bytes ends that the byte before `at` belongs to: a long fence is
/// one place, not one for every three of its characters.
pub(super) fn run_end(window: &Window<'_>, at: u64) -> u64 {
    let marker = window.byte(at - 1);
    let run = window.from(at).iter().take_while(|byte| Some(**byte) == marker);
    at + run.count() as u64
}

/// Returns the first literal that starts in a range.
fn find(filter: &Prefilter, window: &Window<'_>, from: u64, to: u64) -> Option<Found> {
    if from >= to {
        return None;
    }
    let base = window.base();
    let hit = filter.find(window.bytes(), (from - base) as usize, (to - base) as usize)?;
    Some(Found::new(hit, base))
}
