//! Words after a claim that take it back.

use super::claims::Pending;
use super::engine::{Engine, Flow, Mask};
use super::text::trim_line_end;
use super::verdict::{LEAD_IN_MAX, RETRACTION_REACH, begins_retraction, says_unfinished};
use super::window::Window;

impl Engine<'_> {
    /// A word that may take claims back.
    pub(crate) fn on_retraction(&mut self, window: &Window<'_>, at: u64) -> Flow {
        if self.context.fence.is_some() || self.context.comment || self.mask != Mask::None {
            return Flow::On(at);
        }
        let reach = |pending: &Pending| {
            pending.claim
                && !pending.retracted
                && pending.end <= at
                && at - pending.end <= RETRACTION_REACH
        };
        if !self.pending.iter().any(reach) {
            return Flow::On(at);
        }
        let Some((before, after)) =
            sentence_around(window, self.line_start.max(self.last_tag_end.min(at)), at)
        else {
            return Flow::Wait;
        };
        let start = at - before.len() as u64;
        let follows_claim = |start: u64| {
            let near = |end: u64| end <= start && start - end <= LEAD_IN_MAX;
            let gap = |end: u64| window.slice(end, start).iter().all(u8::is_ascii_whitespace);
            self.pending.iter().any(|pending| near(pending.end) && gap(pending.end))
        };
        let sentence = String::from_utf8_lossy(window.slice(start, at + after.len() as u64));
        let line_starts = start <= self.line_start;
        let in_body = self.body.is_some();
        // A line that begins with a small letter mostly goes on with the one above.
        let begins = |sentence: &str| {
            begins_retraction(sentence)
                && (!sentence.starts_with(char::is_lowercase)
                    || line_starts && (above(window, start).is_empty() || follows_claim(start)))
        };
        let taken_back = match in_body {
            true => line_starts && begins(&sentence) && !above(window, start).ends_with(b":"),
            false => begins(strip_bullet(&sentence)) || says_unfinished(&sentence),
        };
        if taken_back && !self.is_quoted(window, at, None) {
            for pending in self.pending.iter_mut().filter(|pending| reach(pending)) {
                pending.retracted = true;
                self.unsettled -= 1;
            }
            self.due = 0;
        }
        Flow::On(at)
    }
}

/// Returns the sentence around a place, in the part before and the part after it, or `None` if more
/// text is needed. A sentence ends with `.`, `!` or `?` and a blank, or with its paragraph.
fn sentence_around<'w>(
    window: &Window<'w>,
    line_start: u64,
    at: u64,
) -> Option<(&'w [u8], &'w [u8])> {
    let from = at.saturating_sub(LEAD_IN_MAX);
    let before = window.slice(from, at);
    let ends = |pair: &[u8]| matches!(pair[0], b'.' | b'!' | b'?') && pair[1].is_ascii_whitespace();
    let sentence = before.windows(2).rposition(ends).map_or(0, |index| index + 2);
    // Only a line that starts a paragraph or an item starts a sentence; a wrapped line goes on.
    let line = usize::try_from(line_start.saturating_sub(from)).unwrap_or(0).min(before.len());
    let start = sentence.max(if line_start >= from { line } else { 0 });
    let blanks = before[start..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let after = window.slice(at, at + LEAD_IN_MAX);
    let line_end = memchr::memchr(b'\n', after);
    let stop = after.windows(2).position(ends).map(|index| index + 1);
    let complete = after.len() as u64 == LEAD_IN_MAX || window.last;
    let end = match (line_end, stop) {
        (Some(line), Some(stop)) => line.min(stop),
        (Some(end), None) | (None, Some(end)) => end,
        (None, None) if complete => after.len(),
        (None, None) => return None,
    };
    Some((&before[start + blanks..], &after[..end]))
}

/// Returns the line above the one that starts at `start`, without what cannot be seen at its end.
fn above<'w>(window: &Window<'w>, start: u64) -> &'w [u8] {
    let before = window.slice(start.saturating_sub(LEAD_IN_MAX), start);
    let before = before.strip_suffix(b"\n").unwrap_or(before);
    trim_line_end(&before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..])
}

/// Removes a list mark.
fn strip_bullet(sentence: &str) -> &str {
    ["- ", "* ", "+ "].iter().find_map(|mark| sentence.strip_prefix(mark)).unwrap_or(sentence)
}
