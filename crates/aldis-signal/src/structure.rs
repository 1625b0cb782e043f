//! What is quoted: the one place that knows fences, comments, inline code, quotations, tables,
//! indented code, listings, quotation marks, links, elements that show text, and masked prompts.
//!
//! Fences, comments, elements and masks last until they are closed, so the scanner tells of each as
//! its literal search meets it. Everything else ends with its paragraph or line and is read where
//! somebody asks. Readers that hold a whole text ask [`outline::Outline`], which knows the same.

pub(crate) mod elements;
pub(crate) mod inline;
pub(crate) mod line;
pub(crate) mod outline;
pub(crate) mod paragraph;

use std::sync::LazyLock;

use memchr::memmem::Finder;

use self::elements::{OpenElements, opening};
use self::inline::InlineCode;
use self::line::{FenceLine, is_enclosed, is_listing_prefix};
use self::paragraph::{IndentedCode, Paragraph};
use crate::scan::text::SIGNAL_MAX;
use crate::scan::window::{Line, LineAt, Window};
use crate::visible::trim_line_end;

/// How much of a line is looked at before and behind a place for what encloses it.
pub(crate) const LINE_REACH: u64 = 300;

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

/// Text that is payload and not speech.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mask {
    #[default]
    None,
    /// A prompt for another agent, up to its closing marker.
    Prompt,
    /// Everything to the end: a prompt that was never closed properly.
    All,
}

/// Whether a place is inside something that quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Containment {
    No,
    Yes,
    /// That depends on what follows.
    NeedMore,
}

/// What is open at the current place.
#[derive(Debug, Default)]
pub(crate) struct Structure {
    pub(crate) fence: Option<Fence>,
    pub(crate) mask: Mask,
    comment: Option<Comment>,
    elements: OpenElements,
    paragraph: Paragraph,
    code: InlineCode,
    indented: IndentedCode,
    /// No paragraph starts before this: something else ended there.
    paragraph_floor: u64,
    /// The last line of which nothing more needs to be known, and what that is.
    known: Option<KnownLine>,
}

/// What is known of a line, so that many places on it cost no more than one.
#[derive(Clone, Copy, Debug)]
struct KnownLine {
    start: u64,
    /// Whether it is longer than any line that is read whole.
    long: bool,
    /// Whether it is quoted by itself or by the lines around it, once somebody has asked.
    quoting: Option<bool>,
}

/// An open comment: how far its end was looked for, and where it is.
#[derive(Clone, Copy, Debug)]
struct Comment {
    searched: u64,
    end: Option<u64>,
}

impl Structure {
    /// Takes note of a fence line.
    pub(crate) fn on_fence_line(&mut self, line: Line<'_>, read: FenceLine<'_>) {
        match &self.fence {
            Some(fence) if read.closes(fence.marker, fence.length) => self.fence = None,
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
            Some(_) | None => {}
        }
    }

    /// Takes note of the start of a comment.
    pub(crate) fn on_comment(&mut self, window: &Window<'_>, line: u64, at: u64) {
        let code = self.in_code(window, line, at) == Containment::Yes;
        if self.fence.is_none() && self.comment.is_none() && !code {
            self.comment = Some(Comment { searched: at, end: None });
        }
    }

    pub(crate) fn in_comment(&self) -> bool {
        self.comment.is_some()
    }

