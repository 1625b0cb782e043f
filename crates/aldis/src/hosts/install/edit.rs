//! Changes a JSON file with comments and leaves every other byte of it alone.
//!
//! The file is parsed only to learn where its values stand. A change is then an insertion into, or
//! a cut out of the text, in the style that the text already has: its line ends, its indentation,
//! one line or many, a comma after the last item or none. Cutting out what was inserted gives the
//! text back.

use std::fmt::Write as _;
use std::ops::Range;

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Range as Place;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// Why a file is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub(crate) struct EditError {
    /// From 1.
    pub(crate) line: usize,
    /// What is wrong there.
    pub(crate) message: String,
}

/// A value to write. Members stay in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    /// Members with their names.
    Object(Vec<(&'static str, Self)>),
    /// Items.
    Array(Vec<Self>),
    /// A string.
    Text(String),
    /// A number.
    Number(u64),
}

impl Json {
    /// Creates a string.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// A value of a file and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// What it is.
    pub(crate) kind: Kind,
}

/// What a [`Node`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Members: name, bytes of name and value together, value.
    Object(Vec<(String, Range<usize>, Node)>),
    /// Items.
    Array(Vec<Node>),
    /// A string without its escapes.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// A number, as it is written.
    Number(String),
    /// `null`.
    Null,
}

impl Node {
    /// Returns a member of an object. Of several with one name the last counts, as for the hosts.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Kind::Object(members) = &self.kind else { return None };
        members.iter().rev().find(|(key, ..)| key == name).map(|(.., value)| value)
    }

    /// Returns what a path of names leads to.
    pub(crate) fn find(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// Returns the string, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// Returns the items, if it is an array.
    pub(crate) fn items(&self) -> Option<&[Self]> {
        if let Kind::Array(items) = &self.kind { Some(items) } else { None }
    }

    /// Returns the members, if it is an object.
    pub(crate) fn members(&self) -> Option<&[(String, Range<usize>, Self)]> {
        if let Kind::Object(members) = &self.kind { Some(members) } else { None }
    }

    /// Whether it is the word `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.kind == Kind::Flag(true)
    }

    /// Whether it is the word `false`.
    pub(crate) fn is_false(&self) -> bool {
        self.kind == Kind::Flag(false)
    }

    /// The bytes of what it holds, names included.
    fn parts(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|(_, range, _)| range.clone()).collect(),
            Kind::Array(items) => items.iter().map(|item| item.range.clone()).collect(),
            Kind::Text(_) | Kind::Flag(_) | Kind::Number(_) | Kind::Null => Vec::new(),
        }
    }
}

/// The text of a file, known to be an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    mark: &'static str,
    text: String,
}

