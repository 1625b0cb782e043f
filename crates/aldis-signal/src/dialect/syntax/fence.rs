//! A fenced JSON object.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{json, status};
use crate::dialect::Dialect;
use crate::scan::draft::{Defect, Draft, Range, is_sample};
use crate::scan::text::{is_deceptive_text, is_placeholder, leading_percent, lossy};
use crate::scan::window::Line;
use crate::signal::{Fields, Meaning, Reason, Warning};

/// How a fence dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Syntax {
    #[serde(rename = "family")]
    _family: IgnoredAny,
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
    /// Members that only count beside others; `exit` stands for a signal that ends the work.
    #[serde(default)]
    pub needs: BTreeMap<String, Vec<String>>,
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
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
pub struct Banner {
    /// The words.
    pub text: String,
    /// The signal they stand for.
    pub signal: String,
    /// Whether words may follow behind ` - ` or `:`.
    #[serde(default)]
    pub words_follow: bool,
}

/// Reads the JSON of one signal that stands at `range`.
///
/// # Errors
///
/// Returns what is wrong with it.
pub(crate) fn read(
    syntax: &Syntax,
    dialect: &Dialect,
    text: &[u8],
    range: (u64, u64),
) -> Result<Draft, Defect> {
    let name = dialect.signal(&syntax.default_name).map(|def| def.name.clone());
    let name = name.unwrap_or_else(|| syntax.default_name.as_str().into());
    let Some(object) = json::read_object(text) else {
        let start = lossy(text).trim().chars().take(100).collect::<String>();
        return Err(Defect::new(Reason::InvalidJson, name, range).about(start));
    };
    let mut draft = Draft::new(name, range);
    let mut bad = None;
    for (member, value) in object {
        let kind = syntax.members.get(&member).copied();
        if let Err(reason) = take_member(syntax, dialect, &mut draft, kind, &member, value) {
            bad.get_or_insert((reason, member));
        }
    }
    if let Some((reason, member)) = bad {
        return Err(Defect::new(reason, &*draft.name, range).about(member));
    }
    fill_in(syntax, &mut draft);
    drop_unsupported(syntax, dialect, &mut draft);
    Ok(draft)
}

/// Takes one member, or says why it cannot be taken.
fn take_member(
    syntax: &Syntax,
    dialect: &Dialect,
    draft: &mut Draft,
    kind: Option<Member>,
    member: &str,
    value: Value,
) -> Result<(), Reason> {
    let value = match (kind, value) {
        // Serialisers write it for what is absent.
        (_, Value::Null) => return Ok(()),
        (Some(Member::Name | Member::Text | Member::Upper), Value::String(text))
            if is_placeholder(&text) =>
        {
            return Err(Reason::Placeholder);
        }
        (Some(Member::Boolean), value @ Value::Bool(_)) => value,
        (Some(Member::Flags), Value::Object(flags)) => {
            let (kept, dropped): (Vec<_>, Vec<_>) =
                flags.into_iter().partition(|(_, flag)| flag.is_boolean());
            if !dropped.is_empty() {
                draft.warnings.push(Warning::IndicatorNotBool);
            }
            Value::Object(kept.into_iter().collect())
        }
        (Some(Member::Integer), Value::Number(number)) => match whole(&number) {
            Some(number) => number.into(),
            None => return Err(Reason::BadValue),
        },
        (Some(Member::Name), Value::String(name)) => {
            let upper = name.to_ascii_uppercase();
            if dialect.signal(&upper).is_none() {
                refuse_lookalike(&name)?;
                draft.warnings.push(Warning::UnknownType);
            }
            draft.name = upper.as_str().into();
            name.into()
        }
        (Some(Member::Percent), value) => match percent(&value, &mut draft.warnings) {
            Some(progress) => {
                draft.progress = Some(progress);
                progress.into()
            }
            None => return Err(Reason::BadValue),
        },
        (Some(Member::Text), Value::String(text)) => {
            if member == "token" {
                draft.token = Some(text);
                return Ok(());
            }
            if is_sample(dialect, &text) {
                return Err(Reason::Placeholder);
            }
            text.into()
        }
        (Some(Member::Upper), Value::String(word)) => syntax.upper(member, &word).into(),
        (Some(Member::Version), Value::Number(number)) => {
            if whole(&number) != Some(syntax.version) {
                draft.warnings.push(Warning::UnknownVersion);
            }
            Value::Number(number)
        }
        (None, value) => {
            refuse_lookalike(member)?;
            value
        }
        (Some(_), _) => return Err(Reason::BadValue),
    };
    draft.fields.insert(member.to_owned(), value);
    Ok(())
}

/// Refuses a name that is not known and may look like one that is.
fn refuse_lookalike(name: &str) -> Result<(), Reason> {
    match name.is_ascii() && !is_deceptive_text(name.as_bytes()) {
        true => Ok(()),
        false => Err(Reason::Hidden),
    }
}

impl Syntax {
    /// Returns a word of a member in upper case, or what it is another spelling of.
    pub(super) fn upper(&self, member: &str, word: &str) -> String {
        let word = word.trim().to_uppercase();
        let alias = self.aliases.get(member).and_then(|aliases| aliases.get(&word));
        alias.cloned().unwrap_or(word)
    }
}

