//! What stands around a claim, and where that is found.

use super::claims::Candidate;
use super::engine::Engine;
use super::text::lossy;
use super::verdict::{LEAD_IN_MAX, Surroundings};
use super::window::Window;

impl Engine<'_> {
    /// Returns whether the text around only talks about a claim that starts at `start`, on the
    /// current line or before it, and owns its line.
    pub(crate) fn is_mentioned(
        &mut self,
        window: &Window<'_>,
        candidate: &Candidate,
        start: u64,
    ) -> bool {
        self.around(window, candidate, start, (start, &[])).is_some_and(|around| around.mention())
    }

    /// Returns what stands around something that has `rest` behind it, if that can make it a mention.
    pub(crate) fn around<'w>(
        &mut self,
        window: &Window<'w>,
        candidate: &Candidate,
        start: u64,
        (rest_start, rest): (u64, &'w [u8]),
    ) -> Option<Surroundings<'w>> {
        if candidate.quoted || !self.is_claim(candidate.dialect, &candidate.result) {
            return None;
        }
        let before = lead_in(window, self.line_start, start);
        let to = rest_start + rest.len() as u64;
        if self.silence.covers(window, before.from, to) {
            return None;
        }
        let rest = lossy(rest);
        Some(Surroundings { rest, ..before.shown(window) })
    }
}

/// Where the text before a claim stands.
pub(crate) struct LeadIn {
    pub(crate) from: u64,
    to: u64,
    adjacent: bool,
}

impl LeadIn {
    /// Returns the text, with nothing behind the claim.
    pub(crate) fn shown<'w>(&self, window: &Window<'w>) -> Surroundings<'w> {
        let lead_in = lossy(window.slice(self.from, self.to));
        Surroundings { lead_in, adjacent: self.adjacent, ..Surroundings::default() }
    }
}

/// Finds the text before a claim on the line that starts at `line_start`, or directly above.
pub(crate) fn lead_in(window: &Window<'_>, line_start: u64, start: u64) -> LeadIn {
    let reach = start.saturating_sub(LEAD_IN_MAX).max(window.base());
    let line_start = line_start.min(start);
    let same = line_start.max(reach);
    if shows_words(window.slice(same, start)) {
        return LeadIn { from: same, to: start, adjacent: true };
    }
    let mut before = window.slice(reach, line_start);
    let mut newlines = 0;
    while let [rest @ .., last] = before {
        match last {
            b'\n' => newlines += 1,
            b' ' | b'\t' | b'\r' => {}
            _ => break,
        }
        before = rest;
    }
    let last = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let (from, to) = (reach + last as u64, reach + before.len() as u64);
    LeadIn { from, to, adjacent: newlines <= 1 }
}

fn shows_words(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}
