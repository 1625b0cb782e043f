//! Colours are transparent: they are taken out before scanning, and put back into what is reported.
//!
//! Coding agents run in terminals, so their words arrive wrapped in colour sequences. Those change
//! nothing about what was said. Everything else an escape can do (conceal, erase, move) stays in the
//! text, where it makes a signal `hidden`. A byte order mark in front goes the same way as colours.

use std::collections::VecDeque;

use super::sequence::{sgr_conceals, sgr_reveals};
use crate::scan::text::lossy;
use crate::signal::Span;

/// A byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A colour sequence longer than this is not one.
const SEQUENCE_MAX: usize = 64;

/// How many bytes of colours may come without any text, and with each byte of text: what is taken out is
/// remembered, and nothing that people look at holds more.
const COLOURS_MAX: u64 = 256 * 1024;
const COLOURS_PER_BYTE: u64 = 32;

/// Removes colours from a stream and remembers where they were.
#[derive(Debug)]
pub(crate) struct Stripper {
    /// An escape sequence, or a byte order mark, that may go on in the next chunk.
    partial: Vec<u8>,
    /// Bytes given to the scanner so far.
    passed: u64,
    offsets: OffsetMap,
    started: bool,
    /// How many bytes may still be taken out before text comes.
    allowance: u64,
}

impl Default for Stripper {
    fn default() -> Self {
        Self {
            partial: Vec::new(),
            passed: 0,
            offsets: OffsetMap::default(),
            started: false,
            allowance: COLOURS_MAX,
        }
    }
}

/// Where bytes were taken out, in offsets of what is left.
#[derive(Debug, Default)]
pub(crate) struct OffsetMap {
    list: VecDeque<Removal>,
    /// Bytes taken out before the first of the list.
    forgotten: u64,
    /// What a terminal would not show because of a sequence before it; the last may go on.
    concealed: VecDeque<(u64, u64)>,
}

#[derive(Debug)]
struct Removal {
    at: u64,
    bytes: Vec<u8>,
    /// Bytes taken out before this one.
    before: u64,
}

impl Stripper {
    /// Gives `pass` everything of `chunk` that is text.
    pub(crate) fn push(&mut self, chunk: &[u8], pass: &mut dyn FnMut(&[u8])) {
        let joined;
        let mut chunk = chunk;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(chunk);
            joined = std::mem::take(&mut self.partial);
            chunk = &joined;
        }
        if !self.started {
            if chunk.len() < MARK.len() && MARK.starts_with(chunk) {
                self.partial = chunk.to_vec();
                return;
            }
            self.started = true;
            if let Some(rest) = chunk.strip_prefix(MARK) {
                self.remove(MARK, pass);
                chunk = rest;
            }
        }
        let mut from = 0;
        while let Some(escape) = memchr::memchr(0x1B, &chunk[from..]) {
            let at = from + escape;
            match sequence(&chunk[at..]) {
                Sequence::Colour(length) => {
                    self.pass(&chunk[..at], pass);
                    self.remove(&chunk[at..at + length], pass);
                    chunk = &chunk[at + length..];
                    from = 0;
                }
                // They go on together with the text around them.
                Sequence::Conceal => {
                    self.offsets.conceal(self.passed + at as u64);
                    from = at + 1;
                }
                Sequence::Other => from = at + 1,
                Sequence::Partial => {
                    self.pass(&chunk[..at], pass);
                    self.partial.extend_from_slice(&chunk[at..]);
                    return;
                }
            }
        }
        self.pass(chunk, pass);
    }

    /// Gives `pass` what was held back: it was not a colour after all.
    pub(crate) fn finish(&mut self, pass: &mut dyn FnMut(&[u8])) {
        let partial = std::mem::take(&mut self.partial);
        self.pass(&partial, pass);
    }

    /// Returns where bytes were taken out.
    pub(crate) fn offsets(&self) -> &OffsetMap {
        &self.offsets
    }

    /// Forgets what was taken out before `position`; it is not asked for again.
    pub(crate) fn forget_before(&mut self, position: u64) {
        self.offsets.forget_before(position);
    }

    fn pass(&mut self, text: &[u8], pass: &mut dyn FnMut(&[u8])) {
        if !text.is_empty() {
            self.passed += text.len() as u64;
            let earned = (text.len() as u64).saturating_mul(COLOURS_PER_BYTE);
            self.allowance = self.allowance.saturating_add(earned).min(COLOURS_MAX);
            pass(text);
        }
    }

    /// Takes bytes out, or gives them to `pass` if there were too many already.
    fn remove(&mut self, bytes: &[u8], pass: &mut dyn FnMut(&[u8])) {
        let Some(left) = self.allowance.checked_sub(bytes.len() as u64) else {
            return self.pass(bytes, pass);
        };
        self.allowance = left;
        self.offsets.add(self.passed, bytes);
        if let Some(parameters) = bytes.strip_prefix(b"\x1b[").and_then(|b| b.strip_suffix(b"m"))
            && sgr_reveals(parameters)
        {
            self.offsets.reveal(self.passed);
        }
    }
}

