//! What leads into a signal: the sentence directly before it, and whether that holds a doubt (spec 0,
//! rule 8 b).

use super::standing::{last_sentence, without_list_mark};
use super::window::Window;
use crate::structure::line::{is_blank_line, is_heading, is_list_item, is_quote, is_table_line};
use crate::words::{Sentence, WordKind};

/// How far back a lead-in reaches.
pub(crate) const LEAD_IN_MAX: u64 = 1024;

/// The sentence that leads into a signal.
#[derive(Debug, Default)]
pub(super) struct LeadIn {
    text: String,
    /// Whether it is a whole sentence, which introduces only if it points at what follows.
    finished: bool,
}

impl LeadIn {
    /// Finds it: on the signal's own line, of which `own` stands before the signal, or above the line.
    /// `words_of` takes other signals out of a line: they lead into nothing.
    pub(super) fn find(
        window: &Window<'_>,
        line: u64,
        own: &str,
        words_of: impl Fn(&[u8]) -> String,
    ) -> Self {
        if own.contains(char::is_alphanumeric) {
            return Self::of(own);
        }
        let from = line.saturating_sub(LEAD_IN_MAX).max(window.base());
        let above = window.slice(from, line);
        // A character may be cut where it starts.
        let cut = above.iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count();
        let above = &above[cut.min(3)..];
        let mut lines = above.strip_suffix(b"\n").unwrap_or(above).rsplit(|byte| *byte == b'\n');
        let directly = lines.clone().next().unwrap_or_default();
        let Some(last) = lines.find(|line| !is_blank_line(line)) else { return Self::default() };
        // What cannot be read introduces nothing, nor does what somebody else said.
        if std::str::from_utf8(last).is_err() || is_quote(last) || is_table_line(last) {
            return Self::default();
        }
        let words = words_of(last);
        let lead = Self::of(&words);
        let adjacent = !is_blank_line(directly);
        let goes_on = adjacent && !is_list_item(last) && !is_heading(last);
        let leads = lead.finished || goes_on || ends_in_colon(&words);
        if leads { lead } else { Self::default() }
    }

    /// The last sentence of a line.
    fn of(line: &str) -> Self {
        let words = without_list_mark(line.trim()).unwrap_or(line).trim_end_matches(is_closing);
        let open = last_sentence(words);
        if open.contains(char::is_alphanumeric) {
            return Self { text: open.to_owned(), finished: false };
        }
        let end = words.trim_end_matches(|c: char| is_closing(c) || ".!?…。！？".contains(c));
        Self { text: last_sentence(end).to_owned(), finished: true }
    }

    /// The clause since the last comma or semicolon, for a signal that may end a sentence. A condition
    /// with which the sentence opens is one for all of it.
    pub(super) fn clause(mut self) -> Self {
        if Sentence::new(&self.text).opens_with(WordKind::Condition) {
            return self;
        }
        if let Some(at) = self.text.rfind([',', ';', '，', '；', '、']) {
            self.text =
                self.text[at..].trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned();
        }
        self
    }

    /// Returns whether a colon ends it.
    pub(super) fn ends_in_colon(&self) -> bool {
        !self.finished && ends_in_colon(&self.text)
    }

    /// Returns whether it doubts what follows. Bad news is reported with negations, so they are doubts
    /// only of a claim.
    pub(super) fn doubts(&self, claim: bool) -> bool {
        let sentence = Sentence::new(&self.text);
        if sentence.is_empty() || self.finished && !sentence.has(WordKind::Points) {
            return false;
        }
        let announced = || sentence.has(WordKind::Future) && !sentence.has(WordKind::Affirm);
        let denied =
            || claim && (sentence.has(WordKind::Negation) || sentence.has(WordKind::Failure));
        sentence.shows_sample()
            || sentence.has(WordKind::Condition)
            || announced()
            || denied()
            || self.ends_in_colon() && sentence.is(WordKind::Order)
    }
}

fn is_closing(c: char) -> bool {
    c.is_whitespace() || matches!(c, '*' | '_' | ')' | '"' | '\'' | '”' | '»')
}

fn ends_in_colon(text: &str) -> bool {
    text.trim_end_matches(is_closing).ends_with([':', '：'])
}