impl Document {
    /// Reads a file. A blank one counts as an empty object.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, EditError> {
        let text = str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            EditError { line, message: "not UTF-8".to_owned() }
        })?;
        let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (BYTE_ORDER_MARK, rest),
            None => ("", text),
        };
        let text = if text.trim().is_empty() { EMPTY } else { text };
        let document = Self { mark, text: text.to_owned() };
        let root = parse(text)?;
        match root.kind {
            Kind::Object(_) => Ok(document),
            _ => Err(document.error(&root, "the file is not a JSON object")),
        }
    }

    /// Returns an empty object.
    pub(crate) fn empty() -> Self {
        Self { mark: "", text: EMPTY.to_owned() }
    }

    /// Returns the whole value.
    pub(crate) fn root(&self) -> Result<Node, EditError> {
        parse(&self.text)
    }

    /// Returns the bytes to write.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        format!("{}{}", self.mark, self.text).into_bytes()
    }

    /// Creates an error about a value.
    pub(crate) fn error(&self, node: &Node, message: impl Into<String>) -> EditError {
        EditError { line: self.line(node), message: message.into() }
    }

    /// Returns the line on which a value starts, from 1.
    pub(crate) fn line(&self, node: &Node) -> usize {
        1 + self.slice(0..node.range.start).matches('\n').count()
    }

    /// Whether an object or array holds nothing, not even a comment.
    pub(crate) fn is_blank(&self, node: &Node) -> bool {
        let holds = matches!(node.kind, Kind::Object(_) | Kind::Array(_));
        holds && self.slice(node.range.start + 1..node.range.end - 1).trim().is_empty()
    }

    /// Adds a value at the end of an array, or a member at the end of an object.
    pub(crate) fn append(&mut self, container: &Node, name: Option<&str>, value: &Json) {
        let parts = container.parts();
        let close = container.range.end - 1;
        let inside = self.slice(container.range.start + 1..close);
        let many_lines = inside.contains('\n') || (parts.is_empty() && self.has_lines());
        let tail = container.range.start + 1 + inside.trim_end().len();
        let closes_own_line = self.slice(tail..close).contains('\n');
        let last = parts.last().map(|part| part.end);
        let open_end = last.is_some_and(|end| self.comma_after(end).is_none());
        let base = self.indent_of(container.range.start);
        let indent = match parts.first() {
            Some(first) if self.starts_line(first.start) => self.indent_of(first.start),
            _ => format!("{base}{}", self.unit()),
        };

        let mut added = String::new();
        let style = many_lines.then(|| (self.line_end(), self.unit()));
        match style {
            Some((line_end, _)) => added = format!("{line_end}{indent}"),
            None if last.is_some() => added.push(' '),
            None => {}
        }
        if let Some(name) = name {
            // Writing to a string cannot fail.
            let _written = write!(added, "{}: ", quoted(name));
        }
        render(&mut added, value, &indent, style);
        if last.is_some() && !open_end {
            added.push(',');
        }
        if let (Some((line_end, _)), None, false) = (style, last, closes_own_line) {
            let _written = write!(added, "{line_end}{base}");
        }
        let comma = last.filter(|_| open_end);
        self.text.insert_str(tail, &added);
        if let Some(at) = comma {
            self.text.insert(at, ',');
        }
    }

    /// Puts another value in the place of one.
    pub(crate) fn replace(&mut self, node: &Node, value: &Json) {
        let many_lines = self.slice(node.range.clone()).contains('\n');
        let indent = self.indent_of(node.range.start);
        let mut text = String::new();
        let style = many_lines.then(|| (self.line_end(), self.unit()));
        render(&mut text, value, &indent, style);
        self.text.replace_range(node.range.clone(), &text);
    }

    /// Cuts an item or a member out of what holds it.
    pub(crate) fn remove(&mut self, container: &Node, index: usize) {
        let parts = container.parts();
        let Some(part) = parts.get(index) else { return };
        let follower = self.comma_after(part.end).map(|at| at..at + 1);
        let mut start = self.slice(0..part.start).trim_end().len();
        // What follows must not slip into a comment that ends the line before.
        let before = index.checked_sub(1).and_then(|index| parts.get(index));
        let from = before.map_or(container.range.start + 1, |before| before.end);
        let rest = self.text.get(follower.as_ref().map_or(part.end, |comma| comma.end)..);
        let rest = rest.unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
        if self.ends_in_comment(from..start) && !rest.starts_with('\n') {
            start = part.start;
        }
        let is_last = index + 1 == parts.len();
        let comma = match (follower, before) {
            (None, Some(before)) if is_last => self.comma_after(before.end).map(|at| at..at + 1),
            (follower, _) => follower,
        };
        let mut cuts: Vec<Range<usize>> = comma.into_iter().collect();
        cuts.push(start..part.end);
        // From the back, so that the places in front stay right.
        cuts.sort_by_key(|cut| cut.start);
        let gone: usize = cuts.iter().map(ExactSizeIterator::len).sum();
        for cut in cuts.into_iter().rev() {
            self.text.replace_range(cut, "");
        }
        let inside = container.range.start + 1..container.range.end - 1 - gone;
        if parts.len() == 1 && self.slice(inside.clone()).trim().is_empty() {
            self.text.replace_range(inside, "");
        }
    }

    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// Finds the comma that follows, past blanks and comments.
    fn comma_after(&self, end: usize) -> Option<usize> {
        let mut rest = self.text.get(end..)?;
        loop {
            rest = rest.trim_start();
            if rest.starts_with("//") {
                rest = rest.split_once('\n')?.1;
            } else if let Some(comment) = rest.strip_prefix("/*") {
                rest = comment.split_once("*/")?.1;
            } else {
                return rest.starts_with(',').then_some(self.text.len() - rest.len());
            }
        }
    }

    /// Whether what stands between two values ends in a comment that lasts until the line's end.
    fn ends_in_comment(&self, between: Range<usize>) -> bool {
        let mut rest = self.slice(between);
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\r', '\n', ',']);
            if rest.starts_with("//") {
                let Some((_, later)) = rest.split_once('\n') else { return true };
                rest = later;
            } else if let Some((_, later)) = rest.split_once("*/") {
                rest = later;
            } else {
                return false;
            }
        }
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Whether the file uses lines at all. An empty object does not say, and gets them.
    fn has_lines(&self) -> bool {
        let text = self.text.trim();
        text.contains('\n') || text == EMPTY.trim()
    }

    /// The blanks at the start of a line.
    fn indent_of(&self, at: usize) -> String {
        let line = self.slice(0..at).rsplit('\n').next().unwrap_or_default();
        line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    fn starts_line(&self, at: usize) -> bool {
        let mut lines = self.slice(0..at).rsplit('\n');
        let blank = lines.next().is_some_and(|line| line.trim().is_empty());
        blank && lines.next().is_some()
    }

    /// One step of indentation: what the first indented line has.
    fn unit(&self) -> &'static str {
        let line = self.text.lines().find(|line| {
            line.starts_with([' ', '\t']) && line.trim_start().starts_with(['"', '{', '['])
        });
        match line.map(|line| line.len() - line.trim_start_matches(' ').len()) {
            Some(0) => "\t",
            Some(1) => " ",
            Some(3) => "   ",
            Some(4) => "    ",
            Some(8) => "        ",
            _ => "  ",
        }
    }
}

