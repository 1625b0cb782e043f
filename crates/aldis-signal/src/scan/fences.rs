//! Fences whose content is a signal, and fences around one.

use super::draft::Defect;
use super::engine::{Engine, Flow};
use super::judge::ClaimPosition;
use super::rules::Rules;
use super::text::{SIGNAL_MAX, is_blank};
use super::window::{Line, LineAt, Window};
use crate::dialect::Syntax;
use crate::dialect::syntax::fence;
use crate::signal::{Reason, Warning};
use crate::structure::Fence;
use crate::structure::line::FenceLine;
use crate::visible::trim_line_end;

impl Engine<'_> {
    /// A fence ended at `line`: a block that filled it counts if it also ends the message.
    pub(crate) fn on_fence_closed(&mut self, fence: Fence, line: Line<'_>) {
        let mut index = 0;
        while index < self.queue.terminals.len() {
            let terminal = &mut self.queue.terminals[index];
            if terminal.fenced && terminal.checked >= fence.content {
                if terminal.checked >= line.start {
                    terminal.fenced = false;
                    terminal.checked = line.next;
                } else {
                    let terminal = self.queue.terminals.remove(index);
                    self.refuse(terminal);
                    continue;
                }
            }
            index += 1;
        }
    }

    /// A bare line of JSON, or a line of an old form. Returns whether the line is such.
    pub(crate) fn on_bare_line(
        &mut self,
        window: &Window<'_>,
        index: usize,
        fence: &fence::Syntax,
        line: Line<'_>,
    ) -> bool {
        let dialect = &self.rules.dialects()[index];
        let starts = |bare: &String| line.seen.starts_with(bare.as_bytes());
        let is_json = line.seen.ends_with(b"}") && fence.bare.as_ref().is_some_and(starts);
        let result = match is_json {
            true => Some(fence::read(fence, dialect, line.seen, (line.start, line.seen_end()))),
            false => fence::read_legacy_line(fence, dialect, line),
        };
        let Some(result) = result else { return false };
        if self.structure.fence.is_some_and(|fence| fence.reported) {
            return true;
        }
        let quoted = self.is_quoted(window, line.start, None);
        let position = ClaimPosition::of_line(line.start);
        match result {
            Ok(draft) => {
                let read = self.candidate(window, index, draft, position, quoted);
                if let Some(mut candidate) = read {
                    candidate.legacy = !is_json;
                    self.note_modern(&candidate);
                    self.submit(candidate, None);
                }
            }
            Err(_) if quoted => {}
            Err(defect) => self.report(window, index, defect, false),
        }
        true
    }

    /// A fence whose info string makes its content a signal. Returns `None` for other fences.
    pub(crate) fn on_signal_fence(
        &mut self,
        window: &Window<'_>,
        line: Line<'_>,
        read: FenceLine<'_>,
    ) -> Option<Flow> {
        let rules = self.rules;
        let (index, syntax, json) = signal_fence(rules, read)?;
        let dialect = &rules.dialects()[index];
        let content = line.seen_end() - json.len() as u64;
        let start =
            line.start + line.text.iter().take_while(|byte| is_blank(**byte)).count() as u64;
        if self.structure.needs_more(window, line.start, start) {
            return Some(Flow::Wait);
        }
        let (end, closing, next, warning) = match fence_end(window, line, content) {
            FenceEnd::Closed { content_end, end, next } => (content_end, end, next, None),
            FenceEnd::Reopened { at } => (at, at, at, Some(Warning::MissingClosingDelimiter)),
            FenceEnd::Failed(reason) => {
                let defect = Defect::new(reason, &*syntax.default_name, (start, line.seen_end()));
                self.report_line(window, index, defect);
                self.structure.on_fence_line(line, FenceLine { info: b"signal", ..read });
                if let Some(fence) = &mut self.structure.fence {
                    fence.reported = true;
                }
                self.read_to = line.next;
                return Some(Flow::On(line.next));
            }
            FenceEnd::Wait => return Some(Flow::Wait),
        };
        let shown = trim_line_end(window.slice(start, closing));
        let shown_end = start + shown.trim_ascii_end().len() as u64;
        let text = window.slice(content, end);
        let quoted = self.is_quoted(window, line.start, None);
        match fence::read(syntax, dialect, text, (start, shown_end)) {
            Ok(mut draft) => {
                draft.warnings.extend(warning);
                let position = ClaimPosition::of_line(line.start);
                if let Some(candidate) = self.candidate(window, index, draft, position, quoted) {
                    self.note_modern(&candidate);
                    self.submit(candidate, None);
                }
            }
            Err(defect) => self.report(window, index, defect, quoted),
        }
        self.structure.restart_paragraph(next);
        self.read_to = next;
        Some(Flow::On(next))
    }
}

/// Returns the dialect whose signals are the content of such a fence, and what stands behind its info
/// string.
fn signal_fence<'r, 'l>(
    rules: &'r Rules,
    read: FenceLine<'l>,
) -> Option<(usize, &'r fence::Syntax, &'l [u8])> {
    if read.info.is_empty() || read.marker != b'`' || read.length != 3 {
        return None;
    }
    rules.families.fences.iter().find_map(|index| {
        let Syntax::Fence(syntax) = &rules.dialects()[*index].syntax else { return None };
        let json = read.info.strip_prefix(syntax.info.as_bytes())?;
        let own = json.first().is_none_or(|byte| is_blank(*byte) || *byte == b'{');
        own.then_some((*index, &**syntax, json))
    })
}

enum FenceEnd {
    Closed {
        content_end: u64,
        end: u64,
        next: u64,
    },
    Failed(Reason),
    /// Another fence opens before this one is closed.
    Reopened {
        at: u64,
    },
    Wait,
}

/// Finds where a fence that holds a signal ends.
fn fence_end(window: &Window<'_>, opening: Line<'_>, content: u64) -> FenceEnd {
    if let Some(end) = closes_on_line(window, content, opening.seen_end()) {
        return FenceEnd::Closed { content_end: end, end: opening.seen_end(), next: opening.next };
    }
    let mut next = opening.next;
    loop {
        let line = match window.line(next) {
            LineAt::Line(line) => line,
            LineAt::Wait => return FenceEnd::Wait,
            LineAt::Nothing => return FenceEnd::Failed(Reason::Unclosed),
            LineAt::TooLong => return FenceEnd::Failed(Reason::TooLong),
        };
        if line.next - opening.start > SIGNAL_MAX {
            return FenceEnd::Failed(Reason::TooLong);
        }
        if let Some(read) = FenceLine::read(line).filter(|read| read.marker == b'`') {
            if read.info.is_empty() {
                let (content_end, end) = (line.start, line.seen_end());
                return FenceEnd::Closed { content_end, end, next: line.next };
            }
            return FenceEnd::Reopened { at: line.start };
        }
        if let Some(content_end) = closes_on_line(window, line.start, line.seen_end()) {
            return FenceEnd::Closed { content_end, end: line.seen_end(), next: line.next };
        }
        next = line.next;
    }
}

/// Returns where the content ends if a line of JSON ends with the closing fence.
fn closes_on_line(window: &Window<'_>, start: u64, end: u64) -> Option<u64> {
    let text = window.slice(start, end).strip_suffix(b"```")?;
    let json = text.trim_ascii_end();
    json.ends_with(b"}").then(|| start + text.len() as u64)
}
