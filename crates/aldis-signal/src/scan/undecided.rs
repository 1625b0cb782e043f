//! Signals that are not certain yet: one queue, and one list of what each waits for.
//!
//! A signal waits for the end of its body, for text that may take it back, and some for the end of the
//! message: an old form counts only without a new one, and with `strict` nothing may follow. From
//! [`Engine::waiting`] follow the text that is still needed, where the next one is due, and how far
//! findings are complete: each is one minimum.

use std::collections::VecDeque;

use super::candidate::Candidate;
use super::engine::{Engine, LOOK_BACK};
use super::taken_back::{REACH, Retractions, SLACK, TakenBack};
use super::terminals::Terminal;
use super::text::{SIGNAL_MAX, is_id, is_placeholder, lossy};
use super::window::Window;
use crate::dialect::Syntax;
use crate::dialect::syntax::body;
use crate::signal::{Fields, Finding, Reason, Signal};
use crate::structure::Mask;

/// How much of a body is read for its fields; a prompt that is passed on may take up the whole
/// signal.
const FIELDS_MAX: u64 = 8 * 1024;
/// How many signals of old forms are kept, and how much text of them: the last ones, which count most.
const LEGACY_MAX: usize = 16 * 1024;
const LEGACY_TEXT_MAX: usize = 4 << 20;

/// A signal that is not certain yet.
#[derive(Debug)]
struct Undecided {
    signal: Box<Signal>,
    dialect: usize,
    /// Where its own text starts and ends, and where its body does, in scanned offsets.
    start: u64,
    end: u64,
    body_end: u64,
    /// Its body, while that is open.
    body: Option<OpenBody>,
    /// Whether later text can take it back.
    claim: bool,
    /// What takes it back, once all that could has been read.
    taken_back: Option<TakenBack>,
    legacy: bool,
}

/// The body of a line signal.
#[derive(Debug)]
struct OpenBody {
    start: u64,
    /// How much of it is read.
    limit: u64,
    /// What was read from it, once it has grown beyond that.
    read: Option<body::Body>,
}

/// What a signal waits for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// The end of its body.
    Body,
    /// Text that may take it back.
    Retraction,
    /// Nothing but the end of the message, if that matters.
    End,
}

impl Undecided {
    fn awaits(&self) -> Awaits {
        match (&self.body, self.is_unjudged()) {
            (Some(_), _) => Awaits::Body,
            (None, true) => Awaits::Retraction,
            (None, false) => Awaits::End,
        }
    }

    /// Returns whether what follows may take it back and has not been read.
    fn is_unjudged(&self) -> bool {
        self.claim && self.taken_back.is_none()
    }

    fn waiting(&self) -> Waiting {
        let judged_at = self.is_unjudged().then_some(self.end + REACH + SLACK + 1);
        let unread = self.body.as_ref().filter(|body| body.read.is_none());
        let body_full = unread.map(|body| body.start + body.limit);
        let ready = (self.awaits() == Awaits::End).then_some(0);
        Waiting {
            starts: self.signal.place.span.start,
            needs: unread
                .map(|body| body.start)
                .into_iter()
                .chain(judged_at.map(|_| self.end))
                .min(),
            due: judged_at.into_iter().chain(body_full).chain(ready).min(),
        }
    }
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Where it starts in the message.
    starts: u64,
    /// From where on it needs the text.
    needs: Option<u64>,
    /// Where it must be looked at again.
    due: Option<u64>,
}

/// All that is undecided.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// What waits for text, in the order in which it came.
    timed: VecDeque<Undecided>,
    /// What waits for the end of the message, because nothing may follow it.
    at_end: Vec<Undecided>,
    /// Old forms, which wait for the end, too: they count only without a new form.
    legacy: VecDeque<Undecided>,
    pub(super) terminals: Vec<Terminal>,
    /// The dialects that reported something in their current form.
    modern: Vec<usize>,
    /// How much text the old forms have.
    pub(super) legacy_text: usize,
    /// The ranges of what counts, in scanned offsets; only where nothing else may follow.
    accepted: Vec<(u64, u64)>,
    retractions: Retractions,
    /// Nothing is due before this place.
    pub(super) due: u64,
}

