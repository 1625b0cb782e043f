//! A name at the start of a line, its subject behind a separator, its body below.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::dialect::{Dialect, Presence, SignalDef, SubjectForm};
use crate::scan::draft::{Defect, Draft, Read, is_sample};
use crate::scan::text::{
    is_blank, is_deceptive_text, is_id, is_inner_path, is_placeholder, lossy, trim_blanks,
};
use crate::scan::window::Line;
use crate::signal::{Reason, Warning};
use crate::structure::line::is_listing_prefix;

/// How a line dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Syntax {
    #[serde(rename = "family")]
    _family: IgnoredAny,
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
#[non_exhaustive]
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

/// The subject of a line, if there is one, and what is odd about it.
type Subject<'a> = (Option<&'a [u8]>, Option<Warning>);

/// A longer text is no subject.
const TEXT_MAX: usize = 1024;
/// What may stand between a name and its separator.
const MARKS: &[u8] = b"*_`";
/// What may stand between a name without a subject and the end of the line.
const CLOSING: &[u8] = b"*_`\"'. \t";

impl Syntax {
    /// Reads a line that may start with a name.
    pub(crate) fn read(&self, dialect: &Dialect, line: Line<'_>) -> Read {
        let text = line.seen;
        let found = dialect
            .signals
            .iter()
            .filter(|def| text.starts_with(def.name.as_bytes()))
            .filter(|def| !text.get(def.name.len()).copied().is_some_and(continues_name))
            .max_by_key(|def| def.name.len());
        let Some(def) = found else { return Read::NotMine };
        let range = (line.start, line.start + text.len() as u64);
        match self.subject(def, &text[def.name.len()..]) {
            Ok((Some(sample), _)) if is_sample(dialect, &lossy(sample)) => {
                let defect = Defect::new(Reason::Placeholder, def.name.clone(), range);
                Read::Malformed(defect, line.next)
            }
            Ok((subject, warning)) => {
                let mut draft = Draft::new(def.name.clone(), range);
                draft.subject = subject.map(|subject| lossy(subject).into_owned());
                draft.warnings.extend(warning);
                Read::Parsed(draft, line.next)
            }
            Err(reason) => Read::Malformed(Defect::new(reason, def.name.clone(), range), line.next),
        }
    }

    /// Finds the first name that stands somewhere in a line, where a signal could be meant: followed by
    /// the separator, or by nothing where it takes no subject.
    pub(crate) fn mention<'d>(
        &self,
        dialect: &'d Dialect,
        text: &[u8],
    ) -> Option<(&'d SignalDef, usize)> {
        let places = dialect.signals.iter().filter_map(|def| {
            let name = def.name.as_bytes();
            // Lines are short: preparing a search would take longer than this.
            let mut starts = memchr::memchr_iter(*name.first()?, text);
            let found = starts
                .find(|at| text[*at..].starts_with(name) && self.may_be_meant(def, text, *at))?;
            Some((def, found))
        });
        places.min_by_key(|(def, at)| (*at, Reverse(def.name.len())))
    }

    /// Returns whether a signal could be meant by its name at a place: what belongs to it follows.
    fn may_be_meant(&self, def: &SignalDef, text: &[u8], at: usize) -> bool {
        let rest = &text[at + def.name.len()..];
        let behind = |marks: &[u8]| rest.iter().take_while(|byte| marks.contains(byte)).count();
        let follows = match def.subject {
            Presence::None => behind(CLOSING) == rest.len(),
            Presence::Optional | Presence::Required => {
                rest[behind(MARKS)..].starts_with(self.separator.as_bytes())
            }
        };
        follows && starts_name(text, at)
    }

    /// Reads what stands behind the name: the subject, and what is odd about it.
    fn subject<'a>(&self, def: &SignalDef, rest: &'a [u8]) -> Result<Subject<'a>, Reason> {
        if def.subject == Presence::None {
            return if rest.is_empty() {
                Ok((None, None))
            } else if is_deceptive_text(rest) {
                Err(Reason::Hidden)
            } else {
                Err(Reason::NotWholeLine)
            };
        }
        let Some(value) = rest.strip_prefix(self.separator.as_bytes()) else {
            return self.without_separator(def, rest).map(|()| (None, None));
        };
        let spaced = value.first().is_none_or(|byte| is_blank(*byte));
        let warning = (!spaced).then_some(Warning::MissingSpace);
        let mut subject = trim_closing(trim_blanks(value));
        if def.subject_form == SubjectForm::Path {
            // `./a` and `a` are one file, and must be one subject.
            subject = subject.strip_prefix(b"./").unwrap_or(subject);
        }
        if subject.is_empty() {
            return if def.subject == Presence::Optional {
                Ok((None, warning))
            } else {
                Err(Reason::MissingSubject)
            };
        }
        check_subject(def.subject_form, subject)?;
        Ok((Some(subject), warning))
    }

    fn without_separator(&self, def: &SignalDef, rest: &[u8]) -> Result<(), Reason> {
        let words = trim_blanks(rest);
        if words.is_empty() {
            return match def.subject {
                Presence::Optional => Ok(()),
                Presence::None | Presence::Required => Err(Reason::MissingSubject),
            };
        }
        if is_deceptive_text(rest) {
            return Err(Reason::Hidden);
        }
        let looks_like_subject = is_id(trim_closing(words)) && words.iter().any(u8::is_ascii_digit);
        Err(if looks_like_subject { Reason::MissingSeparator } else { Reason::NotWholeLine })
    }
}

/// Returns whether a name can start at a place: not within a longer one.
fn starts_name(text: &[u8], at: usize) -> bool {
    text[at].is_ascii_alphanumeric()
        && (at == 0
            || !continues_name(text[at - 1])
            || text[at - 1] == b'-' && is_listing_prefix(&text[..at]))
}

/// Returns whether a name that is followed by `byte` is part of a longer one.
pub(crate) fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || !byte.is_ascii()
}

/// Removes quotes in front, and quotes and closing punctuation behind.
fn trim_closing(mut text: &[u8]) -> &[u8] {
    // Curly quotes: E2 80 98 to 9F.
    while let [b'`' | b'"' | b'\'', rest @ ..] | [0xE2, 0x80, 0x98..=0x9F, rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b'.' | b',' | b';' | b':' | b'!' | b'?' | b'`' | b'"' | b'\'']
    | [rest @ .., 0xE2, 0x80, 0x98..=0x9F] = text
    {
        text = rest;
    }
    text
}

/// Returns whether a text that should be ASCII holds letters or digits that are not: they may look as
/// if they were.
pub(super) fn has_foreign_letter(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| !c.is_ascii() && c.is_alphanumeric())
}

fn check_subject(form: SubjectForm, subject: &[u8]) -> Result<(), Reason> {
    if is_deceptive_text(subject) {
        return Err(Reason::Hidden);
    }
    let text = lossy(subject);
    if is_placeholder(&text) {
        return Err(Reason::Placeholder);
    }
    let fits = match form {
        SubjectForm::Id if subject.iter().any(|byte| is_blank(*byte)) => {
            return Err(Reason::NotWholeLine);
        }
        SubjectForm::Id if has_foreign_letter(&text) => return Err(Reason::Hidden),
        SubjectForm::Id => is_id(subject),
        SubjectForm::Path => is_inner_path(&text),
        SubjectForm::Text if subject.len() > TEXT_MAX => return Err(Reason::TooLong),
        SubjectForm::Text => true,
    };
    if fits { Ok(()) } else { Err(Reason::BadSubject) }
}
