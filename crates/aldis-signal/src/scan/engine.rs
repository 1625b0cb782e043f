//! The scanner's state, and the walk from one interesting place to the next.
//!
//! The engine sees a window of the message that starts wherever nothing earlier is needed any more.
//! It decides something only when it has all the bytes the decision can depend on; otherwise it
//! waits. That is why the result is the same for every way of cutting the message into chunks.

use std::collections::VecDeque;

use super::ansi::Removals;
use super::claims::{Body, Pending};
use super::closers::Closer;
use super::context::{Context, FenceLine, find_comment_end, is_list_mark};
use super::misses::Misses;
use super::retraction::Harmless;
use super::rules::{Rules, retractions};
use super::tags::{LOOK_OUT, TagState};
use super::terminals::Terminal;
use super::text::SIGNAL_MAX;
use super::verdict::{LEAD_IN_MAX, Silence};
use super::window::{Line, LineAt, Window};
use super::{Token, fuzzy};
use crate::find::{Hit, HitKinds, LiteralSet};
use crate::message::Origin;
use crate::signal::{Finding, Signal, Span};

/// No delimiter that is looked for is longer.
pub(super) const OVERLAP: u64 = 64;
/// What is kept before the current line for lead-ins.
const LOOK_BACK: u64 = 2 * LEAD_IN_MAX + 512;

/// Whether the engine could decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on at this offset.
    On(u64),
    /// More text is needed.
    Wait,
}

/// Text that is payload and not speech.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    None,
    /// A prompt for another agent, up to its closing marker.
    Prompt,
    /// Everything to the end: a prompt that was never closed properly.
    All,
}

pub(crate) struct Engine<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) origin: Origin,
    pub(crate) token: Token,
    /// Whether what only looks like a signal is reported.
    pub(crate) near_misses: bool,
    /// Whether the first line has been looked at.
    started: bool,
    /// What the current place may still be, once more text has come, and where to go on then.
    waiting: Option<(HitKinds, u64)>,
    /// How far the text went when it was looked at last, and what was needed of it then.
    looked_to: u64,
    kept_from: u64,
    /// Everything before has been searched.
    pub(crate) at: u64,
    /// Start of the line of `lined`, which is `at` wherever something is looked at.
    pub(crate) line_start: u64,
    pub(super) lined: u64,
    /// Number of the line of `counted`, from 1.
    pub(super) lines: u64,
    /// How far lines have been counted.
    pub(super) counted: u64,
    /// Lines that start before have been read.
    pub(crate) read_to: u64,
    /// Start of the last line that shows anything before `shown_to`.
    pub(super) shown: u64,
    pub(super) shown_to: u64,
    pub(crate) context: Context,
    pub(crate) mask: Mask,
    pub(crate) tags: Vec<TagState>,
    /// How many of them are not idle.
    pub(crate) open_tags: usize,
    /// How many tag dialects have read the current place while another waits, and where they ended.
    pub(crate) tags_read: (usize, u64),
    pub(crate) closers: Vec<Closer>,
    /// No open tag is closed before this place.
    pub(super) unclosed_to: u64,
    /// How far the end of an open comment has been looked for, and whether it is there.
    comment_searched: u64,
    comment_found: bool,
    /// Where the last tag of any dialect ended.
    pub(crate) last_tag_end: u64,
    pub(crate) body: Option<Body>,
    pub(crate) terminals: Vec<Terminal>,
    pub(crate) pending: VecDeque<Pending>,
    pub(crate) pending_first: u64,
    /// How many pending claims have not been taken back, and how far the last can be.
    pub(crate) unsettled: usize,
    pub(crate) watched: u64,
    /// What was judged last and takes nothing back.
    pub(crate) harmless: Harmless,
    /// Old forms, which count only if no new form does; and the dialects that said a new one.
    pub(crate) legacy: Vec<(usize, Box<Signal>)>,
    pub(crate) modern: Vec<usize>,
    /// How much text the old forms have.
    pub(crate) legacy_text: usize,
    /// What was reported last, so that it is not reported again as misspelled.
    pub(crate) reported: VecDeque<Span>,
    /// Nothing expires before this place.
    pub(crate) due: u64,
    pub(crate) misses: Misses,
    pub(crate) silence: Silence,
    pub(crate) out: Vec<Finding>,
}

