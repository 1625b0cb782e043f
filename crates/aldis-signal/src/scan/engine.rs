//! The scanner's state, and the walk from one interesting place to the next.
//!
//! The engine sees a window of the message that starts wherever nothing earlier is needed any more.
//! It decides something only when it has all the bytes the decision can depend on; otherwise it
//! waits. That is why the result is the same for every way of cutting the message into chunks.

use super::Token;
use super::diagnose::spelling;
use super::lead_in::LEAD_IN_MAX;
use super::position::LineCursor;
use super::report::FindingQueue;
use super::rules::Rules;
use super::tags::{LOOK_OUT, Tags};
use super::text::SIGNAL_MAX;
use super::undecided::Queue;
use super::window::{Line, LineAt, Window};
use crate::find::{Hit, HitKinds};
use crate::message::Origin;
use crate::signal::Finding;
use crate::structure::line::{FenceLine, is_list_mark};
use crate::structure::{Structure, paragraph};

/// No delimiter that is looked for is longer.
pub(super) const OVERLAP: u64 = 64;
/// What is kept before the current line for lead-ins.
pub(super) const LOOK_BACK: u64 = LEAD_IN_MAX + 512;

/// Whether the engine could decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on at this offset.
    On(u64),
    /// More text is needed.
    Wait,
}

/// What a caller may choose.
#[derive(Clone, Debug)]
pub(crate) struct ScanOptions {
    pub(crate) token: Token,
    /// Whether what only looks like a signal is reported.
    pub(crate) near_misses: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { token: Token::Off, near_misses: true }
    }
}

/// A place that more text is needed for.
#[derive(Clone, Copy, Debug, Default)]
struct Resume {
    /// What the current place may still be, and where to go on then.
    waiting: Option<(HitKinds, u64)>,
    /// How far the text went when it was looked at last, and what was needed of it then.
    looked_to: u64,
    kept_from: u64,
}

pub(crate) struct Engine<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) origin: Origin,
    pub(crate) options: ScanOptions,
    /// Whether the first line has been looked at.
    started: bool,
    resume: Resume,
    /// Everything before has been searched.
    pub(crate) at: u64,
    /// Lines that start before have been read.
    pub(crate) read_to: u64,
    pub(crate) lines: LineCursor,
    pub(crate) structure: Structure,
    pub(super) tags: Tags,
    pub(super) queue: Queue,
    pub(super) report: FindingQueue,
}

impl<'r> Engine<'r> {
    pub(crate) fn new(rules: &'r Rules, origin: Origin, options: ScanOptions) -> Self {
        Self {
            rules,
            origin,
            options,
            started: false,
            resume: Resume::default(),
            at: 0,
            read_to: 0,
            lines: LineCursor::default(),
            structure: Structure::default(),
            tags: Tags::new(rules.dialects().len()),
            queue: Queue::default(),
            report: FindingQueue::default(),
        }
    }

    /// Scans what can be decided; returns the offset before which nothing is needed any more.
    pub(crate) fn run(&mut self, window: &Window<'_>) -> u64 {
        if !self.started && self.on_start(window) == Flow::Wait {
            return window.base();
        }
        if self.resume.waiting.is_some() && !self.may_go_on(window) {
            return self.resume.kept_from;
        }
        while self.step(window) {}
        self.resume.looked_to = window.end();
        self.resume.kept_from = if window.last { window.base() } else { self.keep_from(window) };
        self.resume.kept_from
    }

    /// Returns whether enough has come to look at the current place again. What it waits for mostly ends
    /// with a line, and reading all of it again for every few bytes would take long.
    fn may_go_on(&self, window: &Window<'_>) -> bool {
        let new = window.from(self.resume.looked_to);
        window.last
            || memchr::memchr(b'\n', new).is_some()
            || 8 * new.len() as u64 >= self.resume.looked_to - self.at
    }

    /// Literals that need a line end before them do not find the first line.
    fn on_start(&mut self, window: &Window<'_>) -> Flow {
        let text = window.bytes();
        if text.len() < self.rules.places.length_max() && !window.last {
            return Flow::Wait;
        }
        let flow = match self.rules.places.starts_line(text) {
            true => self.on_line(window, true),
            false => Flow::On(0),
        };
        if let Flow::On(next) = flow {
            self.started = true;
            self.advance(window, next.min(window.end()));
        }
        flow
    }

