//! Whether a place is quoted: everything the context knows, and what stands around it on its line.

use super::context::{is_in_quotation_marks, is_quoting_line, is_quoting_prefix};
use super::engine::{Engine, Mask};
use super::text::SIGNAL_MAX;
use super::verdict::LEAD_IN_MAX;
use super::window::Window;

impl Engine<'_> {
    /// Returns whether the current place is in something that quotes all it holds.
    pub(super) fn is_enclosed(&self) -> bool {
        self.mask != Mask::None || self.context.fence.is_some() || self.context.comment
    }

    /// Returns whether the text at `start`, up to `end` if it is known, is quoted.
    pub(crate) fn is_quoted(&mut self, window: &Window<'_>, start: u64, end: Option<u64>) -> bool {
        if self.is_enclosed() {
            return true;
        }
        let near = start.saturating_sub(LEAD_IN_MAX).max(self.line_start);
        let before = window.slice(near, start);
        // A line that is too long to be a quotation is not looked at from its start.
        let prefix = (near == self.line_start).then_some(before);
        if prefix.is_some_and(is_quoting_prefix) || self.is_quoting_line(window, start) {
            return true;
        }
        if let Some(end) = end {
            let after = window.slice(end, end + LEAD_IN_MAX);
            let after = &after[..memchr::memchr(b'\n', after).unwrap_or(after.len())];
            if is_in_quotation_marks(before, after) {
                return true;
            }
        }
        let inline = &mut self.context.inline;
        match start > self.at {
            // What stands in between will be asked about later.
            true => inline.clone().is_code_at(window, start),
            false => inline.is_code_at(window, start),
        }
    }

    fn is_quoting_line(&self, window: &Window<'_>, start: u64) -> bool {
        // The start of a longer line may be gone.
        let known = start - self.line_start <= SIGNAL_MAX;
        known && is_quoting_line(window.slice(self.line_start, start.max(self.line_start + 1)))
    }
}
