//! Splits bytes into lines in place.
//!
//! A transcript can be a gigabyte and one line of it a few megabytes, so complete lines are handed
//! out as slices of where they stand. Only a line that crosses pieces is copied: whole, if pieces are
//! pushed; its beginning, if they are read into the room behind it.

/// A longer line is dropped and counted: no host writes one, and memory must have a bound.
const LINE_MAX: usize = 64 << 20;

/// Line splitter with the unfinished line carried over.
#[derive(Debug)]
pub(super) struct Lines {
    /// The line that is not complete yet, and room behind it.
    buffer: Vec<u8>,
    /// How long that line is so far.
    held: usize,
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
        Self { buffer: Vec::new(), held: 0, number: 0, too_long: false, most }
    }

    /// Calls `each` with the number (from 1) and bytes of every line that ends in `chunk`; `None`
    /// stands for a line that was too long to keep.
    pub(super) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(u64, Option<&[u8]>)) {
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', chunk) {
            let piece = &chunk[start..newline];
            start = newline + 1;
            self.number += 1;
            if self.held == 0 && !self.too_long {
                each(self.number, (piece.len() <= self.most).then_some(piece));
            } else {
                self.keep(piece);
                let whole = (!self.too_long).then_some(&self.buffer[..self.held]);
                each(self.number, whole);
                self.held = 0;
                self.too_long = false;
            }
        }
        self.keep(&chunk[start..]);
    }

    /// Returns room for the next bytes, for [`filled`](Self::filled).
    pub(super) fn room(&mut self, size: usize) -> &mut [u8] {
        if self.buffer.len() < self.held + size {
            self.buffer.resize(self.held + size.max(self.held), 0);
        }
        &mut self.buffer[self.held..self.held + size]
    }

    /// As [`push`](Self::push) for bytes that were written to the start of the room.
    pub(super) fn filled(&mut self, count: usize, mut each: impl FnMut(u64, Option<&[u8]>)) {
        let (mut start, end) = (0, self.held + count);
        for newline in memchr::memchr_iter(b'\n', &self.buffer[self.held..end]) {
            let line = &self.buffer[start..self.held + newline];
            start = self.held + newline + 1;
            self.number += 1;
            let too_long = std::mem::take(&mut self.too_long) || line.len() > self.most;
            each(self.number, (!too_long).then_some(line));
        }
        if start > 0 {
            self.buffer.copy_within(start..end, 0);
        }
        self.held = end - start;
        self.drop_if_too_long();
    }

    /// Gives out the last line if it has no newline.
    pub(super) fn finish(&mut self, each: impl FnOnce(u64, Option<&[u8]>)) {
        if self.held > 0 || self.too_long {
            self.number += 1;
            each(self.number, (!self.too_long).then_some(&self.buffer[..self.held]));
            self.held = 0;
        }
    }

    /// Hands over the line that is not complete yet; `None` if it is too long to keep.
    pub(super) fn take_rest(&mut self) -> Option<Vec<u8>> {
        let too_long = std::mem::take(&mut self.too_long);
        self.buffer.truncate(self.held);
        self.held = 0;
        Some(std::mem::take(&mut self.buffer)).filter(|_| !too_long)
    }

    fn keep(&mut self, piece: &[u8]) {
        self.buffer.truncate(self.held);
        self.buffer.extend_from_slice(piece);
        self.held = self.buffer.len();
        self.drop_if_too_long();
    }

    fn drop_if_too_long(&mut self) {
        self.too_long |= self.held > self.most;
        if self.too_long {
            self.held = 0;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type All = Vec<(u64, Option<Vec<u8>>)>;

    fn split(text: &[u8], pieces: &[usize], most: usize, pushed: bool) -> All {
        let mut all = All::new();
        let mut lines = Lines::up_to(most);
        let mut sizes = pieces.iter().copied().cycle();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
            rest = behind;
            let each = |number, line: Option<&[u8]>| all.push((number, line.map(<[u8]>::to_vec)));
            if pushed {
                lines.push(piece, each);
            } else {
                lines.room(16)[..piece.len()].copy_from_slice(piece);
                lines.filled(piece.len(), each);
            }
        }
        lines.finish(|number, line| all.push((number, line.map(<[u8]>::to_vec))));
        all
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(
            text in "[ab\n]{0,200}", pieces in prop::collection::vec(1..16_usize, 1..8), most in 1..40_usize,
        ) {
            let mut expected: Vec<&str> = text.split('\n').collect();
            expected.pop_if(|last| last.is_empty());
            let kept = |line: &&str| (line.len() <= most).then(|| line.as_bytes().to_vec());
            let expected: All = (1..).zip(expected.iter().map(kept)).collect();
            for pushed in [true, false] {
                prop_assert_eq!(&split(text.as_bytes(), &pieces, most, pushed), &expected);
            }
        }
    }
}
