//! Keywords that end the message.

use super::ansi::Removals;
use super::closers::rest_of_line;
use super::draft::{Defect, Draft};
use super::engine::{Engine, Flow};
use super::terminals::Terminal;
use super::verdict::Surroundings;
use super::window::Window;
use crate::dialect::Syntax;
use crate::dialect::syntax::trailer;
use crate::signal::Reason;

impl Engine<'_> {
    /// A keyword that may end the message.
    pub(crate) fn on_trailer(&mut self, window: &Window<'_>, removals: &Removals, at: u64) -> Flow {
        let rules = self.rules;
        for index in rules.families.trailers.iter().copied() {
            let dialect = &rules.dialects()[index];
            let Syntax::Trailer(trailer) = &dialect.syntax else { continue };
            let Some((length, exact)) = keyword_at(trailer, window.from(at)) else { continue };
            let end = at + length as u64;
            let Some(rest) = rest_of_line(window, end) else { return Flow::Wait };
            let before = window.slice(at.saturating_sub(4), at);
            let name = dialect.signals.first().map(|def| def.name.clone()).unwrap_or_default();
            let range = (at, end);
            if continues_word(before, rest) {
                let defect = Defect::new(Reason::Misspelled, name, range);
                self.report_line(window, removals, index, defect);
                return Flow::On(end);
            }
            if !exact {
                let defect = Defect::new(Reason::WrongCase, name, range);
                self.report_line(window, removals, index, defect);
                return Flow::On(end);
            }
            let otherwise = match rest.first() {
                Some(b'*' | b'_' | b'`' | b'~') => Reason::Decorated,
                Some(b'"' | b'\'') => Reason::Quoted,
                _ => Reason::NotAtEnd,
            };
            let draft = Draft { name, range, ..Draft::default() };
            let mut candidate = self.candidate(window, removals, index, Ok(draft));
            candidate.quoted = self.is_quoted(window, at, Some(end));
            let around = self.around(window, &candidate, at, (end, rest));
            if trailer.require_at_end {
                // What is still here has nothing but white space behind it.
                self.terminals.retain(|terminal| terminal.dialect != index || !terminal.repeats);
                let (fenced, repeats) = (false, true);
                let terminal = Terminal {
                    dialect: index,
                    around: around.map(Surroundings::into_owned),
                    candidate,
                    otherwise,
                    checked: end,
                    fenced,
                    repeats,
                };
                self.await_end(terminal);
            } else {
                candidate.mentioned = around.is_some_and(|around| around.mention());
                self.submit(candidate, None);
            }
            return Flow::On(end);
        }
        Flow::On(at + 1)
    }
}

/// Returns the length of the keyword that `text` starts with, and whether its case is right.
fn keyword_at(trailer: &trailer::Syntax, text: &[u8]) -> Option<(usize, bool)> {
    let words = trailer.alternative_signals.iter().chain([&trailer.keyword]);
    words
        .filter_map(|word| {
            let start = text.get(..word.len())?;
            let same = start.eq_ignore_ascii_case(word.as_bytes());
            same.then(|| (word.len(), !trailer.case_sensitive || start == word.as_bytes()))
        })
        .max()
}

/// Returns whether a keyword between these is part of a longer word.
fn continues_word(before: &[u8], after: &[u8]) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let last = before.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    let left = last.and_then(|chunk| chunk.valid().chars().next_back()).is_some_and(word);
    let after = &after[..after.len().min(4)];
    let right = after.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    left || right.is_some_and(word)
}
