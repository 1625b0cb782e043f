//! A set of dialects, compiled for scanning.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use super::families::Families;
use crate::dialect::{Dialect, Syntax, builtins};
use crate::find::{HitKinds, Literal, LiteralSet, covering_words};
use crate::structure::elements;

/// A set of dialects, compiled for scanning. Building one costs some tens of microseconds: build it
/// once and share it.
///
/// ```
/// use aldis_signal::{Dialect, Rules, Scan};
///
/// let rules = Rules::new(Dialect::builtin("promise").cloned());
/// assert_eq!(Scan::new(&rules).run(b"<promise>COMPLETE</promise>").len(), 1);
/// assert!(Scan::new(&rules).run(b"<chorus>COMPLETE</chorus>").is_empty());
/// ```
pub struct Rules {
    dialects: Vec<Arc<Dialect>>,
    /// What to look for.
    pub(crate) places: LiteralSet,
    /// What signals are found by.
    literals: Vec<Literal>,
    /// What to look for in a line of JSON that holds text.
    json: OnceLock<LiteralSet>,
    pub(crate) families: Families,
    strict: bool,
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
        let own: Vec<Literal> = words_of(&dialects)
            .into_iter()
            .chain(dialects.iter().flat_map(|dialect| starts_of(dialect)))
            .collect();
        Self {
            families: Families::new(&dialects),
            dialects,
            places: LiteralSet::new(own.iter().cloned().chain(structure_literals()).collect()),
            literals: own,
            json: OnceLock::new(),
            strict: false,
        }
    }

    /// Also wants that nothing but other signals follows a signal that decides something, and that no
    /// colon leads into it.
    ///
    /// ```
    /// use aldis_signal::{Dialect, Rules, Scan};
    ///
    /// let text = b"<promise>COMPLETE</promise>\n\nTests to follow.";
    /// let rules = Rules::new(Dialect::builtin("promise").cloned());
    /// assert!(Scan::new(&rules).run(text)[0].signal().is_some());
    /// assert!(Scan::new(&rules.strict(true)).run(text)[0].signal().is_none());
    /// ```
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.strict
    }

    /// Returns the rules of all built-in dialects.
    ///
    /// ```
    /// use aldis_signal::Rules;
    ///
    /// assert!(Rules::builtin().dialects().iter().any(|dialect| &*dialect.name == "caw"));
    /// ```
    pub fn builtin() -> &'static Self {
        static ALL: LazyLock<Rules> = LazyLock::new(|| Rules::new(builtins().iter().cloned()));
        &ALL
    }

    /// Returns the dialects in the order they were given.
    pub fn dialects(&self) -> &[Arc<Dialect>] {
        &self.dialects
    }

    /// Returns the literals by which places that are worth a look are found. What scanning costs is
    /// measured against a search for these alone.
    ///
    /// ```
    /// use aldis_signal::{Dialect, Rules};
    ///
    /// let rules = Rules::new(Dialect::builtin("promise").cloned());
    /// assert!(rules.literals().any(|literal| literal == b"<promise>"));
    /// ```
    pub fn literals(&self) -> impl Iterator<Item = &[u8]> {
        self.places.texts()
    }

    /// Returns the same rules on the search that takes the place of the packed one where the processor
    /// has none.
    #[cfg(test)]
    pub(crate) fn on_automaton(mut self) -> Self {
        self.places = self.places.on_automaton();
        self
    }

    /// Returns whether a line of JSON may hold text that matters: `false` means that no string in it
    /// holds a signal. Names that are only misspelled may be overlooked.
    ///
    /// ```
    /// use aldis_signal::Rules;
    ///
    /// assert!(Rules::builtin().may_match_json(br#"{"text":"<promise>COMPLETE</promise>"}"#));
    /// assert!(!Rules::builtin().may_match_json(br#"{"text":"Let me look at it."}"#));
    /// ```
    pub fn may_match_json(&self, line: &[u8]) -> bool {
        self.json.get_or_init(|| json_filter(&self.literals)).hits(line)
    }
}

