//! An opening and a closing tag around the words.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::json::read_object;
use super::line::has_foreign_letter;
use crate::dialect::{Dialect, Payload, SignalDef};
use crate::scan::diagnose::spelling::meant;
use crate::scan::draft::{Defect, Draft, Range, is_sample};
use crate::scan::text::{SIGNAL_MAX, is_deceptive_text, is_placeholder, leading_percent, lossy};
use crate::signal::{Fields, Reason, Warning};

/// How a tag dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Syntax {
    #[serde(rename = "family")]
    _family: IgnoredAny,
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

impl Syntax {
    /// Reads what stands between an opening and a closing tag. Words that begin with a run token do
    /// so only where there are `tokens`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it.
    pub(crate) fn read(
        &self,
        dialect: &Dialect,
        content: &[u8],
        range: Range,
        tokens: bool,
    ) -> Result<Draft, Defect> {
        let text = lossy(content);
        let mut token = TagToken { on: tokens, said: None };
        let read = match (&self.text, &self.attribute) {
            (Some(agreed), _) => read_agreed(dialect, agreed, &text, range, &mut token),
            (None, Some(attribute)) => read_attribute(dialect, attribute, &text, range, &mut token),
            (None, None) => read_typed(dialect, &text, range, &mut token),
        };
        // A closing tag that begins in time may end too late.
        if range.1 - range.0 > SIGNAL_MAX {
            let name = read.map_or_else(|defect| defect.name, |draft| draft.name);
            return Err(Defect::new(Reason::TooLong, name, range));
        }
        read.map(|draft| Draft { token: token.said, ..draft })
    }
}

/// The run token that words may begin with.
struct TagToken {
    on: bool,
    said: Option<String>,
}

/// `TYPE` or `TYPE: words`.
fn read_typed(
    dialect: &Dialect,
    text: &str,
    range: Range,
    token: &mut TagToken,
) -> Result<Draft, Defect> {
    let length = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let (name, rest) = text.split_at(length);
    let Some(def) = dialect.signal(name) else { return Err(unknown(dialect, text, range)) };
    let defect = |reason| Err(Defect::new(reason, def.name.clone(), range));
    let payload = match rest.strip_prefix(':') {
        Some(payload) => payload.trim(),
        None if rest.is_empty() => "",
        None if rest.trim().is_empty() => return defect(Reason::Padded),
        None if is_deceptive_text(rest.as_bytes()) => return defect(Reason::Hidden),
        None if rest.starts_with(|c: char| !c.is_ascii()) => return defect(Reason::Hidden),
        None if rest.starts_with([' ', '\t']) => return defect(Reason::MissingSeparator),
        None => return defect(Reason::UnknownName),
    };
    let mut draft = Draft::new(def.name.clone(), range);
    let payload = token.take_from(payload);
    if is_sample(dialect, payload) {
        return Err(Defect::new(Reason::Placeholder, draft.name, range).about(payload.to_owned()));
    }
    draft.payload = (!payload.is_empty()).then(|| payload.to_owned());
    match def.payload {
        Payload::Json => match read_object(payload.as_bytes()) {
            Some(members) => draft.fields = members,
            None => return defect(Reason::InvalidJson),
        },
        Payload::Percent => {
            draft.progress = leading_percent(payload);
            if draft.progress.is_some() && is_off_scale(payload) {
                draft.warnings.push(Warning::Clamped);
            }
        }
        Payload::Text => match &def.object_needs {
            Some(needed) => draft.fields = read_question(def, needed, payload, range)?,
            None if payload.is_empty() => draft.warnings.push(Warning::MissingPayload),
            None => {}
        },
        Payload::None => {}
    }
    Ok(draft)
}

/// Words that may be a JSON object, which must then have the member that is `needed`.
fn read_question(
    def: &SignalDef,
    needed: &str,
    payload: &str,
    range: Range,
) -> Result<Fields, Defect> {
    let missing = || Err(Defect::new(Reason::MissingField, def.name.clone(), range).about(needed));
    if !payload.starts_with('{') {
        return if payload.is_empty() { missing() } else { Ok(Fields::new()) };
    }
    let Some(members) = read_object(payload.as_bytes()) else {
        return Err(Defect::new(Reason::InvalidJson, def.name.clone(), range));
    };
    let words = members.get(needed).and_then(|value| value.as_str());
    if words.is_none_or(|words| words.trim().is_empty()) { missing() } else { Ok(members) }
}