impl Queue {
    /// Keeps a signal of an old form. An endless stream of them must not fill the memory.
    fn keep_legacy(&mut self, entry: Undecided) {
        self.legacy_text += entry.signal.raw.len();
        self.legacy.push_back(entry);
        while self.legacy.len() > LEGACY_MAX || self.legacy_text > LEGACY_TEXT_MAX {
            let Some(oldest) = self.legacy.pop_front() else { return };
            self.legacy_text -= oldest.signal.raw.len();
        }
    }
}

impl Engine<'_> {
    fn waiting(&self) -> impl Iterator<Item = Waiting> {
        let queue = &self.queue;
        let at_end = queue.at_end.iter().map(|entry| Waiting {
            starts: entry.signal.place.span.start,
            needs: Some(entry.body_end),
            due: Some(entry.body_end + SIGNAL_MAX + 1),
        });
        let terminals = queue.terminals.iter().map(|terminal| Waiting {
            starts: terminal.candidate.place.span.start,
            needs: Some(terminal.checked),
            due: Some(0),
        });
        let tags = self.tags.oldest().map(|start| Waiting {
            // Offsets of the scanned text lie no later than those of the message.
            starts: start,
            needs: Some(start.saturating_sub(LOOK_BACK)),
            due: Some(start + SIGNAL_MAX),
        });
        queue.timed.iter().map(Undecided::waiting).chain(at_end).chain(terminals).chain(tags)
    }

    /// Returns the offset before which nothing starts that is still to be decided.
    pub(crate) fn decided_until(&self) -> u64 {
        let Queue { legacy, modern, .. } = &self.queue;
        let legacy = legacy.iter().filter(|entry| !modern.contains(&entry.dialect));
        let legacy = legacy.map(|entry| entry.signal.place.span.start);
        self.waiting().map(|waiting| waiting.starts).chain(legacy).min().unwrap_or(u64::MAX)
    }

    /// Returns from where on the text is needed for what is undecided.
    pub(super) fn needed_from(&self) -> Option<u64> {
        self.waiting().filter_map(|waiting| waiting.needs).min()
    }

    /// Judges a candidate and reports it, or keeps it until it is certain.
    pub(crate) fn submit(&mut self, candidate: Candidate, body: Option<u64>) {
        let refusal = self.refusal(&candidate);
        let Candidate { dialect, result, place, raw, legacy, .. } = candidate;
        let draft = match (refusal, result) {
            (None, Ok(draft)) => draft,
            (Some(reason), Ok(draft)) => {
                return self.miss(dialect, reason, draft.name, None, place, raw);
            }
            (_, Err(defect)) => {
                let reason = refusal.unwrap_or(defect.reason);
                return self.miss(dialect, reason, defect.name, defect.about, place, raw);
            }
        };
        let definition = &self.rules.dialects()[dialect];
        let requires = definition.signal(&draft.name).map_or(&[][..], |def| &def.require);
        let missing = requires.iter().find(|field| is_empty(&draft.fields, field));
        // Those of a body are known when it ends.
        if let (None, Some(missing)) = (body, missing) {
            let about = Some(missing.clone());
            return self.miss(dialect, Reason::MissingField, draft.name, about, place, raw);
        }
        let (start, end) = draft.range;
        let limit = if requires.is_empty() { FIELDS_MAX } else { SIGNAL_MAX };
        let body = body.map(|start| OpenBody { start, limit, read: None });
        let claim = self.makes_claim(dialect, &draft);
        let signal = self.signal(dialect, draft, place, raw);
        self.report.note(place.span);
        let (body_end, taken_back) = (end, None);
        let entry =
            Undecided { signal, dialect, start, end, body_end, body, claim, taken_back, legacy };
        match entry.awaits() {
            Awaits::End => self.decide(entry),
            Awaits::Body | Awaits::Retraction => {
                let due = entry.waiting().due.unwrap_or(u64::MAX);
                self.queue.due = self.queue.due.min(due);
                self.queue.timed.push_back(entry);
            }
        }
    }

    /// Ends the open body at `end`.
    pub(crate) fn close_body(&mut self, window: &Window<'_>, end: u64) {
        let open = |entry: &Undecided| entry.body.is_some();
        let Some(index) = self.queue.timed.iter().rposition(open) else { return };
        let Some(mut entry) = self.queue.timed.remove(index) else { return };
        let Some(body) = entry.body.take() else { return };
        let dialect = &self.rules.dialects()[entry.dialect];
        let Syntax::Line(syntax) = &dialect.syntax else { return };
        let shown = window.slice(body.start, end.min(body.start + body.limit));
        let read = body.read.unwrap_or_else(|| syntax.read_body(shown));
        self.queue.due = 0;
        entry.body_end = end;
        let token = read.token.as_deref();
        entry.signal.via = self.via(token);
        let fits = self.token_fits(token);
        entry.signal.body_end = Some(window.offsets.original_end(end));
        entry.signal.warnings.extend(read.warnings);
        entry.signal.fields = read.fields;
        let def = dialect.signal(&entry.signal.name);
        if let Some(field) = def.and_then(|def| def.subject_from.as_deref()) {
            let written = entry.signal.fields.get(field).and_then(|value| value.as_str());
            let id = written.filter(|written| is_id(written.as_bytes()));
            entry.signal.subject = id.map(str::to_owned);
        }
        let end_missing = read.unclosed.then_some(match end - body.start > body.limit {
            true => Reason::TooLong,
            false => Reason::Unclosed,
        });
        let refused = self
            .missing_fields(&entry, end_missing)
            .or_else(|| read.hidden.then_some((Reason::Hidden, None)))
            .or_else(|| (!fits).then_some((Reason::WrongToken, None)));
        match refused {
            Some((reason, about)) => {
                let Signal { name, place, raw, .. } = *entry.signal;
                self.miss(entry.dialect, reason, name, about, place, raw);
                // Only where a prompt was to follow is the rest not the agent's own words.
                if reason != Reason::WrongToken && body.limit == SIGNAL_MAX {
                    self.structure.mask(Mask::All);
                }
            }
            None if entry.claim => self.queue.timed.insert(index, entry),
            None => self.decide(entry),
        }
    }

    /// Returns the first required member that a signal does not have, or that was not filled in.
    fn missing_fields(
        &self,
        entry: &Undecided,
        end_missing: Option<Reason>,
    ) -> Option<(Reason, Option<String>)> {
        let signal = &entry.signal;
        let def = self.rules.dialects()[entry.dialect].signal(&signal.name)?;
        let lacks = |field: &&String| is_empty(&signal.fields, field);
        if let Some(missing) = def.require.iter().find(lacks) {
            let reason = end_missing.unwrap_or(Reason::MissingField);
            return Some((reason, Some(missing.clone())));
        }
        let is_template = |field: &&String| {
            let written = signal.fields.get(*field).and_then(|value| value.as_str());
            written.is_some_and(is_placeholder)
        };
        let template = def.require.iter().chain(&def.subject_from).find(is_template)?;
        Some((Reason::Placeholder, Some(template.clone())))
    }

    /// Decides what can be decided at the current place.
    pub(crate) fn expire(&mut self, window: &Window<'_>) {
        self.read_long_body(window);
        self.judge_at(window, 0);
        loop {
            // At most one body is open at a time; what came after it need not wait for it.
            let first = self.queue.timed.front().map(Undecided::awaits);
            let index = usize::from(first == Some(Awaits::Body));
            self.judge_at(window, index);
            let next = self.queue.timed.get(index).map(Undecided::awaits);
            let certain = (next == Some(Awaits::End)).then(|| self.queue.timed.remove(index));
            match certain.flatten() {
                Some(entry) => self.decide(entry),
                None => break,
            }
        }
        self.expire_tags(window);
        self.check_terminals(window, self.at);
        self.expire_end();
        self.queue.due = self.waiting().filter_map(|waiting| waiting.due).min().unwrap_or(u64::MAX);
    }

    /// Reads a body that has grown beyond what is read of it.
    fn read_long_body(&mut self, window: &Window<'_>) {
        let rules = self.rules;
        let open = self.queue.timed.iter_mut().rev().find_map(|entry| {
            let dialect = entry.dialect;
            entry.body.as_mut().map(|body| (body, dialect))
        });
        if let Some((body, dialect)) = open
            && body.read.is_none()
            && self.at.saturating_sub(body.start) > body.limit
            && let Syntax::Line(syntax) = &rules.dialects()[dialect].syntax
        {
            body.read = Some(syntax.read_body(window.slice(body.start, body.start + body.limit)));
        }
    }

    /// Finds out whether a claim was taken back, if all that could do so is at hand.
    fn judge_at(&mut self, window: &Window<'_>, index: usize) {
        let at = self.at;
        let Queue { timed, retractions, .. } = &mut self.queue;
        let Some(entry) = timed.get_mut(index).filter(|entry| entry.is_unjudged()) else { return };
        if entry.end + REACH + SLACK < at {
            entry.taken_back = Some(retractions.of(window, entry.end));
        }
    }

    /// Reports a signal that nothing can take back any more, or lets it wait for the end.
    fn decide(&mut self, entry: Undecided) {
        let taken_back = entry.taken_back.is_some_and(|by| by.is_certain(entry.body_end));
        if taken_back {
            return self.refuse_undecided(entry, Reason::Retracted);
        }
        if entry.legacy {
            self.queue.keep_legacy(entry);
        } else if !self.rules.is_strict() {
            self.report.out.push(Finding::Signal(entry.signal));
        } else {
            self.queue.accepted.push((entry.start, entry.body_end));
            match entry.signal.meaning.is_decisive() {
                true => self.queue.at_end.push(entry),
                false => self.report.out.push(Finding::Signal(entry.signal)),
            }
        }
    }

    fn refuse_undecided(&mut self, entry: Undecided, reason: Reason) {
        let Signal { name, place, raw, .. } = *entry.signal;
        self.miss(entry.dialect, reason, name, None, place, raw);
    }

    /// Remembers that a dialect's current form was used, so that its old forms do not count.
    pub(super) fn note_modern(&mut self, candidate: &Candidate) {
        let dialect = candidate.dialect;
        let counts = !candidate.legacy && candidate.result.is_ok();
        if counts && self.refusal(candidate).is_none() && !self.queue.modern.contains(&dialect) {
            self.queue.modern.push(dialect);
        }
    }

    /// Refuses what so much follows that it cannot be other signals only.
    fn expire_end(&mut self) {
        let at = self.at;
        let late = |entry: &Undecided| entry.body_end + SIGNAL_MAX < at;
        if self.queue.at_end.iter().any(late) {
            let at_end = std::mem::take(&mut self.queue.at_end);
            let (gone, kept): (Vec<_>, Vec<_>) = at_end.into_iter().partition(late);
            self.queue.at_end = kept;
            self.queue.accepted.retain(|(_, end)| end + SIGNAL_MAX >= at);
            gone.into_iter().for_each(|entry| self.refuse_undecided(entry, Reason::NotAtEnd));
        }
    }

    /// Ends the message.
    pub(crate) fn end_undecided(&mut self, window: &Window<'_>) {
        while let Some(mut entry) = self.queue.timed.pop_front() {
            if entry.is_unjudged() {
                entry.taken_back = Some(self.queue.retractions.of(window, entry.end));
            }
            self.decide(entry);
        }
        let last_words = self.last_words(window);
        for entry in std::mem::take(&mut self.queue.at_end) {
            if last_words.is_some_and(|words| words > entry.body_end) {
                self.refuse_undecided(entry, Reason::NotAtEnd);
            } else {
                self.report.out.push(Finding::Signal(entry.signal));
            }
        }
        let Queue { legacy, modern, .. } = &mut self.queue;
        let counts = std::mem::take(legacy).into_iter();
        let counts = counts.filter(|entry| !modern.contains(&entry.dialect));
        self.report.out.extend(counts.map(|entry| Finding::Signal(entry.signal)));
    }

    /// Returns where the last words end that belong to no signal, as far back as that matters. Symbols and
    /// closing delimiters are no words.
    fn last_words(&mut self, window: &Window<'_>) -> Option<u64> {
        let mut accepted = std::mem::take(&mut self.queue.accepted);
        accepted.sort_unstable();
        let mut at = accepted.first()?.1;
        let mut last = None;
        for (start, end) in accepted.into_iter().chain([(window.end(), window.end())]) {
            if lossy(window.slice(at, start)).contains(char::is_alphanumeric) {
                last = Some(start);
            }
            at = at.max(end);
        }
        last
    }
}

fn is_empty(fields: &Fields, field: &str) -> bool {
    match fields.get(field) {
        None => true,
        Some(value) => value.as_str().is_some_and(|text| text.trim().is_empty()),
    }
}