    /// Returns where the open comment ends, from `at` on, if that is at hand.
    pub(crate) fn comment_end(&mut self, window: &Window<'_>, at: u64) -> Option<u64> {
        static END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("-->"));
        let comment = self.comment.as_mut()?;
        if comment.end.is_none() {
            let from = comment.searched.max(at);
            let text = window.from(from);
            match END.find(text) {
                Some(end) => comment.end = Some(from + end as u64),
                None => comment.searched = (from + text.len() as u64).saturating_sub(2).max(from),
            }
        }
        comment.end
    }

    /// Ends the comment. Back-quotes in it open nothing behind it.
    pub(crate) fn end_comment(&mut self) {
        if let Some(Comment { end: Some(end), .. }) = self.comment.take() {
            self.paragraph_floor = end;
        }
    }

    /// Takes note of an opening tag at `at`, on the line that starts at `line`.
    pub(crate) fn on_element(&mut self, window: &Window<'_>, line: u64, at: u64) {
        let Some((element, length)) = opening(window.slice(at, at + LINE_REACH)) else { return };
        if self.is_enclosed() || self.in_code(window, line, at) == Containment::Yes {
            return;
        }
        let starts = at - line <= LINE_REACH && elements::is_line_start(window.slice(line, at));
        let line = (!starts).then_some(line);
        self.elements.open(window, element, at + length as u64, line);
    }

    /// Masks a prompt for another agent, or all that follows.
    pub(crate) fn mask(&mut self, mask: Mask) {
        self.mask = mask;
    }

    /// Ends a masked prompt at `next`, with all that it has left open.
    pub(crate) fn unmask(&mut self, next: u64) {
        self.mask = Mask::None;
        self.fence = None;
        self.comment = None;
        self.elements = OpenElements::default();
        self.paragraph_floor = next;
    }

    /// Lets a paragraph start anew behind a signal that spans lines.
    pub(crate) fn restart_paragraph(&mut self, at: u64) {
        self.paragraph_floor = at;
    }

    /// Returns whether the current place is in something that quotes all it holds.
    pub(crate) fn is_enclosed(&self) -> bool {
        self.mask != Mask::None || self.fence.is_some() || self.comment.is_some()
    }

    /// Returns whether more text is needed to say what is quoted from `at` to the end of the line that
    /// starts at `line`.
    pub(crate) fn needs_more(&mut self, window: &Window<'_>, line: u64, at: u64) -> bool {
        if window.last || self.is_enclosed() {
            return false;
        }
        if self.elements.at(window, line, at) == Containment::NeedMore {
            return true;
        }
        let known = self.known.filter(|known| known.start == line);
        if known.is_some_and(|known| !known.long) {
            return false;
        }
        if known.is_some() || at - line > SIGNAL_MAX {
            return self.in_code(window, line, at) == Containment::NeedMore;
        }
        let own = match window.line(line) {
            LineAt::Wait => return true,
            LineAt::Line(own) => {
                let row = memchr::memchr(b'|', own.text).is_some();
                if row && matches!(window.line(own.next), LineAt::Wait) {
                    return true;
                }
                own
            }
            LineAt::Nothing | LineAt::TooLong => {
                self.known = Some(KnownLine { start: line, long: true, quoting: None });
                return self.in_code(window, line, at) == Containment::NeedMore;
            }
        };
        // Code that is open at a place and closed on its line is open at no place behind.
        let code = self.code;
        let end = own.start + own.text.len() as u64;
        let needs = self.in_code(window, line, end) == Containment::NeedMore;
        self.code = code;
        if !needs {
            self.known = Some(KnownLine { start: line, long: false, quoting: None });
        }
        needs
    }

    fn in_code(&mut self, window: &Window<'_>, line: u64, at: u64) -> Containment {
        let lines = self.paragraph.before(window, line, self.paragraph_floor);
        // All of the line decides whether a block begins with it, wherever on it the place is.
        let text = window.slice(line, line + LINE_REACH);
        let text = trim_line_end(&text[..memchr::memchr(b'\n', text).unwrap_or(text.len())]);
        let start = lines.inline_start(text, line).max(self.paragraph_floor);
        self.code.at(window, start.min(at), at)
    }

    /// Returns whether the text at `start`, on the line that starts at `line`, is quoted; up to `end` if
    /// that is known.
    pub(crate) fn is_quoted(
        &mut self,
        window: &Window<'_>,
        line: u64,
        start: u64,
        end: Option<u64>,
    ) -> bool {
        if self.is_enclosed() {
            return true;
        }
        let near = start.saturating_sub(LINE_REACH).max(line).min(start);
        let before = window.slice(near, start);
        // A line that is too long to be a quotation is not looked at from its start.
        if near == line && is_listing_prefix(before) {
            return true;
        }
        if let Some(end) = end {
            let after = window.slice(end, end + LINE_REACH);
            let after = &after[..memchr::memchr(b'\n', after).unwrap_or(after.len())];
            if is_enclosed(before, after) {
                return true;
            }
        }
        self.elements.at(window, line, start) == Containment::Yes
            || start - line <= SIGNAL_MAX && self.is_quoting_line(window, line)
            || self.in_code(window, line, start) == Containment::Yes
    }

    /// Returns whether a line is quoted by itself or by the lines around it.
    fn is_quoting_line(&mut self, window: &Window<'_>, line: u64) -> bool {
        let known = self.known.filter(|known| known.start == line);
        if let Some(quoting) = known.and_then(|known| known.quoting) {
            return quoting;
        }
        let quoting = self.read_line(window, line);
        if let Some(known) = &mut self.known
            && known.start == line
        {
            known.quoting = Some(quoting);
        }
        quoting
    }

    fn read_line(&mut self, window: &Window<'_>, line: u64) -> bool {
        let lines = self.paragraph.before(window, line, self.paragraph_floor);
        let own = match window.line(line) {
            LineAt::Line(own) => own,
            LineAt::TooLong | LineAt::Wait | LineAt::Nothing => {
                Line::plain(line, window.slice(line, line + LINE_REACH))
            }
        };
        let below = match window.line(own.next) {
            LineAt::Line(below) => Some(below.seen),
            LineAt::TooLong | LineAt::Wait | LineAt::Nothing => None,
        };
        lines.quotes_line(own.seen)
            || lines.is_row(own.seen, below)
            || !lines.in_paragraph() && self.indented.is_code(window, own)
    }
}
