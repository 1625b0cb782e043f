//! What one line tells about itself: marks in front of it, and what encloses a place on it.

use crate::scan::text::{is_blank, trim_blanks, trim_blanks_end, trim_blanks_start};
use crate::scan::window::Line;

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
        Self::of(line.seen)
    }

    /// Reads what can be seen of a line.
    pub(crate) fn of(seen: &'a [u8]) -> Option<Self> {
        let text = trim_blanks_start(seen);
        let marker = *text.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = text.iter().take_while(|byte| **byte == marker).count();
        (length >= 3).then(|| Self { marker, length, info: trim_blanks(&text[length..]) })
    }

    /// Returns whether this line ends a fence of `length` marks.
    pub(crate) fn closes(&self, marker: u8, length: usize) -> bool {
        self.marker == marker && self.length >= length && self.info.is_empty()
    }

    /// Returns whether this line can open a fence: back-quotes in the info string make it inline
    /// code.
    pub(crate) fn opens(&self) -> bool {
        self.marker == b'~' || !self.info.contains(&b'`')
    }
}

/// The mark that starts a block, and the blanks before it, are no longer.
const MARK_MAX: usize = 32;

pub(crate) fn is_blank_line(line: &[u8]) -> bool {
    line.iter().all(|byte| is_blank(*byte) || *byte == b'\r')
}

/// Returns whether a line is a block quote, by itself or in a list.
pub(crate) fn is_quote(line: &[u8]) -> bool {
    quoted_content(line).is_some()
}

/// Returns what stands behind the marks of a block quote.
pub(crate) fn quoted_content(line: &[u8]) -> Option<&[u8]> {
    let mut rest = behind_list_marks(trim_blanks_start(line)).strip_prefix(b">")?;
    while let Some(deeper) = trim_blanks_start(rest).strip_prefix(b">") {
        rest = deeper;
    }
    Some(rest)
}

/// Returns whether a line is a footnote: `[^1]: words`. What stands there is about the text, not said in it.
pub(crate) fn is_footnote(line: &[u8]) -> bool {
    let Some(label) = trim_blanks_start(line).strip_prefix(b"[^") else { return false };
    let end = label.iter().position(|byte| *byte == b']' || is_blank(*byte));
    end.is_some_and(|end| end > 0 && label[end..].starts_with(b"]:"))
}

/// Removes the marks of list items in front.
fn behind_list_marks(line: &[u8]) -> &[u8] {
    let mut line = line;
    while let Some(mark) = leading_list_mark(line) {
        line = trim_blanks_start(&line[mark..]);
    }
    line
}

/// Returns the length of the list mark that a line starts with, with the blank behind it.
fn leading_list_mark(line: &[u8]) -> Option<usize> {
    let start = &line[..line.len().min(MARK_MAX)];
    let end = start.iter().position(|byte| is_blank(*byte))?;
    is_list_mark(&start[..=end]).then_some(end + 1)
}

/// Returns whether what stands before a place on its line is the mark of a list item.
pub(crate) fn is_list_mark(prefix: &[u8]) -> bool {
    let mark = trim_blanks(prefix);
    let digits = mark.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let marks: &[u8] = if digits == 0 { b"-*+" } else { b".)" };
    let is_mark = matches!(&mark[digits..], [mark] if marks.contains(mark));
    is_mark && digits < 10 && prefix.last().is_some_and(|byte| is_blank(*byte))
}

/// Returns whether a line is a list item.
pub(crate) fn is_list_item(line: &[u8]) -> bool {
    leading_list_mark(trim_blanks_start(line)).is_some()
}

/// Returns where the words of a list item start in its line.
pub(crate) fn item_content(line: &[u8]) -> Option<usize> {
    let shown = trim_blanks_start(line);
    let mark = leading_list_mark(shown)?;
    let words = trim_blanks_start(&shown[mark..]);
    Some(line.len() - words.len())
}

pub(crate) fn is_heading(line: &[u8]) -> bool {
    let shown = trim_blanks_start(line);
    let marks = shown.iter().take_while(|byte| **byte == b'#').count();
    (1..=6).contains(&marks) && shown.get(marks).is_none_or(|byte| is_blank(*byte))
}

/// Returns whether a line is a thematic break or the underline of a heading.
pub(crate) fn is_rule(line: &[u8]) -> bool {
    let shown = trim_blanks(line);
    let Some(mark) = shown.first().filter(|byte| b"-*_=".contains(byte)) else { return false };
    let marks = shown.iter().filter(|byte| *byte == mark).count();
    marks >= 3 && shown.iter().all(|byte| byte == mark || is_blank(*byte))
}

