//! Plain text: what an agent printed, and at its very end perhaps a line of its host.
//!
//! Nothing tells the two apart but the form, so only the last line with anything in it is judged,
//! and only as a whole, by the forms in `trouble`. The same goes for what hosts print to standard
//! error, which is their own word.

use super::out::Out;
use super::trouble;

/// The last line so far.
#[derive(Debug, Default)]
pub(super) struct Tail {
    last: Vec<u8>,
}

impl Tail {
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

    /// Judges the end.
    pub(super) fn finish(self, out: &mut Out<'_>) {
        let text = plain(&String::from_utf8_lossy(&self.last));
        if let Some(kind) = trouble::line(&text) {
            out.trouble(kind, &text, None);
        }
    }
}

/// Removes colours.
fn plain(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('m') {
            Some((codes, rest)) if codes.chars().all(|c| c.is_ascii_digit() || c == ';') => {
                plain.push_str(rest);
            }
            _ => plain.push_str(piece),
        }
    }
    plain
}

/// A longer line is no report of a host.
const REPORT_MAX: usize = 1 << 10;
