//! Keywords that end the message.

use super::closers::rest_of_line;
use super::draft::{Defect, Draft};
use super::engine::{Engine, Flow};
use super::judge::ClaimPosition;
use super::rules::Rules;
use super::terminals::{Terminal, first_visible};
use super::window::Window;
use crate::dialect::Syntax;
use crate::dialect::syntax::trailer;
use crate::signal::Reason;
use crate::structure::LINE_REACH;
use crate::visible::sequence::ends_with_sequence;

impl Engine<'_> {
    /// A keyword that may end the message.
    pub(crate) fn on_trailer(&mut self, window: &Window<'_>, at: u64) -> Flow {
        let rules = self.rules;
        let Some(keyword) = Keyword::at(rules, window.from(at)) else { return Flow::On(at + 1) };
        let Keyword { dialect: index, length, exact } = keyword;
        let dialect = &rules.dialects()[index];
        let end = at + length as u64;
        let Some(rest) = rest_of_line(window, end) else { return Flow::Wait };
        let name = || dialect.signals.first().map(|def| def.name.clone()).unwrap_or_default();
        let before = window.slice(at.saturating_sub(16), at);
        let wrong = match (continues_word(before, rest), exact) {
            (true, _) => Some(Reason::Misspelled),
            (false, false) => Some(Reason::WrongCase),
            (false, true) => None,
        };
        if let Some(reason) = wrong {
            let defect = Defect::new(reason, name(), (at, end));
            self.report_line(window, index, defect);
            return Flow::On(end);
        }
        let Syntax::Trailer(trailer) = &dialect.syntax else { return Flow::On(end) };
        if trailer.require_at_end {
            // What is still here has nothing but white space behind it.
            self.queue.terminals.retain(|terminal| terminal.dialect != index || !terminal.repeats);
            if is_repeated(rules, window, end, keyword) {
                return Flow::On(end);
            }
        }
        let quoted = self.is_quoted(window, at, Some(end));
        let draft = Draft::new(name(), (at, end));
        let position = ClaimPosition { line: self.lines.start, start: at, rest };
        let Some(candidate) = self.candidate(window, index, draft, position, quoted) else {
            return Flow::On(end);
        };
        if trailer.require_at_end {
            self.await_end(Terminal {
                dialect: index,
                candidate,
                otherwise: otherwise(rest),
                checked: end,
                fenced: false,
                repeats: true,
            });
        } else {
            self.submit(candidate, None);
        }
        Flow::On(end)
    }
}

/// A keyword of some dialect.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Keyword {
    dialect: usize,
    length: usize,
    /// Whether its case is right.
    exact: bool,
}

impl Keyword {
    /// Returns the keyword that `text` starts with.
    fn at(rules: &Rules, text: &[u8]) -> Option<Self> {
        rules.families.trailers.iter().copied().find_map(|dialect| {
            let Syntax::Trailer(trailer) = &rules.dialects()[dialect].syntax else { return None };
            let (length, exact) = keyword_at(trailer, text)?;
            Some(Self { dialect, length, exact })
        })
    }
}

/// Returns whether the same keyword follows, with nothing to be seen in between: it will take the
/// place of this one.
fn is_repeated(rules: &Rules, window: &Window<'_>, end: u64, keyword: Keyword) -> bool {
    let (seen, gap) = first_visible(window.from(end), LINE_REACH as usize, false);
    let at = end + gap as u64;
    let next = window.from(at);
    let Some(after) = next.get(keyword.length..).filter(|_| seen) else { return false };
    let known = after.len() >= 4 || window.last;
    let before = window.slice(at.saturating_sub(16), at);
    known && Keyword::at(rules, next) == Some(keyword) && !continues_word(before, after)
}

/// Says what is wrong with a keyword that does not end the message.
fn otherwise(rest: &[u8]) -> Reason {
    match rest.first() {
        Some(b'*' | b'_' | b'`' | b'~') => Reason::Decorated,
        Some(b'"' | b'\'') => Reason::Quoted,
        _ => Reason::NotAtEnd,
    }
}

/// Returns the length of the keyword that `text` starts with, and whether its case is right.
fn keyword_at(trailer: &trailer::Syntax, text: &[u8]) -> Option<(usize, bool)> {
    let words = trailer.alternative_signals.iter().chain([&trailer.keyword]);
    words
        .filter_map(|word| {
            let start = text.get(..word.len())?;
            if start == word.as_bytes() {
                return Some((word.len(), true));
            }
            let same = start.eq_ignore_ascii_case(word.as_bytes());
            same.then_some((word.len(), !trailer.case_sensitive))
        })
        .max()
}

/// Returns whether a keyword between these is part of a longer word.
fn continues_word(before: &[u8], after: &[u8]) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    // The last letter of a sequence is not shown.
    let before = if ends_with_sequence(before) { &[] } else { before };
    if let (Some(left @ 0..0x80), Some(right @ 0..0x80)) = (before.last(), after.first()) {
        return word(char::from(*left)) || word(char::from(*right));
    }
    let last = before.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    let left = last.and_then(|chunk| chunk.valid().chars().next_back()).is_some_and(word);
    let after = &after[..after.len().min(4)];
    let right = after.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    left || right.is_some_and(word)
}
