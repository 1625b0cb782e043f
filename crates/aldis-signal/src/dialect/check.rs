//! Loading dialect files: what people write, checked, with errors that point at the line.

mod forms;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

pub(super) use self::forms::check_syntax;
use super::{Dialect, FORMAT_VERSION, SignalDef, Standing, Syntax};
use crate::scan::text::snake_case;

/// A dialect file cannot be used. Points at the text to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DialectError {
    /// What is wrong.
    pub message: String,
    /// What would be right, where that can be said.
    pub help: Option<String>,
    /// Bytes of the file this is about, if it is about some.
    pub span: Option<Range<usize>>,
    /// Line of the span's first byte, from 1.
    pub line: Option<usize>,
}

impl fmt::Display for DialectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

pub(super) fn dialect(text: &str) -> Result<Dialect, DialectError> {
    let table = DeTable::parse(text).map_err(|error| refused(text, &error))?;
    let family = match family(&table) {
        Some(family) => family,
        None => read::<Probe>(text, table.clone())?.syntax.family,
    };
    match family.get_ref().as_str() {
        "block" => build(text, table, Syntax::Block),
        "fence" => build(text, table, |fence| Syntax::Fence(Box::new(fence))),
        "line" => build(text, table, Syntax::Line),
        "status" => build(text, table, Syntax::Status),
        "tag" => build(text, table, Syntax::Tag),
        "trailer" => build(text, table, Syntax::Trailer),
        other => Err(at(text, family.span(), format!("there is no grammar family `{other}`"))
            .with_help("the families are block, line, tag, trailer, fence and status")),
    }
}

fn family(table: &Spanned<DeTable<'_>>) -> Option<Spanned<String>> {
    let syntax = table.get_ref().get("syntax")?.get_ref().as_table()?;
    let family = syntax.get("family")?;
    Some(Spanned::new(family.span(), family.get_ref().as_str()?.to_owned()))
}

/// Enough of a file to say why the family is not known.
#[derive(Deserialize)]
struct Probe {
    syntax: ProbeSyntax,
}

#[derive(Deserialize)]
struct ProbeSyntax {
    family: Spanned<String>,
}

/// The file as people write it, for a family whose keys are known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw<S> {
    v: Spanned<u32>,
    name: Spanned<String>,
    about: String,
    syntax: S,
    signals: Vec<Spanned<SignalDef>>,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    standing: Option<Standing>,
    #[serde(default = "yes")]
    verdict_words: bool,
    #[serde(default)]
    placeholders: Vec<String>,
}

fn yes() -> bool {
    true
}

fn build<S: DeserializeOwned>(
    text: &str,
    table: Spanned<DeTable<'_>>,
    wrap: impl FnOnce(S) -> Syntax,
) -> Result<Dialect, DialectError> {
    let raw: Raw<S> = read(text, table)?;
    if *raw.v.get_ref() != FORMAT_VERSION {
        let message = format!("dialect format {} is not known", raw.v.get_ref());
        return Err(at(text, raw.v.span(), message)
            .with_help(&format!("this version reads `v = {FORMAT_VERSION}`")));
    }
    if !is_dialect_name(raw.name.get_ref()) {
        let message = format!("`{}` is not a dialect name", raw.name.get_ref());
        return Err(at(text, raw.name.span(), message)
            .with_help("use lower-case letters, digits and hyphens, a letter first"));
    }
    let mut seen = HashSet::new();
    for signal in &raw.signals {
        check_signal(text, signal, &mut seen)?;
    }
    let syntax = wrap(raw.syntax);
    let mut signals: Vec<_> = raw.signals.into_iter().map(Spanned::into_inner).collect();
    // Members of a JSON object have the names they are given, keys on lines have them in any case.
    if !matches!(syntax, Syntax::Fence(_)) {
        signals.iter_mut().for_each(name_members);
    }
    let dialect = Dialect {
        standing: raw.standing.unwrap_or_else(|| syntax.standing()),
        name: raw.name.get_ref().as_str().into(),
        about: raw.about,
        syntax,
        signals,
        prompt: raw.prompt,
        verdict_words: raw.verdict_words,
        placeholders: raw.placeholders,
    };
    check_syntax(&dialect).map_err(|fault| fault.in_file(text))?;
    Ok(dialect)
}

fn check_signal<'a>(
    text: &str,
    signal: &'a Spanned<SignalDef>,
    seen: &mut HashSet<&'a str>,
) -> Result<(), DialectError> {
    let name: &str = &signal.get_ref().name;
    let problem = if name.is_empty() || name.len() > 64 {
        Some(format!("a signal name has 1 to 64 letters, `{name}` does not"))
    } else if name.trim() != name
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte))
    {
        Some(format!("`{name}` is not a signal name"))
    } else if !seen.insert(name) {
        Some(format!("the signal `{name}` is defined twice"))
    } else {
        None
    };
    match problem {
        Some(message) => Err(at(text, signal.span(), message)
            .with_help("names are unique and made of ASCII letters, digits, `_`, `-` and blanks")),
        None => Ok(()),
    }
}

/// Names members as they are stored: `Target Agent` is `target_agent`.
fn name_members(signal: &mut SignalDef) {
    signal.require.iter_mut().for_each(|key| *key = snake_case(key));
    for when in &mut signal.when {
        let conditions = std::mem::take(&mut when.conditions).into_iter();
        when.conditions = conditions.map(|(key, value)| (snake_case(&key), value)).collect();
    }
}

fn is_dialect_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn read<T: DeserializeOwned>(text: &str, table: Spanned<DeTable<'_>>) -> Result<T, DialectError> {
    T::deserialize(Deserializer::from(table)).map_err(|error| refused(text, &error))
}

fn refused(text: &str, error: &toml::de::Error) -> DialectError {
    DialectError {
        message: error.message().trim().to_owned(),
        help: None,
        line: error.span().map(|span| line_of(text, span.start)),
        span: error.span(),
    }
}

fn at(text: &str, span: Range<usize>, message: String) -> DialectError {
    DialectError { message, help: None, line: Some(line_of(text, span.start)), span: Some(span) }
}

impl DialectError {
    /// There is no word that could be set.
    pub(super) fn wordless(name: &str) -> Self {
        let message = format!("the dialect `{name}` has no word to set");
        let help = "only promise=TEXT, turn=KEYWORD and dialects like them have one".to_owned();
        Self { message, help: Some(help), span: None, line: None }
    }

    fn with_help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + memchr::memchr_iter(b'\n', before).count()
}

/// Returns where the value is that a path leads to, or what is nearest to it.
fn span_of(text: &str, path: &str) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let mut value = table.get_ref().get(first)?;
    for step in rest.split('.') {
        let inner = match value.get_ref() {
            DeValue::Table(table) => table.get(step),
            DeValue::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    Some(value.span())
}