fn json_filter(literals: &[Literal]) -> LiteralSet {
    // A printable character written as an escape must not hide a signal.
    let escapes = (2..8).map(|high| Literal::new(&format!("\\u00{high}"), HitKinds::LINE));
    LiteralSet::new(literals.iter().flat_map(escaped).chain(escapes).collect())
}

/// Returns what opens fences, comments and elements that show text.
fn structure_literals() -> impl Iterator<Item = Literal> {
    let fence = |run| Literal::new(run, HitKinds::FENCE);
    let element = |name: &&str| Literal::new(&format!("<{name}"), HitKinds::ELEMENT);
    [fence("```"), fence("~~~"), Literal::new("<!--", HitKinds::COMMENT)]
        .into_iter()
        .chain(elements::names().iter().map(element))
}

/// Returns words of which every line that may hold a signal holds at least one.
fn words_of(dialects: &[Arc<Dialect>]) -> Vec<Literal> {
    let keys: Vec<String> = dialects.iter().flat_map(|dialect| line_keys(dialect)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    covering_words(&keys).into_iter().map(|word| Literal::new(word, HitKinds::LINE)).collect()
}

/// Returns the texts that a line of each signal holds, wherever in the line.
fn line_keys(dialect: &Dialect) -> Vec<String> {
    match &dialect.syntax {
        Syntax::Block(block) => vec![format!("{}:", block.key)],
        Syntax::Line(_) => dialect.signals.iter().map(|def| def.name.to_string()).collect(),
        Syntax::Fence(fence) => {
            let Some(legacy) = &fence.legacy else { return Vec::new() };
            let keys = [
                legacy.status.heading.clone(),
                format!("{}:", legacy.transition.key),
                format!("{}:", legacy.flag.key),
            ];
            keys.into_iter()
                .chain(legacy.banners.iter().map(|banner| banner.text.clone()))
                .collect()
        }
        // Its opening line is looked for where it starts a line; this finds it elsewhere.
        Syntax::Status(status) => vec![status.open.clone()],
        Syntax::Tag(_) | Syntax::Trailer(_) => Vec::new(),
    }
}

/// Returns literals that signals start with.
fn starts_of(dialect: &Dialect) -> Vec<Literal> {
    match &dialect.syntax {
        Syntax::Block(block) => vec![Literal::after(b'\n', &block.delimiter, HitKinds::BLOCK)],
        Syntax::Line(line) => {
            let markers = line.delegation.iter().flat_map(|lines| [&lines.start, &lines.end]);
            markers.map(|marker| Literal::after(b'\n', marker, HitKinds::BLOCK)).collect()
        }
        Syntax::Tag(tag) => vec![Literal::new(&tag.open, HitKinds::TAG)],
        Syntax::Trailer(trailer) => {
            let words = trailer.alternative_signals.iter().chain([&trailer.keyword]);
            let cased = |word: &String| {
                let mut cases = vec![word.clone()];
                if !trailer.case_sensitive {
                    let parts: Vec<_> = word.split('_').map(capitalised).collect();
                    cases.extend([word.to_lowercase(), word.to_uppercase(), capitalised(word)]);
                    cases.push(parts.join("_"));
                }
                cases
            };
            words.flat_map(cased).map(|word| Literal::new(&word, HitKinds::TRAILER)).collect()
        }
        Syntax::Fence(fence) => {
            fence.bare.iter().map(|bare| Literal::new(bare, HitKinds::LINE)).collect()
        }
        Syntax::Status(_) => Vec::new(),
    }
}

fn capitalised(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut chars = lower.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns a literal as it stands inside a JSON string. A delimiter is looked for with the line end
/// behind it, because tools print many lines that only begin with one; blocks whose delimiter has
/// blanks behind it are found by their key.
fn escaped(literal: &Literal) -> Vec<Literal> {
    let ends: &[&str] = if literal.kinds == HitKinds::BLOCK { &["\n", "\r"] } else { &[""] };
    let text = String::from_utf8_lossy(&literal.text);
    let quoted = ends.iter().map(|end| {
        let quoted = serde_json::Value::String(format!("{text}{end}")).to_string();
        quoted.trim_matches('"').as_bytes().to_vec()
    });
    quoted.map(|text| Literal { text, ..literal.clone() }).collect()
}