    /// Goes to the next place that is worth a look; returns whether there may be another.
    fn step(&mut self, window: &Window<'_>) -> bool {
        if let Some((kinds, end)) = self.resume.waiting {
            self.resume.waiting = None;
            let flow = self.on_hit(window, kinds, end);
            return self.go(window, flow);
        }
        // A literal that only begins in the window will be found when the rest has come.
        let overlap =
            if window.last { 0 } else { OVERLAP.max(self.rules.places.length_max() as u64) };
        let limit = window.end().saturating_sub(overlap);
        if self.at >= limit {
            return false;
        }
        let mut end = limit;
        if self.tags.open > 0 || self.structure.in_comment() {
            let close = self.next_close(window);
            let event = close
                .map(|(at, _)| at)
                .into_iter()
                .chain(self.structure.comment_end(window, self.at))
                .min();
            if event.is_some_and(|event| event <= self.at) {
                // Something else was read over it.
                self.lines.find(window, self.at);
                let flow = self.on_event(window, close);
                return self.go(window, flow);
            }
            end = end.min(event.unwrap_or(self.at + LOOK_OUT));
        }
        let flow = match self.next_hit(window, end) {
            Some((hit, base)) => {
                self.advance(window, base + hit.place as u64);
                self.lines.find(window, self.at);
                self.on_hit(window, hit.kinds, base + hit.end as u64)
            }
            None => Flow::On(end),
        };
        self.go(window, flow)
    }

    fn go(&mut self, window: &Window<'_>, flow: Flow) -> bool {
        match flow {
            Flow::On(next) => {
                self.advance(window, next.min(window.end()));
                true
            }
            Flow::Wait => false,
        }
    }

    /// Something that was waited for has come: a closing tag, the end of a comment.
    fn on_event(&mut self, window: &Window<'_>, close: Option<(u64, usize)>) -> Flow {
        if self.structure.comment_end(window, self.at).is_some_and(|end| end <= self.at) {
            self.structure.end_comment();
            return Flow::On(self.at);
        }
        match close {
            Some((at, index)) => self.on_closing(window, at, index),
            None => Flow::On(self.at + 1),
        }
    }

    /// Returns the next place before `end` that is worth a look, and what its offsets count from. A
    /// literal may begin with the line end directly before the current place.
    fn next_hit(&self, window: &Window<'_>, end: u64) -> Option<(Hit, u64)> {
        let base = window.base();
        let line_end = self.at > base && window.byte(self.at - 1) == Some(b'\n');
        let from = (self.at - base) as usize - usize::from(line_end);
        let mut from = from;
        loop {
            let hit = self.rules.places.find(window.bytes(), from, (end - base) as usize)?;
            if base + hit.place as u64 >= self.at {
                return Some((hit, base));
            }
            from = hit.start + 1;
        }
    }

    /// Ends the message. The window is the last one.
    pub(crate) fn finish(&mut self, window: &Window<'_>) {
        self.run(window);
        self.lines.find(window, self.at);
        self.on_last_line(window);
        self.close_body(window, window.end());
        self.end_tags(window);
        self.end_terminals(window);
        self.end_undecided(window);
        if self.options.near_misses && self.origin.may_signal() {
            spelling::look_at_tail(self, window);
        }
        let standing = self.report.misses.end();
        self.report.out.extend(standing.into_iter().map(Finding::NearMiss));
    }

    /// The last line that shows anything may be a signal in any case, which no literal finds.
    fn on_last_line(&mut self, window: &Window<'_>) {
        let text = window.bytes().trim_ascii_end();
        let start = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
        let start = window.base() + start as u64;
        if start < self.read_to || text.is_empty() || window.end() - start > SIGNAL_MAX {
            return;
        }
        let end = (self.at, self.lines);
        (self.at, self.lines) = (start, self.lines.at(start));
        self.on_line(window, true);
        (self.at, self.lines) = end;
    }

    /// Moves to `to`; gives up what has waited too long.
    fn advance(&mut self, window: &Window<'_>, to: u64) {
        self.at = self.at.max(to);
        if self.at >= self.queue.due {
            self.expire(window);
        }
    }

    /// Looks at the current place as each of the things it may be. What is done is not done again
    /// when the rest must wait for more text.
    fn on_hit(&mut self, window: &Window<'_>, kinds: HitKinds, end: u64) -> Flow {
        let (mut left, mut next) = (kinds, end);
        while let Some((kind, then)) = left.split_first() {
            match self.look_at(window, kind, left) {
                Flow::On(after) => next = next.max(after),
                Flow::Wait => {
                    self.resume.waiting = Some((left, next));
                    return Flow::Wait;
                }
            }
            left = then;
        }
        Flow::On(next)
    }

