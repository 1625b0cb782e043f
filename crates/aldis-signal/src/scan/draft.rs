//! What a grammar reads, before it is judged where and by whom it was said.

use crate::dialect::{Dialect, SignalDef};
use crate::signal::{Fields, Meaning, Reason, Warning};
use std::sync::Arc;

/// A half-open range of offsets in the scanned text.
pub(crate) type Range = (u64, u64);

/// A well-formed signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: Arc<str>,
    pub(crate) range: Range,
    pub(crate) subject: Option<String>,
    pub(crate) payload: Option<String>,
    pub(crate) progress: Option<u8>,
    pub(crate) fields: Fields,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) token: Option<String>,
}

/// What a recogniser says about the text at a place. The offset is where the text goes on.
#[derive(Debug)]
pub(crate) enum Read {
    /// A signal.
    Parsed(Draft, u64),
    /// A signal with something wrong about it.
    Malformed(Defect, u64),
    /// Something else.
    NotMine,
    /// More text is needed to tell.
    NeedMore,
}

impl Read {
    /// What was read, with what is wrong about it.
    pub(crate) fn new(result: Result<Draft, Defect>, next: u64) -> Self {
        match result {
            Ok(draft) => Self::Parsed(draft, next),
            Err(defect) => Self::Malformed(defect, next),
        }
    }
}

/// Something malformed.
#[derive(Clone, Debug)]
pub(crate) struct Defect {
    pub(crate) reason: Reason,
    /// The signal it resembles, or what stands in its place.
    pub(crate) name: Arc<str>,
    pub(crate) range: Range,
    /// What exactly is wrong, for the hint.
    pub(crate) about: Option<String>,
}

impl Defect {
    pub(crate) fn new(reason: Reason, name: impl Into<Arc<str>>, range: Range) -> Self {
        Self { reason, name: name.into(), range, about: None }
    }

    pub(crate) fn about(mut self, about: impl Into<String>) -> Self {
        self.about = Some(about.into());
        self
    }
}

impl Draft {
    /// A signal that says nothing beside its name.
    pub(crate) fn new(name: Arc<str>, range: Range) -> Self {
        Self {
            name,
            range,
            subject: None,
            payload: None,
            progress: None,
            fields: Fields::new(),
            warnings: Vec::new(),
            token: None,
        }
    }

    /// Returns what the signal says, given what it was said with.
    pub(crate) fn meaning<'d>(&self, dialect: &'d Dialect) -> (Meaning, Option<&'d Arc<str>>) {
        let Some(def) = dialect.signal(&self.name) else { return (Meaning::Info, None) };
        def.meaning_with(self.subject.as_deref(), self.payload.as_deref(), &self.fields)
    }

    /// Adds warnings for members the definition expects.
    pub(crate) fn check_expected(&mut self, def: &SignalDef) {
        // Members are in lower case, and there are few.
        let members = &self.fields;
        let missing = def.fields.iter().filter(|field| !members.contains_key(&***field));
        self.warnings.extend(missing.cloned().map(Warning::MissingField));
        let mismatch = def.expect.iter().any(|(field, value)| {
            let mut members = members.iter();
            members
                .find(|(member, _)| field.eq_ignore_ascii_case(member))
                .and_then(|(_, said)| said.as_str())
                .is_some_and(|said| !said.eq_ignore_ascii_case(value))
        });
        if mismatch {
            self.warnings.push(Warning::PhaseMismatch);
        }
    }
}

/// Returns the placeholder check's verdict for a payload: template brackets or a sample word.
pub(crate) fn is_sample(dialect: &Dialect, payload: &str) -> bool {
    super::text::is_placeholder(payload)
        || dialect.placeholders.iter().any(|word| word.eq_ignore_ascii_case(payload.trim()))
}
