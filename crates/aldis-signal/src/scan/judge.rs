//! Why something that was read does not count: who said it, where, hidden or not, with which token,
//! whether it stands on its own, and whether the words before it doubt it. In this order.

use super::Token;
use super::candidate::Candidate;
use super::engine::Engine;
use super::families::TagWords;
use super::lead_in::{LEAD_IN_MAX, LeadIn};
use super::standing::stands;
use super::text::{is_blank, lossy};
use super::window::Window;
use crate::dialect::{Standing, Syntax};
use crate::signal::{Reason, Via};
use crate::structure::LINE_REACH;
use crate::visible::sequence::without_sequences;
use crate::words::{Sentence, WordKind};

/// Where a candidate stands, for the questions about its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClaimPosition<'w> {
    /// Where its line starts.
    pub(super) line: u64,
    /// Where it starts itself.
    pub(super) start: u64,
    /// What follows on its line.
    pub(super) rest: &'w [u8],
}

impl ClaimPosition<'_> {
    /// The position of something that owns its lines.
    pub(super) fn of_line(line: u64) -> Self {
        Self { line, start: line, rest: &[] }
    }
}

impl Engine<'_> {
    /// Returns why a candidate does not count, beside its own defects.
    pub(super) fn refusal(&self, candidate: &Candidate) -> Option<Reason> {
        if !self.origin.may_signal() {
            return Some(Reason::UntrustedOrigin);
        }
        if candidate.quoted {
            return Some(Reason::Quoted);
        }
        let draft = candidate.result.as_ref().ok()?;
        if candidate.hidden {
            return Some(Reason::Hidden);
        }
        let dialect = &self.rules.dialects()[candidate.dialect];
        let has_body = matches!(&dialect.syntax, Syntax::Line(line) if line.body);
        if !has_body && !self.token_fits(draft.token.as_deref()) {
            return Some(Reason::WrongToken);
        }
        candidate.doubt
    }

    pub(crate) fn token_fits(&self, said: Option<&str>) -> bool {
        match (&self.options.token, said) {
            (Token::Off, _) | (Token::Accept(_), None) => true,
            (Token::Accept(expected) | Token::Require(expected), Some(said)) => expected == said,
            (Token::Require(_), None) => false,
        }
    }

    pub(crate) fn has_token(&self) -> bool {
        self.options.token != Token::Off
    }

    /// Returns how a signal came that was written with this token, or without one.
    pub(crate) fn via(&self, written: Option<&str>) -> Via {
        match &self.options.token {
            Token::Accept(expected) | Token::Require(expected) if written == Some(expected) => {
                Via::Token
            }
            Token::Accept(_) | Token::Off | Token::Require(_) => Via::Said,
        }
    }

    /// Returns whether the text around a candidate makes it no claim of its own: it is part of a
    /// sentence, or the words before it doubt it.
    pub(super) fn doubt(
        &self,
        window: &Window<'_>,
        candidate: &Candidate,
        position: ClaimPosition<'_>,
    ) -> Option<Reason> {
        let draft = candidate.result.as_ref().ok().filter(|_| !candidate.quoted)?;
        let dialect = &self.rules.dialects()[candidate.dialect];
        let meaning = draft.meaning(dialect).0;
        if !meaning.is_decisive() {
            return None;
        }
        let ClaimPosition { line, start, rest } = position;
        let near = start.saturating_sub(LEAD_IN_MAX).max(line).min(start);
        let before = whole_words(window.slice(near, start), Side::Before, near > line);
        let before = without_sequences(before);
        let before = self.without_tags(&before, Side::Before);
        if dialect.standing == Standing::Line {
            let rest = whole_words(rest, Side::After, rest.len() as u64 == LINE_REACH);
            let after = self.without_tags(&without_sequences(rest), Side::After);
            if !stands(&before, &after) {
                return Some(Reason::InSentence);
            }
        }
        if !dialect.verdict_words && !self.rules.is_strict() {
            return None;
        }
        let words_of = |text: &[u8]| self.without_tags(text, Side::Before);
        let mut lead_in = LeadIn::find(window, line, &before, words_of);
        if self.rules.is_strict() && lead_in.ends_in_colon() {
            return Some(Reason::Introduced);
        }
        if dialect.standing == Standing::End {
            lead_in = lead_in.clause();
        }
        let doubts = dialect.verdict_words && lead_in.doubts(meaning.is_claim());
        doubts.then_some(Reason::Introduced)
    }

    /// Returns a part of a line without the tags in it, and without a joining word beside them.
    fn without_tags(&self, text: &[u8], side: Side) -> String {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        for words in &self.rules.families.tags {
            let mut from = 0;
            while let Some(open) = words.open.find(&text[from..]).map(|at| from + at) {
                let content = open + words.open.needle().len();
                let Some(close) = words.close.find(&text[content..]) else { break };
                from = content + close + words.close.needle().len();
                spans.push((open, from));
            }
            spans.extend(cut_tag(text, words, from, side));
        }
        if spans.is_empty() {
            return lossy(text).into_owned();
        }
        spans.sort_unstable();
        let ends = spans.iter().map(|(_, end)| *end);
        let starts = spans.iter().map(|(start, _)| *start);
        let parts = std::iter::once(0).chain(ends).zip(starts.chain([text.len()]));
        let count = spans.len();
        let shown = parts.enumerate().filter_map(|(index, (from, to))| {
            let part = lossy(text.get(from..to)?);
            // What stands at the far end of the line is between no two signals.
            let far = match side {
                Side::Before => index == 0,
                Side::After => index == count,
            };
            let joins = !far && Sentence::new(&part).is(WordKind::Joins);
            (!joins).then(|| part.into_owned())
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

/// Returns where a tag stands of which a part of a line holds only the near end.
fn cut_tag(text: &[u8], words: &TagWords, from: usize, side: Side) -> Option<(usize, usize)> {
    match side {
        Side::Before => {
            let close = words.close.find(text)?;
            let whole = words.open.find(&text[..close]).is_some();
            (!whole).then(|| (0, close + words.close.needle().len()))
        }
        Side::After => words.open.find(&text[from..]).map(|open| (from + open, text.len())),
    }
}

/// Returns a part of a line without the word that its end cuts in two, if it is that long.
fn whole_words(text: &[u8], side: Side, is_cut: bool) -> &[u8] {
    let blank = |byte: &u8| is_blank(*byte);
    match side {
        _ if !is_cut => text,
        Side::Before => &text[text.iter().position(blank).unwrap_or(text.len())..],
        Side::After => &text[..text.iter().rposition(blank).unwrap_or(0)],
    }
}

/// On which side of a signal a part of its line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}
