//! What closes tags: the search for it, and what stands before it.

use memchr::memmem::Finder;

use super::families::TagWords;
use super::text::{SIGNAL_MAX, lossy};
use super::verdict::LEAD_IN_MAX;
use super::window::Window;
use crate::dialect::syntax::tag::Syntax as Tag;
use crate::signal::Reason;

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
    let text = window.slice(from, from + LEAD_IN_MAX);
    match memchr::memchr(b'\n', text) {
        Some(end) => Some(&text[..end]),
        None if text.len() as u64 == LEAD_IN_MAX || window.last => Some(text),
        None => None,
    }
}

pub(super) enum Words {
    Closed(String, u64),
    Unclosed(Reason),
    Wait,
}

/// Returns the words between a named tag and the tag that ends them.
pub(super) fn words_until(
    window: &Window<'_>,
    words: &TagWords,
    tag: &Tag,
    (start, end): (u64, u64),
) -> Words {
    let Some(closing) = &tag.end else { return Words::Unclosed(Reason::Unclosed) };
    let text = window.slice(end, start + SIGNAL_MAX);
    // Any other tag of the dialect restarts there.
    match words.open.find(text) {
        Some(at) if text[at..].starts_with(closing.as_bytes()) => {
            let words = lossy(&text[..at]).trim().to_owned();
            Words::Closed(words, end + (at + closing.len()) as u64)
        }
        Some(at) if text.len() - at >= closing.len() => Words::Unclosed(Reason::Unclosed),
        _ if window.end() >= start + SIGNAL_MAX => Words::Unclosed(Reason::TooLong),
        _ if window.last => Words::Unclosed(Reason::Unclosed),
        _ => Words::Wait,
    }
}
