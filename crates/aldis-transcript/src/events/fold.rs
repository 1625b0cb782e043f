//! Host events: items folded, with what must be remembered so that each is reported once.

use std::collections::VecDeque;
use std::time::Duration;

use super::resets::{Zone, resets_at};
use super::text::Tail;
use super::trouble::Kind;
use super::{HostEvent, ToolAnswer, is_own_tool};
use crate::about::{ToolInput, tool_input};
use crate::item::{Call, CallResult, Cost, Entry, Item, Text, Until, Usage, Verdict};
use crate::receipt::receipt_in;
use aldis_signal::message::Role;
use aldis_signal::time::Timestamp;

/// The host events of one output.
#[derive(Debug)]
pub(crate) struct Events {
    zone: Zone,
    /// The last line, if it is plain text.
    tail: Tail,
    has_ended: bool,
    session: Option<String>,
    /// The last calls.
    calls: Recent<KnownCall>,
    costs: Ledger,
    error: Option<HostError>,
}

/// A call that was made.
#[derive(Clone, Debug)]
struct KnownCall {
    name: String,
    is_over: bool,
    /// It is `aldis signal` and nothing else.
    reports: bool,
    is_numbered: bool,
}

/// An error that may be the last thing a host reports, or not.
#[derive(Clone, Debug)]
struct HostError {
    kind: Kind,
    what: String,
    until: Option<Timestamp>,
}

/// One step of the fold.
struct Fold<'a> {
    known: &'a mut Events,
    now: Timestamp,
    sink: &'a mut dyn FnMut(HostEvent),
}

impl Events {
    pub(crate) fn new(zone: Zone) -> Self {
        Self {
            zone,
            tail: Tail::default(),
            has_ended: false,
            session: None,
            calls: Recent::default(),
            costs: Ledger::default(),
            error: None,
        }
    }

    /// Takes in what a line says.
    pub(crate) fn entry(
        &mut self,
        entry: &Entry<'_>,
        now: Timestamp,
        sink: &mut dyn FnMut(HostEvent),
    ) {
        self.tail = Tail::default();
        let mut fold = Fold { known: self, now, sink };
        entry.items.iter().for_each(|item| fold.item(item, entry.is_side));
    }

    /// Takes in a chunk of plain text.
    pub(crate) fn text(&mut self, chunk: &[u8]) {
        self.tail.push(chunk);
    }

    /// Takes in a line that is not in the host's form: plain text among its lines is its own.
    pub(crate) fn plain_line(&mut self, line: &[u8]) {
        self.tail.line(Some(line));
    }

    /// Nothing follows: an error that is left was the end.
    pub(crate) fn finish(mut self, now: Timestamp, sink: &mut dyn FnMut(HostEvent)) {
        let report = std::mem::take(&mut self.tail).report().filter(|_| !self.has_ended);
        let mut fold = Fold { known: &mut self, now, sink };
        if let Some((kind, text)) = report {
            fold.error(kind, &text, None);
        }
        fold.report_error();
    }
}

