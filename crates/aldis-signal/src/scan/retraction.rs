//! Taken back is not said: the sentences after a claim, and those that begin by taking it back.

use super::claims::Pending;
use super::closers::rest_of_line;
use super::engine::{Engine, Flow, Mask};
use super::tags::TagState;
use super::text::{is_blank, lossy, trim_line_end};
use super::unfinished::says_unfinished;
use super::verdict::{LEAD_IN_MAX, RETRACTION_REACH};
use super::window::Window;

impl Engine<'_> {
    /// A word that may take claims back.
    #[inline(never)]
    pub(crate) fn on_retraction(&mut self, window: &Window<'_>, at: u64) -> Flow {
        if self.context.fence.is_some() || self.context.comment || self.mask != Mask::None {
            return Flow::On(at);
        }
        let reach = |pending: &Pending| {
            pending.claim
                && !pending.retracted
                && pending.end <= at
                && at - pending.end <= RETRACTION_REACH
        };
        if !self.pending.iter().any(reach) {
            return Flow::On(at);
        }
        // What stands before the last claim is not about it.
        let ends = self.pending.iter().map(|pending| pending.end).chain([self.last_tag_end]);
        let floor = ends.filter(|end| *end <= at).max().unwrap_or(0);
        if self.harmless.covers(floor, at) {
            return Flow::On(at);
        }
        match self.is_in_tag(window, at) {
            Some(false) => {}
            Some(true) => return Flow::On(at),
            None => return Flow::Wait,
        }
        let Some((before, after)) = sentence_around(window, self.line_start.max(floor), floor, at)
        else {
            return Flow::Wait;
        };
        let start = at - before.len() as u64;
        let follows_claim = |start: u64| {
            let near = |end: u64| end <= start && start - end <= LEAD_IN_MAX;
            let gap = |end: u64| window.slice(end, start).iter().all(u8::is_ascii_whitespace);
            self.pending.iter().any(|pending| near(pending.end) && gap(pending.end))
        };
        let sentence = lossy(window.slice(start, at + after.len() as u64));
        let line_starts = start <= self.line_start;
        // A line that begins with a small letter mostly goes on with the one above.
        let begins = |words: &str| {
            begins_retraction(words)
                && (!words.starts_with(char::is_lowercase)
                    || line_starts && above(window, start).is_empty()
                    || follows_claim(start))
        };
        let words = strip_marks(&sentence);
        let taken_back = match self.body.is_some() {
            true => {
                line_starts && !is_item(&sentence) && begins(words) && !is_in_value(window, start)
            }
            false => begins(words) || says_unfinished(&sentence),
        };
        if taken_back && !self.is_quoted(window, at, None) {
            for pending in self.pending.iter_mut().filter(|pending| reach(pending)) {
                pending.retracted = true;
                self.unsettled -= 1;
            }
            self.due = 0;
        } else if !taken_back {
            let whole = (after.len() as u64) < LEAD_IN_MAX;
            let to = at + if whole { after.len() as u64 } else { LEAD_IN_MAX / 2 };
            self.harmless = Harmless { from: start, to };
        }
        Flow::On(at)
    }

    /// Returns whether a place stands in a tag that is closed on the same line: that is a signal of its
    /// own. `None` if more text is needed.
    fn is_in_tag(&self, window: &Window<'_>, at: u64) -> Option<bool> {
        if self.open_tags == 0 {
            return Some(false);
        }
        let rest = rest_of_line(window, at)?;
        let mut open = self
            .rules
            .families
            .tags
            .iter()
            .filter(|words| matches!(self.tags[words.dialect], TagState::Open { .. }));
        Some(open.any(|words| words.close.find(rest).is_some()))
    }
}

/// A sentence that takes nothing back, as far as that is known. Its other words need no second look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Harmless {
    from: u64,
    to: u64,
}

impl Harmless {
    /// Returns whether a place belongs to the sentence, and no claim was made since it began.
    fn covers(self, last_claim: u64, at: u64) -> bool {
        last_claim <= self.from && (self.from..self.to).contains(&at)
    }
}

