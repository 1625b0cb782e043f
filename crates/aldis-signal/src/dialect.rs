//! Dialects: how signals are written, as data.
//!
//! A dialect names one of six grammar families with its delimiters, and lists its signals with what
//! they mean. The built-in ones are TOML files in `dialect/builtin`; users write their own in the
//! same form. Nothing else in the crate knows a dialect by name but the plain regexes of `reference`
//! and the turn machine, which speaks one of them.

mod check;
pub mod syntax;
#[cfg(feature = "toml")]
mod toml_file;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use self::check::DialectError;
use self::syntax::{block, fence, line, status, tag, trailer};
use crate::prompt::FORM;
use crate::signal::{Fields, Meaning};

/// The format version of dialect files.
pub const FORMAT_VERSION: u32 = 1;

/// How one family of signals is written and what they mean.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dialect {
    /// Unique name: `[a-z][a-z0-9-]*`.
    pub name: Arc<str>,
    /// One line for listings.
    pub about: String,
    /// How it is written.
    pub syntax: Syntax,
    /// What can be said.
    pub signals: Vec<SignalDef>,
    /// Instructions for agents; `{form}` stands for the form with the configured word. As assistant text
    /// they hold no signal.
    pub prompt: String,
    /// Where on its line a signal stands.
    pub standing: Standing,
    /// Whether words before a claim can doubt it, and words after it take it back.
    pub verdict_words: bool,
    /// Whole payloads that are documentation and not said in earnest.
    pub placeholders: Vec<String>,
}

/// Where on its line a signal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// At the start of a line, as its grammar has it.
    Column,
    /// At the end of the message, with any words before it.
    End,
    /// On a line with nothing beside it that makes it part of a sentence.
    Line,
}

/// The grammar of a dialect: one of six families.
#[derive(Clone, Debug)]
pub enum Syntax {
    /// Keyed lines between delimiter lines.
    Block(block::Syntax),
    /// A fenced JSON object.
    Fence(Box<fence::Syntax>),
    /// A name at the start of a line, with a body below.
    Line(line::Syntax),
    /// Keyed lines between an opening and a closing line of their own.
    Status(status::Syntax),
    /// An opening and a closing tag around the words.
    Tag(tag::Syntax),
    /// A keyword that ends the message.
    Trailer(trailer::Syntax),
}

impl Syntax {
    /// Returns where signals of the family stand, unless a dialect says otherwise.
    fn standing(&self) -> Standing {
        match self {
            Self::Line(_) => Standing::Column,
            Self::Trailer(_) => Standing::End,
            Self::Block(_) | Self::Fence(_) | Self::Status(_) | Self::Tag(_) => Standing::Line,
        }
    }

    /// Returns the family's name as dialect files spell it.
    pub fn family(&self) -> &'static str {
        match self {
            Self::Block(_) => "block",
            Self::Fence(_) => "fence",
            Self::Line(_) => "line",
            Self::Status(_) => "status",
            Self::Tag(_) => "tag",
            Self::Trailer(_) => "trailer",
        }
    }
}

/// One signal of a dialect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SignalDef {
    /// Canonical spelling.
    pub name: Arc<str>,
    /// What it says in any dialect.
    pub meaning: Meaning,
    /// Whether it names what it is about.
    #[serde(default)]
    pub subject: Presence,
    /// What its subject looks like.
    #[serde(default)]
    pub subject_form: SubjectForm,
    /// A body field that names the subject where the signal itself does not.
    #[serde(default)]
    pub subject_from: Option<String>,
    /// What is said with it.
    #[serde(default)]
    pub payload: Payload,
    /// A member that its words must have if they are a JSON object.
    #[serde(default)]
    pub object_needs: Option<String>,
    /// Who may say it; empty for everyone.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Lower numbers go first when one reply holds several.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// What the delivery loop does with it.
    #[serde(default)]
    pub handler: Option<Arc<str>>,
    /// Members whose absence is a warning, in lower case.
    #[serde(default, deserialize_with = "lower_case")]
    pub fields: Vec<Arc<str>>,
    /// Members without which it does not count.
    #[serde(default)]
    pub require: Vec<String>,
    /// Members that should have this value; another is a warning.
    #[serde(default)]
    pub expect: BTreeMap<String, String>,
    /// Meanings that depend on what was said; the first that applies wins.
    #[serde(default)]
    pub when: Vec<When>,
}

