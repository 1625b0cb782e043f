//! Whether a claim is taken back by what follows it (spec 0, rule 8 c).
//!
//! A sentence that opens with a retraction, and in it or the next one a failure, or words that void
//! what was said by themselves. The text behind a claim
//! is read once, whatever number of claims it is behind.

use super::standing::without_list_mark;
use super::text::lossy;
use super::window::Window;
use crate::structure::line::is_list_item;
use crate::structure::outline::{Outline, OutlineLine};
use crate::words::{OPENER_MAX, Sentence, WordKind, find_opener, opens_retraction};

/// How far after a claim its retraction is looked for. Later words are about something else, and a
/// claim becomes certain at last.
pub(crate) const REACH: u64 = 4 * 1024;
/// How much of what follows that is read for the end of the sentence.
pub(crate) const SLACK: u64 = 1024;

/// A sentence that takes back what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Retraction {
    at: u64,
    /// Whether it starts a line that is no list item.
    starts_line: bool,
}

/// What takes back a claim that ends somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TakenBack {
    /// By a line.
    by_line: bool,
    /// By a sentence elsewhere in a line, the last of which starts here.
    by_sentence: Option<u64>,
}

impl TakenBack {
    /// Returns whether it takes back a claim whose body ends at `body_end`: a body is full of other
    /// people's words.
    pub(super) fn is_certain(self, body_end: u64) -> bool {
        self.by_line || self.by_sentence.is_some_and(|at| at >= body_end)
    }
}

/// Reads what follows claims. Words that may take something back are rare, so where the next one
/// stands is remembered: the text behind many claims is searched once.
#[derive(Debug, Default)]
pub(super) struct Retractions {
    /// How far such words were looked for, and the first that was found there.
    searched: u64,
    next: Option<u64>,
}

impl Retractions {
    /// Returns what takes back a claim that ends at `end`. The text behind it is at hand as far as it
    /// matters.
    pub(super) fn of(&mut self, window: &Window<'_>, end: u64) -> TakenBack {
        let to = end + REACH;
        let mut taken = TakenBack::default();
        if !self.may_be_taken_back(window, end, to) {
            return taken;
        }
        for found in read(window, end, to) {
            taken.by_line |= found.starts_line;
            if !found.starts_line {
                taken.by_sentence = Some(found.at);
            }
        }
        taken
    }

    fn may_be_taken_back(&mut self, window: &Window<'_>, end: u64, to: u64) -> bool {
        if self.next.is_some_and(|next| next < end) || end > self.searched {
            self.next = None;
            self.searched = self.searched.max(end);
        }
        if self.next.is_none() && self.searched < to {
            let from = self.searched.saturating_sub(OPENER_MAX).max(end);
            let found = find_opener(window.slice(from, to + OPENER_MAX));
            self.next = found.map(|at| from + at as u64);
            self.searched = self.next.unwrap_or(to);
        }
        self.next.is_some_and(|next| next <= to)
    }
}

/// Reads the retractions that start in a range that begins outside all quotation.
fn read(window: &Window<'_>, from: u64, to: u64) -> impl Iterator<Item = Retraction> {
    let text = window.slice(from, to + SLACK);
    let mut sentences = Vec::new();
    for OutlineLine { start, seen, quoted } in Outline::of(text) {
        let at = from + start as u64;
        if quoted || at > to {
            continue;
        }
        let whole =
            start > 0 || window.byte(from.saturating_sub(1)).is_none_or(|byte| byte == b'\n');
        let line = lossy(seen);
        let item = is_list_item(seen);
        let mut first = true;
        for sentence in split(&line) {
            let starts_line = first && whole && !item;
            first = false;
            sentences.push((Retraction { at, starts_line }, sentence.to_owned()));
        }
    }
    let taken_back = |index: usize| {
        let (retraction, sentence) = &sentences[index];
        if !opens_retraction(sentence) {
            return None;
        }
        let next = sentences.get(index + 1).map_or("", |(_, next)| next.as_str());
        let fails = [sentence.as_str(), next].iter().any(|text| {
            let words = Sentence::new(text);
            [WordKind::Failure, WordKind::Negation, WordKind::Void]
                .iter()
                .any(|kind| words.has(*kind))
        });
        fails.then_some(*retraction)
    };
    (0..sentences.len()).filter_map(taken_back).collect::<Vec<_>>().into_iter()
}

/// Returns the sentences of a line, each without the marks in front of it. What stands in quotation
/// marks keeps them: somebody else says it.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(without_list_mark(line.trim()).unwrap_or(line));
    std::iter::from_fn(move || {
        let text = rest?;
        let end = sentence_end(text);
        let (sentence, behind) = text.split_at(end);
        rest = (!behind.is_empty()).then_some(behind);
        Some(strip_marks(sentence))
    })
    .filter(|sentence| !sentence.is_empty())
}

fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | '…' | '>' => {
                let behind =
                    text[at + c.len_utf8()..].trim_start_matches(['*', '_', ')', ']', '"']);
                next.is_none() || behind.is_empty() || behind.starts_with(char::is_whitespace)
            }
            _ => false,
        };
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

fn strip_marks(sentence: &str) -> &str {
    let quotes = ['"', '\'', '`', '“', '‘', '«', '„', '>', '|', '<', '「', '『'];
    sentence.trim_start_matches(|c: char| !c.is_alphanumeric() && !quotes.contains(&c)).trim_end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Openers, and what may stand before and behind them.
    const PIECES: &str = "(wait|No|待って|désolé|abc|12|[1-3]|[-.,:!?)> \n*\"]|\\[x\\]|。|…|！|「|é|った|- |\\. ){0,24}";

    proptest! {
        /// Nothing that takes something back is overlooked by the search for it.
        #[test]
        fn every_retraction_is_searched_for(text in PIECES) {
            let opens = text.lines().any(|line| split(line).any(opens_retraction));
            let found = find_opener(text.as_bytes());
            prop_assert!(!opens || found.is_some(), "{text:?}");
            let slowly = (0..text.len()).filter(|at| text.is_char_boundary(*at));
            let openers = slowly.filter(|at| opens_retraction(&text[*at..])).collect::<Vec<_>>();
            prop_assert!(found.is_none_or(|at| openers.contains(&at)), "{text:?}");
        }
    }
}
