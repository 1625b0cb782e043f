//! Splits bytes into lines in place.
//!
//! A transcript can be a gigabyte and one line of it a few megabytes, so complete lines are handed
//! out as slices of where they stand. Only a line that crosses chunks is copied.

/// A longer line is dropped and counted: no host writes one, and memory must have a bound.
const LINE_MAX: usize = 64 << 20;

/// Line splitter with the unfinished line carried over.
#[derive(Debug)]
pub(super) struct Lines {
    /// The line that is not complete yet.
    rest: Vec<u8>,
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
        Self { rest: Vec::new(), number: 0, too_long: false, most }
    }

    /// Calls `each` with the number (from 1) and bytes of every line that ends in `chunk`; `None`
    /// stands for a line that was too long to keep.
    pub(super) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(u64, Option<&[u8]>)) {
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', chunk) {
            let piece = &chunk[start..newline];
            start = newline + 1;
            self.number += 1;
            if self.rest.is_empty() && !self.too_long {
                each(self.number, (piece.len() <= self.most).then_some(piece));
            } else {
                self.keep(piece);
                let whole = (!self.too_long).then_some(&*self.rest);
                each(self.number, whole);
                self.rest.clear();
                self.too_long = false;
            }
        }
        self.keep(&chunk[start..]);
    }

    /// Gives out the last line if it has no newline.
    pub(super) fn finish(&mut self, each: impl FnOnce(u64, Option<&[u8]>)) {
        if !self.rest.is_empty() || self.too_long {
            self.number += 1;
            each(self.number, (!self.too_long).then_some(&*self.rest));
            self.rest.clear();
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        self.too_long |= self.rest.len() + piece.len() > self.most;
        if self.too_long {
            self.rest.clear();
        } else {
            self.rest.extend_from_slice(piece);
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

    fn split(text: &[u8], pieces: &[usize], most: usize) -> All {
        let mut all = All::new();
        let mut lines = Lines::up_to(most);
        let mut sizes = pieces.iter().copied().cycle();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
            rest = behind;
            let each = |number, line: Option<&[u8]>| all.push((number, line.map(<[u8]>::to_vec)));
            lines.push(piece, each);
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
            prop_assert_eq!(split(text.as_bytes(), &pieces, most), expected);
        }
    }
}