/// Returns the sentence around a place, in the part before and the part after it, or `None` if more
/// text is needed. A sentence ends with `.`, `!` or `?` and a blank, or with its line, unless that
/// goes on in the next.
fn sentence_around<'w>(
    window: &Window<'w>,
    line_start: u64,
    floor: u64,
    at: u64,
) -> Option<(&'w [u8], &'w [u8])> {
    let from = at.saturating_sub(LEAD_IN_MAX).max(floor);
    let mut line = line_start.max(from);
    while line > from && goes_on(window.slice(from, line - 1), window.slice(line, at + 1)) {
        let above = window.slice(from, line - 1);
        line = from + memchr::memrchr(b'\n', above).map_or(0, |at| at as u64 + 1);
    }
    let before = window.slice(line, at);
    let mut stops = memchr::memrchr3_iter(b'.', b'!', b'?', before);
    let sentence = stops.find_map(|stop| sentence_end(before, stop)).unwrap_or(0);
    let start = sentence.max(after_ellipsis(&before[sentence..]).map_or(0, |at| sentence + at));
    let blanks = before[start..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let end = end_of_sentence(window, line, at)?;
    Some((&before[start + blanks..], window.slice(at, at + end)))
}

/// Returns how far the sentence goes on behind a place in a line, or `None` if that is not known yet.
fn end_of_sentence(window: &Window<'_>, line: u64, at: u64) -> Option<u64> {
    let after = window.slice(at, at + LEAD_IN_MAX);
    let complete = after.len() as u64 == LEAD_IN_MAX || window.last;
    let mut from = 0;
    loop {
        let newline = memchr::memchr(b'\n', &after[from..]).map(|end| from + end);
        let seen = &after[..newline.map_or(after.len(), |end| end + 1)];
        let mut stops = memchr::memchr3_iter(b'.', b'!', b'?', &seen[from..]);
        if let Some(stop) = stops.find(|stop| sentence_end(seen, from + stop).is_some()) {
            return Some((from + stop) as u64 + 1);
        }
        let Some(end) = newline else { return complete.then_some(after.len() as u64) };
        from = end + 1;
        let below = &after[from..];
        if !complete && below.iter().all(|byte| is_blank(*byte)) {
            return None;
        }
        if !goes_on(window.slice(line, at + end as u64), below) {
            return Some(end as u64);
        }
    }
}

/// Returns whether the last line of a text goes on below: nothing ends it, and what follows starts
/// with a small letter.
fn goes_on(text: &[u8], below: &[u8]) -> bool {
    let starts_small =
        below.iter().find(|byte| !is_blank(**byte)).is_some_and(u8::is_ascii_lowercase);
    let line = trim_line_end(&text[memchr::memrchr(b'\n', text).map_or(0, |at| at + 1)..]);
    let is_prose = !line.starts_with(b"#") && !line.starts_with(b">") && !line.starts_with(b"|");
    let ends = line.last().is_none_or(|last| b".!?:;|-=`>".contains(last));
    starts_small && is_prose && !ends
}

/// Returns where the text goes on behind the sentence that a `.`, `!` or `?` ends: with the blank
/// behind it and what it closes.
fn sentence_end(text: &[u8], stop: usize) -> Option<usize> {
    let closed = text[stop + 1..].iter().take_while(|byte| b"*_)]\"'`".contains(byte)).count();
    let blank = stop + 1 + closed;
    text.get(blank).is_some_and(u8::is_ascii_whitespace).then_some(blank + 1)
}

/// Returns where the text goes on behind the last ellipsis that a blank follows.
fn after_ellipsis(text: &[u8]) -> Option<usize> {
    const ELLIPSIS: &str = "… ";
    // Hardly any text holds such a character.
    memchr::memchr(ELLIPSIS.as_bytes()[0], text)?;
    memchr::memmem::rfind(text, ELLIPSIS.as_bytes()).map(|at| at + ELLIPSIS.len())
}

/// Returns the line above the one that starts at `start`, without what cannot be seen at its end.
fn above<'w>(window: &Window<'w>, start: u64) -> &'w [u8] {
    let before = window.slice(start.saturating_sub(LEAD_IN_MAX), start);
    let before = before.strip_suffix(b"\n").unwrap_or(before);
    trim_line_end(&before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..])
}

