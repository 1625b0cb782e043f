//! Where facts go, and what must be remembered so that each is told once.

use std::collections::VecDeque;
use std::time::Duration;

use super::Fact;
use super::resets::{Zone, resets_at};
use super::trouble::Kind;
use crate::item::{Cost, Entry, Item, Text, Until, Usage, Verdict};
use aldis_signal::message::Role;
use aldis_signal::time::Timestamp;

/// The way out of a source.
pub(super) struct Out<'a> {
    pub(super) now: Timestamp,
    pub(super) zone: &'a Zone,
    pub(super) memory: &'a mut Memory,
    pub(super) sink: &'a mut dyn FnMut(Fact),
}

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Memory {
    session: Option<String>,
    calls: Recent<()>,
    parts: Ledger,
    spent: Cost,
    trouble: Option<Trouble>,
}

/// An error that may be the last thing a host says, or not.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) kind: Kind,
    pub(super) what: String,
    pub(super) until: Option<Timestamp>,
}

impl Out<'_> {
    /// Takes in what a line says.
    pub(super) fn entry(&mut self, entry: &Entry<'_>) {
        for item in &entry.items {
            self.item(item, entry.is_side);
        }
    }

    fn item(&mut self, item: &Item<'_>, is_side: bool) {
        match item {
            Item::Session(id) => self.session(id),
            Item::Text(text) => {
                if !is_side && is_work(text, self.is_troubled()) {
                    self.worked();
                }
            }
            Item::Call(call) => self.tool(&call.id, &call.name),
            Item::Usage(Usage::Total(total)) => self.spent(*total),
            Item::Usage(Usage::Part(part, cost)) => {
                self.memory.parts.note(part, *cost);
                let total = self.memory.parts.total;
                self.spent(total);
            }
            Item::Denied { tool, what } => self.denied(tool, what),
            Item::Retry { what, until } => self.retrying(what, *until),
            Item::Trouble(trouble) => {
                if !trouble.is_doubtful || self.is_troubled() {
                    self.trouble(trouble.kind, &trouble.what, trouble.until);
                }
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
        if self.memory.session.as_deref() != Some(&*id) {
            self.memory.session = Some(id.clone());
            (self.sink)(Fact::Session(id));
        }
    }

    /// A tool was called; calls with a name are told once.
    fn tool(&mut self, call: &str, name: &str) {
        self.worked();
        if !call.is_empty() {
            let call = clip(call, NAME_MAX);
            if self.memory.calls.get_mut(&call).is_some() {
                return;
            }
            self.memory.calls.insert(&call, ());
        }
        let name = if name.is_empty() { "tool" } else { name };
        (self.sink)(Fact::Tool { name: clip(name, NAME_MAX) });
    }

    /// A tool was denied.
    fn denied(&mut self, tool: &str, what: &str) {
        let tool = if tool.is_empty() { "tool" } else { tool };
        let (tool, what) = (clip(tool, NAME_MAX), clip(what, DENIED_MAX));
        (self.sink)(Fact::Denied { tool, what });
    }

    /// The agent went on: trouble before this was overcome.
    fn worked(&mut self) {
        self.memory.trouble = None;
    }

    /// Gives out the total costs if they grew.
    fn spent(&mut self, total: Cost) {
        let known = self.memory.spent;
        let most = Cost {
            tokens: known.tokens.max(total.tokens),
            micro_dollars: known.micro_dollars.max(total.micro_dollars),
        };
        if most != known {
            self.memory.spent = most;
            (self.sink)(Fact::Spent { tokens: most.tokens, micro_dollars: most.micro_dollars });
        }
    }

    /// The host tries again by itself.
    fn retrying(&mut self, what: &str, until: Option<Until>) {
        let until = until
            .and_then(|until| self.moment(until))
            .or_else(|| resets_at(what, self.now, self.zone));
        (self.sink)(Fact::Retrying { what: clip(what, WHAT_MAX), until });
    }

    /// Notes an error whose kind is known. A limit is not forgotten for a vaguer word about it.
    pub(super) fn trouble(&mut self, kind: Kind, what: &str, until: Option<Until>) {
        let until = until.and_then(|until| self.moment(until));
        let mut until = until.or_else(|| resets_at(what, self.now, self.zone));
        let mut kind = kind;
        let mut what = clip(what, WHAT_MAX);
        if let Some(known) = &self.memory.trouble {
            if what.is_empty() || known.kind == Kind::Limit && kind == Kind::Error {
                (kind, what) = (known.kind, known.what.clone());
            }
            until = if kind == Kind::Limit { known.until.or(until) } else { until };
        }
        self.memory.trouble = Some(Trouble { kind, what, until });
    }

    /// Returns whether something went wrong after which the agent did nothing.
    fn is_troubled(&self) -> bool {
        self.memory.trouble.is_some()
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
            Verdict::Unknown => !self.is_troubled(),
            Verdict::Failure => false,
        };
        if ok {
            self.worked();
        }
        let why = self.memory.trouble.as_ref().map(|trouble| trouble.what.clone());
        self.finish();
        let what = what.map(|what| clip(what, WHAT_MAX)).filter(|what| !what.is_empty());
        (self.sink)(Fact::Ended { ok, what: why.or(what) });
    }

    /// Nothing follows: the trouble that is left was the end.
    pub(super) fn finish(&mut self) {
        match self.memory.trouble.take() {
            Some(Trouble { kind: Kind::Limit, what, until }) => {
                (self.sink)(Fact::Limited { what, until });
            }
            Some(Trouble { kind: Kind::Error, what, .. }) => (self.sink)(Fact::Failed { what }),
            None => {}
        }
    }
}

/// Costs of parts that may be told more than once.
#[derive(Debug, Default)]
struct Ledger {
    total: Cost,
    parts: Recent<Cost>,
}

impl Ledger {
    /// Notes what the part of this name costs, replacing a smaller sum for the same part.
    fn note(&mut self, part: &str, cost: Cost) {
        let Some(known) = self.parts.get_mut(part) else {
            self.total = self.total.plus(cost);
            return self.parts.insert(part, cost);
        };
        let more = Cost {
            tokens: cost.tokens.saturating_sub(known.tokens),
            micro_dollars: cost.micro_dollars.saturating_sub(known.micro_dollars),
        };
        *known = known.plus(more);
        self.total = self.total.plus(more);
    }
}

/// What is known of the last few names: whatever is told again is told soon.
#[derive(Debug)]
struct Recent<T> {
    names: VecDeque<(String, T)>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { names: VecDeque::new() }
    }
}

impl<T> Recent<T> {
    fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        let mut latest = self.names.iter_mut().rev();
        latest.find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Adds a name that is not known; the oldest gives way.
    fn insert(&mut self, name: &str, value: T) {
        if self.names.len() >= RECENT_MAX {
            self.names.pop_front();
        }
        self.names.push_back((name.to_owned(), value));
    }
}

/// Returns whether words are a sign of work. Some hosts explain an error in the agent's name.
fn is_work(text: &Text<'_>, is_troubled: bool) -> bool {
    text.by.role == Role::Assistant && !text.is_copy() && !(text.is_excuse && is_troubled)
}

/// Makes one line of a text and cuts it to so many characters.
pub(super) fn clip(text: &str, most: usize) -> String {
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
