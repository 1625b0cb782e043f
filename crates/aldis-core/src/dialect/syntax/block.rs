//! Keyed lines between delimiter lines.

use std::collections::BTreeMap;

use serde::Deserialize;

/// How a block dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syntax {
    family: String,
    /// The line that opens and closes a block.
    pub delimiter: String,
    /// The key of the first line, whose value is the signal's name.
    pub key: String,
    /// The other keys. `TOKEN` is always allowed.
    pub keys: Vec<String>,
    /// Keys whose values are free text for people.
    #[serde(default)]
    pub text_keys: Vec<String>,
    /// Whether a bare fence that holds one block and ends the message counts.
    #[serde(default)]
    pub fenced_terminal: bool,
    /// Whether `KEY: NAME` as the last line counts without delimiters.
    #[serde(default)]
    pub bare_terminal: bool,
    /// What a claim must say beside its name, such as `STATUS: complete`.
    #[serde(default)]
    pub claim_needs: BTreeMap<String, String>,
}
