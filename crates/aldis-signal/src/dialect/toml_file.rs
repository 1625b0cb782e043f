//! Dialect files as people write them, in TOML, and where in them something is wrong.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::check::{DialectError, Fault, Source};

/// A file that is TOML.
pub(super) struct TomlFile<'t> {
    text: &'t str,
    table: Spanned<DeTable<'t>>,
}

impl<'t> TomlFile<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, DialectError> {
        let table = DeTable::parse(text).map_err(|error| refused(text, &error))?;
        Ok(Self { text, table })
    }

    /// Returns where the value is that a path leads to, or what is nearest to it.
    fn span_of(&self, path: &str) -> Option<Range<usize>> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let mut value = self.table.get_ref().get(first)?;
        for step in rest.split('.') {
            let inner = match value.get_ref() {
                DeValue::Table(table) => table.get(step),
                DeValue::Array(items) => step.parse().ok().and_then(|at: usize| items.get(at)),
                _ => None,
            };
            let Some(inner) = inner else { break };
            value = inner;
        }
        Some(value.span())
    }
}

impl Source for TomlFile<'_> {
    type Error = DialectError;

    fn read<T: DeserializeOwned>(&self) -> Result<T, DialectError> {
        let table = Deserializer::from(self.table.clone());
        T::deserialize(table).map_err(|error| refused(self.text, &error))
    }

    fn refuse(&self, fault: Fault) -> DialectError {
        let span = self.span_of(&fault.path);
        let line = span.as_ref().map(|span| line_of(self.text, span.start));
        DialectError { line, span, ..fault.without_place() }
    }
}

fn refused(text: &str, error: &Error) -> DialectError {
    DialectError {
        message: error.message().trim().to_owned(),
        help: None,
        line: error.span().map(|span| line_of(text, span.start)),
        span: error.span(),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + memchr::memchr_iter(b'\n', before).count()
}
