//! A fenced JSON object.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::status;

/// How a fence dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syntax {
    family: String,
    /// The info string of the fence.
    pub info: String,
    /// How a bare line starts that counts without a fence.
    #[serde(default)]
    pub bare: Option<String>,
    /// The name of a signal that does not say its own.
    pub default_name: String,
    /// The version this dialect describes.
    pub version: u64,
    /// The members that are known, and what they hold.
    pub members: BTreeMap<String, Member>,
    /// Other spellings of an upper-case value, by member.
    #[serde(default)]
    pub aliases: BTreeMap<String, BTreeMap<String, String>>,
    /// Progress that a value stands for where none is given, by member; `*` for all others.
    #[serde(default)]
    pub implied_progress: BTreeMap<String, u8>,
    /// Older forms, taken only where a message has no valid signal of the current form.
    #[serde(default)]
    pub legacy: Option<Legacy>,
}

/// What a member of the JSON object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Member {
    /// True or false, nothing else.
    Boolean,
    /// Names with true or false.
    Flags,
    /// A whole number from 0.
    Integer,
    /// The signal's name.
    Name,
    /// 0 to 100.
    Percent,
    /// Words.
    Text,
    /// A word, upper-cased.
    Upper,
    /// The format version.
    Version,
}

/// The forms that came before the JSON one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Legacy {
    /// The status block.
    pub status: status::Ruled,
    /// A line `KEY: A → B` that reports a change of the member named here.
    pub transition: Transition,
    /// A line of its own that says the member of this name is true, such as `EXIT_SIGNAL: true`.
    pub flag: Flag,
    /// Lines of their own, and the signal each stands for.
    pub banners: Vec<Banner>,
}

/// A line `KEY: A → B`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// What stands before the colon.
    pub key: String,
    /// The member it sets.
    pub member: String,
    /// The signal it is.
    pub signal: String,
}

/// A line `KEY: true`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flag {
    /// What stands before the colon.
    pub key: String,
    /// The member it sets.
    pub member: String,
    /// The signal it is.
    pub signal: String,
}

/// A line that says it in capitals.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banner {
    /// The words.
    pub text: String,
    /// The signal they stand for.
    pub signal: String,
    /// Whether words may follow behind ` - ` or `:`.
    #[serde(default)]
    pub words_follow: bool,
}