impl Fold<'_> {
    fn item(&mut self, item: &Item<'_>, is_side: bool) {
        match item {
            Item::Session(id) => self.session(id),
            Item::Text(text) if !is_side && is_work(text, self.has_error()) => self.worked(),
            Item::Call(call) => self.tool(call),
            Item::Result(result) if !result.is_partial => self.tool_ended(result, is_side),
            Item::Usage(usage) => self.spent(usage),
            Item::Denied { tool, what } => self.denied(tool, what),
            Item::Retry { what, until } => self.retrying(what, *until),
            Item::Trouble(trouble) if !trouble.is_doubtful || self.has_error() => {
                self.error(trouble.kind, &trouble.what, trouble.until);
            }
            Item::End { verdict, what } => self.ended(*verdict, what.as_deref()),
            _ => {}
        }
    }

    /// Names the session.
    fn session(&mut self, id: &str) {
        let id = clip(id, NAME_MAX);
        if id.is_empty() {
            return;
        }
        if self.known.session.as_deref() != Some(&*id) {
            self.known.session = Some(id.clone());
            (self.sink)(HostEvent::Session(id));
        }
    }

    /// A tool was called; calls with a name are told once.
    fn tool(&mut self, Call { id, name, about, input, is_numbered }: &Call<'_>) {
        self.worked();
        let call = clip(id, NAME_MAX);
        if !call.is_empty() && self.known.calls.get_mut(&call).is_some() {
            return;
        }
        let told = tool_input(about.or(*input));
        if !call.is_empty() {
            let (name, reports) = (clip(name, NAME_MAX), told.is_report());
            let is_numbered = *is_numbered;
            let known = KnownCall { name, is_over: false, reports, is_numbered };
            self.known.calls.insert(&call, known);
        }
        let name = clip(if name.is_empty() { "tool" } else { name }, NAME_MAX);
        let ToolInput { about, is_command, lines, .. } = told;
        let about = clip(&about, ABOUT_MAX);
        (self.sink)(HostEvent::Tool { call, name, about, is_command, lines });
    }

    /// A call was answered; one that nobody made is not told, unless it is of one of our tools.
    fn tool_ended(&mut self, result: &CallResult<'_>, sidechain: bool) {
        let call = clip(&result.id, NAME_MAX);
        let known = self.known.calls.get_mut(&call);
        let (is_own, reports, is_numbered) = known.map_or((false, false, false), |it| {
            (is_own_tool(&it.name), it.reports && !it.is_over, it.is_numbered)
        });
        let is_own = is_own || is_own_tool(&result.name);
        let receipt = receipt_in(result).filter(|_| reports && !is_own);
        if is_own || receipt.is_some() {
            let ids = if is_own { result.ids() } else { Vec::new() };
            let call_id = if is_numbered { String::new() } else { call.clone() };
            (self.sink)(HostEvent::Answered(ToolAnswer { call_id, receipt, ids, sidechain }));
        }
        let Some(known) = self.known.calls.get_mut(&call) else { return };
        if !std::mem::replace(&mut known.is_over, true) {
            let exit_code = result.ending().exit;
            let failed = result.is_error || exit_code.is_some_and(|code| code != 0);
            (self.sink)(HostEvent::ToolEnded { call, failed, exit_code });
        }
    }

    /// A tool was denied.
    fn denied(&mut self, tool: &str, what: &str) {
        let tool = if tool.is_empty() { "tool" } else { tool };
        let (tool, what) = (clip(tool, NAME_MAX), clip(what, DENIED_MAX));
        (self.sink)(HostEvent::Denied { tool, what });
    }

    /// The agent went on: trouble before this was overcome.
    fn worked(&mut self) {
        self.known.error = None;
    }

    fn spent(&mut self, usage: &Usage<'_>) {
        if let Some(Cost { tokens, micro_dollars }) = self.known.costs.note(usage) {
            (self.sink)(HostEvent::Spent { tokens, micro_dollars });
        }
    }

    /// The host tries again by itself.
    fn retrying(&mut self, what: &str, until: Option<Until>) {
        let until = until
            .and_then(|until| self.moment(until))
            .or_else(|| resets_at(what, self.now, &self.known.zone));
        (self.sink)(HostEvent::Retrying { what: clip(what, WHAT_MAX), until });
    }

    /// Notes an error whose kind is known. A limit is not forgotten for a vaguer word about it.
    fn error(&mut self, kind: Kind, what: &str, until: Option<Until>) {
        let until = until.and_then(|until| self.moment(until));
        let mut until = until.or_else(|| resets_at(what, self.now, &self.known.zone));
        let mut kind = kind;
        let mut what = clip(what, WHAT_MAX);
        if let Some(known) = &self.known.error {
            if what.is_empty() || known.kind == Kind::Limit && kind == Kind::Error {
                (kind, what) = (known.kind, known.what.clone());
            }
            until = if kind == Kind::Limit { known.until.or(until) } else { until };
        }
        self.known.error = Some(HostError { kind, what, until });
    }

    /// Returns whether something went wrong after which the agent did nothing.
    fn has_error(&self) -> bool {
        self.known.error.is_some()
    }

    fn moment(&self, until: Until) -> Option<Timestamp> {
        match until {
            Until::At(at) => Some(at),
            Until::In(millis) => {
                let millis = (0.0..MILLIS_MAX).contains(&millis).then_some(millis as u64)?;
                Some(self.now.after(Duration::from_millis(millis)))
            }
        }
    }

    /// The host's last word, after what explains it.
    fn ended(&mut self, verdict: Verdict, what: Option<&str>) {
        let ok = match verdict {
            Verdict::Success => true,
            Verdict::Unknown => !self.has_error(),
            Verdict::Failure => false,
        };
        if ok {
            self.worked();
        }
        self.known.has_ended = true;
        // The next turn may name its calls as this one did.
        self.known.calls = Recent::default();
        let why = self.known.error.as_ref().map(|error| error.what.clone());
        self.report_error();
        let what = what.map(|what| clip(what, WHAT_MAX)).filter(|what| !what.is_empty());
        (self.sink)(HostEvent::Ended { ok, what: why.or(what) });
    }

    /// Reports the error that ended the host, if there is one.
    fn report_error(&mut self) {
        let Some(HostError { kind, what, until }) = self.known.error.take() else { return };
        (self.sink)(match kind {
            Kind::Limit => HostEvent::Limited { what, until },
            Kind::Error => HostEvent::Failed { what },
        });
    }
}