/// Adds the members that have a default.
fn fill_in(syntax: &Syntax, draft: &mut Draft) {
    for (member, kind) in &syntax.members {
        let has_default = matches!(kind, Member::Version | Member::Name);
        if !has_default || draft.fields.contains_key(member) {
            continue;
        }
        let default: Value = match kind {
            Member::Version => syntax.version.into(),
            _ => syntax.default_name.to_lowercase().into(),
        };
        draft.fields.insert(member.clone(), default);
    }
}

/// Removes members that only count beside others.
fn drop_unsupported(syntax: &Syntax, dialect: &Dialect, draft: &mut Draft) {
    for (member, supports) in &syntax.needs {
        if !draft.fields.contains_key(member) {
            continue;
        }
        let ends = matches!(draft.meaning(dialect).0, Meaning::Done | Meaning::Failed);
        let supported = supports.iter().all(|support| match draft.fields.get(support) {
            _ if support == "exit" => ends,
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => !text.trim().is_empty(),
            _ => false,
        });
        if !supported {
            draft.fields.remove(member);
        }
    }
}

fn whole(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| match number.as_f64() {
        Some(value) if (0.0..=1e15).contains(&value) && value.fract() == 0.0 => {
            format!("{value:.0}").parse().ok()
        }
        _ => None,
    })
}

fn percent(value: &Value, warnings: &mut Vec<Warning>) -> Option<u8> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => {
            warnings.push(Warning::Coerced);
            text.trim().trim_end_matches('%').parse().ok().filter(|n: &f64| n.is_finite())?
        }
        _ => return None,
    };
    if number.fract() != 0.0 && value.is_number() {
        warnings.push(Warning::Coerced);
    }
    if !(0.0..=100.0).contains(&number) {
        warnings.push(Warning::Clamped);
    }
    leading_percent(&format!("{:.0}", number.trunc().clamp(0.0, 100.0)))
}

/// Reads a line of an old form that stands alone, or says what is wrong with one.
pub(crate) fn read_legacy_line(
    syntax: &Syntax,
    dialect: &Dialect,
    line: Line<'_>,
) -> Option<Result<Draft, Defect>> {
    let legacy = syntax.legacy.as_ref()?;
    let text = std::str::from_utf8(line.seen).ok()?;
    let range = (line.start, line.seen_end());
    for banner in &legacy.banners {
        let Some(rest) = text.strip_prefix(banner.text.as_str()) else { continue };
        let words = rest.strip_prefix(" - ").or_else(|| rest.strip_prefix(':')).map(str::trim);
        if !(rest.is_empty() || banner.words_follow && words.is_some()) {
            continue;
        }
        let name = banner.signal.as_str();
        let words = words.filter(|words| !words.is_empty());
        if let Some(sample) = words.filter(|words| is_sample(dialect, words)) {
            return Some(Err(Defect::new(Reason::Placeholder, name, range).about(sample)));
        }
        let mut fields = legacy_fields();
        if banner.signal == legacy.flag.signal {
            fields.insert(legacy.flag.member.clone(), true.into());
        }
        let payload = words.map(str::to_owned);
        return Some(Ok(Draft { payload, fields, ..Draft::new(name.into(), range) }));
    }
    let (key, value) = text.split_once(':')?;
    let value = value.trim();
    if key == legacy.flag.key {
        return legacy.flag.read(value, range);
    }
    let own = key == legacy.transition.key;
    own.then(|| legacy.transition.read(syntax, value, range)).flatten()
}

fn legacy_fields() -> Fields {
    Fields::from_iter([("legacy".to_owned(), true.into())])
}

/// Returns whether a value is at most one word. With more, its line is a sentence.
fn is_word(value: &str) -> bool {
    !value.contains(char::is_whitespace)
}

impl Flag {
    /// Reads what stands behind the colon. `false` is well-formed and says nothing.
    fn read(&self, value: &str, range: Range) -> Option<Result<Draft, Defect>> {
        let name = self.signal.as_str();
        let reason = match value {
            "true" => {
                let mut fields = legacy_fields();
                fields.insert(self.member.clone(), true.into());
                return Some(Ok(Draft { fields, ..Draft::new(name.into(), range) }));
            }
            "" => Reason::MissingField,
            _ if is_placeholder(value) => Reason::Placeholder,
            _ if value != "false" && is_word(value) => Reason::BadValue,
            _ => return None,
        };
        Some(Err(Defect::new(reason, name, range).about(self.key.as_str())))
    }
}

impl Transition {
    /// Reads what stands behind the colon: `A → B`.
    fn read(&self, syntax: &Syntax, value: &str, range: Range) -> Option<Result<Draft, Defect>> {
        let (from, to) = value.split_once('→').or_else(|| value.split_once("->"))?;
        let (from, to) = (from.trim(), to.trim());
        let name = self.signal.as_str();
        let refuse = |reason, about: &str| Some(Err(Defect::new(reason, name, range).about(about)));
        if let Some(sample) = [from, to].into_iter().find(|phase| is_placeholder(phase)) {
            return refuse(Reason::Placeholder, sample);
        }
        if !is_word(from) || !is_word(to) {
            return None;
        }
        for (member, phase) in [("from", from), (self.member.as_str(), to)] {
            if phase.is_empty() {
                return refuse(Reason::MissingField, member);
            }
        }
        let mut fields = legacy_fields();
        fields.insert("from".to_owned(), syntax.upper(&self.member, from).into());
        fields.insert(self.member.clone(), syntax.upper(&self.member, to).into());
        Some(Ok(Draft { fields, ..Draft::new(name.into(), range) }))
    }
}