/// Writes a value. `style` is the line end and the step of indentation, or none for one line.
fn render(out: &mut String, value: &Json, indent: &str, style: Option<(&str, &str)>) {
    let scalar = |value: &Json| matches!(value, Json::Text(_) | Json::Number(_));
    let (open, close, parts): (_, _, Vec<(Option<&str>, &Json)>) = match value {
        Json::Text(text) => return out.push_str(&quoted(text)),
        Json::Number(number) => return out.push_str(&number.to_string()),
        Json::Array(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
        Json::Object(members) => {
            ('{', '}', members.iter().map(|(name, value)| (Some(*name), value)).collect())
        }
    };
    let flat = matches!(value, Json::Array(_)) && parts.iter().all(|(_, part)| scalar(part));
    let style = style.filter(|_| !flat && !parts.is_empty());
    let inner = format!("{indent}{}", style.map_or("", |(_, unit)| unit));
    out.push(open);
    for (index, (name, part)) in parts.into_iter().enumerate() {
        let blank = if index > 0 { ", " } else { "" };
        let _written = match style {
            Some((end, _)) => write!(out, "{}{end}{inner}", blank.trim_end()),
            None => write!(out, "{blank}"),
        };
        if let Some(name) = name {
            let _written = write!(out, "{}: ", quoted(name));
        }
        render(out, part, &inner, style);
    }
    if let Some((end, _)) = style {
        let _written = write!(out, "{end}{indent}");
    }
    out.push(close);
}

/// Returns the text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn parse(text: &str) -> Result<Node, EditError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &JSON_WITH_COMMENTS);
    let parsed = parsed.map_err(|error| EditError {
        line: error.line_display(),
        message: format!("not valid JSON: {}", plain(&error.kind().to_string())),
    })?;
    match parsed.value {
        Some(value) => Ok(node(value)),
        None => Err(EditError { line: 1, message: "the file holds only comments".to_owned() }),
    }
}

fn plain(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

fn node(value: Value<'_>) -> Node {
    let span = |range: Place| range.start..range.end;
    let (range, kind) = match value {
        Value::StringLit(text) => (text.range, Kind::Text(text.value.into_owned())),
        Value::NumberLit(number) => (number.range, Kind::Number(number.value.to_owned())),
        Value::BooleanLit(flag) => (flag.range, Kind::Flag(flag.value)),
        Value::NullKeyword(null) => (null.range, Kind::Null),
        Value::Array(array) => {
            (array.range, Kind::Array(array.elements.into_iter().map(node).collect()))
        }
        Value::Object(object) => {
            let members = object.properties.into_iter().map(|member| {
                let name = match member.name {
                    ObjectPropName::String(text) => text.value.into_owned(),
                    ObjectPropName::Word(word) => word.value.to_owned(),
                };
                (name, span(member.range), node(member.value))
            });
            (object.range, Kind::Object(members.collect()))
        }
    };
    Node { range: span(range), kind }
}

/// What all hosts understand, and comments and trailing commas, which some do.
const JSON_WITH_COMMENTS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const BYTE_ORDER_MARK: &str = "\u{feff}";
const EMPTY: &str = "{}\n";

#[cfg(test)]
mod tests;
