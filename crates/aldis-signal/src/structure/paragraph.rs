//! What the lines above tell about a line: quotations and tables that go on, code by indentation, and
//! where the inline text begins that a line belongs to.
//!
//! All of it ends with a blank line, so it is read back to that, and at most [`REACH`] bytes. What
//! was read is remembered for the next question, so that many questions about one paragraph stay
//! linear.

use super::line::{
    FenceLine, begins_block, indent, is_blank_line, is_delimiter_row, is_footnote, is_heading,
    is_quote, is_rule, is_table_line, item_content, quoted_content,
};
use crate::scan::text::trim_blanks_start;
use crate::scan::window::{Line, LineAt, Window};

/// How far back a paragraph is followed, or up to twice as far: paragraphs that are longer are cut
/// at multiples of this, wherever in them something is asked.
pub(crate) const REACH: u64 = 4 * 1024;

/// Returns the offset before which a paragraph is not followed from a line.
pub(crate) fn floor(line: u64) -> u64 {
    (line / REACH).saturating_sub(1) * REACH
}

/// The lines of a paragraph that have been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paragraph {
    /// Where it starts.
    start: u64,
    /// Lines that start before this have been read.
    read_to: u64,
    lines: ParagraphLines,
}

/// What the lines so far tell about the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParagraphLines {
    /// Whether the last line is part of a quotation.
    quoted: bool,
    /// Whether a quotation goes on, although the next line has no mark of one.
    quotes: bool,
    /// Whether the lines are rows of a table with a delimiter row.
    table: bool,
    /// Whether the line before holds a bar.
    bar: bool,
    /// Whether the last line is of a paragraph, which may go on.
    paragraph: bool,
    /// Where the inline text starts that the next line goes on with.
    pub(crate) inline: u64,
}

impl ParagraphLines {
    /// Takes the next line, which starts at `start`; the one behind it starts at `next`.
    pub(crate) fn take(&mut self, line: &[u8], start: u64, next: u64) {
        if is_blank_line(line) || FenceLine::of(line).is_some() {
            *self = Self { inline: next, ..Self::default() };
            return;
        }
        if self.begins_inline(line) {
            self.inline = start;
        }
        self.quotes = self.quotes_line(line);
        self.quoted = self.quotes;
        let code = indent(line) >= 4 && !self.paragraph;
        self.paragraph = !code && !is_heading(line) && !is_rule(line);
        if let Some(content) = quoted_content(line) {
            // Only a paragraph goes on lazily.
            self.quotes =
                !is_blank_line(content) && !begins_paragraphless(content) && indent(content) < 5;
            self.paragraph = self.quotes;
        }
        let bar = memchr::memchr(b'|', line).is_some();
        self.table = bar && (self.table || self.bar && is_delimiter_row(line));
        self.bar = bar;
    }

    /// Returns whether a paragraph is open that the next line may go on with.
    pub(crate) fn in_paragraph(&self) -> bool {
        self.paragraph
    }

    /// Returns whether a line is part of a quotation or a footnote, with a mark of its own or without.
    pub(crate) fn quotes_line(&self, line: &[u8]) -> bool {
        is_quote(line) || is_footnote(line) || self.quotes && !begins_block(line)
    }

    /// Returns whether a line is a row of a table; `below` is the line behind it.
    pub(crate) fn is_row(&self, line: &[u8], below: Option<&[u8]>) -> bool {
        let bar = memchr::memchr(b'|', line).is_some();
        let heads = || below.is_some_and(is_delimiter_row) || self.bar && is_delimiter_row(line);
        is_table_line(line) || bar && (self.table || heads())
    }

    /// Returns whether inline text starts anew with a line: a block does, and so do a quotation and what
    /// follows one.
    fn begins_inline(&self, line: &[u8]) -> bool {
        begins_block(line) || self.quotes_line(line) != self.quoted
    }

    /// Returns where the inline text starts that a line which starts at `start` belongs to.
    pub(crate) fn inline_start(&self, line: &[u8], start: u64) -> u64 {
        if self.begins_inline(line) { start } else { self.inline.min(start) }
    }
}

