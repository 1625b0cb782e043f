//! Tags: opening and closing tokens anywhere in the text, matched as they come.
//!
//! No search for a closing tag ever starts anew from an opening one, so unclosed tags cost nothing.

use std::sync::Arc;

use super::candidate::Candidate;
use super::closers::{ClosedWords, Closer, TagWordsRead, rest_of_line, words_until};
use super::draft::{Defect, Draft, Range};
use super::engine::{Engine, Flow, OVERLAP};
use super::families::TagWords;
use super::judge::ClaimPosition;
use super::text::SIGNAL_MAX;
use super::window::Window;
use crate::dialect::syntax::tag::Syntax as Tag;
use crate::dialect::{Dialect, Payload, Syntax};
use crate::signal::{Place, Reason};
use crate::structure::LINE_REACH;
use crate::structure::line::is_enclosed;
use crate::visible::sequence::{hides_text, is_swallowed_after};

/// How far ahead closing tags are looked for at a time: less than a signal is long, so that what has been
/// seen of it is enough for many steps.
pub(super) const LOOK_OUT: u64 = 32 * 1024;

/// What is open in a tag dialect.
#[derive(Debug, Default)]
struct TagState {
    /// The tag whose closing one comes next.
    open: Option<Opening>,
    /// The tag around it that was left open, with the tags that were closed since: nested if that one is
    /// closed, too.
    outer: Option<(Opening, Vec<Candidate>)>,
}

impl TagState {
    /// Returns the tag that was opened first.
    fn oldest(&self) -> Option<&Opening> {
        self.outer.as_ref().map(|(outer, _)| outer).or(self.open.as_ref())
    }
}

/// The open tags of all dialects, and the search for what closes them.
#[derive(Debug)]
pub(super) struct Tags {
    states: Vec<TagState>,
    /// How many of them are not idle.
    pub(super) open: usize,
    /// How many dialects have read the current place while another waits, and where they ended.
    read: (usize, u64),
    closers: Vec<Closer>,
    /// No open tag is closed before this place.
    unclosed_to: u64,
}

impl Tags {
    pub(super) fn new(dialects: usize) -> Self {
        Self {
            states: (0..dialects).map(|_| TagState::default()).collect(),
            open: 0,
            read: (0, 0),
            closers: vec![Closer::default(); dialects],
            unclosed_to: 0,
        }
    }

    /// Returns where the first open tag of each dialect starts.
    pub(super) fn oldest(&self) -> impl Iterator<Item = u64> {
        self.states.iter().filter_map(TagState::oldest).map(|opening| opening.start)
    }
}

/// An opening tag.
#[derive(Debug)]
pub(crate) struct Opening {
    start: u64,
    content: u64,
    place: Place,
    /// Where its line starts.
    line_start: u64,
    /// Its text as received.
    raw: String,
    /// What it says, once that is known.
    name: Option<Arc<str>>,
}

