//! `strict`: nothing may follow a signal that decides something but other signals.

use super::engine::Engine;
use super::text::{SIGNAL_MAX, lossy};
use super::window::Window;
use crate::signal::{Finding, Reason, Signal};

/// A signal that counts if nothing is said behind it.
#[derive(Debug)]
struct Held {
    signal: Box<Signal>,
    dialect: usize,
    end: u64,
}

/// What has been accepted so far, and waits for the end of the message.
#[derive(Debug, Default)]
pub(super) struct Tail {
    held: Vec<Held>,
    /// The ranges of all signals that count, in scanned offsets.
    accepted: Vec<(u64, u64)>,
}

impl Engine<'_> {
    /// Keeps a signal until the message ends, if that is needed to accept it.
    pub(super) fn accept(&mut self, dialect: usize, signal: Box<Signal>, range: (u64, u64)) {
        if !self.strict {
            return self.out.push(Finding::Signal(signal));
        }
        self.tail.accepted.push(range);
        if signal.meaning.is_decisive() {
            self.tail.held.push(Held { signal, dialect, end: range.1 });
        } else {
            self.out.push(Finding::Signal(signal));
        }
    }

    /// Returns from where on the text behind signals is still needed.
    pub(super) fn tail_from(&self) -> Option<u64> {
        self.tail.held.iter().map(|held| held.end).min()
    }

    /// Returns where the first signal starts that waits for the end.
    pub(super) fn held_from(&self) -> Option<u64> {
        self.tail.held.iter().map(|held| held.signal.place.span.start).min()
    }

    /// Refuses what so much follows that it cannot be other signals only.
    pub(super) fn expire_tail(&mut self) {
        let at = self.at;
        let late = |held: &Held| held.end + SIGNAL_MAX < at;
        if self.tail.held.iter().any(late) {
            let held = std::mem::take(&mut self.tail.held);
            let (gone, kept): (Vec<Held>, Vec<Held>) = held.into_iter().partition(late);
            self.tail.held = kept;
            self.tail.accepted.retain(|(_, end)| end + SIGNAL_MAX >= at);
            gone.into_iter().for_each(|held| self.refuse_held(held));
        }
    }

    fn refuse_held(&mut self, held: Held) {
        let Signal { name, place, raw, .. } = *held.signal;
        self.miss(held.dialect, Reason::NotAtEnd, name, None, place, raw);
    }

    /// Ends the message.
    pub(super) fn end_tail(&mut self, window: &Window<'_>) {
        let Some(from) = self.tail_from() else { return };
        let Tail { held, mut accepted } = std::mem::take(&mut self.tail);
        accepted.sort_unstable();
        let (mut at, mut said) = (from, None);
        for (start, end) in accepted.into_iter().chain([(window.end(), window.end())]) {
            if says_something(window.slice(at, start)) {
                said = Some(at.max(start));
            }
            at = at.max(end);
        }
        for held in held {
            match said.is_some_and(|said| said > held.end) {
                true => self.refuse_held(held),
                false => self.out.push(Finding::Signal(held.signal)),
            }
        }
    }
}

/// Returns whether a text holds words: symbols and closing delimiters say nothing.
fn says_something(text: &[u8]) -> bool {
    lossy(text).contains(char::is_alphanumeric)
}
