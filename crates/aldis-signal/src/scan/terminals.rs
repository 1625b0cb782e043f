//! Signals that count only at the end of the message.

use super::candidate::Candidate;
use super::draft::Defect;
use super::engine::Engine;
use super::window::Window;
use crate::signal::Reason;
use crate::visible::is_zero_width;

/// Something that counts only if nothing that can be seen follows.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) dialect: usize,
    pub(crate) candidate: Candidate,
    /// Why it does not count if something follows.
    pub(crate) otherwise: Reason,
    /// Nothing can be seen between its end and here.
    pub(crate) checked: u64,
    /// Whether its fence is still open.
    pub(crate) fenced: bool,
    /// Whether the same again directly behind it replaces it.
    pub(crate) repeats: bool,
}

impl Engine<'_> {
    /// Keeps something until it is known whether the message ends there.
    pub(crate) fn await_end(&mut self, terminal: Terminal) {
        self.queue.terminals.push(terminal);
        self.queue.due = 0;
    }

    /// Resolves terminals after which something can be seen before `to`.
    pub(crate) fn check_terminals(&mut self, window: &Window<'_>, to: u64) {
        let mut index = 0;
        while index < self.queue.terminals.len() {
            let terminal = &mut self.queue.terminals[index];
            if terminal.checked >= to {
                index += 1;
                continue;
            }
            let limit = (to - terminal.checked) as usize;
            let text = window.from(terminal.checked);
            let (seen, checked) = first_visible(text, limit, window.last);
            terminal.checked += checked as u64;
            if seen {
                let terminal = self.queue.terminals.remove(index);
                self.refuse(terminal);
            } else {
                index += 1;
            }
        }
    }

    /// Reports a terminal that is not at the end.
    pub(crate) fn refuse(&mut self, terminal: Terminal) {
        let mut candidate = terminal.candidate;
        if let Ok(draft) = &candidate.result {
            let defect = Defect::new(terminal.otherwise, draft.name.clone(), draft.range);
            candidate.result = Err(defect);
        }
        self.submit(candidate, None);
    }

    pub(crate) fn end_terminals(&mut self, window: &Window<'_>) {
        self.check_terminals(window, window.end());
        for terminal in std::mem::take(&mut self.queue.terminals) {
            if terminal.fenced {
                self.refuse(terminal);
                continue;
            }
            self.submit(terminal.candidate, None);
        }
    }
}

/// Returns whether something can be seen that starts before `limit`, and how many bytes are known to
/// show nothing. A character may reach beyond the limit.
pub(super) fn first_visible(text: &[u8], limit: usize, last: bool) -> (bool, usize) {
    let mut at = 0;
    while at < limit.min(text.len()) {
        if text[at].is_ascii_whitespace() || text[at] == 0x0B {
            at += 1;
            continue;
        }
        let width = match text[at] {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => return (true, at),
        };
        let Some(bytes) = text.get(at..at + width) else { return (last, at) };
        match std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next()) {
            Some(c) if c.is_whitespace() || is_zero_width(c) => at += width,
            _ => return (true, at),
        }
    }
    (false, at)
}
