//! A set of dialects, compiled for scanning.

use std::fmt;
use std::sync::{Arc, LazyLock};

use super::prefilter::{Kinds, Prefilter};
use super::verdict::RETRACTION_LITERALS;
use crate::dialect::syntax::tag;
use crate::dialect::{Dialect, Syntax, builtins};

/// A set of dialects, compiled for scanning. Building one costs about a tenth of a millisecond:
/// build it once and share it.
pub struct Rules {
    dialects: Vec<Arc<Dialect>>,
    /// What to look for while nothing has been claimed.
    pub(crate) quiet: Prefilter,
    /// What to look for while a claim can still be taken back.
    pub(crate) watchful: Prefilter,
    /// What to look for in a line of JSON that holds text.
    json: Prefilter,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.dialects.iter().map(|dialect| &dialect.name);
        f.debug_list().entries(names).finish()
    }
}

impl Rules {
    /// Compiles a set of dialects.
    pub fn new(dialects: impl IntoIterator<Item = Arc<Dialect>>) -> Self {
        let dialects: Vec<_> = dialects.into_iter().collect();
        let mut literals = dialects.iter().flat_map(|dialect| literals(dialect)).collect::<Vec<_>>();
        let json = literals.iter().map(|(literal, kinds)| (escape(literal), *kinds));
        // A printable character written as an escape must not hide a signal.
        let escapes = (2..8).map(|high| (format!("\\u00{high}").into_bytes(), Kinds::LINE));
        let json = Prefilter::new(json.chain(escapes).collect());
        for (literal, kinds) in [
            ("```", Kinds::FENCE),
            ("~~~", Kinds::FENCE),
            ("<!--", Kinds::COMMENT),
            ("-->", Kinds::COMMENT),
        ] {
            literals.push((literal.into(), kinds));
        }
        let retractions =
            RETRACTION_LITERALS.iter().map(|word| (word.as_bytes().to_vec(), Kinds::RETRACTION));
        let watchful = Prefilter::new(literals.iter().cloned().chain(retractions).collect());
        Self { dialects, quiet: Prefilter::new(literals), watchful, json }
    }

    /// Returns the rules of all built-in dialects.
    pub fn builtin() -> &'static Self {
        static ALL: LazyLock<Rules> = LazyLock::new(|| Rules::new(builtins().iter().cloned()));
        &ALL
    }

    /// Returns the dialects in the order they were given.
    pub fn dialects(&self) -> &[Arc<Dialect>] {
        &self.dialects
    }

    /// Returns whether a line of JSON may hold text that matters: `false` means that no string in it
    /// holds a signal. Names that are only misspelled may be overlooked.
    pub fn may_match_json(&self, line: &[u8]) -> bool {
        self.json.hits(line)
    }
}

/// Returns literals of which every signal of a dialect, and most that only look like one, holds at
/// least one.
fn literals(dialect: &Dialect) -> Vec<(Vec<u8>, Kinds)> {
    let line = |text: &str| (text.as_bytes().to_vec(), Kinds::LINE);
    match &dialect.syntax {
        Syntax::Block(block) => {
            let key = format!("{}:", block.key);
            let common = [key.clone(), key.to_lowercase(), capitalised(&key)];
            common.iter().chain([&block.delimiter]).map(|text| line(text)).collect()
        }
        Syntax::Line(syntax) => {
            let names = dialect.signals.iter().map(|def| line(stem(&def.name)));
            let markers = syntax.delegation.iter().flat_map(|d| [line(&d.start), line(&d.end)]);
            names.chain(markers).collect()
        }
        Syntax::Tag(tag) => tag_literals(tag),
        Syntax::Trailer(trailer) => {
            let words = trailer.alternative_signals.iter().chain([&trailer.keyword]);
            let cased = |word: &String| [word.clone(), word.to_lowercase(), word.to_uppercase()];
            words.flat_map(cased).map(|word| (word.into_bytes(), Kinds::TRAILER)).collect()
        }
        Syntax::Fence(fence) => {
            let legacy = fence.legacy.iter().flat_map(|legacy| {
                let keys = [
                    legacy.status.heading.clone(),
                    format!("{}:", legacy.transition.key),
                    format!("{}:", legacy.flag.key),
                ];
                keys.into_iter().chain(legacy.banners.iter().map(|banner| banner.text.clone()))
            });
            let bare = fence.bare.clone();
            legacy.chain(bare).map(|text| line(&text)).collect()
        }
        Syntax::Status(status) => vec![line(&status.open)],
    }
}

fn tag_literals(tag: &tag::Syntax) -> Vec<(Vec<u8>, Kinds)> {
    let mut texts = vec![tag.open.clone(), tag.close.clone()];
    if let Some(shared) = shared_literal(tag) {
        texts = vec![shared.to_lowercase(), shared.to_uppercase(), shared.to_owned()];
    } else if tag.end.is_some() {
        // The name and its closing follow the opening directly.
        texts = vec![tag.open.clone()];
    }
    texts.into_iter().map(|text| (text.into_bytes(), Kinds::TAG)).collect()
}

/// Returns `name>` for tags `<name>` and `</name>`: one literal finds both.
pub(crate) fn shared_literal(tag: &tag::Syntax) -> Option<&str> {
    let name = tag.open.strip_prefix('<')?;
    (tag.close.strip_prefix("</") == Some(name) && name.ends_with('>')).then_some(name)
}

/// Returns the first part of a long name, enough to be rare.
fn stem(name: &str) -> &str {
    match name.match_indices(['_', ' ']).find(|(at, _)| *at >= 4) {
        Some((at, _)) if at + 1 < name.len() => &name[..=at],
        _ => name,
    }
}

fn capitalised(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut chars = lower.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns a literal as it stands inside a JSON string.
fn escape(literal: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(literal);
    let quoted = serde_json::Value::String(text.into_owned()).to_string();
    quoted.trim_matches('"').as_bytes().to_vec()
}
