//! What was read from the text, ready to be judged.

use super::draft::{Defect, Draft, Range};
use super::engine::Engine;
use super::judge::ClaimPosition;
use super::window::Window;
use crate::signal::{Place, Reason, Signal};
use crate::structure::LINE_REACH;
use crate::visible::sequence::{hides_text, is_swallowed_after};

/// Something read from the text.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Index of its dialect.
    pub(crate) dialect: usize,
    pub(crate) result: Result<Draft, Defect>,
    pub(crate) place: Place,
    pub(crate) raw: String,
    pub(crate) quoted: bool,
    pub(crate) hidden: bool,
    /// Why the text around it makes it no claim of its own.
    pub(crate) doubt: Option<Reason>,
    /// Whether it is an old form, which counts only if no new form does.
    pub(crate) legacy: bool,
}

impl Engine<'_> {
    /// Returns what was read from a range, with what was received there and how it stands; `None` if it
    /// is quoted and only signals are wanted.
    pub(super) fn candidate(
        &mut self,
        window: &Window<'_>,
        dialect: usize,
        draft: Draft,
        position: ClaimPosition<'_>,
        quoted: bool,
    ) -> Option<Candidate> {
        if quoted && !self.options.near_misses {
            return None;
        }
        let (start, end) = draft.range;
        let mut candidate = Candidate {
            dialect,
            place: self.place(window, start, end),
            raw: window.offsets.restore(start, window.slice(start, end)),
            quoted,
            hidden: !quoted && self.is_hidden(window, draft.range),
            result: Ok(draft),
            doubt: None,
            legacy: false,
        };
        candidate.doubt = self.doubt(window, &candidate, position);
        Some(candidate)
    }

    pub(crate) fn place(&mut self, window: &Window<'_>, start: u64, end: u64) -> Place {
        let span = window.offsets.span(start, end);
        let line_start = window.offsets.original_end(self.lines.start.min(start));
        let column = span.start - line_start + 1;
        Place { span, line: self.lines.number(window, self.lines.start), column }
    }

    /// Returns whether a terminal would not show a range, or hides anything of the lines that it touches
    /// and of what is at hand of the next.
    pub(super) fn is_hidden(&self, window: &Window<'_>, (start, end): Range) -> bool {
        let from = self.lines.start.max(start.saturating_sub(LINE_REACH)).min(start);
        let after = window.slice(end, end + LINE_REACH);
        let to = end + memchr::memchr(b'\n', after).unwrap_or(after.len()) as u64;
        hides_text(window.slice(from, to))
            || is_swallowed_after(window.slice(from, start))
            || window.offsets.conceals(start)
    }

    /// Returns whether something claims that work is over or passed on.
    pub(super) fn makes_claim(&self, dialect: usize, draft: &Draft) -> bool {
        let dialect = &self.rules.dialects()[dialect];
        dialect.verdict_words && draft.meaning(dialect).0.is_claim()
    }

    pub(super) fn signal(
        &self,
        dialect: usize,
        draft: Draft,
        place: Place,
        raw: String,
    ) -> Box<Signal> {
        let dialect = &self.rules.dialects()[dialect];
        let (meaning, handler) = draft.meaning(dialect);
        let handler = handler.cloned();
        Box::new(Signal {
            dialect: dialect.name.clone(),
            via: self.via(draft.token.as_deref()),
            name: draft.name,
            meaning,
            subject: draft.subject,
            payload: draft.payload,
            progress: draft.progress,
            fields: draft.fields,
            handler,
            warnings: draft.warnings,
            origin: self.origin.clone(),
            place,
            body_end: None,
            raw,
        })
    }
}