fn default_priority() -> u8 {
    5
}

fn lower_case<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<Arc<str>>, D::Error> {
    let names = Vec::<String>::deserialize(source)?;
    Ok(names.iter().map(|name| name.to_ascii_lowercase().into()).collect())
}

impl SignalDef {
    /// Returns what the signal says and what is done with it, given what it was said with.
    pub fn meaning_with(
        &self,
        subject: Option<&str>,
        payload: Option<&str>,
        fields: &Fields,
    ) -> (Meaning, Option<&Arc<str>>) {
        let holds = |(member, value): (&String, &String)| {
            let said = match member.as_str() {
                // Ids and verdicts are said exactly.
                "subject" => return subject == Some(value),
                "payload" => payload,
                _ => match fields.get(member) {
                    Some(Value::Bool(flag)) => Some(if *flag { "true" } else { "false" }),
                    Some(Value::String(text)) => Some(text.as_str()),
                    _ => None,
                },
            };
            said.is_some_and(|said| said.eq_ignore_ascii_case(value))
        };
        match self.when.iter().find(|when| when.conditions.iter().all(holds)) {
            Some(when) => (when.meaning, when.handler.as_ref().or(self.handler.as_ref())),
            None => (self.meaning, self.handler.as_ref()),
        }
    }
}

/// Whether something must, may or must not be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// Never.
    #[default]
    None,
    /// Sometimes.
    Optional,
    /// Always.
    Required,
}

/// What a subject looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectForm {
    /// `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
    #[default]
    Id,
    /// A relative path that stays inside the project; may hold blanks.
    Path,
    /// The rest of the line.
    Text,
}

/// What is said with a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// A JSON object.
    Json,
    /// Nothing; words that come all the same are kept.
    #[default]
    None,
    /// A number from 0 to 100.
    Percent,
    /// Words; their absence is a warning.
    Text,
}

/// A meaning that depends on what was said.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct When {
    /// What must all hold: `subject` exactly, fields by name or `payload` in any case. `true` and
    /// `false` also match booleans.
    #[serde(rename = "if")]
    pub conditions: BTreeMap<String, String>,
    /// What the signal then says.
    pub meaning: Meaning,
    /// What the delivery loop then does.
    #[serde(default)]
    pub handler: Option<Arc<str>>,
}

