//! Spans as plain data: what a journal says, before anybody writes it down for a collector.

use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;

use super::context::{SpanId, TraceId};
use super::names;
use crate::view::display;

/// How long a value may be.
const VALUE_MAX: usize = 8_192;
/// How much of a title stands in a name.
const TITLE_MAX: usize = 80;
/// How many events a span has at most; the latest say most.
const EVENTS_MAX: usize = 256;

/// Something that took time, and is over.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TraceSpan {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: String,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) events: Vec<SpanEvent>,
    /// How many events are left out.
    pub(super) dropped: u32,
    pub(super) outcome: SpanOutcome,
}

/// A moment within a span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpanEvent {
    pub(super) name: &'static str,
    pub(super) at: Timestamp,
    pub(super) attributes: Vec<(&'static str, Value)>,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    List(Vec<String>),
    Number(i64),
    Decimal(f64),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpanOutcome {
    /// Nobody says.
    Unset,
    /// As it should.
    Ok,
    /// Otherwise, with a stable code.
    Failed(String),
}

impl TraceSpan {
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match self.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.attributes.push((name, value)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn add(&mut self, event: SpanEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.remove(0);
            self.dropped = self.dropped.saturating_add(1);
        }
        self.events.push(event);
    }

    /// Says how it ended; the first word counts.
    pub(super) fn ended(&mut self, at: Timestamp, outcome: SpanOutcome) {
        // A clock that was set back makes no span of negative length.
        self.end = at.max(self.start);
        if let SpanOutcome::Failed(code) = &outcome {
            self.set(names::ERROR, code.clone());
        }
        self.outcome = outcome;
    }
}

impl From<String> for Value {
    /// Whatever agents and people wrote: without secrets, and bounded.
    fn from(text: String) -> Self {
        Self::Text(clean(&text))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(clean(text))
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        Self::List(texts.iter().map(|text| clean(text)).collect())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A title, short and in one line, without secrets.
pub(super) fn title(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    display::excerpt(&redact(first), TITLE_MAX)
}

fn clean(text: &str) -> String {
    let text = redact(text);
    match text.char_indices().nth(VALUE_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    //! Bounds.

    use super::*;

    #[test]
    fn values_are_short_and_hold_no_secrets() {
        let key = format!("ghp_{}", "x".repeat(36));
        assert_eq!(Value::from(&*key), Value::Text("[redacted]".to_owned()));
        let Value::Text(long) = Value::from("x".repeat(VALUE_MAX + 9)) else { panic!("text") };
        assert_eq!(long.chars().count(), VALUE_MAX + 1);
        assert_eq!(title("  Add CSV\u{1b}[2J\nand more"), display::excerpt("Add CSV\u{1b}[2J", 80));
    }

    #[test]
    fn the_latest_events_are_kept() {
        let at = Timestamp::from_millis(5);
        let mut span = TraceSpan {
            trace: [1; 16],
            id: [1; 8],
            parent: None,
            name: String::new(),
            start: at,
            end: at,
            attributes: Vec::new(),
            events: Vec::new(),
            dropped: 0,
            outcome: SpanOutcome::Unset,
        };
        for number in 0..EVENTS_MAX as u64 + 2 {
            let attributes = vec![(names::RULE, Value::from(number))];
            span.add(SpanEvent { name: names::DECISION, at, attributes });
        }
        assert_eq!((span.events.len(), span.dropped), (EVENTS_MAX, 2));
        assert_eq!(span.events[0].attributes, [(names::RULE, Value::Number(2))]);
        span.ended(Timestamp::from_millis(1), SpanOutcome::Ok);
        assert_eq!(span.end, at, "time went back");
    }
}