impl Engine<'_> {
    /// An opening tag.
    pub(crate) fn on_tag(&mut self, window: &Window<'_>, at: u64) -> Flow {
        let rules = self.rules;
        let (read, mut next) = std::mem::take(&mut self.tags.read);
        next = next.max(at + 1);
        let text = window.from(at);
        for (position, words) in rules.families.tags.iter().enumerate().skip(read) {
            let open = words.open.needle();
            if !text.starts_with(open) {
                continue;
            }
            let Syntax::Tag(tag) = &rules.dialects()[words.dialect].syntax else { continue };
            let token = (at, at + tag.open.len() as u64);
            let flow = match tag.end {
                Some(_) => self.on_named(window, words, tag, token),
                None => self.on_open(window, words, tag, token),
            };
            match flow {
                Flow::On(after) => next = next.max(after),
                Flow::Wait => {
                    self.tags.read = (position, next);
                    return Flow::Wait;
                }
            }
        }
        Flow::On(next)
    }

    /// Counts what is open, and takes note of when to look again.
    fn note_tags(&mut self) {
        self.tags.open = self.tags.oldest().count();
        let due = self.tags.oldest().min().map_or(u64::MAX, |start| start + SIGNAL_MAX);
        self.queue.due = self.queue.due.min(due);
    }

    /// Returns the next closing tag of a dialect in which one is awaited.
    pub(crate) fn next_close(&mut self, window: &Window<'_>) -> Option<(u64, usize)> {
        // All that start in the next step must end before.
        let to = (self.at + LOOK_OUT + OVERLAP).min(window.end());
        if self.tags.open == 0 || self.tags.unclosed_to >= to {
            return None;
        }
        self.tags.unclosed_to = u64::MAX;
        let mut first: Option<(u64, usize)> = None;
        for words in &self.rules.families.tags {
            let index = words.dialect;
            let (from, start) = match &self.tags.states[index] {
                TagState { open: Some(opening), .. } => (opening.content, opening.start),
                TagState { outer: Some((outer, _)), .. } => (self.at, outer.start),
                TagState { open: None, outer: None } => continue,
            };
            let closer = &mut self.tags.closers[index];
            let found = closer.find(window, &words.close, (from, to), start);
            self.tags.unclosed_to = self.tags.unclosed_to.min(closer.searched);
            first = first.into_iter().chain(found.map(|at| (at, index))).min();
        }
        first
    }

    /// A closing tag at `at`.
    pub(crate) fn on_closing(&mut self, window: &Window<'_>, at: u64, index: usize) -> Flow {
        let rules = self.rules;
        let Syntax::Tag(tag) = &rules.dialects()[index].syntax else { return Flow::On(at + 1) };
        if self.structure.needs_more(window, self.lines.start.min(at), at) {
            return Flow::Wait;
        }
        self.on_close(window, index, tag, (at, at + tag.close.len() as u64))
    }

    fn on_open(
        &mut self,
        window: &Window<'_>,
        words: &TagWords,
        tag: &Tag,
        (start, end): (u64, u64),
    ) -> Flow {
        let index = words.dialect;
        if self.is_quoted(window, start, None) {
            return match self.tags.states[index].open {
                Some(_) => Flow::On(end),
                None => self.on_quoted(window, words, tag, (start, end)),
            };
        }
        let opening = self.opening(window, (start, end));
        match self.tags.states[index].open.replace(opening) {
            Some(mut left) => {
                left.name = self.name_after(window, index, (left.content, start));
                let outer = self.tags.states[index].outer.replace((left, Vec::new()));
                self.release(index, outer);
            }
            None => self.tags.unclosed_to = 0,
        }
        self.note_tags();
        Flow::On(end)
    }

    fn on_close(
        &mut self,
        window: &Window<'_>,
        index: usize,
        tag: &Tag,
        (start, end): (u64, u64),
    ) -> Flow {
        if self.tags.states[index].open.is_none() {
            if !self.is_quoted(window, start, None)
                && let Some((outer, inner)) = self.tags.states[index].outer.take()
            {
                self.nested(index, inner, outer);
                self.note_tags();
            }
            return Flow::On(end);
        }
        let Some(rest) = rest_of_line(window, end) else { return Flow::Wait };
        let Some(opening) = self.tags.states[index].open.take() else { return Flow::On(end) };
        let content = window.slice(opening.content, start);
        let dialect = &self.rules.dialects()[index];
        let result = tag.read(dialect, content, (opening.start, end), self.has_token());
        let raw = window.offsets.restore(opening.start, window.slice(opening.start, end));
        let mut place = opening.place;
        place.span.end = window.offsets.original_end(end);
        let lines = window.slice(opening.near(), end + rest.len() as u64);
        let before = window.slice(opening.start.saturating_sub(LINE_REACH), opening.start);
        let before = &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..];
        let mut candidate = Candidate {
            dialect: index,
            result,
            place,
            raw,
            quoted: is_enclosed(before, rest),
            hidden: hides_text(lines)
                || is_swallowed_after(before)
                || window.offsets.conceals(opening.start),
            doubt: None,
            legacy: false,
        };
        let position = ClaimPosition { line: opening.line_start, start: opening.start, rest };
        candidate.doubt = self.doubt(window, &candidate, position);
        match &mut self.tags.states[index].outer {
            Some((_, inner)) => inner.push(candidate),
            None => self.submit(candidate, None),
        }
        self.note_tags();
        Flow::On(end)
    }

    /// `<<<NAME>>>`: the name stands in the tag, its words up to a second tag.
    fn on_named(
        &mut self,
        window: &Window<'_>,
        words: &TagWords,
        tag: &Tag,
        (start, end): (u64, u64),
    ) -> Flow {
        let Some(rest) = rest_of_line(window, end) else { return Flow::Wait };
        let index = words.dialect;
        let dialect = &self.rules.dialects()[index];
        let Some(length) = words.close.find(rest) else {
            if let Some(name) = self.name_after(window, index, (end, u64::MAX)) {
                let defect = Defect::new(Reason::Unclosed, name, (start, end));
                self.report_line(window, index, defect);
            }
            return Flow::On(end);
        };
        let mut whole = (start, end + (length + tag.close.len()) as u64);
        if Some(window.slice(start, whole.1)) == tag.end.as_deref().map(str::as_bytes) {
            return Flow::On(whole.1);
        }
        let name = std::str::from_utf8(&rest[..length]).unwrap_or_default();
        let def = dialect.signal(name).filter(|def| def.payload == Payload::Text);
        let quoted = self.is_quoted(window, start, None);
        let mut nested = Vec::new();
        let until = |def| (def, words_until(window, words, dialect, whole, quoted));
        let result = match def.map(until) {
            None => tag.read(dialect, &rest[..length], whole, self.has_token()),
            Some((_, TagWordsRead::Closed(ClosedWords { words: said, end, nested: inner }))) => {
                whole.1 = end;
                nested = inner;
                let content = format!("{name}: {said}");
                tag.read(dialect, content.as_bytes(), whole, self.has_token())
            }
            Some((def, TagWordsRead::Unclosed(reason))) => {
                Err(Defect::new(reason, def.name.clone(), whole))
            }
            Some((_, TagWordsRead::Wait)) => return Flow::Wait,
        };
        let Some(rest) = rest_of_line(window, whole.1) else { return Flow::Wait };
        let quoted = self.is_quoted(window, start, Some(whole.1));
        match result {
            Ok(draft) => {
                let position = ClaimPosition { line: self.lines.start, start, rest };
                if let Some(candidate) = self.candidate(window, index, draft, position, quoted) {
                    self.submit(candidate, None);
                }
            }
            Err(defect) => self.report(window, index, defect, quoted),
        }
        for (name, range) in nested {
            let before = window.slice(self.lines.start, range.0);
            self.lines.start += memchr::memrchr(b'\n', before).map_or(0, |at| at as u64 + 1);
            let defect = Defect::new(Reason::Nested, name, range);
            self.report(window, index, defect, quoted);
        }
        Flow::On(whole.1)
    }

    /// A quoted tag is reported if it is closed on its line.
    fn on_quoted(
        &mut self,
        window: &Window<'_>,
        words: &TagWords,
        tag: &Tag,
        (start, end): (u64, u64),
    ) -> Flow {
        let Some(rest) = rest_of_line(window, end) else { return Flow::Wait };
        let Some(length) = words.close.find(rest) else { return Flow::On(end) };
        let index = words.dialect;
        let after = end + (length + tag.close.len()) as u64;
        let dialect = &self.rules.dialects()[index];
        let read = tag.read(dialect, &rest[..length], (start, after), self.has_token());
        let quoted = |draft: Draft| Defect::new(Reason::Quoted, draft.name, draft.range);
        let defect = read.map_or_else(|defect| defect, quoted);
        self.report(window, index, defect, true);
        Flow::On(after)
    }

    fn opening(&mut self, window: &Window<'_>, (start, end): (u64, u64)) -> Opening {
        let place = self.place(window, start, end);
        let raw = window.offsets.restore(start, window.slice(start, end));
        let line_start = self.lines.start;
        Opening { start, content: end, place, line_start, raw, name: None }
    }

    /// Returns the known name that follows an opening tag.
    fn name_after(&self, window: &Window<'_>, index: usize, (from, to): Range) -> Option<Arc<str>> {
        let text = window.slice(from, to.min(from + 64));
        let length = text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let mut known = self.rules.dialects()[index].signals.iter();
        known.find(|def| def.name.as_bytes() == &text[..length]).map(|def| def.name.clone())
    }

    fn unclosed(&mut self, index: usize, opening: Opening, reason: Reason) {
        let reason = self.reason_here(reason);
        if self.report.misses.counts(index, reason) {
            return self.report.note(opening.place.span);
        }
        let dialect = &self.rules.dialects()[index];
        let name = opening.name.unwrap_or_else(|| tag_name(dialect));
        self.miss(index, reason, name, None, opening.place, opening.raw);
    }

    fn nested(&mut self, index: usize, inner: Vec<Candidate>, outer: Opening) {
        self.unclosed(index, outer, Reason::Nested);
        for mut candidate in inner {
            if let Ok(draft) = &candidate.result {
                candidate.result =
                    Err(Defect::new(Reason::Nested, draft.name.clone(), draft.range));
            }
            self.submit(candidate, None);
        }
    }

    /// Gives up a tag that was left open: what it held stands by itself.
    fn release(&mut self, index: usize, outer: Option<(Opening, Vec<Candidate>)>) {
        let Some((outer, inner)) = outer else { return };
        self.unclosed(index, outer, Reason::Unclosed);
        for candidate in inner {
            self.submit(candidate, None);
        }
    }

    /// Gives up tags that have grown longer than any signal.
    pub(crate) fn expire_tags(&mut self, window: &Window<'_>) {
        if self.tags.open == 0 {
            return;
        }
        for index in 0..self.tags.states.len() {
            let expired = |opening: &Opening| self.at - opening.start > SIGNAL_MAX;
            let TagState { open, outer } = &self.tags.states[index];
            if open.as_ref().is_some_and(expired) {
                self.end_tag(window, index, Reason::TooLong);
            } else if outer.as_ref().is_some_and(|(outer, _)| expired(outer)) {
                let outer = self.tags.states[index].outer.take();
                self.release(index, outer);
            }
        }
        self.note_tags();
    }

    pub(crate) fn end_tags(&mut self, window: &Window<'_>) {
        for index in 0..self.tags.states.len() {
            self.end_tag(window, index, Reason::Unclosed);
        }
    }

    fn end_tag(&mut self, window: &Window<'_>, index: usize, reason: Reason) {
        let TagState { open, outer } = std::mem::take(&mut self.tags.states[index]);
        self.release(index, outer);
        if let Some(mut opening) = open {
            opening.name = self.name_after(window, index, (opening.content, u64::MAX));
            self.unclosed(index, opening, reason);
        }
    }
}

impl Opening {
    /// Returns where what stands before it on its line starts, as far as that matters.
    fn near(&self) -> u64 {
        self.line_start.max(self.start.saturating_sub(LINE_REACH)).min(self.start)
    }
}

/// Returns what to call a tag whose content was never read.
fn tag_name(dialect: &Dialect) -> Arc<str> {
    match dialect.signals.as_slice() {
        [only] => only.name.clone(),
        _ => match &dialect.syntax {
            Syntax::Tag(tag) => tag.open.trim_matches(['<', '>', '/']).into(),
            _ => dialect.name.clone(),
        },
    }
}
