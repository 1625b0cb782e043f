//! The current line: where it starts, what number it has, and the last one that shows anything.

use super::text::SIGNAL_MAX;
use super::window::Window;

/// Follows the lines of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineCursor {
    /// Start of the line of `found_to`, which is the current place wherever something is looked at.
    pub(crate) start: u64,
    found_to: u64,
    /// Number of the line of `counted_to`, from 1. Lines are counted when somebody asks.
    count: u64,
    counted_to: u64,
    /// Start of the last line that shows anything before `shown_to`.
    shown: u64,
    shown_to: u64,
}

impl Default for LineCursor {
    fn default() -> Self {
        Self { start: 0, found_to: 0, count: 1, counted_to: 0, shown: 0, shown_to: 0 }
    }
}

impl LineCursor {
    /// Returns the cursor at a line that starts at `start`, for a look back.
    pub(super) fn at(self, start: u64) -> Self {
        Self { start, found_to: start, ..self }
    }

    /// Moves to `to` and finds the start of its line.
    pub(super) fn find(&mut self, window: &Window<'_>, to: u64) {
        if to <= self.found_to {
            return;
        }
        let from = std::mem::replace(&mut self.found_to, to);
        if let Some(last) = memchr::memrchr(b'\n', window.slice(from, to)) {
            self.start = from + last as u64 + 1;
        }
    }

    /// Returns the number of the line that starts at `start`, which may lie before the last one
    /// asked for.
    pub(super) fn number(&mut self, window: &Window<'_>, start: u64) -> u64 {
        self.count_to(window, start);
        self.count - newlines(window.slice(start, self.counted_to))
    }

    pub(super) fn count_to(&mut self, window: &Window<'_>, to: u64) {
        if to > self.counted_to {
            self.count += newlines(window.slice(self.counted_to, to));
            self.counted_to = to;
        }
    }

    /// Returns the start of the last line that shows anything before `at`, if it may be a signal: that is
    /// looked at when the message ends.
    pub(super) fn last_shown(&mut self, window: &Window<'_>, at: u64) -> Option<u64> {
        let text = window.slice(self.shown_to, at);
        if let Some(last) = text.iter().rposition(|byte| !byte.is_ascii_whitespace()) {
            let last = self.shown_to + last as u64;
            self.shown = if last >= self.start {
                self.start
            } else {
                let before = window.slice(self.shown, last);
                let line_end = memchr::memrchr(b'\n', before);
                line_end.map_or(self.shown, |end| last - (before.len() - end) as u64 + 1)
            };
        }
        self.shown_to = at;
        (at - self.shown <= SIGNAL_MAX).then_some(self.shown)
    }
}

fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