impl<'r> Engine<'r> {
    pub(crate) fn new(rules: &'r Rules, origin: Origin) -> Self {
        let mut context = Context::default();
        context.inline.restart(0);
        Self {
            rules,
            origin,
            token: Token::Off,
            near_misses: true,
            started: false,
            waiting: None,
            looked_to: 0,
            kept_from: 0,
            at: 0,
            line_start: 0,
            lined: 0,
            lines: 1,
            counted: 0,
            read_to: 0,
            shown: 0,
            shown_to: 0,
            context,
            mask: Mask::None,
            tags: rules.dialects().iter().map(|_| TagState::Idle).collect(),
            open_tags: 0,
            tags_read: (0, 0),
            closers: vec![Closer::default(); rules.dialects().len()],
            unclosed_to: 0,
            comment_searched: 0,
            comment_found: false,
            last_tag_end: 0,
            body: None,
            terminals: Vec::new(),
            pending: VecDeque::new(),
            pending_first: 0,
            unsettled: 0,
            watched: 0,
            harmless: Harmless::default(),
            legacy: Vec::new(),
            modern: Vec::new(),
            legacy_text: 0,
            reported: VecDeque::new(),
            due: 0,
            misses: Misses::default(),
            silence: Silence::default(),
            out: Vec::new(),
        }
    }

    /// Scans what can be decided; returns the offset before which nothing is needed any more.
    pub(crate) fn run(&mut self, window: &Window<'_>, removals: &Removals) -> u64 {
        if !self.started && self.on_start(window, removals) == Flow::Wait {
            return window.base();
        }
        if self.waiting.is_some() && !self.may_go_on(window) {
            return self.kept_from;
        }
        while self.step(window, removals) {}
        self.looked_to = window.end();
        self.kept_from = if window.last { window.base() } else { self.keep_from(window) };
        self.kept_from
    }

    /// Returns whether enough has come to look at the current place again. What it waits for mostly ends
    /// with a line, and reading all of it again for every few bytes would take long.
    fn may_go_on(&self, window: &Window<'_>) -> bool {
        let new = window.from(self.looked_to);
        window.last
            || memchr::memchr(b'\n', new).is_some()
            || 8 * new.len() as u64 >= self.looked_to - self.at
    }

    /// Literals that need a line end before them do not find the first line.
    fn on_start(&mut self, window: &Window<'_>, removals: &Removals) -> Flow {
        let text = window.bytes();
        if text.len() < 3 && !window.last {
            return Flow::Wait;
        }
        let flow = match self.rules.may_start_line(text) {
            true => self.on_line(window, removals, true),
            false => Flow::On(0),
        };
        if let Flow::On(next) = flow {
            self.started = true;
            self.advance(window, next.min(window.end()));
        }
        flow
    }

