//! The literal regexes that people use today: `--matching reference`.
//!
//! Everybody who reads agents' signals starts with the patterns of a document like the seeds: a
//! regex over the whole text, no matter who wrote it and whether it is quoted. This module finds
//! exactly what those patterns find, mistakes included, for two uses: people who migrate can
//! compare, and the accuracy benchmark has a number to beat. Never improve anything here.
//!
//! # What "exactly" means
//!
//! `caw` and `delivery` are Python patterns over `str`, `chorus` and `turn` are JavaScript ones; the
//! flavours differ in small ways and are reproduced by explicit character classes:
//!
//! * Python's `\s` also holds U+001C to U+001F, JavaScript's also U+FEFF and not U+0085; JavaScript's
//!   `\w` is ASCII and its `.` excludes CR, U+2028 and U+2029 beside LF.
//! * Python's `IGNORECASE` takes U+0130 and U+0131 for `i`, U+017F for `s`, U+212A for `k`.
//! * `turn` has one match at most, found from the end by hand: the same result as the pattern, in
//!   linear time. The others cannot backtrack in this engine either.
//!
//! Goldens made by CPython and Node prove it, see `scripts/reference-goldens`. The seeds give no
//! pattern for `pilot` beyond "regex extraction" of its fences and substrings for the old forms, and
//! none for the dialects of other tools: theirs are what those tools do, a lazy match or a substring.
//! Dialects of users have no reference and are skipped.

mod place;
mod python;
mod tags;
mod trailer;

use std::sync::Arc;

use self::place::Places;
pub use self::trailer::strip_turn;
use aldis_signal::dialect::Dialect;
use aldis_signal::message::Origin;
use aldis_signal::signal::{Fields, Meaning, Signal, Span};

/// Finds every match of every reference pattern of the given dialects, in text order. The origin is
/// recorded and not asked: the patterns do not know who speaks.
pub fn scan(dialects: &[Arc<Dialect>], text: &str, origin: &Origin) -> Vec<Signal> {
    let mut signals = Vec::new();
    for dialect in dialects {
        let hits = hits(dialect, text);
        signals.extend(hits.into_iter().map(|hit| hit.into_signal(dialect, text, origin)));
    }
    // Stable: at one position the order of the dialects and of their patterns stays.
    signals.sort_by_key(|signal| signal.place.span.start);
    let mut places = Places::new(text);
    for signal in &mut signals {
        signal.place = places.at(signal.place.span);
    }
    signals
}

fn hits(dialect: &Dialect, text: &str) -> Vec<Hit> {
    match &*dialect.name {
        "caw" => python::caw(text),
        "delivery" => python::delivery(text),
        "chorus" => tags::chorus(text),
        "axiom" => tags::axiom(text),
        "turn" => trailer::turn(&dialect.syntax, text),
        "pilot" => tags::pilot(text),
        "promise" => tags::promise(&dialect.syntax, text),
        "ralph-status" => tags::ralph_status(text),
        "ralphex" => tags::ralphex(text),
        "event" => tags::event(text),
        _ => Vec::new(),
    }
}

/// Returns the regexes of the seeds' dialects as this module runs them, to measure others against.
/// `turn` has none and the old forms of `pilot` are substrings.
pub fn seed_patterns() -> Vec<&'static str> {
    let python = python::CAW_PATTERNS.iter().chain(python::DELIVERY_PATTERNS.iter());
    let tags = [&tags::CHORUS, &tags::PILOT].into_iter().filter_map(|pattern| pattern.as_ref());
    python.chain(tags).map(|pattern| pattern.as_str()).collect()
}

/// One match of one pattern.
#[derive(Debug)]
struct Hit {
    name: String,
    start: usize,
    end: usize,
    subject: Option<String>,
    payload: Option<String>,
    fields: Fields,
}

impl Hit {
    fn new(name: impl Into<String>, start: usize, end: usize) -> Self {
        Self { name: name.into(), start, end, subject: None, payload: None, fields: Fields::new() }
    }

    fn into_signal(self, dialect: &Dialect, text: &str, origin: &Origin) -> Signal {
        let Self { name, start, end, subject, payload, fields } = self;
        let definition = dialect.signal(&name);
        let (meaning, handler) = definition.map_or((Meaning::Info, None), |found| {
            found.meaning_with(subject.as_deref(), payload.as_deref(), &fields)
        });
        let handler = handler.cloned();
        // The patterns know no percentages; the number is what their callers read from the payload.
        let progress = (name == "PROGRESS").then(|| payload.as_deref().and_then(percent)).flatten();
        let place = place::unlined(Span { start: start as u64, end: end as u64 });
        let name = definition.map_or_else(|| name.into(), |found| Arc::clone(&found.name));
        let mut signal =
            Signal::new(Arc::clone(&dialect.name), name, meaning, origin.clone(), place);
        (signal.subject, signal.payload, signal.progress) = (subject, payload, progress);
        (signal.fields, signal.handler) = (fields, handler);
        text.get(start..end).unwrap_or_default().clone_into(&mut signal.raw);
        signal
    }
}

/// The leading integer, as JavaScript's `parseInt` reads it.
fn percent(payload: &str) -> Option<u8> {
    let digits = payload.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse::<u64>().ok().map(|number| u8::try_from(number.min(100)).unwrap_or(100))
}

#[cfg(test)]
mod tests;
