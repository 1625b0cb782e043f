//! Keyed lines between an opening and a closing line of their own.

use serde::Deserialize;

/// How a status dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syntax {
    family: String,
    /// The line before.
    pub open: String,
    /// The line after.
    pub close: String,
}

/// A status block under a heading, between rules drawn with one repeated character.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruled {
    /// The heading line.
    pub heading: String,
    /// The characters a rule may be drawn with.
    pub rules: String,
    /// The signal the block is.
    pub signal: String,
}
