//! The tag and fence patterns: the JavaScript one of seed 002, and those of other tools.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::Hit;
use aldis_signal::dialect::Syntax;
use aldis_signal::signal::Fields;

/// JavaScript's `\s`, which is also what its `trim` removes.
pub(super) fn js_blank(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202f}'
                | '\u{205f}'
                | '\u{3000}'
                | '\u{feff}'
    )
}

/// `/<TAG>(\w+)(?::\s*(.+?))?<\/TAG>/g` with JavaScript's classes.
fn js_tag(tag: &str) -> String {
    let blank =
        r"[\t-\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}]";
    let dot = r"[^\n\r\u{2028}\u{2029}]";
    format!("<{tag}>([0-9A-Za-z_]+)(?::{blank}*({dot}+?))?</{tag}>")
}

/// A table of our own patterns, compiled on first use. One that did not compile would find nothing;
/// a test looks at each.
macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(pub(super) static $name: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(&$pattern).ok());)*
    };
}

patterns! {
    AXIOM = js_tag("axiom");
    CHORUS = js_tag("chorus");
    EVENT = r#"(?s)<event topic="([^"]*)">(.*?)</event>"#;
    PILOT = r"(?s)```pilot-signal\s*\n?(.*?)```";
    PROMISE = r"(?s)<promise>(.*?)</promise>";
    RALPH_STATUS = r"EXIT_SIGNAL:\s*true";
    RALPHEX = r"<<<RALPHEX:(ALL_TASKS_DONE|TASK_FAILED|REVIEW_DONE|CODEX_REVIEW_DONE|PLAN_READY)>>>";
    RALPHEX_TEXT = r"(?s)<<<RALPHEX:(QUESTION|PLAN_DRAFT)>>>(.*?)<<<RALPHEX:END>>>";
}

/// Turns every match into a hit; `make` may refuse.
fn collect(
    pattern: Option<&Regex>,
    text: &str,
    make: impl Fn(&Captures<'_>, usize, usize) -> Option<Hit>,
) -> Vec<Hit> {
    let found = pattern.into_iter().flat_map(|pattern| pattern.captures_iter(text));
    found
        .filter_map(|captures| {
            let whole = captures.get(0)?;
            make(&captures, whole.start(), whole.end())
        })
        .collect()
}

fn group(captures: &Captures<'_>, number: usize) -> Option<String> {
    captures.get(number).map(|found| found.as_str().to_owned())
}

/// `match[2]?.trim() || null`.
fn js_payload(captures: &Captures<'_>) -> Option<String> {
    let payload = captures.get(2)?.as_str().trim_matches(js_blank);
    (!payload.is_empty()).then(|| payload.to_owned())
}

pub(super) fn chorus(text: &str) -> Vec<Hit> {
    typed(CHORUS.as_ref(), text)
}

pub(super) fn axiom(text: &str) -> Vec<Hit> {
    typed(AXIOM.as_ref(), text)
}

fn typed(pattern: Option<&Regex>, text: &str) -> Vec<Hit> {
    collect(pattern, text, |captures, start, end| {
        let mut hit = Hit::new(group(captures, 1)?, start, end);
        hit.payload = js_payload(captures);
        Some(hit)
    })
}

pub(super) fn event(text: &str) -> Vec<Hit> {
    collect(EVENT.as_ref(), text, |captures, start, end| {
        let mut hit = Hit::new("EVENT", start, end);
        hit.subject = group(captures, 1);
        hit.payload = group(captures, 2).filter(|payload| !payload.is_empty());
        Some(hit)
    })
}

/// The agreed text, compared without the blanks around it.
pub(super) fn promise(syntax: &Syntax, text: &str) -> Vec<Hit> {
    let agreed = match syntax {
        Syntax::Tag(tag) => tag.text.as_deref().unwrap_or_default(),
        Syntax::Block(_)
        | Syntax::Fence(_)
        | Syntax::Line(_)
        | Syntax::Status(_)
        | Syntax::Trailer(_) => return Vec::new(),
    };
    collect(PROMISE.as_ref(), text, |captures, start, end| {
        let mut hit = Hit::new("PROMISE", start, end);
        hit.payload = Some(captures.get(1)?.as_str().trim().to_owned());
        (hit.payload.as_deref() == Some(agreed)).then_some(hit)
    })
}

pub(super) fn ralph_status(text: &str) -> Vec<Hit> {
    collect(RALPH_STATUS.as_ref(), text, |_, start, end| {
        let mut hit = Hit::new("RALPH_STATUS", start, end);
        hit.fields.insert("exit_signal".to_owned(), Value::Bool(true));
        Some(hit)
    })
}

pub(super) fn ralphex(text: &str) -> Vec<Hit> {
    let mut hits = collect(RALPHEX.as_ref(), text, |captures, start, end| {
        Some(Hit::new(group(captures, 1)?, start, end))
    });
    hits.extend(collect(RALPHEX_TEXT.as_ref(), text, |captures, start, end| {
        let mut hit = Hit::new(group(captures, 1)?, start, end);
        hit.payload = group(captures, 2).map(|payload| payload.trim().to_owned());
        Some(hit)
    }));
    hits
}

/// The fences that hold a JSON object; only without any the substrings of the old forms.
pub(super) fn pilot(text: &str) -> Vec<Hit> {
    let fences = collect(PILOT.as_ref(), text, |captures, start, end| {
        let fields: Fields = serde_json::from_str(captures.get(1)?.as_str()).ok()?;
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or("status");
        let mut hit = Hit::new(kind.to_uppercase(), start, end);
        hit.fields = fields;
        Some(hit)
    });
    if fences.is_empty() { legacy(text) } else { fences }
}

const LEGACY: &[(&str, &str)] = &[
    ("NAVIGATOR_STATUS", "STATUS"),
    ("EXIT_SIGNAL: true", "EXIT"),
    ("LOOP COMPLETE", "EXIT"),
    ("TASK MODE COMPLETE", "EXIT"),
    ("STAGNATION DETECTED", "STAGNATION"),
];

fn legacy(text: &str) -> Vec<Hit> {
    let found = LEGACY.iter().flat_map(|(words, name)| {
        text.match_indices(words).map(move |(start, _)| {
            let mut hit = Hit::new(*name, start, start + words.len());
            hit.fields.insert("legacy".to_owned(), Value::Bool(true));
            hit
        })
    });
    found.collect()
}