/// What was told about costs.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The most that all is said to have cost.
    most: Cost,
    /// The sum of the parts, which may be told more than once.
    total: Cost,
    parts: Recent<Cost>,
}

impl Ledger {
    /// Notes what a host says; returns what all has cost so far if that grew.
    pub(crate) fn note(&mut self, usage: &Usage<'_>) -> Option<Cost> {
        let total = match usage {
            Usage::Total(total) => *total,
            Usage::Part(part, cost) => self.part(part, *cost),
        };
        let most = self.most.at_least(total);
        let before = std::mem::replace(&mut self.most, most);
        (most != before).then_some(most)
    }

    /// Notes what the part of this name costs, replacing a smaller sum for the same part. Returns the
    /// sum of all.
    fn part(&mut self, part: &str, cost: Cost) -> Cost {
        let Some(known) = self.parts.get_mut(part) else {
            self.total = self.total.plus(cost);
            self.parts.insert(part, cost);
            return self.total;
        };
        let more = Cost {
            tokens: cost.tokens.saturating_sub(known.tokens),
            micro_dollars: cost.micro_dollars.saturating_sub(known.micro_dollars),
        };
        *known = known.plus(more);
        self.total = self.total.plus(more);
        self.total
    }
}

/// What is known of the last few names: whatever is told again is told soon.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    names: VecDeque<(String, T)>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { names: VecDeque::new() }
    }
}

impl<T> Recent<T> {
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        let mut latest = self.names.iter_mut().rev();
        latest.find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Adds a name that is not known; the oldest gives way.
    pub(crate) fn insert(&mut self, name: &str, value: T) {
        if self.names.len() >= RECENT_MAX {
            self.names.pop_front();
        }
        self.names.push_back((name.to_owned(), value));
    }
}

/// Returns whether words are a sign of work. Some hosts explain an error in the agent's name.
fn is_work(text: &Text<'_>, has_error: bool) -> bool {
    text.by.role == Role::Assistant && !text.is_copy() && !(text.is_excuse && has_error)
}

/// Makes one line of a text and cuts it to so many characters.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let mut clipped = String::new();
    for word in text.split_whitespace() {
        if !clipped.is_empty() {
            clipped.push(' ');
        }
        clipped.extend(word.chars().take(most));
        if clipped.len() >= most.saturating_mul(4) {
            break;
        }
    }
    match clipped.char_indices().nth(most) {
        Some((end, _)) => clipped[..end].trim_end().to_owned(),
        None => clipped,
    }
}

/// How many calls and messages are told apart from later copies: copies come soon.
const RECENT_MAX: usize = 256;

/// The most characters of a name.
const NAME_MAX: usize = 200;
/// The most characters of what a call is about.
const ABOUT_MAX: usize = 200;
/// How much of a command or path is told that was denied.
const DENIED_MAX: usize = 200;

/// The most characters of what a host says.
const WHAT_MAX: usize = 300;

/// A retry that is further away than a year is a mistake.
const MILLIS_MAX: f64 = 366.0 * 24.0 * 3_600_000.0;

#[cfg(test)]
mod tests {
    //! The last few names are known, and no others.

    use super::*;

    #[test]
    fn the_oldest_name_gives_way() {
        let mut recent = Recent::default();
        for number in 0..RECENT_MAX + 2 {
            recent.insert(&format!("call {number}"), number);
        }
        assert_eq!(recent.get_mut("call 0"), None);
        assert_eq!(recent.get_mut("call 1"), None);
        for number in 2..RECENT_MAX + 2 {
            assert_eq!(recent.get_mut(&format!("call {number}")).copied(), Some(number));
        }
    }
}
