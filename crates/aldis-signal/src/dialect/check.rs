//! Loading dialects: what people write, checked, with errors that point at the line.

mod forms;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(super) use self::forms::check_syntax;
use super::{Dialect, FORMAT_VERSION, SignalDef, Standing, Syntax};
use crate::scan::text::snake_case;

/// A dialect file cannot be used. Points at the text to change.
///
/// ```
/// use aldis_signal::Dialect;
///
/// let error = Dialect::builtin("caw").unwrap().with_word("DONE").unwrap_err();
/// assert_eq!(error.message, "the dialect `caw` has no word to set");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

impl std::error::Error for DialectError {}

/// What is wrong with a dialect that could be read.
pub(super) struct Fault {
    /// The way to the value in its file: `signals.1.name`.
    #[cfg_attr(not(feature = "toml"), expect(dead_code, reason = "only files have places"))]
    pub(super) path: String,
    message: String,
    help: Option<String>,
}

impl Fault {
    fn new(path: impl Into<String>, message: String) -> Self {
        Self { path: path.into(), message, help: None }
    }

    fn with_help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }

    /// The error of a dialect that is in no file.
    pub(super) fn without_place(self) -> DialectError {
        DialectError { message: self.message, help: self.help, span: None, line: None }
    }
}

/// What a dialect is read from: a file that people wrote, or one that was made from it.
pub(super) trait Source {
    type Error;

    /// Reads the whole of it as something.
    fn read<T: DeserializeOwned>(&self) -> Result<T, Self::Error>;

    /// Says where in it something is wrong.
    fn refuse(&self, fault: Fault) -> Self::Error;
}

/// Enough of a file to know the family.
#[derive(Deserialize)]
struct Probe {
    syntax: ProbeSyntax,
}

#[derive(Deserialize)]
struct ProbeSyntax {
    family: String,
}

pub(super) fn dialect<S: Source>(source: &S) -> Result<Dialect, S::Error> {
    let family = source.read::<Probe>()?.syntax.family;
    match family.as_str() {
        "block" => build(source, Syntax::Block),
        "fence" => build(source, |fence| Syntax::Fence(Box::new(fence))),
        "line" => build(source, Syntax::Line),
        "status" => build(source, Syntax::Status),
        "tag" => build(source, Syntax::Tag),
        "trailer" => build(source, Syntax::Trailer),
        other => {
            let message = format!("there is no grammar family `{other}`");
            Err(source.refuse(
                Fault::new("syntax.family", message)
                    .with_help("the families are block, line, tag, trailer, fence and status"),
            ))
        }
    }
}

/// The file as people write it, for a family whose keys are known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw<S> {
    v: u32,
    name: String,
    about: String,
    syntax: S,
    signals: Vec<SignalDef>,
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

fn build<F: DeserializeOwned, S: Source>(
    source: &S,
    wrap: impl FnOnce(F) -> Syntax,
) -> Result<Dialect, S::Error> {
    let raw: Raw<F> = source.read()?;
    check_head(&raw).map_err(|fault| source.refuse(fault))?;
    let syntax = wrap(raw.syntax);
    let mut signals = raw.signals;
    // Members of a JSON object have the names they are given, keys on lines have them in any case.
    if !matches!(syntax, Syntax::Fence(_)) {
        signals.iter_mut().for_each(name_members);
    }
    let dialect = Dialect {
        standing: raw.standing.unwrap_or_else(|| syntax.standing()),
        name: raw.name.into(),
        about: raw.about,
        syntax,
        signals,
        prompt: raw.prompt,
        verdict_words: raw.verdict_words,
        placeholders: raw.placeholders,
    };
    check_syntax(&dialect).map_err(|fault| source.refuse(fault))?;
    Ok(dialect)
}

/// Checks what every family has.
fn check_head<F>(raw: &Raw<F>) -> Result<(), Fault> {
    if raw.v != FORMAT_VERSION {
        return Err(Fault::new("v", format!("dialect format {} is not known", raw.v))
            .with_help(&format!("this version reads `v = {FORMAT_VERSION}`")));
    }
    if !is_dialect_name(&raw.name) {
        return Err(Fault::new("name", format!("`{}` is not a dialect name", raw.name))
            .with_help("use lower-case letters, digits and hyphens, a letter first"));
    }
    let mut seen = HashSet::new();
    for (index, signal) in raw.signals.iter().enumerate() {
        let name: &str = &signal.name;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte);
        let message = if name.is_empty() || name.len() > 64 {
            format!("a signal name has 1 to 64 letters, `{name}` does not")
        } else if name.trim() != name || !name.bytes().all(plain) {
            format!("`{name}` is not a signal name")
        } else if !seen.insert(name) {
            format!("the signal `{name}` is defined twice")
        } else {
            continue;
        };
        return Err(Fault::new(format!("signals.{index}"), message)
            .with_help("names are unique and made of ASCII letters, digits, `_`, `-` and blanks"));
    }
    Ok(())
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
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    name.len() <= 32 && starts && name.bytes().all(plain)
}

/// The error of a dialect without a word that could be set.
pub(super) fn wordless(name: &str) -> DialectError {
    Fault::new("", format!("the dialect `{name}` has no word to set"))
        .with_help("only promise=TEXT, turn=KEYWORD and dialects like them have one")
        .without_place()
}
