//! Inline code: pairs of back-quote runs within one block of text.

use super::Containment;
use super::line::{begins_block, is_blank_line, is_quote};
use crate::scan::window::Window;

/// How far a run of back-quotes looks for its partner.
const PARTNER_MAX: u64 = 8 * 1024;

/// Follows the back-quotes of a block from the last place that was asked about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InlineCode {
    /// Where the block starts.
    start: u64,
    /// How far it was walked.
    at: u64,
    open: Option<BackquoteRun>,
}

/// A run of back-quotes.
#[derive(Clone, Copy, Debug)]
struct BackquoteRun {
    at: u64,
    length: usize,
    /// Where the run that closes it starts, once that is known.
    partner: Option<u64>,
}

impl InlineCode {
    /// Returns whether `place` is inside inline code of the block that starts at `start`.
    pub(crate) fn at(&mut self, window: &Window<'_>, start: u64, place: u64) -> Containment {
        if self.start != start || self.at > place {
            *self = Self { start, at: start, open: None };
        }
        loop {
            self.walk(window, place);
            let Some(open) = &mut self.open else { return Containment::No };
            if open.partner.is_some_and(|partner| partner >= place) {
                return Containment::Yes;
            }
            match find_partner(window, *open, place) {
                Partner::At(partner) => {
                    open.partner = Some(partner);
                    return Containment::Yes;
                }
                Partner::NeedMore => return Containment::NeedMore,
                // It is a character like others.
                Partner::None => {
                    self.at = open.at + open.length as u64;
                    self.open = None;
                }
            }
        }
    }

    fn walk(&mut self, window: &Window<'_>, to: u64) {
        while let Some(run) = next_run(window, self.at, to, self.open.is_none()) {
            self.at = run.at + run.length as u64;
            self.open = match self.open {
                None => Some(run),
                Some(open) if open.length == run.length => None,
                open => open,
            };
        }
        self.at = self.at.max(to);
    }
}

/// Returns the next run of back-quotes that starts before `to`. Outside code a backslash takes the
/// first one away.
fn next_run(window: &Window<'_>, from: u64, to: u64, escapes: bool) -> Option<BackquoteRun> {
    let mut from = from;
    loop {
        let at = from + memchr::memchr(b'`', window.slice(from, to))? as u64;
        let length = window.from(at).iter().take_while(|byte| **byte == b'`').count();
        let before = window.slice(at.saturating_sub(16), at);
        let slashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        let escaped = usize::from(escapes && slashes % 2 == 1);
        if length > escaped {
            return Some(BackquoteRun {
                at: at + escaped as u64,
                length: length - escaped,
                partner: None,
            });
        }
        from = at + 1;
    }
}

enum Partner {
    At(u64),
    None,
    NeedMore,
}

/// Finds the run that closes `open` at `place` or behind it, in the same block.
fn find_partner(window: &Window<'_>, open: BackquoteRun, place: u64) -> Partner {
    let limit = open.at + PARTNER_MAX;
    let mut line = place;
    let mut first = true;
    while line < limit {
        let text = window.slice(line, limit);
        let length = memchr::memchr(b'\n', text);
        let shown = &text[..length.unwrap_or(text.len())];
        if !first && (is_blank_line(shown) || begins_block(shown) || is_quote(shown)) {
            // What has come of a line may become something else.
            let whole = length.is_some() || window.last || line + text.len() as u64 >= limit;
            return if whole { Partner::None } else { Partner::NeedMore };
        }
        let mut from = line;
        while let Some(run) = next_run(window, from, line + shown.len() as u64, false) {
            let end = run.at + run.length as u64;
            if end >= window.end() && !window.last && end < limit {
                return Partner::NeedMore;
            }
            if run.length == open.length {
                return Partner::At(run.at);
            }
            from = end;
        }
        match length {
            Some(length) => line += length as u64 + 1,
            None if window.last || line + text.len() as u64 >= limit => return Partner::None,
            None => return Partner::NeedMore,
        }
        first = false;
    }
    Partner::None
}