    /// Looks at the current place. Nothing has changed if it must wait.
    fn look_at(&mut self, window: &Window<'_>, kind: HitKinds, left: HitKinds) -> Flow {
        let at = self.at;
        if kind != HitKinds::FENCE && self.structure.needs_more(window, self.lines.start, at) {
            return Flow::Wait;
        }
        match kind {
            HitKinds::COMMENT => {
                self.structure.on_comment(window, self.lines.start, at);
                Flow::On(at)
            }
            HitKinds::ELEMENT => {
                let is_tag = left.has(HitKinds::TAG);
                if !is_tag {
                    self.structure.on_element(window, self.lines.start, at);
                }
                Flow::On(at)
            }
            HitKinds::FENCE => self.on_fence(window, at),
            HitKinds::LINE_OR_BLOCK if self.lines.start >= self.read_to => {
                self.on_line(window, left.has(HitKinds::LINE))
            }
            HitKinds::TRAILER => self.on_trailer(window, at),
            HitKinds::TAG => self.on_tag(window, at),
            _ => Flow::On(at),
        }
    }

    /// A run of fence characters: a fence line if nothing stands before it.
    fn on_fence(&mut self, window: &Window<'_>, at: u64) -> Flow {
        let after_run = || Flow::On(run_end(window, at + 1));
        // In a fence only what may close it matters.
        let marker = window.byte(at);
        if self.structure.fence.is_some_and(|fence| Some(fence.marker) != marker) {
            return after_run();
        }
        let before = if at == self.lines.start { &[] } else { window.slice(self.lines.start, at) };
        let item = !before.is_empty() && self.structure.fence.is_none() && is_list_mark(before);
        let starts_line = at == self.lines.start
            || at - self.lines.start <= SIGNAL_MAX
                && before.len() as u64 == at - self.lines.start
                && (item || before.iter().all(|byte| super::text::is_blank(*byte)));
        if self.structure.in_comment() || !starts_line {
            return after_run();
        }
        let mut line = match window.line(self.lines.start) {
            LineAt::Line(line) => line,
            LineAt::Wait => return Flow::Wait,
            LineAt::Nothing | LineAt::TooLong => return after_run(),
        };
        if item {
            line = line.behind(before.len());
        }
        let Some(read) = FenceLine::read(line) else { return after_run() };
        if self.structure.fence.is_none()
            && let Some(flow) = self.on_signal_fence(window, line, read)
        {
            return flow;
        }
        let was_open = self.structure.fence;
        self.structure.on_fence_line(line, read);
        if let (Some(fence), None) = (was_open, self.structure.fence) {
            self.on_fence_closed(fence, line);
        }
        // The line may matter for other reasons; its run of fence characters does not.
        Flow::On(at + read.length as u64)
    }

    /// Returns whether the text at `start`, up to `end` if it is known, is quoted.
    pub(crate) fn is_quoted(&mut self, window: &Window<'_>, start: u64, end: Option<u64>) -> bool {
        self.structure.is_quoted(window, self.lines.start.min(start), start, end)
    }

    /// Returns the line of the current place, if it can be read.
    pub(crate) fn current_line<'w>(&self, window: &Window<'w>) -> Result<Option<Line<'w>>, Flow> {
        if self.at - self.lines.start > SIGNAL_MAX {
            return Ok(None);
        }
        match window.line(self.lines.start) {
            LineAt::Line(line) => Ok(Some(line)),
            LineAt::Wait => Err(Flow::Wait),
            LineAt::Nothing | LineAt::TooLong => Ok(None),
        }
    }

    /// Returns the offset before which nothing is needed any more, having taken note of the rest.
    fn keep_from(&mut self, window: &Window<'_>) -> u64 {
        self.lines.find(window, self.at);
        let line = self.lines.start.max(self.at.saturating_sub(SIGNAL_MAX));
        let mut keep = line.saturating_sub(LOOK_BACK);
        keep = keep.min(paragraph::floor(line));
        keep = keep.min(self.at.saturating_sub(spelling::TAIL_MAX));
        keep = keep.min(self.lines.last_shown(window, self.at).unwrap_or(keep));
        keep = keep.min(self.needed_from().unwrap_or(keep));
        let keep = keep.max(window.base());
        self.lines.count_to(window, keep);
        keep
    }
}

/// Returns where the run of equal bytes ends that the byte before `at` belongs to.
fn run_end(window: &Window<'_>, at: u64) -> u64 {
    let marker = window.byte(at - 1);
    let run = window.from(at).iter().take_while(|byte| Some(**byte) == marker);
    at + run.count() as u64
}