/// Returns whether a line starts a block by itself, so that no paragraph goes on in it.
pub(crate) fn begins_block(line: &[u8]) -> bool {
    is_heading(line)
        || is_rule(line)
        || is_list_item(line)
        || FenceLine::of(line).is_some()
        || is_table_line(line)
}

/// Returns whether a line starts with the bar of a table row.
pub(crate) fn is_table_line(line: &[u8]) -> bool {
    trim_blanks_start(line).starts_with(b"|")
}

/// Returns whether a line is the delimiter row of a table: `---|:--`.
pub(crate) fn is_delimiter_row(line: &[u8]) -> bool {
    let drawn = |byte: &u8| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t' | b'\r');
    line.contains(&b'|') && line.contains(&b'-') && line.iter().all(drawn)
}

/// Returns how far a line is indented; a tab reaches to the next multiple of four.
pub(crate) fn indent(line: &[u8]) -> usize {
    let blanks = line.iter().take_while(|byte| is_blank(**byte));
    blanks.fold(0, |at, byte| if *byte == b'\t' { at / 4 * 4 + 4 } else { at + 1 })
}

/// Returns whether what stands before a place on its line marks the rest as a search hit, a numbered
/// line or a line of a diff, with or without a list mark behind that.
pub(crate) fn is_listing_prefix(prefix: &[u8]) -> bool {
    is_plain_listing_prefix(prefix)
        || without_list_mark(prefix).is_some_and(is_plain_listing_prefix)
}

/// Returns what stands before the list mark that a prefix ends with.
fn without_list_mark(prefix: &[u8]) -> Option<&[u8]> {
    let marked = trim_blanks_end(prefix);
    if marked.len() == prefix.len() {
        return None;
    }
    if let Some(rest) = marked.strip_suffix(b"-").or_else(|| marked.strip_suffix(b"*")) {
        return Some(rest);
    }
    if let Some(rest) = marked.strip_suffix(b"+") {
        return Some(rest);
    }
    let number = marked.strip_suffix(b".").or_else(|| marked.strip_suffix(b")"))?;
    let digits = number.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| &number[..number.len() - digits])
}

fn is_plain_listing_prefix(prefix: &[u8]) -> bool {
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

/// Returns whether the text around a range on its line encloses it: quotation marks of any script,
/// marks that strike it out, the brackets of a link.
pub(crate) fn is_enclosed(before: &[u8], after: &[u8]) -> bool {
    is_in_quotation_marks(before, after) || is_struck_out(before, after) || is_link(before, after)
}

/// Quotation marks that open and close differently.
const PAIRS: &[(&str, &str)] = &[
    ("“", "”"),
    ("„", "“"),
    ("„", "”"),
    ("‘", "’"),
    ("‚", "‘"),
    ("«", "»"),
    ("‹", "›"),
    ("「", "」"),
    ("『", "』"),
    ("《", "》"),
    ("〈", "〉"),
    ("〝", "〟"),
];

/// Quotation marks that may also be something else, so that they only count directly around it.
const DIRECT_PAIRS: &[(&str, &str)] = &[("\"", "\""), ("'", "'"), ("»", "«"), ("›", "‹")];

fn is_in_quotation_marks(before: &[u8], after: &[u8]) -> bool {
    let directly = |(open, close): &(&str, &str)| {
        before.ends_with(open.as_bytes()) && after.starts_with(close.as_bytes())
    };
    if DIRECT_PAIRS.iter().any(directly) {
        return true;
    }
    let straight = || memchr::memchr_iter(b'"', before).count() % 2 == 1;
    if memchr::memchr(b'"', after).is_some() && straight() {
        return true;
    }
    !after.is_ascii() && PAIRS.iter().any(|(open, close)| is_between(before, after, open, close))
}

/// Returns whether `open` stands before a place, not closed again, and `close` behind it.
fn is_between(before: &[u8], after: &[u8], open: &str, close: &str) -> bool {
    let last = |mark: &str| memchr::memmem::rfind(before, mark.as_bytes());
    let opened = last(open).is_some_and(|open| last(close).is_none_or(|close| close < open));
    opened && memchr::memmem::find(after, close.as_bytes()).is_some()
}

fn is_struck_out(before: &[u8], after: &[u8]) -> bool {
    let marks = |text: &[u8]| memchr::memmem::find_iter(text, b"~~").count();
    memchr::memchr(b'~', after).is_some() && marks(after) > 0 && marks(before) % 2 == 1
}

/// Returns whether a place stands in the text of a link: `[text](target)`, `[text][name]`.
fn is_link(before: &[u8], after: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b']', after) else { return false };
    let linked = matches!(after.get(end + 1), Some(b'(' | b'['));
    let open = memchr::memrchr(b'[', before);
    linked && open.is_some() && open > memchr::memrchr(b']', before)
}