impl OffsetMap {
    fn add(&mut self, at: u64, bytes: &[u8]) {
        match self.list.back_mut() {
            Some(last) if last.at == at => last.bytes.extend_from_slice(bytes),
            _ => {
                let before = self.total();
                self.list.push_back(Removal { at, bytes: bytes.to_vec(), before });
            }
        }
    }

    /// What follows `at` is concealed.
    fn conceal(&mut self, at: u64) {
        if self.concealed.back().is_none_or(|(_, end)| *end != u64::MAX) {
            self.concealed.push_back((at, u64::MAX));
        }
    }

    /// What follows `at` is shown again.
    fn reveal(&mut self, at: u64) {
        if let Some((_, end)) = self.concealed.back_mut().filter(|(_, end)| *end == u64::MAX) {
            *end = at;
        }
    }

    /// Returns whether the byte at `position` is concealed.
    pub(crate) fn conceals(&self, position: u64) -> bool {
        let before = self.concealed.partition_point(|(start, _)| *start <= position);
        let last = before.checked_sub(1).and_then(|last| self.concealed.get(last));
        last.is_some_and(|(_, end)| position < *end)
    }

    fn forget_before(&mut self, position: u64) {
        while self.concealed.front().is_some_and(|(_, end)| *end <= position) {
            self.concealed.pop_front();
        }
        while self.list.front().is_some_and(|removal| removal.at < position) {
            if let Some(removal) = self.list.pop_front() {
                self.forgotten = removal.before + removal.bytes.len() as u64;
            }
        }
    }

    /// Returns where the byte at `position` was in the message as received.
    pub(crate) fn original(&self, position: u64) -> u64 {
        position + self.taken_out(|removal| removal.at <= position)
    }

    /// Returns where a range that ends at `position` ended in the message as received.
    pub(crate) fn original_end(&self, position: u64) -> u64 {
        position + self.taken_out(|removal| removal.at < position)
    }

    /// Returns where a range was in the message as received.
    pub(crate) fn span(&self, start: u64, end: u64) -> Span {
        Span { start: self.original(start), end: self.original_end(end) }
    }

    /// Returns `text`, which starts at `start`, as it was received, lossily decoded.
    pub(crate) fn restore(&self, start: u64, text: &[u8]) -> String {
        let end = start + text.len() as u64;
        if self.list.is_empty() {
            return lossy(text).into_owned();
        }
        let mut out = Vec::with_capacity(text.len());
        let mut from = 0;
        let first = self.list.partition_point(|removal| removal.at <= start);
        for removal in self.list.range(first..).take_while(|removal| removal.at < end) {
            let to = usize::try_from(removal.at - start).unwrap_or(usize::MAX).min(text.len());
            out.extend_from_slice(&text[from..to]);
            out.extend_from_slice(&removal.bytes);
            from = to;
        }
        out.extend_from_slice(&text[from..]);
        lossy(&out).into_owned()
    }

    /// Returns how many bytes are remembered.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.list.iter().map(|removal| removal.bytes.len()).sum()
    }

    fn total(&self) -> u64 {
        self.list
            .back()
            .map_or(self.forgotten, |removal| removal.before + removal.bytes.len() as u64)
    }

    fn taken_out(&self, counts: impl Fn(&Removal) -> bool) -> u64 {
        let index = self.list.partition_point(counts);
        match index.checked_sub(1).and_then(|index| self.list.get(index)) {
            Some(removal) => removal.before + removal.bytes.len() as u64,
            None => self.forgotten,
        }
    }
}

enum Sequence {
    /// A colour of this many bytes.
    Colour(usize),
    /// Switches visibility off.
    Conceal,
    Other,
    /// Could become a colour.
    Partial,
}

/// Classifies text that starts with an escape.
fn sequence(text: &[u8]) -> Sequence {
    match text.get(1) {
        None => return Sequence::Partial,
        Some(b'[') => {}
        Some(_) => return Sequence::Other,
    }
    for (index, byte) in text.iter().enumerate().take(SEQUENCE_MAX).skip(2) {
        match byte {
            b'0'..=b'9' | b';' | b':' => {}
            b'm' if sgr_conceals(&text[2..index]) => return Sequence::Conceal,
            b'm' => return Sequence::Colour(index + 1),
            _ => return Sequence::Other,
        }
    }
    if text.len() >= SEQUENCE_MAX { Sequence::Other } else { Sequence::Partial }
}
