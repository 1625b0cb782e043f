//! The search for places that are worth a look.
//!
//! It runs ahead of the engine, stride by stride: a tight loop reads memory much faster than one that
//! stops at every place to think, and what it has read is in the cache when the engine comes.

use super::engine::Engine;
use super::prefilter::{Hit, Kinds, Prefilter};
use super::rules::retractions;
use super::vectors::{Counted, Seen};
use super::window::Window;

/// How many places are looked for at a time, or a few more: dense text would fill the memory with them.
const ENOUGH: usize = 1024;

/// A place worth a look, in offsets from the start of the message. Small, because most are passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    start: u64,
    /// How many line ends there are before `counted`.
    newlines: u64,
    /// What follows is counted from the start; this is 0 if no lines were counted.
    counted: u32,
    end: u32,
    place: u16,
    pub(super) kinds: Kinds,
}

impl Found {
    fn new(hit: Hit, base: u64, counted: Option<Counted>) -> Self {
        let from_start = |offset: usize| offset - hit.start;
        Self {
            start: base + hit.start as u64,
            newlines: counted.map_or(0, |counted| counted.newlines),
            counted: counted.map_or(0, |counted| from_start(counted.to) as u32),
            end: from_start(hit.end) as u32,
            place: from_start(hit.place) as u16,
            kinds: hit.kinds,
        }
    }

    /// Returns the place itself.
    pub(super) fn place(&self) -> u64 {
        self.start + u64::from(self.place)
    }

    /// Returns where the literal ends.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.end)
    }

    /// Returns how many lines were counted when it was found.
    pub(super) fn counted(&self) -> Option<Counted<u64>> {
        let to = self.start + u64::from(self.counted);
        (self.counted > 0).then_some(Counted { to, newlines: self.newlines })
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
        loop {
            let place = self.next_place(window, limit).filter(|place| place.start < end);
            if !self.hears_retractions() {
                return place;
            }
            let to = place.map_or(end, |place| place.start).min(self.watched + 1);
            let from = self.at - self.line_break(window);
            if let Some(word) = find(retractions(), window, from, to) {
                return Some(word);
            }
            match place {
                Some(fence)
                    if fence.kinds == Kinds::FENCE && self.passes_fence(window, fence.place()) =>
                {
                    self.ahead.pass(None);
                }
                _ => return place,
            }
        }
    }

    /// Returns whether words may take something back here: what stands in a fence does not.
    fn hears_retractions(&self) -> bool {
        self.unsettled > 0 && self.context.fence.is_none()
    }

    /// Returns the length of the line end directly before the current place: literals may begin with
    /// it.
    fn line_break(&self, window: &Window<'_>) -> u64 {
        u64::from(self.at > window.base() && window.byte(self.at - 1) == Some(b'\n'))
    }

    fn next_place(&mut self, window: &Window<'_>, limit: u64) -> Option<Found> {
        loop {
            if let Some(found) = self.next_ahead(window, limit) {
                return Some(found);
            }
            if self.ahead.searched >= limit {
                return None;
            }
            self.search_ahead(window, limit);
        }
    }

    /// Returns the next of the places that were found. Most are plain fence lines, which are passed
    /// here and now.
    fn next_ahead(&mut self, window: &Window<'_>, limit: u64) -> Option<Found> {
        while let Some(found) = self.ahead.next() {
            let mut hidden = None;
            if found.place() >= self.at {
                if !self.passes(window, found) {
                    return Some(found);
                }
            } else if found.end() > self.at {
                // It was passed, but may have hidden another that was not.
                hidden = find(&self.rules.places, window, self.at, found.end().min(limit));
            }
            self.ahead.pass(hidden);
        }
        None
    }

    /// Passes a place that is nothing but a plain fence line, one in a line that has been read, or one
    /// that is seen at a glance to open nothing.
    fn passes(&mut self, window: &Window<'_>, found: Found) -> bool {
        match found.kinds {
            // What stands before it has not been listened to yet.
            Kinds::FENCE if self.hears_retractions() => false,
            Kinds::FENCE => self.passes_fence(window, found.place()),
            Kinds::BLOCK if self.opens_nothing(window, found.place()) => true,
            kinds => Kinds::LINE_OR_BLOCK.covers(kinds) && found.place() < self.read_to,
        }
    }

    /// Searches on, from where the last search ended: every byte is seen once. By itself, so that what
    /// it needs is not made ready for every place.
    #[inline(never)]
    fn search_ahead(&mut self, window: &Window<'_>, limit: u64) {
        let base = window.base();
        let (from, to) = ((self.ahead.searched - base) as usize, (limit - base) as usize);
        let at = self.at;
        let least = at - self.line_break(window);
        let before = self.ahead.seen.newlines;
        let ahead = self.ahead.refill();
        let (text, places) = (window.bytes(), &self.rules.places);
        let swept = places.sweep_and_see::<true>(text, (from, to), ENOUGH, |hit, counted| {
            let newlines = before + counted.newlines;
            let found = Found::new(hit, base, Some(Counted { newlines, ..counted }));
            if found.place() < at {
                return (if found.start < least { least } else { at } - base) as usize;
            }
            ahead.push(found);
            // A long fence is one place, not one for every three of its characters.
            let goes_on = hit.kinds == Kinds::FENCE && text.get(hit.end) == Some(&text[hit.start]);
            if goes_on { (run_end(window, found.end()) - base) as usize } else { hit.end }
        });
        self.ahead.searched = base + swept.to as u64;
        self.ahead.seen += swept.seen;
    }
}

/// The places that were found and have not been looked at.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    places: Vec<Found>,
    /// How many of them are done with.
    passed: usize,
    /// How far they were searched for.
    pub(super) searched: u64,
    /// What was seen before that.
    pub(super) seen: Seen,
}

impl Ahead {
    /// Sees the text before `to` that was passed without a search.
    pub(super) fn see_to(&mut self, window: &Window<'_>, to: u64) {
        if to > self.searched {
            self.seen += Seen::of(window.slice(self.searched, to));
            self.searched = to;
        }
    }

    fn next(&self) -> Option<Found> {
        self.places.get(self.passed).copied()
    }

    /// Leaves the next place for one that it has hidden, or for the one behind it.
    fn pass(&mut self, hidden: Option<Found>) {
        match hidden {
            Some(hidden) => self.places[self.passed] = hidden,
            None => self.passed += 1,
        }
    }

    /// Returns the room for more places. All others are done with.
    fn refill(&mut self) -> &mut Vec<Found> {
        self.passed = 0;
        self.places.clear();
        &mut self.places
    }
}

/// Returns where the run of equal bytes ends that the byte before `at` belongs to.
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
    Some(Found::new(hit, base, None))
}
