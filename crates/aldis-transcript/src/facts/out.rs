//! Where facts go, and what must be remembered so that each is told once.

use std::time::Duration;

use serde_json::Value;

use super::Fact;
use super::resets::{Zone, resets_at};
use super::trouble::{self, Kind};
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
    spent: Cost,
    trouble: Option<Trouble>,
}

/// Tokens and millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) tokens: u64,
    pub(super) micro_dollars: u64,
}

/// An error that may be the last thing a host says, or not.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) kind: Kind,
    pub(super) what: String,
    pub(super) until: Option<Timestamp>,
}

impl Out<'_> {
    /// Names the session.
    pub(super) fn session(&mut self, id: Option<&str>) {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return };
        if self.memory.session.as_deref() == Some(id) {
            return;
        }
        let id = clip(id, NAME_MAX);
        if self.memory.session.as_deref() != Some(&*id) {
            self.memory.session = Some(id.clone());
            (self.sink)(Fact::Session(id));
        }
    }

    /// Returns whether this is the session that was named first, or none is known.
    pub(super) fn is_main(&self, id: Option<&str>) -> bool {
        id.is_none() || self.memory.session.is_none() || self.memory.session.as_deref() == id
    }

    /// A tool was called; calls with a name are told once.
    pub(super) fn tool(&mut self, call: Option<&str>, name: &str) {
        self.worked();
        if let Some(call) = call.filter(|call| !call.is_empty()) {
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
    pub(super) fn denied(&mut self, tool: &str, what: &str) {
        let tool = if tool.is_empty() { "tool" } else { tool };
        let (tool, what) = (clip(tool, NAME_MAX), clip(what, DENIED_MAX));
        (self.sink)(Fact::Denied { tool, what });
    }

    /// The agent went on: trouble before this was overcome.
    pub(super) fn worked(&mut self) {
        self.memory.trouble = None;
    }

    /// Gives out the total costs if they grew.
    pub(super) fn spent(&mut self, total: Cost) {
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
    pub(super) fn retrying(&mut self, what: &str, until: Option<Timestamp>) {
        let until = until.or_else(|| resets_at(what, self.now, self.zone));
        (self.sink)(Fact::Retrying { what: clip(what, WHAT_MAX), until });
    }

    /// Notes an error in the host's or the service's own words.
    pub(super) fn error(&mut self, text: &str) {
        self.trouble(trouble::kind(text), text, None);
    }

    /// Notes an error whose kind is known. A limit is not forgotten for a vaguer word about it.
    pub(super) fn trouble(&mut self, kind: Kind, what: &str, until: Option<Timestamp>) {
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
    pub(super) fn is_troubled(&self) -> bool {
        self.memory.trouble.is_some()
    }

    /// Returns the moment so many milliseconds from now.
    pub(super) fn in_millis(&self, millis: f64) -> Option<Timestamp> {
        let millis = (0.0..MILLIS_MAX).contains(&millis).then_some(millis as u64)?;
        Some(self.now.after(Duration::from_millis(millis)))
    }

    /// The host's last word, after what explains it.
    pub(super) fn ended(&mut self, ok: bool, what: Option<&str>) {
        if ok {
            self.worked();
        }
        let why = self.memory.trouble.as_ref().map(|trouble| trouble.what.clone());
        self.finish();
        let what = what.map(|what| clip(what, WHAT_MAX)).filter(|what| !what.is_empty());
        (self.sink)(Fact::Ended { ok, what: what.or(why) });
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
pub(super) struct Ledger {
    total: Cost,
    parts: Recent<Cost>,
}

impl Ledger {
    /// Notes what the part of this name costs, replacing a smaller sum for the same part.
    pub(super) fn note(&mut self, part: &str, cost: Cost) {
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

    /// Returns the sum of all parts.
    pub(super) fn total(&self) -> Cost {
        self.total
    }
}

/// What was told of the last few names: whatever is told again is told soon.
#[derive(Debug)]
struct Recent<T> {
    /// A number for each name: most names are new, and that is seen by the numbers at once.
    numbers: Vec<u32>,
    names: Vec<(String, T)>,
    /// Which gives way next.
    oldest: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { numbers: Vec::new(), names: Vec::new(), oldest: 0 }
    }
}

impl<T> Recent<T> {
    fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        if !self.numbers.contains(&number_of(name)) {
            return None;
        }
        self.names.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Adds a name that is not known; the oldest gives way.
    fn insert(&mut self, name: &str, value: T) {
        if self.names.len() < RECENT_MAX {
            self.numbers.push(number_of(name));
            self.names.push((name.to_owned(), value));
            return;
        }
        // Its string is used again: this runs for every message and call.
        let (old, known) = &mut self.names[self.oldest];
        name.clone_into(old);
        *known = value;
        self.numbers[self.oldest] = number_of(name);
        self.oldest = (self.oldest + 1) % RECENT_MAX;
    }
}

/// Returns a number that other names hardly have. That one can be made to have it costs nothing: the
/// names are compared, too, and there are few.
fn number_of(name: &str) -> u32 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    let sum = words.iter().fold(0, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let sum = rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)));
    // The upper half is mixed best.
    (sum >> 32) as u32
}

impl Cost {
    pub(super) fn plus(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            micro_dollars: self.micro_dollars.saturating_add(more.micro_dollars),
        }
    }

    /// Adds up the members of these names.
    pub(super) fn of_tokens(usage: &Value, names: &[&str]) -> Self {
        let counts = names.iter().filter_map(|name| usage.get(name).and_then(count));
        Self { tokens: counts.fold(0, u64::saturating_add), micro_dollars: 0 }
    }

    /// Adds a price in dollars.
    pub(super) fn with_dollars(self, dollars: Option<&Value>) -> Self {
        let dollars = dollars.and_then(Value::as_f64).filter(|dollars| *dollars > 0.0);
        // A float that is too large becomes the largest integer.
        Self { micro_dollars: (dollars.unwrap_or(0.0) * 1e6).round() as u64, ..self }
    }
}

/// Returns a number that counts something.
pub(super) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
}

/// Returns the string at a path like `/error/message`.
pub(super) fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    value.pointer(path)?.as_str()
}

/// Makes one line of a text and cuts it to so many characters.
pub(super) fn clip(text: &str, most: usize) -> String {
    // Most are short names.
    if text.len() <= most && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return text.to_owned();
    }
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
