//! Signals of old forms, which count only where a message has none of the new form.

use super::draft::Draft;
use super::engine::Engine;
use super::window::Window;
use crate::signal::{Finding, Signal};

/// How many signals of old forms are kept, and how much text of them; as many again if they are claims.
const LEGACY_MAX: usize = 16 * 1024;
const LEGACY_TEXT_MAX: usize = 4 << 20;

impl Engine<'_> {
    /// Keeps a signal until it is known whether a new form is said.
    pub(super) fn keep_legacy(&mut self, dialect: usize, signal: Box<Signal>) {
        if self.keeps_legacy(signal.meaning.is_claim()) {
            self.legacy_text += signal.raw.len();
            self.legacy.push((dialect, signal));
        }
    }

    /// Returns whether there is room for one more signal of an old form: an endless stream of them must
    /// not fill the memory.
    fn keeps_legacy(&self, claim: bool) -> bool {
        let times = if claim { 2 } else { 1 };
        self.legacy.len() < times * LEGACY_MAX && self.legacy_text < times * LEGACY_TEXT_MAX
    }

    /// Passes a signal of an old form that says little, if more of them were said than are kept.
    pub(crate) fn passes_legacy(
        &mut self,
        window: &Window<'_>,
        dialect: usize,
        draft: &Draft,
    ) -> bool {
        let (start, end) = draft.range;
        let surplus = !self.keeps_legacy(false)
            && !self.makes_claim(dialect, draft)
            && self.origin.may_signal()
            && self.token_fits(draft.token.as_deref())
            && !self.is_quoted(window, start, None)
            && !self.is_hidden(window, (start, end));
        if surplus {
            self.note(window.offsets.span(start, end));
        }
        surplus
    }

    pub(crate) fn end_legacy(&mut self) {
        for (dialect, signal) in std::mem::take(&mut self.legacy) {
            if !self.modern.contains(&dialect) {
                self.out.push(Finding::Signal(signal));
            }
        }
    }
}
