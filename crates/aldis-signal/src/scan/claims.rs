//! From what a grammar read to a finding: who said it, where, and whether it was taken back.

use std::sync::Arc;

use super::draft::{Defect, Draft, Range};
use super::engine::Engine;
use super::tags::TagState;
use super::taken_back::{REACH, SLACK, TakenBack};
use super::text::{SIGNAL_MAX, is_id, is_placeholder};
use super::window::Window;
use crate::dialect::Syntax;
use crate::signal::{Fields, Finding, NearMiss, Place, Reason, Signal, Span};
use crate::structure::LINE_REACH;
use crate::structure::Mask;
use crate::visible::sequence::{hides_text, is_swallowed_after};

/// How many findings near the end are remembered: more do not fit into what is looked at there.
const REPORTED_MAX: usize = 2048;
/// Something read from the text, ready to be judged.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Index of its dialect.
    pub(crate) dialect: usize,
    pub(crate) result: Result<Draft, Defect>,
    pub(crate) place: Place,
    pub(crate) raw: String,
    pub(crate) quoted: bool,
    pub(crate) hidden: bool,
    /// Why the text around it makes it no claim of its own.
    pub(crate) doubt: Option<Reason>,
    /// Whether it is an old form, which counts only if no new form does.
    pub(crate) legacy: bool,
}

/// A signal that is not certain yet.
#[derive(Debug)]
pub(crate) struct Pending {
    signal: Box<Signal>,
    dialect: usize,
    /// Where its own text starts and ends, in scanned offsets.
    start: u64,
    pub(super) end: u64,
    /// Whether later text can take it back.
    pub(super) claim: bool,
    /// Whether its body is still open.
    open: bool,
    /// What takes it back, once all that could has been read.
    taken_back: Option<TakenBack>,
    /// Where its body ends, in scanned offsets.
    body_end: u64,
    legacy: bool,
}

impl Pending {
    /// Returns whether what follows may take it back and has not been read.
    fn is_unjudged(&self) -> bool {
        self.claim && self.taken_back.is_none()
    }

    pub(super) fn place(&self) -> Place {
        self.signal.place
    }
}

/// How much of a body is read for its fields; a prompt that is passed on may take up the whole
/// signal.
const FIELDS_MAX: u64 = 8 * 1024;

/// The body of the last line signal.
#[derive(Debug)]
pub(crate) struct Body {
    /// How much of it is read.
    limit: u64,
    /// Number of its signal in the order of pending ones.
    number: u64,
    dialect: usize,
    start: u64,
    /// What was read from it, once it has grown beyond what is kept.
    read: Option<crate::dialect::syntax::body::Body>,
}

impl Body {
    /// Returns the offset from which its text is still needed.
    pub(crate) fn needs(&self) -> Option<u64> {
        self.read.is_none().then_some(self.start)
    }
}

