//! The current line: where it starts, what number it has, and the last one that shows anything.

use super::engine::Engine;
use super::text::SIGNAL_MAX;
use super::vectors::{Counted, newlines};
use super::window::Window;

impl Engine<'_> {
    /// Finds the start of the current line.
    pub(super) fn find_line(&mut self, window: &Window<'_>) {
        let (from, to) = (self.lined, self.at);
        if to <= from {
            return;
        }
        self.lined = to;
        // Most places that are worth a look start their line.
        if window.byte(to - 1) == Some(b'\n') {
            self.line_start = to;
        } else if let Some(last) = last_newline(window.slice(from, to)) {
            self.line_start = from + last as u64 + 1;
        }
    }

    /// Returns the number of the line that starts at `start`, which may lie before the last one
    /// asked for. Lines are counted in one go, when someone asks.
    pub(crate) fn line_number(&mut self, window: &Window<'_>, start: u64) -> u64 {
        self.count_lines(window, start);
        // The current line has no end before the current place.
        if start == self.line_start && self.counted <= self.lined {
            return self.lines;
        }
        let later = window.slice(start, self.counted);
        self.lines - newlines(later)
    }

    /// Counts from wherever the number is known, on or back: the last place, where the search was when
    /// it found this one, or where it is now.
    pub(super) fn count_lines(&mut self, window: &Window<'_>, to: u64) {
        if to <= self.counted {
            return;
        }
        let last = Counted { to: self.counted, newlines: self.lines - 1 };
        let search = Counted { to: self.ahead.searched, newlines: self.ahead.seen.newlines };
        let known = [last, search, self.nearby];
        let Some(Counted { to: from, newlines: before }) =
            known.into_iter().min_by_key(|known| known.to.abs_diff(to))
        else {
            return;
        };
        let between = newlines(window.slice(from.min(to), from.max(to)));
        self.lines = 1 + if from <= to { before + between } else { before - between };
        self.counted = to;
    }

    /// Returns the start of the last line that shows anything, if it may be a signal: that is looked at
    /// when the message ends.
    pub(super) fn last_shown(&mut self, window: &Window<'_>) -> Option<u64> {
        let text = window.slice(self.shown_to, self.at);
        if let Some(last) = text.iter().rposition(|byte| !byte.is_ascii_whitespace()) {
            let last = self.shown_to + last as u64;
            self.shown = if last >= self.line_start {
                self.line_start
            } else {
                let before = window.slice(self.shown, last);
                let line_end = memchr::memrchr(b'\n', before);
                line_end.map_or(self.shown, |end| last - (before.len() - end) as u64 + 1)
            };
        }
        self.shown_to = self.at;
        (self.at - self.shown <= SIGNAL_MAX).then_some(self.shown)
    }
}

/// Returns where the last line end of a text is. Most steps are short.
fn last_newline(text: &[u8]) -> Option<usize> {
    if text.len() <= 16 {
        return text.iter().rposition(|byte| *byte == b'\n');
    }
    memchr::memrchr(b'\n', text)
}
