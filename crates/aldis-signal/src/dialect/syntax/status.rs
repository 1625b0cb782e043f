//! Keyed lines between an opening and a closing line of their own.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::dialect::{self, Dialect};
use crate::scan::draft::{Defect, Draft, Read};
use crate::scan::text::{
    SIGNAL_MAX, is_deceptive_text, is_placeholder, leading_percent, lossy, snake_case, trim_blanks,
    trim_blanks_start,
};
use crate::scan::window::{Line, LineAt, Window};
use crate::signal::{Fields, Reason, Warning};
use crate::structure::line::{FenceLine, item_content};
use crate::visible::trim_line_end;

/// How a status dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Syntax {
    #[serde(rename = "family")]
    _family: IgnoredAny,
    /// The line before.
    pub open: String,
    /// The line after.
    pub close: String,
    /// Keys that take only listed values, in any case.
    #[serde(default)]
    pub values: BTreeMap<String, Vec<String>>,
}

/// A status block under a heading, between rules drawn with one repeated character.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Ruled {
    /// The heading line.
    pub heading: String,
    /// The characters a rule may be drawn with.
    pub rules: String,
    /// The signal the block is.
    pub signal: String,
    /// The keys that are read, and what each holds. Other lines are for people.
    pub keys: BTreeMap<String, RuledKey>,
}

/// A key of a status block under a heading.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RuledKey {
    /// The member it sets.
    pub member: String,
    /// What it holds.
    pub holds: RuledValue,
    /// The member that takes the second number of a ratio.
    #[serde(default)]
    pub of: Option<String>,
}

/// What a key of a status block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuledValue {
    /// True or false.
    Boolean,
    /// 0 to 100, with or without a sign for it.
    Percent,
    /// Two numbers: `2/5`.
    Ratio,
    /// A word, upper-cased.
    Upper,
}

/// No rule above a heading is longer.
const RULE_MAX: u64 = 256;

impl Syntax {
    /// Returns whether a line opens a block.
    pub(crate) fn opens(&self, line: Line<'_>) -> bool {
        line.seen == self.open.as_bytes()
    }

    /// Reads the block whose opening line is `opening`.
    pub(crate) fn read(&self, dialect: &Dialect, window: &Window<'_>, opening: Line<'_>) -> Read {
        let mut range = (opening.start, opening.seen_end());
        let mut lines = KeyedLines::default();
        let mut next = opening.next;
        let reason = loop {
            let line = match window.line(next) {
                LineAt::Line(line) => line,
                LineAt::Wait => return Read::NeedMore,
                LineAt::Nothing => break Some((Reason::Unclosed, None)),
                LineAt::TooLong => break Some((Reason::TooLong, None)),
            };
            let text = line.seen;
            if line.next - opening.start > SIGNAL_MAX {
                break Some((Reason::TooLong, None));
            }
            if self.opens(line) || FenceLine::read(line).is_some() {
                break Some((Reason::Unclosed, None));
            }
            range.1 = line.seen_end();
            next = line.next;
            if text == self.close.as_bytes() {
                break None;
            }
            if let Err(defect) = lines.take(text) {
                break Some(defect);
            }
        };
        let name = dialect.signals.first().map(|def| def.name.clone()).unwrap_or_default();
        let result = match reason {
            None => {
                let KeyedLines { fields, token } = lines;
                let mut draft = Draft { fields, token, ..Draft::new(name, range) };
                dialect.signals.iter().for_each(|def| draft.check_expected(def));
                match self.check_values(&mut draft) {
                    Ok(()) => Ok(draft),
                    Err(key) => Err(Defect::new(Reason::BadValue, draft.name, range).about(key)),
                }
            }
            Some((reason, about)) => {
                let mut defect = Defect::new(reason, name, range);
                defect.about = about;
                // What follows a broken block is read on its own.
                next = opening.next;
                Err(defect)
            }
        };
        Read::new(result, next)
    }
}

impl Syntax {
    /// Holds values against their lists. One that is only dressed up is taken, with a warning.
    ///
    /// # Errors
    ///
    /// Returns the key whose value is none of those listed.
    fn check_values(&self, draft: &mut Draft) -> Result<(), String> {
        for (key, allowed) in &self.values {
            let Some(Value::String(written)) = draft.fields.get_mut(&snake_case(key)) else {
                continue;
            };
            let plain = written.trim_matches(|c: char| "*_`\"'.! ".contains(c));
            let Some(value) = allowed.iter().find(|value| value.eq_ignore_ascii_case(plain)) else {
                return Err(key.clone());
            };
            if !value.eq_ignore_ascii_case(written) {
                draft.warnings.push(Warning::Coerced);
                written.clone_from(value);
            }
        }
        Ok(())
    }
}

/// The fields between the delimiters.
#[derive(Default)]
struct KeyedLines {
    fields: Fields,
    token: Option<String>,
}

impl KeyedLines {
    /// Takes one line. Lines that are not `KEY: value` are tolerated.
    fn take(&mut self, text: &[u8]) -> Result<(), (Reason, Option<String>)> {
        let Some(colon) = memchr::memchr(b':', text) else { return Ok(()) };
        let written = undecorated(&text[..colon]);
        let (key, value) = (lossy(written), lossy(&text[colon + 1..]));
        let reason = if is_deceptive_text(written) || is_foreign_word(written) {
            Reason::Hidden
        } else if is_placeholder(&value) {
            Reason::Placeholder
        } else {
            let (member, value) = (snake_case(&key), value.trim());
            if member == "token" {
                self.token = Some(value.to_owned());
                return Ok(());
            }
            if self.fields.insert(member, value.into()).is_none() {
                return Ok(());
            }
            Reason::DuplicateField
        };
        Err((reason, Some(key.into_owned())))
    }
}

