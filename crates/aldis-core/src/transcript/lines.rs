//! Splits bytes into lines in place.
//!
//! A transcript can be a gigabyte and one line of it a few megabytes, so complete lines are handed
//! out as slices of the chunk they came in; only a line that crosses chunks is copied.

/// A longer line is dropped and counted: no host writes one, and memory must have a bound.
const LINE_MAX: usize = 64 << 20;

/// Line splitter with the unfinished line carried over.
#[derive(Debug)]
pub(super) struct Lines {
    carry: Vec<u8>,
    number: u64,
    too_long: bool,
    most: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::up_to(LINE_MAX)
    }
}

impl Lines {
    /// Starts a splitter that drops lines of more than so many bytes.
    pub(super) fn up_to(most: usize) -> Self {
        Self { carry: Vec::new(), number: 0, too_long: false, most }
    }

    /// Calls `each` with the number (from 1) and bytes of every line that ends in `chunk`; `None`
    /// stands for a line that was too long to keep.
    pub(super) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(u64, Option<&[u8]>)) {
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', chunk) {
            let piece = &chunk[start..newline];
            start = newline + 1;
            self.number += 1;
            if self.carry.is_empty() && !self.too_long {
                each(self.number, (piece.len() <= self.most).then_some(piece));
            } else {
                self.keep(piece);
                let whole = (!self.too_long).then_some(self.carry.as_slice());
                each(self.number, whole);
                self.carry.clear();
                self.too_long = false;
            }
        }
        self.keep(&chunk[start..]);
    }

    /// Gives out the last line if it has no newline.
    pub(super) fn finish(&mut self, each: impl FnOnce(u64, Option<&[u8]>)) {
        if !self.carry.is_empty() || self.too_long {
            self.number += 1;
            each(self.number, (!self.too_long).then_some(self.carry.as_slice()));
            self.carry.clear();
        }
    }

    /// Hands over the line that is not complete yet; `None` if it is too long to keep.
    pub(super) fn take_rest(&mut self) -> Option<Vec<u8>> {
        let too_long = std::mem::take(&mut self.too_long);
        Some(std::mem::take(&mut self.carry)).filter(|_| !too_long)
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.carry.len() + piece.len() > self.most {
            self.too_long = true;
            self.carry.clear();
        }
        if !self.too_long {
            self.carry.extend_from_slice(piece);
        }
    }
}

/// Removes what may surround a JSON value on its line: blanks, CR, NUL padding left by a crash, and
/// a byte order mark.
pub(super) fn trim(mut line: &[u8]) -> &[u8] {
    line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    while let [b' ' | b'\t' | b'\r' | b'\n' | 0, rest @ ..] = line {
        line = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n' | 0] = line {
        line = rest;
    }
    line
}
