//! Signals that own their lines: blocks, line signals, status blocks, fences and trailers.

use super::ansi::Removals;
use super::claims::{Candidate, Terminal};
use super::context::{Fence, FenceLine, is_quoting_line, is_quoting_prefix};
use super::draft::{Defect, Draft};
use super::engine::{Engine, Flow, Mask};
use super::tags::rest_of_line;
use super::text::{SIGNAL_MAX, is_blank, is_deceptive_text, is_placeholder, trim_line_end};
use super::verdict::{LEAD_IN_MAX, Surroundings};
use super::window::{Line, LineAt, Window};
use crate::dialect::syntax::{block, fence, line, status, trailer};
use crate::dialect::{Dialect, Syntax};
use crate::signal::{Meaning, Reason, Warning};

/// A block of lines that was read, with the index of its dialect.
struct Found {
    dialect: usize,
    result: Result<Draft, Defect>,
    next: u64,
    legacy: bool,
}

impl Engine<'_> {
    /// Reads the current line for every dialect whose signals own their line: as the opening of a
    /// block, and if `whole`, as a signal by itself.
    pub(crate) fn on_line(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        whole: bool,
    ) -> Flow {
        let line = match self.current_line(window) {
            Ok(Some(line)) => line,
            Ok(None) => {
                self.read_to = self.line_start + 1;
                return Flow::On(self.at);
            }
            Err(wait) => return wait,
        };
        if self.mask == Mask::Prompt {
            self.read_to = line.next;
            self.on_masked_line(line);
            return Flow::On(self.at);
        }
        // What may need more text comes first: nothing has been changed when it waits.
        let mut blocks = Vec::new();
        for (index, dialect) in self.rules.dialects().iter().enumerate() {
            match self.read_blocks(window, index, dialect, line) {
                Ok(Some(found)) => blocks.push(found),
                Ok(None) => {}
                Err(wait) => return wait,
            }
        }
        if blocks.is_empty() {
            let rules = self.rules;
            for (index, dialect) in rules.dialects().iter().enumerate() {
                if whole {
                    self.read_to = line.next;
                    self.read_line(window, removals, index, dialect, line);
                } else {
                    self.on_marker(window, dialect, line);
                }
            }
            return Flow::On(self.at);
        }
        self.read_to = line.next;
        let mut next = self.at;
        for found in blocks {
            next = next.max(found.next);
            self.on_block(window, removals, line, found);
        }
        self.read_to = self.read_to.max(next);
        Flow::On(next)
    }

    fn read_blocks(
        &self,
        window: &Window<'_>,
        index: usize,
        dialect: &Dialect,
        line: Line<'_>,
    ) -> Result<Option<Found>, Flow> {
        let found = |result, next| Some(Found { dialect: index, result, next, legacy: false });
        match &dialect.syntax {
            Syntax::Block(block) if block.is_delimiter(line.text) => {
                match block.read(dialect, window, line) {
                    block::Block::Found { result, next } => Ok(found(result, next)),
                    block::Block::Other => Ok(None),
                    block::Block::Wait => Err(Flow::Wait),
                }
            }
            Syntax::Status(status) if status.opens(line.text) => {
                match status.read(dialect, window, line) {
                    status::Status::Found { result, next } => Ok(found(result, next)),
                    status::Status::Wait => Err(Flow::Wait),
                }
            }
            Syntax::Fence(fence::Syntax { legacy: Some(legacy), .. })
                if trim_line_end(line.text) == legacy.status.heading.as_bytes() =>
            {
                match legacy.status.read(window, line) {
                    Some(status::Status::Found { result, next }) => {
                        Ok(Some(Found { dialect: index, result, next, legacy: true }))
                    }
                    Some(status::Status::Wait) => Err(Flow::Wait),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn on_block(&mut self, window: &Window<'_>, removals: &Removals, line: Line<'_>, found: Found) {
        let Found { dialect: index, result, next, legacy } = found;
        let rules = self.rules;
        let terminal = match &rules.dialects()[index].syntax {
            Syntax::Block(block) => block.fenced_terminal,
            _ => false,
        };
        let mut candidate = self.candidate(window, removals, index, result);
        candidate.legacy = legacy;
        let inside = self.context.fence.filter(|fence| {
            terminal && fence.bare && fence.content == line.start && !self.context.comment
        });
        if let (Some(fence), Ok(_), Mask::None) = (inside, &candidate.result, self.mask) {
            candidate.around = Some(self.surroundings(window, fence.start));
            self.terminals.push(Terminal {
                dialect: index,
                candidate,
                otherwise: Reason::Quoted,
                checked: next,
                fenced: true,
                repeats: false,
            });
            return;
        }
        candidate.quoted = self.is_quoted(window, line.start, None);
        candidate.around = Some(self.surroundings(window, line.start));
        self.submit(candidate, None);
    }

    /// A fence ended at `line`: a block that filled it counts if it also ends the message.
    pub(crate) fn on_fence_closed(&mut self, fence: Fence, line: Line<'_>) {
        let mut index = 0;
        while index < self.terminals.len() {
            let terminal = &mut self.terminals[index];
            if terminal.fenced && terminal.checked >= fence.content {
                if terminal.checked == line.start {
                    terminal.fenced = false;
                    terminal.checked = line.next;
                } else {
                    let terminal = self.terminals.remove(index);
                    self.refuse(terminal);
                    continue;
                }
            }
            index += 1;
        }
    }

    fn read_line(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        index: usize,
        dialect: &Dialect,
        line: Line<'_>,
    ) {
        match &dialect.syntax {
            Syntax::Block(block) => self.on_key_line(window, removals, index, block, line),
            Syntax::Line(syntax) => self.on_head(window, removals, index, syntax, line),
            Syntax::Fence(fence) => self.on_bare_json(window, removals, index, fence, line),
            Syntax::Status(status) => {
                let text = trim_line_end(line.text);
                let opening = status.open.as_bytes();
                if let Some(at) = memchr::memmem::find(text, opening) {
                    let name = dialect.signals.first().map_or("", |def| &def.name);
                    self.out_of_place(window, removals, index, name, line, at);
                }
            }
            Syntax::Tag(_) | Syntax::Trailer(_) => {}
        }
    }

    /// `KEY: NAME` outside a block: the last line of the message, or a near miss.
    fn on_key_line(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        index: usize,
        block: &block::Syntax,
        line: Line<'_>,
    ) {
        let rules = self.rules;
        let dialect = &rules.dialects()[index];
        let text = trim_line_end(line.text);
        let Some((at, name)) = find_key(&block.key, text) else { return };
        let written = String::from_utf8_lossy(name).into_owned();
        let known = dialect.signals.iter().find(|def| def.name.eq_ignore_ascii_case(&written));
        let range = (line.start, line.seen_end());
        let whole = block.key_line(line.text).filter(|(key, _)| at == 0 && *key == block.key);
        match (whole, known) {
            (Some((_, value)), Some(def)) if value.len() == name.len() => {
                let warnings = vec![Warning::MissingDelimiters];
                let draft = Draft { name: def.name.clone(), range, warnings, ..Draft::default() };
                self.bare_terminal(window, removals, index, block, draft);
            }
            (Some((_, value)), None) => {
                let text = String::from_utf8_lossy(value);
                let reason = match () {
                    () if is_deceptive_text(value) || !value.is_ascii() => Reason::Hidden,
                    () if is_placeholder(&text) => Reason::Placeholder,
                    () if text.contains(' ') => return,
                    () => Reason::UnknownName,
                };
                let defect = Defect::new(reason, written, range);
                self.report_line(window, removals, index, defect);
            }
            (_, Some(def)) => {
                self.out_of_place(window, removals, index, &def.name, line, at);
            }
            (None, None) => {}
        }
    }

    fn bare_terminal(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        index: usize,
        block: &block::Syntax,
        draft: Draft,
    ) {
        let (start, end) = draft.range;
        let mut candidate = self.candidate(window, removals, index, Ok(draft));
        candidate.quoted = self.is_quoted(window, start, None);
        candidate.around = Some(self.surroundings(window, start));
        let terminal = Terminal {
            dialect: index,
            candidate,
            otherwise: Reason::NotAtEnd,
            checked: end,
            fenced: false,
            repeats: false,
        };
        if block.bare_terminal && !terminal.candidate.quoted {
            self.terminals.push(terminal);
        } else {
            self.refuse(terminal);
        }
    }

    /// A line that may start with the name of a line signal.
    fn on_head(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        index: usize,
        syntax: &line::Syntax,
        line: Line<'_>,
    ) {
        let rules = self.rules;
        let dialect = &rules.dialects()[index];
        match syntax.read(dialect, line) {
            line::Head::Signal(draft) => {
                let mut candidate = self.candidate(window, removals, index, Ok(draft));
                candidate.quoted = self.is_quoted(window, line.start, None);
                candidate.around = Some(self.surroundings(window, line.start));
                if self.verdict(&candidate).is_none() {
                    self.close_body(window, line.start);
                    // The signal before may have been a request that swallows the rest.
                    candidate.quoted = self.mask != Mask::None;
                }
                self.submit(candidate, syntax.body.then_some(line.next));
            }
            line::Head::Defect(defect) => self.report_line(window, removals, index, defect),
            line::Head::Other => {
                if let Some((def, at)) = syntax.mention(dialect, line.text) {
                    self.out_of_place(window, removals, index, &def.name, line, at);
                }
            }
        }
    }

    /// A line that may start a prompt for another agent.
    fn on_marker(&mut self, window: &Window<'_>, dialect: &Dialect, line: Line<'_>) {
        let opens = match &dialect.syntax {
            Syntax::Line(line::Syntax { delegation: Some(delegation), .. }) => {
                trim_line_end(line.text) == delegation.start.as_bytes()
            }
            _ => false,
        };
        if opens && self.body.is_some() && !self.is_quoted(window, line.start, None) {
            self.mask = Mask::Prompt;
        }
    }

    /// Inside a prompt for another agent only its end matters.
    fn on_masked_line(&mut self, line: Line<'_>) {
        let text = trim_line_end(line.text);
        let ends = self.rules.dialects().iter().any(|dialect| match &dialect.syntax {
            Syntax::Line(line::Syntax { delegation: Some(delegation), .. }) => {
                text == delegation.end.as_bytes()
            }
            _ => false,
        });
        if ends {
            self.mask = Mask::None;
        }
    }

    /// A bare line of JSON, or a line of an old form.
    fn on_bare_json(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        index: usize,
        fence: &fence::Syntax,
        line: Line<'_>,
    ) {
        let rules = self.rules;
        let dialect = &rules.dialects()[index];
        let text = trim_line_end(line.text);
        let range = (line.start, line.seen_end());
        let bare = fence.bare.as_deref().filter(|bare| text.starts_with(bare.as_bytes()));
        let (result, legacy) = if bare.is_some() && text.ends_with(b"}") {
            (fence::read(fence, dialect, text, range), false)
        } else if let Some(draft) =
            fence.legacy.as_ref().and_then(|legacy| fence::read_legacy_line(legacy, line))
        {
            (Ok(draft), true)
        } else {
            return;
        };
        let mut candidate = self.candidate(window, removals, index, result);
        candidate.quoted = self.is_quoted(window, line.start, None);
        if candidate.quoted && candidate.result.is_err() {
            return;
        }
        candidate.around = Some(self.surroundings(window, line.start));
        candidate.legacy = legacy;
        self.note_modern(&candidate);
        self.submit(candidate, None);
    }

    /// A fence whose info string makes its content a signal. Returns `None` for other fences.
    pub(crate) fn on_signal_fence(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        line: Line<'_>,
        read: FenceLine<'_>,
    ) -> Option<Flow> {
        let rules = self.rules;
        let (index, dialect, syntax, json) =
            rules.dialects().iter().enumerate().find_map(|(index, dialect)| {
                let Syntax::Fence(syntax) = &dialect.syntax else { return None };
                let json = read.info.strip_prefix(syntax.info.as_bytes())?;
                let own = json.first().is_none_or(|byte| is_blank(*byte) || *byte == b'{');
                (own && read.marker == b'`' && read.length == 3)
                    .then_some((index, dialect, syntax, json))
            })?;
        let content = line.seen_end() - json.len() as u64;
        let start = line.start + line.text.iter().take_while(|byte| is_blank(**byte)).count() as u64;
        let (end, closing, next, warning) = match fence_end(window, line, content) {
            FenceEnd::Closed { content_end, end, next } => (content_end, end, next, None),
            FenceEnd::Reopened { at } => {
                (at, at, at, Some(Warning::MissingClosingDelimiter))
            }
            FenceEnd::Failed(reason) => {
                let defect = Defect::new(reason, &*syntax.default_name, (start, line.seen_end()));
                self.report_line(window, removals, index, defect);
                self.context.on_fence_line(line, FenceLine { info: b"signal", ..read });
                self.read_to = line.next;
                return Some(Flow::On(line.next));
            }
            FenceEnd::Wait => return Some(Flow::Wait),
        };
        let shown = trim_line_end(window.slice(start, closing));
        let shown_end = start + shown.trim_ascii_end().len() as u64;
        let text = window.slice(content, end);
        let mut result = fence::read(syntax, dialect, text, (start, shown_end));
        if let Ok(draft) = &mut result {
            draft.warnings.extend(warning);
        }
        let mut candidate = self.candidate(window, removals, index, result);
        candidate.quoted = self.mask != Mask::None || self.context.comment;
        candidate.around = Some(self.surroundings(window, line.start));
        self.note_modern(&candidate);
        self.submit(candidate, None);
        self.context.inline.restart(next);
        self.read_to = next;
        Some(Flow::On(next))
    }

    /// Remembers that a dialect's current form was used, so that its old forms do not count.
    fn note_modern(&mut self, candidate: &Candidate) {
        let dialect = candidate.dialect;
        if !candidate.legacy && self.verdict(candidate).is_none() && candidate.result.is_ok()
            && !self.modern.contains(&dialect)
        {
            self.modern.push(dialect);
        }
    }

    /// A keyword that may end the message.
    pub(crate) fn on_trailer(&mut self, window: &Window<'_>, removals: &Removals, at: u64) -> Flow {
        let rules = self.rules;
        for (index, dialect) in rules.dialects().iter().enumerate() {
            let Syntax::Trailer(trailer) = &dialect.syntax else { continue };
            let Some((length, exact)) = keyword_at(trailer, window.from(at)) else { continue };
            let end = at + length as u64;
            let Some(rest) = rest_of_line(window, end) else { return Flow::Wait };
            let before = window.slice(at.saturating_sub(4), at);
            let name = dialect.signals.first().map(|def| def.name.clone()).unwrap_or_default();
            let range = (at, end);
            if continues_word(before, rest) {
                let defect = Defect::new(Reason::Misspelled, &*name, range);
                self.report_line(window, removals, index, defect);
                return Flow::On(end);
            }
            if !exact {
                let defect = Defect::new(Reason::WrongCase, &*name, range);
                self.report_line(window, removals, index, defect);
                return Flow::On(end);
            }
            let otherwise = match rest.first() {
                Some(b'*' | b'_' | b'`' | b'~') => Reason::Decorated,
                Some(b'"' | b'\'') => Reason::Quoted,
                _ => Reason::NotAtEnd,
            };
            let draft = Draft { name, range, ..Draft::default() };
            let mut candidate = self.candidate(window, removals, index, Ok(draft));
            candidate.quoted = self.is_quoted(window, at, Some(end));
            let mut around = self.surroundings(window, at);
            around.rest = String::from_utf8_lossy(rest).into_owned();
            candidate.around = Some(around);
            if trailer.require_at_end {
                // What is still here has nothing but white space behind it.
                self.terminals.retain(|terminal| terminal.dialect != index || !terminal.repeats);
                let (fenced, repeats) = (false, true);
                let terminal =
                    Terminal { dialect: index, candidate, otherwise, checked: end, fenced, repeats };
                self.terminals.push(terminal);
            } else {
                self.submit(candidate, None);
            }
            return Flow::On(end);
        }
        Flow::On(at + 1)
    }

    /// Reports a malformed signal on the current line.
    fn report_line(&mut self, window: &Window<'_>, removals: &Removals, index: usize, defect: Defect) {
        let start = defect.range.0;
        let mut candidate = self.candidate(window, removals, index, Err(defect));
        candidate.quoted = self.is_quoted(window, start, None);
        self.submit(candidate, None);
    }

    /// Reports a name that stands at `at` in its line where it should start it.
    fn out_of_place(
        &mut self,
        window: &Window<'_>,
        removals: &Removals,
        index: usize,
        name: &str,
        line: Line<'_>,
        at: usize,
    ) {
        let start = line.start + at as u64;
        let prefix = &line.text[..at];
        let mut reason = misplaced(prefix);
        let claim = self.rules.dialects()[index].signal(name).map(|def| def.meaning);
        if reason == Reason::NotWholeLine && claim.is_some_and(Meaning::is_claim) {
            let mut around = self.surroundings(window, start);
            around.rest = " ".to_owned() + &after_name(&line.text[at..]);
            if around.mention() {
                reason = Reason::Mentioned;
            }
        }
        let defect = Defect::new(reason, name, (start, line.seen_end().max(start)));
        let mut candidate = self.candidate(window, removals, index, Err(defect));
        candidate.quoted = is_quoting_prefix(prefix)
            || is_quoting_line(line.text)
            || self.is_quoted(window, start, None);
        self.submit(candidate, None);
    }

    /// Returns what stands around a claim that starts at `start`, which owns its line or ends it.
    pub(crate) fn surroundings(&self, window: &Window<'_>, start: u64) -> Surroundings {
        let (lead_in, adjacent) = self.lead_in(window, start);
        Surroundings { lead_in, adjacent, ..Surroundings::default() }
    }

    /// Returns the text before a claim, and whether it stands on its line or directly above.
    pub(crate) fn lead_in(&self, window: &Window<'_>, start: u64) -> (String, bool) {
        let reach = start.saturating_sub(LEAD_IN_MAX);
        let line_start = self.line_start.min(start);
        let same = window.slice(line_start.max(reach), start);
        if shows_words(same) {
            return (String::from_utf8_lossy(same).into_owned(), true);
        }
        let mut before = window.slice(reach, line_start);
        let mut newlines = 0;
        while let [rest @ .., last] = before {
            match last {
                b'\n' => newlines += 1,
                b' ' | b'\t' | b'\r' => {}
                _ => break,
            }
            before = rest;
        }
        let last = &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..];
        (String::from_utf8_lossy(last).into_owned(), newlines <= 1)
    }
}

fn shows_words(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

/// Says what is wrong with a name that does not start its line.
fn misplaced(prefix: &[u8]) -> Reason {
    let decoration = b" \t#*_>-+`\"'.)([]~0123456789";
    if prefix.iter().all(|byte| is_blank(*byte)) {
        Reason::Indented
    } else if prefix.iter().all(|byte| decoration.contains(byte)) {
        Reason::Decorated
    } else {
        Reason::NotWholeLine
    }
}

/// Returns what follows `KEY: NAME` or `NAME:` on its line.
fn after_name(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words = text.splitn(2, ": ").nth(1).unwrap_or("");
    words.split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned())
}

/// Finds `KEY:` in any case and the word behind it.
fn find_key<'t>(key: &str, text: &'t [u8]) -> Option<(usize, &'t [u8])> {
    let at = memchr::memchr_iter(b':', text).find_map(|colon| {
        let at = colon.checked_sub(key.len())?;
        text[at..colon].eq_ignore_ascii_case(key.as_bytes()).then_some(at)
    })?;
    let rest = super::text::trim_blanks_start(&text[at + key.len() + 1..]);
    let end = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    let name = &rest[..end.unwrap_or(rest.len())];
    let whole = at == 0 || !(text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
    whole.then_some((at, name))
}

/// Returns the length of the keyword that `text` starts with, and whether its case is right.
fn keyword_at(trailer: &trailer::Syntax, text: &[u8]) -> Option<(usize, bool)> {
    let words = trailer.alternative_signals.iter().chain([&trailer.keyword]);
    words
        .filter_map(|word| {
            let start = text.get(..word.len())?;
            let same = start.eq_ignore_ascii_case(word.as_bytes());
            same.then(|| (word.len(), !trailer.case_sensitive || start == word.as_bytes()))
        })
        .max()
}

/// Returns whether a keyword between these is part of a longer word.
fn continues_word(before: &[u8], after: &[u8]) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let last = before.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    let left = last.and_then(|chunk| chunk.valid().chars().next_back()).is_some_and(word);
    let right = after.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    left || right.is_some_and(word)
}

enum FenceEnd {
    Closed { content_end: u64, end: u64, next: u64 },
    Failed(Reason),
    /// Another fence opens before this one is closed.
    Reopened { at: u64 },
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
        if let Some(read) = FenceLine::read(line.text).filter(|read| read.marker == b'`') {
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
