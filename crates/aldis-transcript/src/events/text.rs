//! Plain text: what an agent printed, and at its very end perhaps a line of its host.
//!
//! Nothing tells the two apart but the form, so only the last line with anything in it is judged,
//! and only as a whole, by the forms in `trouble`. The same goes for what hosts print to standard
//! error, which is their own word.

use aldis_signal::visible::Visible;

use super::trouble::{self, Kind};

/// The last line so far.
#[derive(Debug, Default)]
pub(super) struct Tail {
    last: Vec<u8>,
    /// The line that is not complete yet, and whether it is too long to be a report.
    rest: Vec<u8>,
    too_long: bool,
}

impl Tail {
    /// Takes a chunk. Only its last line is looked at: agents print much, and this is for their end.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let Some(end) = memchr::memrchr(b'\n', chunk) else { return self.keep(chunk) };
        let lines = chunk[..end].trim_ascii_end();
        match memchr::memrchr(b'\n', lines) {
            Some(start) => self.line(Some(&lines[start + 1..])),
            None => {
                self.keep(lines);
                let line = std::mem::take(&mut self.rest);
                self.line((!self.too_long).then_some(line.as_slice()));
            }
        }
        self.rest.clear();
        self.too_long = false;
        self.keep(&chunk[end + 1..]);
    }

    fn keep(&mut self, piece: &[u8]) {
        self.too_long |= self.rest.len() + piece.len() > LINE_MAX;
        if self.too_long {
            self.rest.clear();
        } else {
            self.rest.extend_from_slice(piece);
        }
    }

    /// Takes one line; a line that was too long to keep is no report.
    pub(super) fn line(&mut self, line: Option<&[u8]>) {
        let Some(line) = line else {
            self.last.clear();
            return;
        };
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        self.last.clear();
        if line.len() <= REPORT_MAX {
            self.last.extend_from_slice(line);
        }
    }

    /// Returns what the end reports, if anything.
    pub(super) fn report(mut self) -> Option<(Kind, String)> {
        self.push(b"\n");
        let last = String::from_utf8_lossy(&self.last);
        let shown = Visible::of(&last);
        Some((trouble::line(shown.text())?, shown.text().to_owned()))
    }
}

/// A longer line is no report of a host.
const REPORT_MAX: usize = 1 << 10;
/// A longer one is not kept until its end: blanks may surround a report, but not that many.
const LINE_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    //! The last line, however it comes.

    use super::*;

    proptest::proptest! {
        #[test]
        fn chunks_do_not_matter(text in "[a \n]{0,30}", size in 1..8_usize) {
            let mut tail = Tail::default();
            text.as_bytes().chunks(size).for_each(|chunk| tail.push(chunk));
            tail.push(b"\n");
            let mut lines = Tail::default();
            text.lines().for_each(|line| lines.line(Some(line.as_bytes())));
            assert_eq!(tail.last, lines.last, "{text:?}");
        }
    }

    #[test]
    fn long_lines_are_no_reports() {
        let mut tail = Tail::default();
        tail.push(b"a\n");
        tail.push(&[b'x'; LINE_MAX]);
        tail.push(b"x\n\n");
        assert_eq!(tail.last, b"");
        tail.push(b"b\n");
        assert_eq!(tail.last, b"b");
    }
}