impl Engine<'_> {
    /// Returns what was read from a range, with what was received there.
    pub(crate) fn candidate(
        &mut self,
        window: &Window<'_>,
        dialect: usize,
        draft: Draft,
        quoted: bool,
    ) -> Candidate {
        let (start, end) = draft.range;
        Candidate {
            dialect,
            place: self.place(window, start, end),
            raw: window.offsets.restore(start, window.slice(start, end)),
            quoted,
            hidden: !quoted && self.is_hidden(window, draft.range),
            result: Ok(draft),
            doubt: None,
            legacy: false,
        }
    }

    pub(crate) fn place(&mut self, window: &Window<'_>, start: u64, end: u64) -> Place {
        let span = window.offsets.span(start, end);
        let line_start = window.offsets.original_end(self.line_start.min(start));
        let column = span.start - line_start + 1;
        Place { span, line: self.line_number(window, self.line_start), column }
    }

    /// Returns whether a terminal would not show a range, or hides anything of the lines that it touches
    /// and of what is at hand of the next.
    pub(super) fn is_hidden(&self, window: &Window<'_>, (start, end): Range) -> bool {
        let from = self.line_start.max(start.saturating_sub(LINE_REACH)).min(start);
        let after = window.slice(end, end + LINE_REACH);
        let to = end + memchr::memchr(b'\n', after).unwrap_or(after.len()) as u64;
        hides_text(window.slice(from, to))
            || is_swallowed_after(window.slice(from, start))
            || window.offsets.conceals(start)
    }

    /// Judges a candidate and reports it, or keeps it until it is certain.
    pub(crate) fn submit(&mut self, candidate: Candidate, body: Option<u64>) {
        let refusal = self.refusal(&candidate);
        let Candidate { dialect, result, place, raw, legacy, .. } = candidate;
        let draft = match (refusal, result) {
            (None, Ok(draft)) => draft,
            (Some(reason), Ok(draft)) => {
                let about = matches!(reason, Reason::WrongToken).then(String::new);
                return self.miss(dialect, reason, draft.name, about, place, raw);
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
        self.due = 0;
        let (start, end) = draft.range;
        let needs_prompt = !requires.is_empty();
        let signal = self.signal(dialect, draft, place, raw);
        let claim = signal.meaning.is_claim() && definition.verdict_words;
        self.note(place.span);
        let open = body.is_some();
        let pending = Pending {
            signal,
            dialect,
            start,
            end,
            claim,
            open,
            taken_back: None,
            body_end: end,
            legacy,
        };
        if !claim && !open {
            return self.settle(pending);
        }
        self.pending.push_back(pending);
        if let Some(start) = body {
            let number = self.pending_first + self.pending.len() as u64 - 1;
            let limit = if needs_prompt { SIGNAL_MAX } else { FIELDS_MAX };
            self.body = Some(Body { limit, number, dialect, start, read: None });
        }
    }

    /// Returns whether something claims that work is over or passed on.
    pub(super) fn makes_claim(&self, dialect: usize, draft: &Draft) -> bool {
        let dialect = &self.rules.dialects()[dialect];
        dialect.verdict_words && draft.meaning(dialect).0.is_claim()
    }

    fn signal(&self, dialect: usize, draft: Draft, place: Place, raw: String) -> Box<Signal> {
        let dialect = &self.rules.dialects()[dialect];
        let (meaning, handler) = draft.meaning(dialect);
        let handler = handler.cloned();
        Box::new(Signal {
            dialect: dialect.name.clone(),
            via: self.via(draft.token.as_deref()),
            name: draft.name,
            meaning,
            subject: draft.subject,
            payload: draft.payload,
            progress: draft.progress,
            fields: draft.fields,
            handler,
            warnings: draft.warnings,
            origin: self.origin.clone(),
            place,
            body_end: None,
            raw,
        })
    }

    pub(crate) fn miss(
        &mut self,
        dialect: usize,
        reason: Reason,
        name: Arc<str>,
        about: Option<String>,
        place: Place,
        raw: String,
    ) {
        if !self.near_misses {
            return;
        }
        self.note(place.span);
        if self.misses.counts(dialect, reason) {
            return;
        }
        let definition = &self.rules.dialects()[dialect];
        let miss = Box::new(NearMiss {
            dialect: definition.name.clone(),
            definition: definition.clone(),
            name,
            reason,
            about: about.filter(|about| !about.is_empty()),
            origin: self.origin.clone(),
            place,
            raw,
            more: 0,
        });
        if let Some(told) = self.misses.tell(dialect, miss) {
            self.out.push(Finding::NearMiss(told));
        }
    }

    /// Returns whether nothing comes of looking any further at something: where only signals are wanted
    /// and it is quoted.
    pub(super) fn is_in_vain(&self, quoted: bool) -> bool {
        quoted && !self.near_misses
    }

    /// Reports something malformed.
    pub(crate) fn report(
        &mut self,
        window: &Window<'_>,
        dialect: usize,
        defect: Defect,
        quoted: bool,
    ) {
        if !self.near_misses {
            return;
        }
        let reason = match quoted {
            true => Reason::Quoted,
            false => defect.reason,
        };
        let reason = self.reason_here(reason);
        let (start, end) = defect.range;
        if self.misses.counts(dialect, reason) {
            return self.note(window.offsets.span(start, end));
        }
        let place = self.place(window, start, end);
        let raw = window.offsets.restore(start, window.slice(start, end));
        self.miss(dialect, reason, defect.name, defect.about, place, raw);
    }

    /// Returns why something does not count: from others nothing does.
    pub(crate) fn reason_here(&self, reason: Reason) -> Reason {
        if self.origin.may_signal() { reason } else { Reason::UntrustedOrigin }
    }

    pub(crate) fn note(&mut self, span: Span) {
        if self.reported.len() == REPORTED_MAX {
            self.reported.pop_front();
        }
        self.reported.push_back(span);
    }

    /// Ends the body of the last line signal at `end`.
    pub(crate) fn close_body(&mut self, window: &Window<'_>, end: u64) {
        let Some(body) = self.body.take() else { return };
        let Syntax::Line(syntax) = &self.rules.dialects()[body.dialect].syntax else { return };
        let shown = window.slice(body.start, end.min(body.start + body.limit));
        let read = body.read.unwrap_or_else(|| syntax.read_body(shown));
        let Some(index) = body.number.checked_sub(self.pending_first).map(|index| index as usize)
        else {
            return;
        };
        let via = self.via(read.token.as_deref());
        let fits = self.token_fits(read.token.as_deref());
        let Some(pending) = self.pending.get_mut(index) else { return };
        pending.open = false;
        pending.body_end = end;
        self.due = 0;
        pending.signal.via = via;
        pending.signal.body_end = Some(window.offsets.original_end(end));
        pending.signal.warnings.extend(read.warnings);
        pending.signal.fields = read.fields;
        if let Some(field) = self.rules.dialects()[body.dialect]
            .signal(&pending.signal.name)
            .and_then(|def| def.subject_from.as_deref())
        {
            let said = pending.signal.fields.get(field).and_then(|value| value.as_str());
            pending.signal.subject = said.filter(|said| is_id(said.as_bytes())).map(str::to_owned);
        }
        let end_missing = read.unclosed.then_some(match end - body.start > body.limit {
            true => Reason::TooLong,
            false => Reason::Unclosed,
        });
        let missing = self.missing_fields(body.dialect, index, end_missing);
        let refused = missing
            .or_else(|| read.hidden.then_some((Reason::Hidden, None)))
            .or_else(|| (!fits).then_some((Reason::WrongToken, None)));
        if let Some((reason, about)) = refused {
            // Only where a prompt was to follow is the rest not the agent's own words.
            let masks = reason != Reason::WrongToken && body.limit == SIGNAL_MAX;
            if let Some(pending) = self.remove_pending(index) {
                let Signal { name, place, raw, .. } = *pending.signal;
                self.miss(pending.dialect, reason, name, about, place, raw);
            }
            if masks {
                self.structure.mask(Mask::All);
            }
        } else if self.pending.get(index).is_some_and(|pending| !pending.claim)
            && let Some(pending) = self.remove_pending(index)
        {
            self.settle(pending);
        }
    }

    /// Returns the first required member that a signal does not have, or that was not filled in.
    fn missing_fields(
        &self,
        dialect: usize,
        index: usize,
        end_missing: Option<Reason>,
    ) -> Option<(Reason, Option<String>)> {
        let signal = &self.pending.get(index)?.signal;
        let def = self.rules.dialects()[dialect].signal(&signal.name)?;
        let lacks = |field: &&String| is_empty(&signal.fields, field);
        if let Some(missing) = def.require.iter().find(lacks) {
            let reason = end_missing.unwrap_or(Reason::MissingField);
            return Some((reason, Some(missing.clone())));
        }
        let is_template = |field: &&String| {
            let said = signal.fields.get(*field).and_then(|value| value.as_str());
            said.is_some_and(is_placeholder)
        };
        let template = def.require.iter().chain(&def.subject_from).find(is_template)?;
        Some((Reason::Placeholder, Some(template.clone())))
    }

    /// Takes a pending signal out of the queue. The numbers of those before it stay.
    fn remove_pending(&mut self, index: usize) -> Option<Pending> {
        let removed = self.pending.remove(index);
        if index == 0 && removed.is_some() {
            self.pending_first += 1;
        } else if let (Some(_), Some(body)) = (&removed, &mut self.body)
            && body.number > self.pending_first + index as u64
        {
            body.number -= 1;
        }
        removed
    }

    /// Lets go of what cannot change any more at the current place.
    #[inline(never)]
    pub(crate) fn expire(&mut self, window: &Window<'_>) {
        if let Some(body) = &mut self.body
            && body.read.is_none()
            && self.at.saturating_sub(body.start) > body.limit
            && let Syntax::Line(syntax) = &self.rules.dialects()[body.dialect].syntax
        {
            let text = window.slice(body.start, body.start + body.limit);
            body.read = Some(syntax.read_body(text));
        }
        self.judge_pending(window, 0);
        loop {
            // At most one body is open at a time; what came after it need not wait for it.
            let index = usize::from(self.pending.front().is_some_and(|front| front.open));
            self.judge_pending(window, index);
            let certain = self
                .pending
                .get(index)
                .is_some_and(|next| !next.open && (!next.claim || next.taken_back.is_some()));
            match certain.then(|| self.remove_pending(index)).flatten() {
                Some(pending) => self.settle(pending),
                None => break,
            }
        }
        if self.open_tags > 0 {
            self.expire_tags(window);
        }
        self.check_terminals(window, self.at);
        self.due = self.next_due();
    }

    /// Finds out whether a claim was taken back, if all that could do so is at hand.
    fn judge_pending(&mut self, window: &Window<'_>, index: usize) {
        let at = self.at;
        let Some(pending) = self.pending.get_mut(index) else { return };
        if pending.is_unjudged() && pending.end + REACH + SLACK < at {
            pending.taken_back = Some(self.retractions.of(window, pending.end));
        }
    }

    /// Returns the place before which nothing expires.
    fn next_due(&self) -> u64 {
        if !self.terminals.is_empty() {
            return 0;
        }
        let body = self.body.as_ref().filter(|body| body.read.is_none());
        let body = body.map(|body| body.start + body.limit);
        // One whose body is open waits for that, unless it can still be taken back.
        let pending =
            self.pending.iter().take(2).filter_map(|pending| match pending.is_unjudged() {
                true => Some(pending.end + REACH + SLACK + 1),
                false => (!pending.open).then_some(0),
            });
        let tags = self.tags.iter().filter_map(TagState::oldest).map(|start| start + SIGNAL_MAX);
        let tags = tags.take(if self.open_tags > 0 { self.tags.len() } else { 0 });
        body.into_iter().chain(pending).chain(tags).min().unwrap_or(u64::MAX)
    }

    /// Returns where the text starts that is still needed to judge claims.
    pub(super) fn unjudged_from(&self) -> Option<u64> {
        let unjudged = self.pending.iter().filter(|pending| pending.is_unjudged());
        unjudged.map(|pending| pending.end).min()
    }

    fn settle(&mut self, pending: Pending) {
        let taken_back = pending.taken_back.is_some_and(|by| by.is_certain(pending.body_end));
        let range = (pending.start, pending.body_end);
        let Pending { signal, dialect, legacy, .. } = pending;
        if taken_back {
            let Signal { name, place, raw, .. } = *signal;
            self.miss(dialect, Reason::Retracted, name, None, place, raw);
        } else if legacy {
            self.keep_legacy(dialect, signal);
        } else {
            self.accept(dialect, signal, range);
        }
    }

    pub(crate) fn end_pending(&mut self, window: &Window<'_>) {
        while let Some(mut pending) = self.remove_pending(0) {
            if pending.is_unjudged() {
                pending.taken_back = Some(self.retractions.of(window, pending.end));
            }
            self.settle(pending);
        }
    }
}

fn is_empty(fields: &Fields, field: &str) -> bool {
    match fields.get(field) {
        None => true,
        Some(value) => value.as_str().is_some_and(|text| text.trim().is_empty()),
    }
}
