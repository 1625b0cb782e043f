//! Where in a message a place is: in a fence, a comment, inline code, a quotation.
//!
//! Fences and comments are followed from the start of the message, because they last until they are
//! closed. Inline code ends with its paragraph and is only worked out where something asks for it,
//! walking forward from the last place that did, so that the whole stays linear.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::text::{is_blank, trim_blanks, trim_blanks_end, trim_blanks_start};
use super::verdict::LEAD_IN_MAX;
use super::window::{Line, Window};

/// What is open at the current place.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) fence: Option<Fence>,
    pub(crate) comment: bool,
    pub(crate) inline: Inline,
}

/// An open code fence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fence {
    pub(crate) marker: u8,
    pub(crate) length: usize,
    /// Whether it has no info string.
    pub(crate) bare: bool,
    /// Whether it was reported as a malformed signal, so that its content need not be.
    pub(crate) reported: bool,
    /// Where its opening line starts.
    pub(crate) start: u64,
    /// Where its content starts.
    pub(crate) content: u64,
}

/// A line that starts with a run of fence characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FenceLine<'a> {
    pub(crate) marker: u8,
    pub(crate) length: usize,
    /// What follows the run, trimmed.
    pub(crate) info: &'a [u8],
}

impl<'a> FenceLine<'a> {
    /// Reads a line that may be indented.
    pub(crate) fn read(line: Line<'a>) -> Option<Self> {
        let text = trim_blanks_start(line.seen);
        let marker = *text.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = text.iter().take_while(|byte| **byte == marker).count();
        (length >= 3).then(|| Self { marker, length, info: trim_blanks(&text[length..]) })
    }

    /// Returns whether this line ends `fence`.
    pub(crate) fn closes(&self, fence: &Fence) -> bool {
        self.marker == fence.marker && self.length >= fence.length && self.info.is_empty()
    }

    /// Returns whether this line can open a fence: back-quotes in the info string make it inline
    /// code.
    pub(crate) fn opens(&self) -> bool {
        self.marker == b'~' || !self.info.contains(&b'`')
    }
}

impl Context {
    /// Takes note of a fence line.
    pub(crate) fn on_fence_line(&mut self, line: Line<'_>, read: FenceLine<'_>) {
        match &self.fence {
            Some(fence) if read.closes(fence) => self.fence = None,
            Some(_) => return,
            None if read.opens() => {
                self.fence = Some(Fence {
                    marker: read.marker,
                    length: read.length,
                    bare: read.info.is_empty(),
                    reported: false,
                    start: line.start,
                    content: line.next,
                });
            }
            None => return,
        }
        self.inline.restart(line.next);
    }
}

/// Finds the end of a comment.
pub(crate) fn find_comment_end(text: &[u8]) -> Option<usize> {
    static END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("-->"));
    END.find(text)
}

/// A text of this length or less is short.
const SHORT: usize = 48;

/// Follows back-quotes within a paragraph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inline {
    /// How far the text was walked.
    at: u64,
    /// Length of the run that opened the code around `at`, or 0.
    open: usize,
    /// Back-quotes directly before `at`.
    run: usize,
    /// Whether the line of `at` shows nothing before it.
    blank: bool,
    /// Whether the byte before the run escapes its first back-quote.
    escaped: bool,
}

impl Inline {
    /// Starts a new paragraph at `at`.
    pub(crate) fn restart(&mut self, at: u64) {
        *self = Self { at, blank: true, ..Self::default() };
    }

    /// Walks to `to` and returns whether that place is inside inline code.
    pub(crate) fn is_code_at(&mut self, window: &Window<'_>, to: u64) -> bool {
        self.walk(window, to);
        self.end_run();
        self.open != 0
    }

