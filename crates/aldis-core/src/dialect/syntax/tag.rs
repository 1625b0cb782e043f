//! An opening and a closing tag around the words.

use serde::Deserialize;

/// How a tag dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syntax {
    family: String,
    /// The opening tag; for a tag with an attribute only `<name`.
    pub open: String,
    /// The closing tag.
    pub close: String,
    /// An attribute of the opening tag that names the subject.
    #[serde(default)]
    pub attribute: Option<String>,
    /// The words between the tags that count; the dialect then has a single signal.
    #[serde(default)]
    pub text: Option<String>,
    /// A second tag that closes the payload of signals with `payload = "text"`, where the first
    /// pair holds only the name.
    #[serde(default)]
    pub end: Option<String>,
}
