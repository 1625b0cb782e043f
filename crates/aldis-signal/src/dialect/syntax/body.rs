//! The body of a line signal: `Key: value` lines, lists, and a prompt that is passed on.

use std::collections::BTreeMap;

use serde_json::map::Entry;
use serde_json::{Map, Value, json};

use super::line::{Delegation, Syntax};
use crate::scan::text::{lossy, snake_case};
use crate::signal::{Fields, Warning};
use crate::structure::outline::{Outline, OutlineLine};
use crate::visible::sequence::hides_text;

/// What a body holds.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) fields: Fields,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) token: Option<String>,
    /// Whether a prompt was opened and not closed.
    pub(crate) unclosed: bool,
    /// Whether a terminal would not show some of its fields.
    pub(crate) hidden: bool,
}

impl Syntax {
    /// Reads a body.
    pub(crate) fn read_body(&self, body: &[u8]) -> Body {
        let mut reader = Reader { delegation: self.delegation.as_ref(), ..Reader::default() };
        for line in Outline::of(body) {
            reader.line(line);
        }
        reader.end_field();
        let mut out = reader.body;
        out.unclosed = reader.prompt.is_some();
        check_values(&self.values, &mut out);
        if let Some(Value::String(token)) = out.fields.remove("token") {
            out.token = Some(token);
        }
        out
    }
}

fn check_values(values: &BTreeMap<String, Vec<String>>, body: &mut Body) {
    for (key, allowed) in values {
        let said = body.fields.get(&snake_case(key)).and_then(Value::as_str);
        if said.is_some_and(|said| !allowed.iter().any(|value| value.eq_ignore_ascii_case(said))) {
            body.warnings.push(Warning::BadValue);
        }
    }
}

#[derive(Default)]
struct Reader<'a> {
    delegation: Option<&'a Delegation>,
    body: Body,
    /// The field whose lines are being read.
    open: Option<String>,
    lines: Vec<&'a [u8]>,
    /// The prompt being read, between its markers.
    prompt: Option<String>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, OutlineLine { seen: line, quoted, .. }: OutlineLine<'a>) {
        self.body.hidden |= hides_text(line);
        if let Some(delegation) = self.delegation {
            if let Some(prompt) = &mut self.prompt {
                if line == delegation.end.as_bytes() {
                    let prompt = self.prompt.take().unwrap_or_default();
                    self.body.fields.insert(delegation.field.clone(), prompt.trim().into());
                } else {
                    prompt.push_str(&lossy(line));
                    prompt.push('\n');
                }
                return;
            }
            if line == delegation.start.as_bytes() && !quoted {
                self.end_field();
                self.prompt = Some(String::new());
                return;
            }
        }
        match key_value(line).filter(|_| !quoted) {
            Some((key, value)) => {
                self.end_field();
                match lossy(value).trim() {
                    "" => self.open = Some(key),
                    value => self.insert(key, value.into()),
                }
            }
            None if self.open.is_some() => self.lines.push(line),
            None => {}
        }
    }

    fn end_field(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if let Some(key) = self.open.take() {
            self.insert(key, value_of(&lines));
        }
    }

    /// Takes a field. The first of a name counts: what is said later mostly belongs to something else.
    fn insert(&mut self, key: String, value: Value) {
        match self.body.fields.entry(key) {
            Entry::Vacant(room) => drop(room.insert(value)),
            Entry::Occupied(first) if *first.get() != value => {
                let warning = Warning::DuplicateField(first.key().as_str().into());
                if !self.body.warnings.contains(&warning) {
                    self.body.warnings.push(warning);
                }
            }
            Entry::Occupied(_) => {}
        }
    }
}

/// No key, parenthesis included, is longer.
const KEY_MAX: usize = 120;

/// Reads `Key: value`: a capitalised phrase of at most five words before a colon, at column 0.
fn key_value(line: &[u8]) -> Option<(String, &[u8])> {
    if !line.first()?.is_ascii_uppercase() {
        return None;
    }
    let colon = memchr::memchr(b':', &line[..line.len().min(KEY_MAX)])?;
    let (key, value) = (&line[..colon], &line[colon + 1..]);
    if !is_value(key, value) {
        return None;
    }
    let key = std::str::from_utf8(key).ok()?;
    let key = key.split_once('(').map_or(key, |(key, _)| key).trim();
    let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b" -_/".contains(&b));
    if !plain || key.split_ascii_whitespace().count() > 5 {
        return None;
    }
    Some((snake_case(key), value))
}

/// Returns whether what stands behind a colon can be a value: with no blank in between, a path of code
/// (`Foo::bar`), a drive, an address, a time of day and a place in a file (`Makefile:12:`) are none.
fn is_value(key: &[u8], value: &[u8]) -> bool {
    match value.first() {
        Some(b':' | b'/' | b'\\') => false,
        Some(b'0'..=b'9') => {
            let behind = value.iter().find(|byte| !byte.is_ascii_digit());
            behind != Some(&b':') && !key.last().is_some_and(u8::is_ascii_digit)
        }
        _ => true,
    }
}

/// Returns a list if the first line is an item of one, else the text. What is indented deeper than the
/// list belongs to its item, a paragraph behind a list is not part of it.
fn value_of(lines: &[&[u8]]) -> Value {
    let mut items: Vec<String> = Vec::new();
    let mut gap = false;
    // How far the list is indented.
    let mut margin = usize::MAX;
    for line in lines {
        let line = lossy(line);
        let text = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - text.len();
        let blank = text.trim().is_empty();
        match (item(text).filter(|_| indent <= margin), items.last_mut()) {
            _ if blank => {}
            (Some(text), _) => {
                margin = margin.min(indent);
                items.push(text.to_owned());
            }
            (None, Some(last)) if !gap || indent > margin => {
                last.push('\n');
                last.push_str(text.trim());
            }
            (None, Some(_)) => break,
            (None, None) => {
                let text = lines.join(&b'\n');
                return lossy(&text).trim().into();
            }
        }
        gap = blank;
    }
    if items.is_empty() {
        return Value::String(String::new());
    }
    items.iter().map(|text| item_value(text)).collect()
}

/// Returns what follows `- `, `* ` or `1. `, without a check box.
fn item(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?,
        _ => line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") "))?,
    };
    let rest = rest.trim();
    let unboxed = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| rest.strip_prefix(mark));
    Some(unboxed.map_or(rest, str::trim))
}

/// Returns `file:line: text` as an object, anything else as it is.
fn item_value(text: &str) -> Value {
    let place = text.split_once(':').and_then(|(file, rest)| {
        let (line, words) = rest.split_once(':')?;
        let number: u64 = line.parse().ok()?;
        let named = !file.is_empty() && !file.contains(char::is_whitespace);
        named.then(|| json!({ "file": file, "line": number, "text": words.trim() }))
    });
    match place {
        Some(Value::Object(object)) => Value::Object(Map::from_iter(object)),
        _ => Value::String(text.to_owned()),
    }
}