    /// Walks to `to`.
    pub(crate) fn walk(&mut self, window: &Window<'_>, to: u64) {
        if to <= self.at {
            return;
        }
        let text = window.slice(self.at, to);
        let ahead = window.slice(self.at, to + MARK_MAX as u64);
        self.at = to;
        if self.passes(text) {
            return;
        }
        let start = match last_paragraph(ahead, text.len(), self.blank) {
            Some(start) => {
                self.open = 0;
                self.run = 0;
                self.escaped = false;
                start
            }
            None => 0,
        };
        self.back_quotes(&text[start..]);
        let line = memchr::memrchr(b'\n', text);
        let shown = line.map_or(text, |at| &text[at + 1..]);
        self.blank = (line.is_some() || self.blank) && is_blank_line(shown);
    }

    /// Walks over a text that holds no back-quotes, where none is open: nothing matters but how it
    /// ends. Most texts are such.
    fn passes(&mut self, text: &[u8]) -> bool {
        // For a short text, preparing the search takes longer than the search.
        let quotes = match text.len() {
            0..=SHORT => text.contains(&b'`'),
            _ => memchr::memchr(b'`', text).is_some(),
        };
        let Some(last) = text.last().filter(|_| !quotes) else { return false };
        self.end_run();
        if self.open != 0 {
            return false;
        }
        self.escaped = *last == b'\\';
        let shown = text.iter().rfind(|byte| !is_blank(**byte) && **byte != b'\r');
        self.blank = shown.map_or(self.blank, |byte| *byte == b'\n');
        true
    }

    fn back_quotes(&mut self, text: &[u8]) {
        let mut rest = text;
        loop {
            let length = rest.iter().take_while(|byte| **byte == b'`').count();
            self.run += length;
            rest = &rest[length..];
            if rest.is_empty() {
                return;
            }
            self.end_run();
            let Some(next) = memchr::memchr(b'`', rest) else {
                self.escaped = rest.ends_with(b"\\");
                return;
            };
            self.escaped = rest[..next].ends_with(b"\\");
            rest = &rest[next..];
        }
    }

    fn end_run(&mut self) {
        let escaped = usize::from(self.escaped && self.open == 0 && self.run > 0);
        let run = self.run - escaped;
        if run > 0 {
            self.open = match self.open {
                0 => run,
                open if open == run => 0,
                open => open,
            };
        }
        self.run = 0;
        self.escaped = false;
    }
}

/// Returns where the last paragraph of the first `length` bytes of `text` starts, if one starts in
/// them. `blank` says whether the line that `text` starts in shows nothing before it.
fn last_paragraph(text: &[u8], length: usize, blank: bool) -> Option<usize> {
    let mut end = memchr::memrchr(b'\n', &text[..length])?;
    loop {
        if begins_paragraph(&text[end + 1..]) {
            return Some(end + 1);
        }
        let start = memchr::memrchr(b'\n', &text[..end]);
        let line = &text[start.map_or(0, |at| at + 1)..end];
        if is_blank_line(line) && (start.is_some() || blank) {
            return Some(end + 1);
        }
        end = start?;
    }
}

/// Returns whether a line starts a paragraph by itself: a heading, an item of a list, a row of a
/// table, a rule.
fn begins_paragraph(line: &[u8]) -> bool {
    let line = &line[..line.len().min(MARK_MAX)];
    let shown = trim_blanks_start(line);
    let mark = shown.iter().position(|byte| is_blank(*byte)).map_or(&[][..], |at| &shown[..=at]);
    let heading = mark.strip_suffix(b" ").is_some_and(|mark| mark.iter().all(|byte| *byte == b'#'));
    let rule = [b"---", b"***", b"___", b"==="].iter().any(|rule| shown.starts_with(*rule));
    heading && mark.len() > 1 || rule || shown.starts_with(b"|") || is_list_mark(mark)
}

/// The mark that starts a paragraph, and the blanks before it, are no longer: so much of a line is at
/// hand wherever the line has begun.
const MARK_MAX: usize = 32;

fn is_blank_line(line: &[u8]) -> bool {
    line.iter().all(|byte| is_blank(*byte) || *byte == b'\r')
}

