//! A name at the start of a line, its subject behind a separator, its body below.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::dialect::{Dialect, Presence, SignalDef, SubjectForm};
use crate::scan::draft::{Defect, Draft, is_sample};
use crate::scan::text::{
    is_blank, is_deceptive_text, is_id, is_inner_path, is_placeholder, lossy, trim_blanks,
};
use crate::scan::window::Line;
use crate::signal::{Reason, Warning};
use crate::structure::line::is_listing_prefix;

/// How a line dialect is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// What a line that starts with a name is.
#[derive(Debug)]
pub(crate) enum Head {
    /// The line of a signal.
    Signal(Draft),
    Defect(Defect),
    /// No name of this dialect.
    Other,
}

/// The signals of a dialect by the first and by the last byte of their names: most words have others.
#[derive(Debug)]
pub(crate) struct Begins {
    first: Sets,
    last: Sets,
    /// The length of the shortest name.
    shortest: usize,
}

impl Begins {
    pub(crate) fn new(dialect: &Dialect) -> Self {
        let shortest = dialect.signals.iter().map(|def| def.name.len()).min();
        Self {
            first: Sets::new(dialect, |name| name.first()),
            last: Sets::new(dialect, |name| name.last()),
            shortest: shortest.unwrap_or(usize::MAX),
        }
    }

    /// Returns the signals whose names may start with `byte`, and maybe others.
    pub(crate) fn of<'d>(
        &self,
        dialect: &'d Dialect,
        byte: u8,
    ) -> impl Iterator<Item = &'d SignalDef> {
        self.first.of(dialect, byte)
    }
}

/// The numbers of signals by a byte of their names.
#[derive(Debug)]
struct Sets(Box<[u64; 256]>);

impl Sets {
    /// The last bit stands for all that have no bit of their own.
    const LAST: usize = 63;

    fn new(dialect: &Dialect, key: fn(&[u8]) -> Option<&u8>) -> Self {
        let mut sets = Box::new([0; 256]);
        for (index, def) in dialect.signals.iter().enumerate() {
            if let Some(byte) = key(def.name.as_bytes()) {
                sets[usize::from(*byte)] |= 1 << index.min(Self::LAST);
            }
        }
        Self(sets)
    }

    fn of<'d>(&self, dialect: &'d Dialect, byte: u8) -> impl Iterator<Item = &'d SignalDef> {
        let set = self.0[usize::from(byte)];
        let more = dialect.signals.iter().skip(Self::LAST).filter(move |_| set >> Self::LAST == 1);
        let mut own = set & !(1 << Self::LAST);
        let own = std::iter::from_fn(move || {
            let index = own.trailing_zeros() as usize;
            own &= own.wrapping_sub(1);
            dialect.signals.get(index).filter(|_| index < Self::LAST)
        });
        own.chain(more)
    }
}

/// A longer text is no subject.
const TEXT_MAX: usize = 1024;
/// What may stand between a name and its separator.
const MARKS: &[u8] = b"*_`";
/// What may stand between a name without a subject and the end of the line.
const CLOSING: &[u8] = b"*_`\"'. \t";

impl Syntax {
    /// Reads a line that may start with a name.
    pub(crate) fn read(&self, dialect: &Dialect, begins: &Begins, line: Line<'_>) -> Head {
        let text = line.seen;
        let Some(first) = text.first() else { return Head::Other };
        let found = begins
            .of(dialect, *first)
            .filter(|def| text.starts_with(def.name.as_bytes()))
            .filter(|def| !text.get(def.name.len()).copied().is_some_and(continues_name))
            .max_by_key(|def| def.name.len());
        let Some(def) = found else { return Head::Other };
        let range = (line.start, line.start + text.len() as u64);
        match self.subject(def, &text[def.name.len()..]) {
            Ok((Some(sample), _)) if is_sample(dialect, &lossy(sample)) => {
                Head::Defect(Defect::new(Reason::Placeholder, def.name.clone(), range))
            }
            Ok((subject, warning)) => {
                let mut draft = Draft::new(def.name.clone(), range);
                draft.subject = subject.map(|subject| lossy(subject).into_owned());
                draft.warnings.extend(warning);
                Head::Signal(draft)
            }
            Err(reason) => Head::Defect(Defect::new(reason, def.name.clone(), range)),
        }
    }

    /// Finds the first name that stands somewhere in a line, where a signal could be meant: followed by
    /// the separator, or by nothing where it takes no subject.
    pub(crate) fn mention<'d>(
        &self,
        dialect: &'d Dialect,
        begins: &Begins,
        text: &[u8],
    ) -> Option<(&'d SignalDef, usize)> {
        if text.len() < begins.shortest {
            return None;
        }
        let mut names = Names { dialect, begins, text, first: None };
        let separator = self.separator.as_bytes();
        if let Some(first) = separator.first().filter(|first| !MARKS.contains(first)) {
            for at in memchr::memchr_iter(*first, text) {
                if separator.len() == 1 || text[at..].starts_with(separator) {
                    names.look_before(at, MARKS, |def| def.subject != Presence::None);
                }
            }
        }
        names.look_before(text.len(), CLOSING, |def| def.subject == Presence::None);
        names.first
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

/// The search for names in a line.
struct Names<'t, 'd> {
    dialect: &'d Dialect,
    begins: &'t Begins,
    text: &'t [u8],
    /// The first that was found, and the longest of those that start there.
    first: Option<(&'d SignalDef, usize)>,
}

impl<'d> Names<'_, 'd> {
    /// Looks for names that end at `end`, with nothing but marks in between.
    fn look_before(&mut self, end: usize, marks: &[u8], is_wanted: fn(&SignalDef) -> bool) {
        let mut end = end;
        while let Some(last) = end.checked_sub(1).map(|last| self.text[last]) {
            for def in self.begins.last.of(self.dialect, last).filter(|def| is_wanted(def)) {
                self.look_at(def, end);
            }
            if !marks.contains(&last) {
                return;
            }
            end -= 1;
        }
    }

    fn look_at(&mut self, def: &'d SignalDef, end: usize) {
        let Some(at) = end.checked_sub(def.name.len()) else { return };
        let better = |(other, first): (&SignalDef, usize)| {
            (at, Reverse(def.name.len())) < (first, Reverse(other.name.len()))
        };
        if self.text[at..end] == *def.name.as_bytes()
            && starts_name(self.text, at)
            && self.first.is_none_or(better)
        {
            self.first = Some((def, at));
        }
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
