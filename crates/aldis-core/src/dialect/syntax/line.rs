//! A name at the start of a line, its subject behind a separator, its body below.

use std::collections::BTreeMap;

use serde::Deserialize;

/// How a line dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syntax {
    family: String,
    /// What stands between name and subject.
    #[serde(default = "colon")]
    pub separator: String,
    /// Whether the lines below belong to the signal.
    #[serde(default)]
    pub body: bool,
    /// Lines around a prompt for another agent; what stands between is payload, not speech.
    #[serde(default)]
    pub delegation: Option<Delegation>,
    /// Body fields that take only listed values.
    #[serde(default)]
    pub values: BTreeMap<String, Vec<String>>,
}

/// The lines around a prompt that is passed on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delegation {
    /// The line before it.
    pub start: String,
    /// The line after it.
    pub end: String,
    /// The field that takes it.
    pub field: String,
}

fn colon() -> String {
    ":".to_owned()
}
