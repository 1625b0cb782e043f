//! A keyword that ends the message.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// How a trailer dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Syntax {
    #[serde(rename = "family")]
    _family: IgnoredAny,
    /// The keyword.
    pub keyword: String,
    /// Whether case matters.
    #[serde(default = "yes")]
    pub case_sensitive: bool,
    /// Whether nothing may follow.
    #[serde(default = "yes")]
    pub require_at_end: bool,
    /// Other keywords that mean the same.
    #[serde(default)]
    pub alternative_signals: Vec<String>,
}

fn yes() -> bool {
    true
}
