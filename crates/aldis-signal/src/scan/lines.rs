//! Signals that own their lines: blocks, line signals, status blocks.

use super::diagnose;
use super::diagnose::spelling::known;
use super::draft::{Defect, Draft, Read};
use super::engine::{Engine, Flow};
use super::judge::ClaimPosition;
use super::terminals::Terminal;
use super::text::SIGNAL_MAX;
use super::window::{Line, Window};
use crate::dialect::syntax::line::Delegation;
use crate::dialect::syntax::{block, line};
use crate::dialect::{Dialect, Syntax};
use crate::signal::{Reason, Warning};
use crate::structure::LINE_REACH;
use crate::structure::Mask;

impl Engine<'_> {
    /// Reads the current line for every dialect whose signals own their line: as the opening of a
    /// block, and if `whole`, as a signal by itself.
    pub(crate) fn on_line(&mut self, window: &Window<'_>, whole: bool) -> Flow {
        let line = match self.current_line(window) {
            Ok(Some(line)) => line,
            Ok(None) => {
                self.read_to = self.lines.start + 1;
                if whole {
                    self.on_long_line(window);
                }
                return Flow::On(self.at);
            }
            Err(wait) => return wait,
        };
        if self.structure.mask == Mask::Prompt {
            self.read_to = line.next;
            self.on_masked_line(line);
            return Flow::On(self.at);
        }
        let rules = self.rules;
        if rules.families.openers.iter().any(|(opener, _)| **opener == *line.seen)
            && let Some(flow) = self.on_opener(window, line)
        {
            return flow;
        }
        if whole {
            self.read_to = line.next;
            for index in &rules.families.lines {
                self.read_line(window, *index, &rules.dialects()[*index], line);
            }
        } else {
            self.on_marker(window, line);
        }
        Flow::On(self.at)
    }

    /// A line longer than any signal, which may have begun as one.
    fn on_long_line(&mut self, window: &Window<'_>) {
        let (rules, start) = (self.rules, self.lines.start);
        if self.at - start > SIGNAL_MAX || self.structure.mask == Mask::Prompt {
            return;
        }
        let line = Line::plain(start, window.slice(start, start + SIGNAL_MAX));
        for index in &rules.families.lines {
            if let Some(defect) = diagnose::long_line(&rules.dialects()[*index], line) {
                self.report_line(window, *index, defect);
            }
        }
    }

    /// A line that may open blocks. Returns `None` if it does not.
    fn on_opener(&mut self, window: &Window<'_>, line: Line<'_>) -> Option<Flow> {
        let openers = self.rules.families.openers.iter();
        let opened = openers.filter(|(opener, _)| **opener == *line.seen);
        let read = |index: usize| read_block(window, &self.rules.dialects()[index], line);
        let all: Vec<_> = opened.map(|(_, index)| (*index, read(*index))).collect();
        // Nothing may have been changed when one needs more.
        if all.iter().any(|(_, read)| matches!(read, Read::NeedMore)) {
            return Some(Flow::Wait);
        }
        let mut next = None;
        for (index, read) in all {
            let (result, after) = match read {
                Read::Parsed(draft, after) => (Ok(draft), after),
                Read::Malformed(defect, after) => (Err(defect), after),
                Read::NotMine | Read::NeedMore => continue,
            };
            self.read_to = self.read_to.max(line.next);
            next = next.max(Some(after.max(self.at)));
            self.on_block(window, index, line, (result, after));
        }
        self.read_to = self.read_to.max(next?);
        next.map(Flow::On)
    }

    fn on_block(
        &mut self,
        window: &Window<'_>,
        index: usize,
        line: Line<'_>,
        (result, next): (Result<Draft, Defect>, u64),
    ) {
        let syntax = &self.rules.dialects()[index].syntax;
        let terminal = matches!(syntax, Syntax::Block(block) if block.fenced_terminal);
        let legacy = matches!(syntax, Syntax::Fence(_));
        let draft = match result {
            Ok(draft) => draft,
            Err(defect) => {
                let quoted = self.is_quoted(window, line.start, None);
                return self.report(window, index, defect, quoted);
            }
        };
        let inside = self.structure.fence.filter(|fence| {
            terminal
                && fence.bare
                && line.start - fence.content <= LINE_REACH
                && window.slice(fence.content, line.start).iter().all(u8::is_ascii_whitespace)
                && !self.structure.in_comment()
                && self.structure.mask == Mask::None
        });
        let quoted = inside.is_none() && self.is_quoted(window, line.start, None);
        let position = ClaimPosition::of_line(inside.map_or(line.start, |fence| fence.start));
        let Some(mut candidate) = self.candidate(window, index, draft, position, quoted) else {
            return;
        };
        candidate.legacy = legacy;
        if inside.is_none() {
            return self.submit(candidate, None);
        }
        self.await_end(Terminal {
            dialect: index,
            candidate,
            otherwise: Reason::Quoted,
            checked: next,
            fenced: true,
            repeats: false,
        });
    }

    /// Reads a line for a dialect; what no recogniser takes is diagnosed where near misses are wanted.
    fn read_line(&mut self, window: &Window<'_>, index: usize, dialect: &Dialect, line: Line<'_>) {
        let read = match &dialect.syntax {
            Syntax::Block(block) => self.on_key_line(window, index, block, line),
            Syntax::Line(syntax) => self.on_head(window, index, syntax, line),
            Syntax::Fence(fence) => self.on_bare_line(window, index, fence, line),
            Syntax::Status(_) | Syntax::Tag(_) | Syntax::Trailer(_) => false,
        };
        if !read
            && self.options.near_misses
            && let Some(defect) = diagnose::line(dialect, line)
        {
            self.report_line(window, index, defect);
        }
    }

    /// `KEY: NAME` without the block around it, which counts at the end of the message. Returns whether
    /// the line is such.
    fn on_key_line(
        &mut self,
        window: &Window<'_>,
        index: usize,
        block: &block::Syntax,
        line: Line<'_>,
    ) -> bool {
        let dialect = &self.rules.dialects()[index];
        let Some(def) = block.value(line.seen).and_then(|name| known(dialect, name)) else {
            return false;
        };
        let mut draft = Draft::new(def.name.clone(), (line.start, line.seen_end()));
        draft.warnings.push(Warning::MissingDelimiters);
        self.bare_terminal(window, index, block, draft);
        true
    }

    fn bare_terminal(
        &mut self,
        window: &Window<'_>,
        index: usize,
        block: &block::Syntax,
        draft: Draft,
    ) {
        let (start, end) = draft.range;
        let quoted = self.is_quoted(window, start, None);
        let position = ClaimPosition::of_line(start);
        let Some(candidate) = self.candidate(window, index, draft, position, quoted) else {
            return;
        };
        let terminal = Terminal {
            dialect: index,
            candidate,
            otherwise: Reason::NotAtEnd,
            checked: end,
            fenced: false,
            repeats: false,
        };
        if block.bare_terminal && !terminal.candidate.quoted {
            self.await_end(terminal);
        } else {
            self.refuse(terminal);
        }
    }

    /// A line that may start with the name of a line signal. Returns whether it does.
    fn on_head(
        &mut self,
        window: &Window<'_>,
        index: usize,
        syntax: &line::Syntax,
        line: Line<'_>,
    ) -> bool {
        let rules = self.rules;
        let dialect = &rules.dialects()[index];
        match syntax.read(dialect, line) {
            Read::Parsed(draft, _) => {
                let quoted = self.is_quoted(window, line.start, None);
                let position = ClaimPosition::of_line(line.start);
                let read = self.candidate(window, index, draft, position, quoted);
                let Some(mut candidate) = read else { return true };
                if self.refusal(&candidate).is_none() {
                    self.close_body(window, line.start);
                    // The signal before may have been a request that swallows the rest.
                    candidate.quoted = self.structure.mask != Mask::None;
                }
                self.submit(candidate, syntax.body.then_some(line.next));
            }
            Read::Malformed(defect, _) => self.report_line(window, index, defect),
            Read::NotMine | Read::NeedMore => return false,
        }
        true
    }

    /// A line that may start a prompt for another agent. The request before it may be malformed: the
    /// prompt is still nothing that is said here.
    fn on_marker(&mut self, window: &Window<'_>, line: Line<'_>) {
        let opens = |delegation: &Delegation| line.seen == delegation.start.as_bytes();
        if self.delegates(opens) && !self.is_quoted(window, line.start, None) {
            self.structure.mask(Mask::Prompt);
        }
    }

    /// Inside a prompt for another agent only its end matters.
    fn on_masked_line(&mut self, line: Line<'_>) {
        if self.delegates(|delegation| line.seen == delegation.end.as_bytes()) {
            self.structure.unmask(line.next);
        }
    }

    fn delegates(&self, fits: impl Fn(&Delegation) -> bool) -> bool {
        let dialects = self.rules.families.delegating.iter();
        dialects.map(|index| &self.rules.dialects()[*index].syntax).any(|syntax| match syntax {
            Syntax::Line(line) => line.delegation.as_ref().is_some_and(&fits),
            _ => false,
        })
    }

    /// Reports a malformed signal on the current line.
    pub(crate) fn report_line(&mut self, window: &Window<'_>, index: usize, defect: Defect) {
        let quoted = self.options.near_misses && self.is_quoted(window, defect.range.0, None);
        self.report(window, index, defect, quoted);
    }
}

/// Reads the block that `line` opens in a dialect.
fn read_block(window: &Window<'_>, dialect: &Dialect, line: Line<'_>) -> Read {
    match &dialect.syntax {
        Syntax::Block(block) => block.read(dialect, window, line),
        Syntax::Status(status) => status.read(dialect, window, line),
        Syntax::Fence(fence) => match &fence.legacy {
            Some(legacy) => legacy.status.read(dialect, window, line),
            None => Read::NotMine,
        },
        Syntax::Line(_) | Syntax::Tag(_) | Syntax::Trailer(_) => Read::NotMine,
    }
}
