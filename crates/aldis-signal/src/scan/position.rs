//! The current line: where it starts, what number it has, and the last one that shows anything.

use super::engine::Engine;
use super::text::SIGNAL_MAX;
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
        } else if let Some(last) = memchr::memrchr(b'\n', window.slice(from, to)) {
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

    pub(super) fn count_lines(&mut self, window: &Window<'_>, to: u64) {
        if to > self.counted {
            self.lines += newlines(window.slice(self.counted, to));
            self.counted = to;
        }
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

fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