/// Returns whether the line that starts at `start` belongs to a value that a line above it opens.
fn is_in_value(window: &Window<'_>, start: u64) -> bool {
    let before = window.slice(start.saturating_sub(LEAD_IN_MAX), start);
    let before = before.strip_suffix(b"\n").unwrap_or(before);
    let lines = before.rsplit(|byte| *byte == b'\n').map(trim_line_end);
    lines.take_while(|line| !line.is_empty()).any(|line| line.ends_with(b":"))
}

/// Returns whether a sentence starts with a list mark.
fn is_item(sentence: &str) -> bool {
    ["- ", "* ", "+ ", "• "].iter().any(|mark| sentence.starts_with(mark))
}

/// Removes what does not belong to the words: list marks, emphasis, the marks of a heading, symbols
/// that cry for attention. What stands in quotation marks is left as it is: somebody else says it.
fn strip_marks(sentence: &str) -> &str {
    let quotes = ['"', '\'', '`', '“', '‘', '«', '„', '>', '|'];
    sentence.trim_start_matches(|c: char| !c.is_alphanumeric() && !quotes.contains(&c))
}

/// Words that, in any text after a claim, may take it back. A superset that a closer look decides.
pub(crate) const RETRACTION_LITERALS: &[&str] = &[
    "Correction",
    "Wait",
    "Actually",
    "Sorry",
    "Oops",
    "Scratch that",
    "On second",
    "Hold on",
    "CORRECTION",
    "WAIT",
    "ACTUALLY",
    "SORRY",
    "OOPS",
    "SCRATCH THAT",
    "ON SECOND",
    "HOLD ON",
    "wait,",
    ", wait",
    "\ncorrection",
    "\nwait",
    "\nactually",
    "\nsorry",
    "\noops",
    "\nscratch that",
    "\non second",
    "\nhold on",
    "omplete",
    "OMPLETE",
    "done",
    "DONE",
    "nished",
    "too soon",
    "TOO SOON",
    "emature",
    "fail",
    "FAIL",
    "roken",
    " red",
    " RED",
    "*red",
    "*RED",
    "ot pass",
    "n't pass",
    "Done",
    "NISHED",
    "EMATURE",
    "Too Soon",
    "Too soon",
    "Fail",
    "ROKEN",
    " Red",
    "Scratch That",
    "On Second",
    "Hold On",
    "OT PASS",
    "N'T PASS",
];

const OPENERS: &[&str] = &[
    "correction",
    "wait",
    "actually",
    "sorry",
    "oops",
    "scratch that",
    "on second thought",
    "hold on",
];

/// What may be said before an opener.
const SIGHS: &[&str] = &["oh", "no", "hmm", "hm", "ah"];

/// Returns whether a sentence begins by taking something back: the opener, then punctuation or the
/// end of the line.
fn begins_retraction(words: &str) -> bool {
    let first = words.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let sighs = SIGHS.iter().any(|sigh| sigh.eq_ignore_ascii_case(first));
    let words = match sighs {
        true => words[first.len()..].trim_start_matches([',', '.', '…', ' ']),
        false => words,
    };
    OPENERS.iter().any(|opener| {
        let Some(head) = words.get(..opener.len()) else { return false };
        let rest = words[opener.len()..].trim_start_matches(['*', '_']);
        head.eq_ignore_ascii_case(opener) && (rest.is_empty() || ends_opener(rest))
    })
}

/// Returns whether punctuation follows. A hyphen only joins words: `Wait-free`.
fn ends_opener(rest: &str) -> bool {
    let joins = rest.starts_with('-') && rest[1..].starts_with(char::is_alphanumeric);
    let rest = rest.trim_start_matches([' ', '\t']);
    !joins && (rest.is_empty() || rest.starts_with(PUNCTUATION))
}

const PUNCTUATION: [char; 12] = [',', '.', ':', ';', '!', '?', '…', '-', '–', '—', '\n', '\r'];
