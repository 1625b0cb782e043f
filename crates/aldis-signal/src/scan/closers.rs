//! What closes tags: the search for it, and what stands before it.

use std::sync::Arc;

use memchr::memmem::Finder;

use super::draft::Range;
use super::families::TagWords;
use super::text::{SIGNAL_MAX, lossy};
use super::window::Window;
use crate::dialect::syntax::tag::Syntax as Tag;
use crate::dialect::{Dialect, Payload, Syntax};
use crate::signal::Reason;
use crate::structure::LINE_REACH;

/// How far closing tags of a dialect have been looked for. Never starts over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closer {
    /// No closing tag that counts ends before, apart from the one that was found.
    pub(super) searched: u64,
    found: Option<u64>,
}

impl Closer {
    /// Returns the first closing tag from `from` on, as far as a signal that starts at `start` goes,
    /// if there is one before `to`.
    pub(super) fn find(
        &mut self,
        window: &Window<'_>,
        close: &Finder<'_>,
        (from, to): (u64, u64),
        start: u64,
    ) -> Option<u64> {
        if self.found.is_some_and(|found| found >= from) {
            return self.found;
        }
        self.found = None;
        if self.searched >= to {
            return None;
        }
        let width = close.needle().len() as u64;
        // One may have begun before that.
        let begin = (self.searched + 1).saturating_sub(width).max(from);
        let text = window.slice(begin, start + SIGNAL_MAX + width);
        match close.find(text) {
            Some(at) => self.found = Some(begin + at as u64),
            None => self.searched = begin + text.len() as u64,
        }
        self.found
    }
}

/// Returns what follows on the line, at most as far as a sentence goes on; `None` if it is not at
/// hand yet.
pub(crate) fn rest_of_line<'w>(window: &Window<'w>, from: u64) -> Option<&'w [u8]> {
    let text = window.slice(from, from + LINE_REACH);
    match memchr::memchr(b'\n', text) {
        Some(end) => Some(&text[..end]),
        None if text.len() as u64 == LINE_REACH || window.last => Some(text),
        None => None,
    }
}

pub(super) enum TagWordsRead {
    Closed(ClosedWords),
    Unclosed(Reason),
    Wait,
}

/// Words that were closed.
pub(super) struct ClosedWords {
    pub(super) words: String,
    /// Where what closes them ends.
    pub(super) end: u64,
    /// Tags among them that need no closing, with their signals: they are words like others.
    pub(super) nested: Vec<(Arc<str>, Range)>,
}

/// Returns the words between a named tag and the tag that ends them.
pub(super) fn words_until(
    window: &Window<'_>,
    tags: &TagWords,
    dialect: &Dialect,
    (start, end): Range,
    quoted: bool,
) -> TagWordsRead {
    let Syntax::Tag(Tag { end: Some(closing), close, .. }) = &dialect.syntax else {
        return TagWordsRead::Unclosed(Reason::Unclosed);
    };
    let text = window.slice(end, start + SIGNAL_MAX);
    let mut nested = Vec::new();
    for at in tags.open.find_iter(text) {
        let tag = &text[at..];
        if tag.starts_with(closing.as_bytes()) {
            let words = lossy(&text[..at]).trim().to_owned();
            return TagWordsRead::Closed(ClosedWords {
                words,
                end: end + (at + closing.len()) as u64,
                nested,
            });
        }
        if tag.len() < closing.len() {
            break;
        }
        let opened = dialect.signals.iter().find(|def| {
            let name = tag[tags.open.needle().len()..].strip_prefix(def.name.as_bytes());
            name.is_some_and(|rest| rest.starts_with(close.as_bytes()))
        });
        match opened {
            // A tag that takes words of its own restarts there; so does any other if this one is quoted.
            Some(def) if def.payload == Payload::Text => {
                return TagWordsRead::Unclosed(Reason::Unclosed);
            }
            _ if quoted => return TagWordsRead::Unclosed(Reason::Unclosed),
            Some(def) => {
                let length = tags.open.needle().len() + def.name.len() + close.len();
                let from = end + at as u64;
                nested.push((def.name.clone(), (from, from + length as u64)));
            }
            None => {}
        }
    }
    match () {
        () if window.end() >= start + SIGNAL_MAX => TagWordsRead::Unclosed(Reason::TooLong),
        () if window.last => TagWordsRead::Unclosed(Reason::Unclosed),
        () => TagWordsRead::Wait,
    }
}