/// Returns whether the content of a quotation is something other than a paragraph or a list.
fn begins_paragraphless(content: &[u8]) -> bool {
    let shown = trim_blanks_start(content);
    begins_block(shown) && item_content(shown).is_none()
}

impl Paragraph {
    /// Returns what the lines above tell about the line that starts at `line`. Nothing before
    /// `not_before` belongs to its paragraph.
    pub(crate) fn before(
        &mut self,
        window: &Window<'_>,
        line: u64,
        not_before: u64,
    ) -> ParagraphLines {
        let floor = floor(line);
        let not_before = line_after(window, not_before, line);
        if self.read_to > line || self.start < floor.max(not_before) {
            let start = paragraph_start(window, floor, line).max(not_before);
            *self = Self {
                start,
                read_to: start,
                lines: ParagraphLines { inline: start, ..ParagraphLines::default() },
            };
        }
        while self.read_to < line {
            let LineAt::Line(Line { start, seen, next, .. }) = window.line(self.read_to) else {
                break;
            };
            self.lines.take(seen, start, next);
            if seen.is_empty() {
                self.start = next;
            }
            self.read_to = next;
        }
        self.lines
    }
}

/// Returns the first line that starts at `place` or behind it, or `line` if that comes first.
fn line_after(window: &Window<'_>, place: u64, line: u64) -> u64 {
    if place == 0 || place >= line || window.byte(place - 1) == Some(b'\n') {
        return place.min(line);
    }
    let behind = memchr::memchr(b'\n', window.slice(place, line));
    behind.map_or(line, |at| place + at as u64 + 1)
}

/// Returns where the paragraph of a line starts, or the first line that starts behind `floor`.
fn paragraph_start(window: &Window<'_>, floor: u64, line: u64) -> u64 {
    let floor = floor.max(window.base());
    let mut end = line;
    while end > floor {
        let above = window.slice(floor, end - 1);
        let Some(at) = memchr::memrchr(b'\n', above) else { break };
        if is_blank_line(&above[at + 1..]) {
            return end;
        }
        end = floor + at as u64 + 1;
    }
    // The line that `floor` lies in is not known from its start.
    let whole = floor == 0 || window.byte(floor - 1) == Some(b'\n');
    if whole && end > floor && !is_blank_line(window.slice(floor, end.saturating_sub(1))) {
        floor
    } else {
        end
    }
}

/// The last line that was indented by four or more, and whether it is code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndentedCode {
    indent: usize,
    next: u64,
    code: bool,
}

impl IndentedCode {
    /// Returns whether a line, which goes on with no paragraph, is code by its indentation.
    pub(crate) fn is_code(&mut self, window: &Window<'_>, line: Line<'_>) -> bool {
        let indent = indent(line.text);
        if indent < 4 || line.seen.is_empty() {
            return false;
        }
        // What follows directly goes on as it was.
        let goes_on = self.code && self.next == line.start && indent >= self.indent;
        let code = goes_on || is_indented_code(window, line, indent);
        *self = Self { indent, next: line.next, code };
        code
    }
}

/// Returns whether an indented line is code: four more than the list item that it belongs to, if any.
fn is_indented_code(window: &Window<'_>, line: Line<'_>, own: usize) -> bool {
    let floor = floor(line.start).max(window.base());
    let above = window.slice(floor, line.start);
    let lines = above.strip_suffix(b"\n").unwrap_or(above).rsplit(|byte| *byte == b'\n');
    // The least that the lines directly above are indented: a paragraph among them goes on.
    let (mut least, mut directly) = (own, true);
    // Whether the paragraph above may be the lazy end of a list item.
    let mut lazy = false;
    for text in lines.filter(|_| !above.is_empty()) {
        if is_blank_line(text) {
            if lazy {
                return true;
            }
            directly = false;
        } else if let Some(content) = item_content(text).filter(|_| indent(text) < own) {
            return least >= content + 4;
        } else if is_quote(text) || begins_block(text) {
            return true;
        } else {
            lazy |= indent(text) == 0;
            least = if directly { least.min(indent(text)) } else { least };
        }
    }
    true
}