    /// Goes to the next place that is worth a look; returns whether there may be another.
    fn step(&mut self, window: &Window<'_>, removals: &Removals) -> bool {
        if let Some((kinds, end)) = self.waiting {
            self.waiting = None;
            let flow = self.on_hit(window, removals, kinds, end);
            return self.go(window, flow);
        }
        // A literal that only begins in the window will be found when the rest has come.
        let overlap = if window.last { 0 } else { OVERLAP.max(self.rules.literal_max() as u64) };
        let limit = window.end().saturating_sub(overlap);
        if self.at >= limit {
            return false;
        }
        let mut end = limit;
        if self.open_tags > 0 || self.context.comment {
            let close = self.next_close(window);
            let event = close.map(|(at, _)| at).into_iter().chain(self.comment_end(window)).min();
            if event.is_some_and(|event| event <= self.at) {
                // Something else was read over it.
                self.find_line(window);
                let flow = self.on_event(window, removals, close);
                return self.go(window, flow);
            }
            end = end.min(event.unwrap_or(self.at + LOOK_OUT));
        }
        let flow = match self.next_hit(window, end) {
            Some((hit, base)) => {
                self.advance(window, base + hit.place as u64);
                self.find_line(window);
                self.on_hit(window, removals, hit.kinds, base + hit.end as u64)
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
    fn on_event(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        close: Option<(u64, usize)>,
    ) -> Flow {
        if self.context.comment && self.comment_searched <= self.at {
            self.context.comment = false;
            // Back-quotes in the comment open nothing behind it.
            self.context.inline.restart(self.comment_searched);
            return Flow::On(self.at);
        }
        match close {
            Some((at, index)) => self.on_closing(window, removals, at, index),
            None => Flow::On(self.at + 1),
        }
    }

    /// Returns where the open comment ends, if that is at hand.
    fn comment_end(&mut self, window: &Window<'_>) -> Option<u64> {
        if !self.context.comment {
            return None;
        }
        if self.comment_searched >= self.at && self.comment_found {
            return Some(self.comment_searched);
        }
        let from = self.comment_searched.max(self.at);
        let text = window.from(from);
        self.comment_found = false;
        match find_comment_end(text) {
            Some(at) => {
                self.comment_found = true;
                self.comment_searched = from + at as u64;
                Some(self.comment_searched)
            }
            None => {
                self.comment_searched = (from + text.len() as u64).saturating_sub(2).max(from);
                None
            }
        }
    }

    /// Returns the next place before `end` that is worth a look, and what its offsets count from. A
    /// literal may begin with the line end directly before the current place.
    fn next_hit(&self, window: &Window<'_>, end: u64) -> Option<(Hit, u64)> {
        let base = window.base();
        let line_end = self.at > base && window.byte(self.at - 1) == Some(b'\n');
        let from = (self.at - base) as usize - usize::from(line_end);
        let find = |set: &LiteralSet, end: u64| {
            let mut from = from;
            loop {
                let hit = set.find(window.bytes(), from, end.saturating_sub(base) as usize)?;
                if base + hit.place as u64 >= self.at {
                    return Some(hit);
                }
                from = hit.start + 1;
            }
        };
        let hit = find(&self.rules.places, end);
        let to = hit.map_or(end, |hit| base + hit.start as u64).min(self.watched + 1);
        let listens = self.unsettled > 0 && self.context.fence.is_none();
        let taken_back = listens.then(|| find(retractions(), to)).flatten();
        taken_back.or(hit).map(|hit| (hit, base))
    }

    /// Ends the message. The window is the last one.
    pub(crate) fn finish(&mut self, window: &Window<'_>, removals: &Removals) {
        self.run(window, removals);
        self.find_line(window);
        self.on_last_line(window, removals);
        self.close_body(window, removals, window.end());
        self.end_tags(window);
        self.end_terminals(window);
        self.end_pending();
        self.end_legacy();
        if self.near_misses && self.origin.may_signal() {
            fuzzy::look_at_tail(self, window, removals);
        }
        let standing = self.misses.end();
        self.out.extend(standing.into_iter().map(Finding::NearMiss));
    }

    /// The last line that shows anything may be a signal in any case, which no literal finds.
    fn on_last_line(&mut self, window: &Window<'_>, removals: &Removals) {
        let text = window.bytes().trim_ascii_end();
        let start = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
        let start = window.base() + start as u64;
        if start < self.read_to || text.is_empty() || window.end() - start > SIGNAL_MAX {
            return;
        }
        let end = (self.at, self.line_start, self.lined);
        (self.at, self.line_start, self.lined) = (start, start, start);
        self.on_line(window, removals, true);
        (self.at, self.line_start, self.lined) = end;
    }

    /// Moves to `to`; gives up what has waited too long.
    #[inline]
    fn advance(&mut self, window: &Window<'_>, to: u64) {
        self.at = self.at.max(to);
        if self.at >= self.due {
            self.expire(window);
        }
    }

    /// Looks at the current place as each of the things it may be. What is done is not done again
    /// when the rest must wait for more text.
    ///
    /// What is done for each kind is a function of its own even when compiled: most hits turn out to
    /// be nothing, and room for all that could be found would be made at each.
    fn on_hit(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        kinds: HitKinds,
        end: u64,
    ) -> Flow {
        let (mut left, mut next) = (kinds, end);
        while let Some((kind, then)) = left.split_first() {
            match self.look_at(window, removals, kind, left) {
                Flow::On(after) => next = next.max(after),
                Flow::Wait => {
                    self.waiting = Some((left, next));
                    return Flow::Wait;
                }
            }
            left = then;
        }
        Flow::On(next)
    }

    /// Looks at the current place. Nothing has changed if it must wait.
    fn look_at(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        kind: HitKinds,
        left: HitKinds,
    ) -> Flow {
        let at = self.at;
        match kind {
            HitKinds::COMMENT => {
                let shown = self.context.fence.is_none() && !self.context.comment;
                if shown && !self.context.inline.is_code_at(window, at) {
                    self.context.comment = true;
                }
                Flow::On(at)
            }
            HitKinds::FENCE => self.on_fence(window, removals, at),
            HitKinds::LINE_OR_BLOCK if self.line_start >= self.read_to => {
                self.on_line(window, removals, left.has(HitKinds::LINE))
            }
            HitKinds::TRAILER => self.on_trailer(window, removals, at),
            HitKinds::TAG => self.on_tag(window, removals, at),
            HitKinds::ELEMENT => self.on_retraction(window, at),
            _ => Flow::On(at),
        }
    }

    /// A run of fence characters: a fence line if nothing stands before it.
    #[inline(never)]
    fn on_fence(&mut self, window: &Window<'_>, removals: &Removals, at: u64) -> Flow {
        let after_run = || Flow::On(run_end(window, at + 1));
        // In a fence only what may close it matters.
        let marker = window.byte(at);
        if self.context.fence.is_some_and(|fence| Some(fence.marker) != marker) {
            return after_run();
        }
        let before = if at == self.line_start { &[] } else { window.slice(self.line_start, at) };
        let item = !before.is_empty() && self.context.fence.is_none() && is_list_mark(before);
        let starts_line = at == self.line_start
            || at - self.line_start <= SIGNAL_MAX
                && before.len() as u64 == at - self.line_start
                && (item || before.iter().all(|byte| super::text::is_blank(*byte)));
        if self.context.comment || !starts_line {
            return after_run();
        }
        let mut line = match window.line(self.line_start) {
            LineAt::Line(line) => line,
            LineAt::Wait => return Flow::Wait,
            LineAt::Nothing | LineAt::TooLong => return after_run(),
        };
        if item {
            line = line.behind(before.len());
        }
        let Some(read) = FenceLine::read(line) else { return after_run() };
        if self.context.fence.is_none()
            && let Some(flow) = self.on_signal_fence(window, removals, line, read)
        {
            return flow;
        }
        let was_open = self.context.fence;
        self.context.on_fence_line(line, read);
        if let (Some(fence), None) = (was_open, self.context.fence) {
            self.on_fence_closed(fence, line);
        }
        // The line may matter for other reasons; its run of fence characters does not.
        Flow::On(at + read.length as u64)
    }

    /// Returns the line of the current place, if it can be read.
    pub(crate) fn current_line<'w>(&self, window: &Window<'w>) -> Result<Option<Line<'w>>, Flow> {
        if self.at - self.line_start > SIGNAL_MAX {
            return Ok(None);
        }
        match window.line(self.line_start) {
            LineAt::Line(line) => Ok(Some(line)),
            LineAt::Wait => Err(Flow::Wait),
            LineAt::Nothing | LineAt::TooLong => Ok(None),
        }
    }

    /// Returns the offset before which nothing is needed any more, having taken note of the rest.
    fn keep_from(&mut self, window: &Window<'_>) -> u64 {
        self.find_line(window);
        let line = self.line_start.max(self.at.saturating_sub(SIGNAL_MAX));
        let mut keep = line.saturating_sub(LOOK_BACK);
        keep = keep.min(self.at.saturating_sub(fuzzy::TAIL_MAX));
        keep = keep.min(self.last_shown(window).unwrap_or(keep));
        for tag in &self.tags {
            keep = keep.min(tag.start().map_or(keep, |start| start.saturating_sub(LOOK_BACK)));
        }
        if let Some(body) = &self.body {
            keep = keep.min(body.needs().unwrap_or(keep));
        }
        for terminal in &self.terminals {
            keep = keep.min(terminal.checked);
        }
        let keep = keep.max(window.base());
        self.context.inline.walk(window, keep);
        self.count_lines(window, keep);
        keep
    }
}

/// Returns where the run of equal bytes ends that the byte before `at` belongs to.
fn run_end(window: &Window<'_>, at: u64) -> u64 {
    let marker = window.byte(at - 1);
    let run = window.from(at).iter().take_while(|byte| Some(**byte) == marker);
    at + run.count() as u64
}
