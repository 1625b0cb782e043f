//! The part of a message that is at hand, addressed by offsets from the message's start.

use super::text::SIGNAL_MAX;
use crate::visible::offsets::OffsetMap;
use crate::visible::trim_line_end;

/// A run of bytes of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    bytes: &'a [u8],
    base: u64,
    /// Whether the message ends where the window ends.
    pub(crate) last: bool,
    /// Where its bytes were in the message as received.
    pub(crate) offsets: &'a OffsetMap,
}

/// One line, without its LF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) start: u64,
    pub(crate) text: &'a [u8],
    /// What can be seen of it.
    pub(crate) seen: &'a [u8],
    /// Where the next line starts.
    pub(crate) next: u64,
}

impl<'a> Line<'a> {
    fn new(start: u64, text: &'a [u8], next: u64) -> Self {
        Self { start, text, seen: trim_line_end(text), next }
    }

    /// Returns a line that ends with what can be seen of it.
    pub(crate) fn plain(start: u64, text: &'a [u8]) -> Self {
        Self { start, text, seen: text, next: start + text.len() as u64 + 1 }
    }

    /// Returns the same line with other words in its place.
    pub(crate) fn with_text(self, text: &'a [u8]) -> Self {
        Self::new(self.start, text, self.next)
    }

    /// Returns what stands behind its first `length` bytes.
    pub(crate) fn behind(self, length: usize) -> Self {
        Self::new(
            self.start + length as u64,
            self.text.get(length..).unwrap_or_default(),
            self.next,
        )
    }

    /// Returns the offset after the last byte of the line that can be seen.
    pub(crate) fn seen_end(&self) -> u64 {
        self.start + self.seen.len() as u64
    }
}

/// What can be said about the line that starts somewhere.
pub(crate) enum LineAt<'a> {
    Line(Line<'a>),
    /// The message ends before.
    Nothing,
    /// Longer than any signal.
    TooLong,
    /// It goes on after the window.
    Wait,
}

impl<'a> Window<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: u64, last: bool, offsets: &'a OffsetMap) -> Self {
        Self { bytes, base, last, offsets }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Returns the bytes of a range, as far as they are at hand.
    pub(crate) fn slice(&self, start: u64, end: u64) -> &'a [u8] {
        let end = self.index(end);
        &self.bytes[self.index(start).min(end)..end]
    }

    /// Returns everything from `start` on.
    pub(crate) fn from(&self, start: u64) -> &'a [u8] {
        &self.bytes[self.index(start)..]
    }

    pub(crate) fn byte(&self, at: u64) -> Option<u8> {
        at.checked_sub(self.base)
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| self.bytes.get(index))
            .copied()
    }

    /// Returns the line that starts at `start`.
    pub(crate) fn line(&self, start: u64) -> LineAt<'a> {
        let rest = self.from(start);
        if start >= self.end() {
            return if self.last { LineAt::Nothing } else { LineAt::Wait };
        }
        let reach = rest.len().min(SIGNAL_MAX as usize + 1);
        match memchr::memchr(b'\n', &rest[..reach]) {
            Some(length) => {
                LineAt::Line(Line::new(start, &rest[..length], start + length as u64 + 1))
            }
            None if reach > SIGNAL_MAX as usize => LineAt::TooLong,
            None if self.last => LineAt::Line(Line::new(start, rest, start + rest.len() as u64)),
            None => LineAt::Wait,
        }
    }

    fn index(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.bytes.len())
    }
}
