//! The structure of a text that is all at hand: which of its lines are quoted.

use super::elements::{Element, find_close, opened_by};
use super::line::{FenceLine, indent, is_blank_line};
use super::paragraph::ParagraphLines;
use crate::visible::trim_line_end;

/// One line of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutlineLine<'t> {
    /// Where it starts.
    pub(crate) start: usize,
    /// What can be seen of it.
    pub(crate) seen: &'t [u8],
    pub(crate) quoted: bool,
}

/// Walks over the lines of a text and says which are quoted.
#[derive(Debug)]
pub(crate) struct Outline<'t> {
    text: &'t [u8],
    at: usize,
    fence: Option<(u8, usize)>,
    comment: bool,
    element: Option<Element>,
    lines: ParagraphLines,
    /// Whether the lines directly above are blank or code by indentation.
    apart: bool,
}

impl<'t> Outline<'t> {
    pub(crate) fn of(text: &'t [u8]) -> Self {
        Self {
            text,
            at: 0,
            fence: None,
            comment: false,
            element: None,
            lines: ParagraphLines::default(),
            apart: false,
        }
    }

    fn quotes(&mut self, line: &[u8], below: &[u8]) -> bool {
        if self.comment {
            self.comment = memchr::memmem::find(line, b"-->").is_none();
            return true;
        }
        if let Some((marker, length)) = self.fence {
            if FenceLine::of(line).is_some_and(|read| read.closes(marker, length)) {
                self.fence = None;
            }
            return true;
        }
        if let Some(read) = FenceLine::of(line).filter(FenceLine::opens) {
            self.fence = Some((read.marker, read.length));
            return true;
        }
        if let Some(at) = memchr::memmem::rfind(line, b"<!--") {
            self.comment = memchr::memmem::find(&line[at..], b"-->").is_none();
            return trim_line_end(line).starts_with(b"<!--");
        }
        if let Some(element) = self.element {
            if find_close(line, element).is_some() {
                self.element = None;
            }
            return true;
        }
        if let Some((element, content)) = opened_by(line) {
            let closed_here = find_close(&line[content..], element).is_some();
            self.element =
                (!closed_here && find_close(below, element).is_some()).then_some(element);
            return closed_here || self.element.is_some();
        }
        false
    }
}

impl<'t> Iterator for Outline<'t> {
    type Item = OutlineLine<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..)?;
        let length = memchr::memchr(b'\n', rest);
        let line = &rest[..length.unwrap_or(rest.len())];
        let below = length.map_or(&[][..], |length| &rest[length + 1..]);
        let next_line = below.split(|byte| *byte == b'\n').next().map(trim_line_end);
        let start = self.at;
        let next = length.map_or(self.text.len() + 1, |length| start + length + 1);
        self.at = next;
        let seen = trim_line_end(line);
        let code = self.apart && indent(line) >= 4 && !seen.is_empty();
        let enclosed = self.quotes(seen, below);
        if enclosed {
            self.lines = ParagraphLines::default();
        }
        let quoted =
            enclosed || self.lines.quotes_line(seen) || self.lines.is_row(seen, next_line) || code;
        if !enclosed {
            self.lines.take(seen, start as u64, next as u64);
        }
        self.apart = is_blank_line(line) || code;
        Some(OutlineLine { start, seen, quoted })
    }
}