/// Returns a key without a list mark and emphasis.
fn undecorated(key: &[u8]) -> &[u8] {
    let plain = trim_blanks_start(key);
    let plain = item_content(plain).map_or(plain, |words| &plain[words..]);
    let end = plain.iter().rposition(|byte| !b"*_`".contains(byte)).map_or(0, |at| at + 1);
    let plain = &plain[..end];
    let start = plain.iter().position(|byte| !b"*_`".contains(byte)).unwrap_or(0);
    if start > 0 || plain.len() < key.len() { &plain[start..] } else { key }
}

/// Returns whether a key is one word with letters that may look like those of a known key. Lines with
/// more words are sentences in any language.
fn is_foreign_word(key: &[u8]) -> bool {
    !key.is_ascii() && !trim_blanks(key).contains(&b' ')
}

impl Ruled {
    /// Reads the block whose heading line is `heading`, or nothing if it is only a heading. A rule stands
    /// below the heading, or above it.
    pub(crate) fn read(&self, dialect: &Dialect, window: &Window<'_>, heading: Line<'_>) -> Read {
        let above = window.slice(heading.start.saturating_sub(RULE_MAX), heading.start);
        let above = above.strip_suffix(b"\n").unwrap_or_default();
        let above = &above[memchr::memrchr(b'\n', above).map_or(0, |end| end + 1)..];
        let mut next = match window.line(heading.next) {
            LineAt::Line(line) if self.is_rule(line.text) => line.next,
            LineAt::Line(line) if self.is_rule(above) => line.start,
            LineAt::Wait => return Read::NeedMore,
            LineAt::Line(_) | LineAt::Nothing | LineAt::TooLong => return Read::NotMine,
        };
        let range = (heading.start, heading.seen_end());
        let name = dialect.signal(&self.signal).map(|def| def.name.clone());
        let name = name.unwrap_or_else(|| self.signal.as_str().into());
        let mut draft = Draft::new(name, range);
        draft.fields.insert("legacy".to_owned(), true.into());
        let mut unfilled = None;
        loop {
            let line = match window.line(next) {
                LineAt::Line(line) if line.next - heading.start <= SIGNAL_MAX => line,
                LineAt::Wait => return Read::NeedMore,
                LineAt::Line(_) | LineAt::Nothing | LineAt::TooLong => {
                    let defect = Defect::new(Reason::Unclosed, draft.name, draft.range);
                    return Read::Malformed(defect, heading.next);
                }
            };
            next = line.next;
            draft.range.1 = line.seen_end();
            if self.is_rule(line.text) {
                let result = match unfilled {
                    None => Ok(draft),
                    Some(key) => {
                        Err(Defect::new(Reason::Placeholder, draft.name, draft.range).about(key))
                    }
                };
                return Read::new(result, next);
            }
            let text = lossy(line.seen);
            let Some((key, value)) = text.split_once(':') else { continue };
            let (key, value) = (key.trim(), value.trim());
            let Some(known) = self.keys.get(key) else { continue };
            if is_placeholder(value) {
                unfilled.get_or_insert_with(|| key.to_owned());
            } else if !known.take(dialect, &mut draft, value) {
                let invalid = Warning::LegacyInvalid(known.member.as_str().into());
                draft.warnings.push(invalid);
            }
        }
    }

    fn is_rule(&self, line: &[u8]) -> bool {
        let Ok(line) = std::str::from_utf8(trim_line_end(line)) else { return false };
        let first = line.chars().next();
        line.chars().count() >= 3
            && first.is_some_and(|first| self.rules.contains(first))
            && line.chars().all(|c| Some(c) == first)
    }
}

impl RuledKey {
    /// Takes the value of the key; returns whether it could be read.
    fn take(&self, dialect: &Dialect, draft: &mut Draft, value: &str) -> bool {
        let read: Value = match self.holds {
            RuledValue::Boolean => match value {
                "true" => true.into(),
                "false" => false.into(),
                _ => return false,
            },
            RuledValue::Percent => {
                let Some((progress, written)) = ruled_percent(value) else { return false };
                if !(0.0..=100.0).contains(&written) {
                    draft.warnings.push(Warning::Clamped);
                }
                draft.progress = Some(progress);
                progress.into()
            }
            RuledValue::Ratio => {
                let counts = value.split_once('/').and_then(|(part, all)| {
                    Some((part.trim().parse::<u32>().ok()?, all.trim().parse::<u32>().ok()?))
                });
                let Some((part, all)) = counts else { return false };
                if let Some(of) = &self.of {
                    draft.fields.insert(of.clone(), all.into());
                }
                part.into()
            }
            RuledValue::Upper if value.is_empty() => return false,
            RuledValue::Upper => match &dialect.syntax {
                dialect::Syntax::Fence(fence) => fence.upper(&self.member, value).into(),
                _ => value.to_uppercase().into(),
            },
        };
        draft.fields.insert(self.member.clone(), read);
        true
    }
}

/// Reads `45%` or `45` and nothing more: the progress, and what was said before it was clamped.
fn ruled_percent(value: &str) -> Option<(u8, f64)> {
    let number = value.strip_suffix('%').unwrap_or(value).trim_end();
    // `1e3`, `inf` and `nan` are numbers to a parser only.
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let said = number.parse().ok().filter(|_| plain)?;
    Some((leading_percent(number)?, said))
}