/// Returns whether a line is a block quote, by itself or in a list, or a table row.
pub(crate) fn is_quoting_line(line: &[u8]) -> bool {
    let shown = trim_blanks_start(line);
    match shown.first() {
        Some(b'>' | b'|') => true,
        Some(b'-' | b'*' | b'+' | b'0'..=b'9') => {
            let Some(quote) = memchr::memchr(b'>', shown) else { return false };
            is_list_mark(&shown[..quote])
        }
        _ => false,
    }
}

/// Returns whether what stands before a place on its line is the mark of a list item.
pub(crate) fn is_list_mark(prefix: &[u8]) -> bool {
    let mark = trim_blanks(prefix);
    let digits = mark.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let marks: &[u8] = if digits == 0 { b"-*+" } else { b".)" };
    let is_mark = matches!(&mark[digits..], [mark] if marks.contains(mark));
    is_mark && digits < 10 && prefix.last().is_some_and(|byte| is_blank(*byte))
}

/// Returns whether what stands before a place on its line marks the rest as a search hit, a numbered
/// line or a line of a diff.
pub(crate) fn is_quoting_prefix(prefix: &[u8]) -> bool {
    if prefix.len() as u64 > LEAD_IN_MAX {
        return false;
    }
    if prefix == b"+" || prefix == b"-" {
        return true;
    }
    let numbered = prefix.strip_suffix(b"\t").map(trim_blanks);
    if numbered.is_some_and(is_number) {
        return true;
    }
    // What was found may have been indented where it stood.
    let prefix = trim_blanks_end(prefix);
    if let Some(number) = prefix.strip_suffix("→".as_bytes()) {
        return is_number(trim_blanks(number));
    }
    [b':', b'-'].iter().any(|mark| {
        let Some(head) = prefix.strip_suffix(&[*mark]) else { return false };
        let Some(at) = head.iter().rposition(|byte| byte == mark) else { return false };
        is_number(&head[at + 1..]) && ends_with_path(&head[..at], *mark)
    })
}

/// Returns whether a text is the path of a search hit, or ends with one.
fn ends_with_path(text: &[u8], mark: u8) -> bool {
    let start = text.iter().rposition(|byte| is_blank(*byte)).map_or(0, |at| at + 1);
    let path = &text[start..];
    // `10:30:` is a time.
    let named = path.iter().any(|byte| !byte.is_ascii_digit() && *byte != mark);
    // Behind other words, only what looks like a path is one.
    named && (start == 0 || path.iter().any(|byte| matches!(byte, b'.' | b'/')))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Returns whether the text directly around a range encloses it in quotation marks.
pub(crate) fn is_in_quotation_marks(before: &[u8], after: &[u8]) -> bool {
    const PAIRS: &[(&str, &str)] = &[
        ("\"", "\""),
        ("'", "'"),
        ("“", "”"),
        ("‘", "’"),
        ("«", "»"),
        ("„", "“"),
        ("‚", "‘"),
        ("‹", "›"),
        ("「", "」"),
        ("『", "』"),
    ];
    let directly = PAIRS.iter().any(|(open, close)| {
        before.ends_with(open.as_bytes()) && after.starts_with(close.as_bytes())
    });
    let opened = || memchr::memchr_iter(b'"', before).count() % 2 == 1;
    directly || memchr::memchr(b'"', after).is_some() && opened() || is_in_curly(before, after)
}

/// Returns whether a curly quotation mark is open before a place and closed behind it.
fn is_in_curly(before: &[u8], after: &[u8]) -> bool {
    // Hardly any line holds such a character.
    if memchr::memchr(0xE2, after).is_none() {
        return false;
    }
    let last = |mark: &str| memchr::memmem::rfind(before, mark.as_bytes());
    last("“") > last("”") && memchr::memmem::find(after, "”".as_bytes()).is_some()
}