/// Returns whether the number a payload starts with lies outside 0 to 100.
fn is_off_scale(payload: &str) -> bool {
    let digits = payload.trim_start_matches(['-', '+']).trim_start_matches('0');
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    // Numbers of three digits have the order of their texts.
    let above = length > 3 || length == 3 && &digits[..3] > "100";
    above || length > 0 && payload.starts_with('-')
}

/// The agreed words and nothing else.
fn read_agreed(
    dialect: &Dialect,
    agreed: &str,
    text: &str,
    range: Range,
    token: &mut TagToken,
) -> Result<Draft, Defect> {
    let name = dialect.signals.first().map(|def| def.name.clone()).unwrap_or_default();
    let mut draft = Draft::new(name, range);
    // Every reference implementation folds the white space around it.
    let words = token.take_from(text.trim());
    if words == agreed {
        draft.payload = Some(words.to_owned());
        return Ok(draft);
    }
    let reason = if is_deceptive_text(words.as_bytes()) {
        Reason::Hidden
    } else if is_sample(dialect, words) {
        Reason::Placeholder
    } else if words.eq_ignore_ascii_case(agreed) {
        Reason::WrongCase
    } else {
        Reason::UnknownName
    };
    Err(Defect::new(reason, draft.name, range).about(agreed.to_owned()))
}

/// ` topic="subject">words`, the opening tag up to its `>` included.
fn read_attribute(
    dialect: &Dialect,
    attribute: &str,
    text: &str,
    range: Range,
    token: &mut TagToken,
) -> Result<Draft, Defect> {
    let name = dialect.signals.first().map(|def| def.name.clone()).unwrap_or_default();
    let defect = |reason| Err(Defect::new(reason, name.clone(), range).about(attribute.to_owned()));
    let value = text
        .trim_start_matches([' ', '\t'])
        .strip_prefix(attribute)
        .and_then(|rest| rest.strip_prefix("=\""))
        .and_then(|rest| rest.split_once('"'));
    let Some((subject, rest)) = value else { return defect(Reason::MissingField) };
    let Some((attributes, payload)) = rest.split_once('>') else {
        return defect(Reason::Unclosed);
    };
    if is_placeholder(subject) {
        return defect(Reason::Placeholder);
    }
    let deceptive = [subject, attributes].iter().any(|text| is_deceptive_text(text.as_bytes()));
    if deceptive || has_foreign_letter(subject) {
        return defect(Reason::Hidden);
    }
    let plain = subject.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:/*".contains(&b));
    if subject.is_empty() || subject.len() > 128 || !plain {
        return defect(Reason::BadSubject);
    }
    let mut draft = Draft::new(name.clone(), range);
    draft.subject = Some(subject.to_owned());
    let payload = token.take_from(payload.trim());
    if is_sample(dialect, payload) {
        return Err(Defect::new(Reason::Placeholder, name, range).about(payload.to_owned()));
    }
    draft.payload = (!payload.is_empty()).then(|| payload.to_owned());
    Ok(draft)
}

impl TagToken {
    /// Takes `#code` from the front of a payload. Without tokens that is a word like others: `#42`.
    fn take_from<'t>(&mut self, payload: &'t str) -> &'t str {
        let Some(rest) = payload.strip_prefix('#').filter(|_| self.on) else { return payload };
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'-').count();
        let (code, rest) = rest.split_at(length);
        if code.is_empty() || rest.starts_with(|c: char| !c.is_whitespace()) {
            return payload;
        }
        self.said = Some(code.to_owned());
        rest.trim_start()
    }
}

fn unknown(dialect: &Dialect, text: &str, range: Range) -> Defect {
    let word = text.split(':').next().unwrap_or_default();
    if let Some(def) = dialect.signal(word.trim()) {
        return Defect::new(Reason::Padded, def.name.clone(), range);
    }
    if let Some((name, reason)) = meant(dialect, word) {
        return Defect::new(reason, name, range);
    }
    let written: String = word.trim().chars().take(64).collect();
    let reason = match () {
        () if is_deceptive_text(word.as_bytes()) => Reason::Hidden,
        () if is_placeholder(word) => Reason::Placeholder,
        () => Reason::UnknownName,
    };
    Defect::new(reason, written, range)
}