impl Dialect {
    /// Reads a dialect file.
    ///
    /// # Errors
    ///
    /// Fails with the line of the first thing that is wrong and what would be right.
    ///
    /// ```
    /// use aldis_signal::Dialect;
    ///
    /// let error = Dialect::from_toml("v = 1\nname = \"Mine\"\n").unwrap_err();
    /// assert!(error.to_string().contains("missing field"), "{error}");
    /// ```
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str) -> Result<Self, DialectError> {
        check::dialect(&toml_file::TomlFile::parse(text)?)
    }

    /// Returns the built-in dialect of that name.
    ///
    /// ```
    /// use aldis_signal::Dialect;
    ///
    /// let caw = Dialect::builtin("caw").unwrap();
    /// assert!(caw.signal("AUTO_COMPLETE").is_some());
    /// ```
    pub fn builtin(name: &str) -> Option<&'static Arc<Self>> {
        let index = BUILTINS.iter().position(|(known, ..)| *known == name)?;
        builtin(index)
    }

    /// Returns the definition of a signal by its canonical name.
    ///
    /// ```
    /// use aldis_signal::{Dialect, Meaning};
    ///
    /// let delivery = Dialect::builtin("delivery").unwrap();
    /// assert_eq!(delivery.signal("REVIEW_PASSED").unwrap().meaning, Meaning::Approved);
    /// ```
    pub fn signal(&self, name: &str) -> Option<&SignalDef> {
        self.signals.iter().find(|signal| &*signal.name == name)
    }

    /// Returns a copy whose promise text, keyword or similar free word is `word`.
    ///
    /// Only dialects that are about one configurable word have one: tags with an agreed text, such
    /// as `promise`, and trailers (their keyword).
    ///
    /// # Errors
    ///
    /// Fails if the dialect has no such word, or if a file with this one would be refused.
    ///
    /// ```
    /// use aldis_signal::Dialect;
    ///
    /// let turn = Dialect::builtin("turn").unwrap();
    /// assert_eq!(&*turn.with_word("OVER_TO_YOU").unwrap().signals[0].name, "OVER_TO_YOU");
    /// assert!(turn.with_word("two words").is_err());
    /// ```
    pub fn with_word(&self, word: &str) -> Result<Self, DialectError> {
        let mut changed = self.clone();
        match &mut changed.syntax {
            Syntax::Tag(tag) if tag.text.is_some() => tag.text = Some(word.to_owned()),
            Syntax::Trailer(trailer) => {
                let old = std::mem::replace(&mut trailer.keyword, word.to_owned());
                for signal in changed.signals.iter_mut().filter(|signal| *signal.name == *old) {
                    signal.name = word.into();
                }
            }
            Syntax::Block(_)
            | Syntax::Fence(_)
            | Syntax::Line(_)
            | Syntax::Status(_)
            | Syntax::Tag(_) => return Err(check::wordless(&self.name)),
        }
        // Instructions that do not show the word are about the old one.
        if !changed.prompt.contains(FORM) {
            changed.prompt.clear();
        }
        match check::check_syntax(&changed) {
            Ok(()) => Ok(changed),
            Err(fault) => Err(fault.without_place()),
        }
    }
}

/// Returns the built-in dialects, the five of the seed documents first.
pub fn builtins() -> &'static [Arc<Dialect>] {
    static ALL: LazyLock<Vec<Arc<Dialect>>> =
        LazyLock::new(|| (0..BUILTINS.len()).filter_map(builtin).cloned().collect());
    &ALL
}

/// Reads a built-in dialect when it is first asked for: most programs want one.
fn builtin(index: usize) -> Option<&'static Arc<Dialect>> {
    static READ: [OnceLock<Option<Arc<Dialect>>>; BUILTINS.len()] =
        [const { OnceLock::new() }; BUILTINS.len()];
    let (_, _, json) = BUILTINS[index];
    READ[index].get_or_init(|| check::dialect(&Json(json)).ok().map(Arc::new)).as_ref()
}

/// The JSON form of a built-in dialect, which needs no TOML parser.
struct Json(&'static str);

impl check::Source for Json {
    type Error = ();

    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, ()> {
        serde_json::from_str(self.0).map_err(drop)
    }

    fn refuse(&self, _: check::Fault) {}
}

/// Returns the TOML text of a built-in dialect.
pub fn builtin_source(name: &str) -> Option<&'static str> {
    BUILTINS.iter().find(|(known, ..)| *known == name).map(|(_, source, _)| *source)
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!("dialect/builtin/", $name, ".toml")),
            include_str!(concat!("dialect/builtin/", $name, ".json")),
        )),*]
    };
}

/// Name, TOML text as people read it, and the JSON that a test makes from it. A form that fails to load
/// would be missing from [`builtins`]; a test counts them.
const BUILTINS: &[(&str, &str, &str)] = built_in![
    "caw",
    "delivery",
    "chorus",
    "turn",
    "pilot",
    "promise",
    "ralph-status",
    "ralphex",
    "event",
    "axiom",
];

#[cfg(test)]
mod tests;
