//! What the scanner finds: signals, and near misses with the reason they are not signals.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::codes;
use crate::dialect::Dialect;
use crate::message::Origin;
use crate::scan::hints::hint;

codes! {
    /// What a signal says in any dialect. Machines that serve every dialect look only at this.
    ///
    /// Exhaustive on purpose: a new meaning must be considered at every match.
    ///
    /// ```
    /// use aldis_signal::Meaning;
    ///
    /// assert!(Meaning::Approved.is_claim() && Meaning::Blocked.is_decisive());
    /// assert!(!Meaning::Blocked.is_claim() && !Meaning::Progress.is_decisive());
    /// assert_eq!(Meaning::NeedsHuman.to_string(), "needs_human");
    /// ```
    pub enum Meaning {
        /// A reviewer or auditor accepts the work.
        Approved = "approved",
        /// The agent cannot go on because something outside it is missing.
        Blocked = "blocked",
        /// The work, or this part of it, is claimed to be finished.
        Done = "done",
        /// The agent gives up or reports an error.
        Failed = "failed",
        /// The agent passes the work or the floor to someone else.
        Handoff = "handoff",
        /// Worth recording, changes nothing by itself.
        Info = "info",
        /// The agent asks another agent.
        NeedsHelp = "needs_help",
        /// The agent asks a human.
        NeedsHuman = "needs_human",
        /// How far the work has come.
        Progress = "progress",
        /// A reviewer or auditor refuses the work.
        Rejected = "rejected",
    }
}

impl Meaning {
    /// Returns whether this ends, holds or hands over work: everything but progress and information.
    pub fn is_decisive(self) -> bool {
        !matches!(self, Self::Progress | Self::Info)
    }

    /// Returns whether believing this wrongly would end or pass on work too early. Only claims are
    /// checked for being mentioned or taken back.
    pub fn is_claim(self) -> bool {
        match self {
            Self::Approved | Self::Done | Self::Handoff => true,
            Self::Blocked
            | Self::Failed
            | Self::Info
            | Self::NeedsHelp
            | Self::NeedsHuman
            | Self::Progress
            | Self::Rejected => false,
        }
    }
}

codes! {
    /// How a signal came: the more difficult it is to forge, the greater.
    ///
    /// ```
    /// use aldis_signal::Via;
    ///
    /// assert!(Via::Said < Via::Token && Via::Token < Via::Receipt && Via::Receipt < Via::Call);
    /// ```
    #[derive(Default)]
    pub enum Via {
        /// In the text of a message.
        #[default]
        Said = "said",
        /// In the text of a message, with the run token that only the agent's prompt holds.
        Token = "token",
        /// By `aldis signal` in the agent's shell, bound to the run.
        Receipt = "receipt",
        /// By a tool call that the host vouches for.
        Call = "call",
    }
}

impl Via {
    /// Returns whether nothing but the text speaks for it. By reference, for serde.
    pub fn is_said(&self) -> bool {
        *self == Self::Said
    }
}

/// Half-open range of bytes of one message, counted from its first byte as it was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// Where in its message something was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The bytes themselves.
    pub span: Span,
    /// Line of the first byte, from 1. Only LF ends a line.
    pub line: u64,
    /// Byte within that line, from 1.
    pub column: u64,
}

/// The members of a signal beside its name: block keys, body fields, JSON members.
pub type Fields = Map<String, Value>;

/// One thing an agent said in a dialect, with the evidence for it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Signal {
    /// The dialect it is written in.
    pub dialect: Arc<str>,
    /// Canonical name.
    pub name: Arc<str>,
    /// What it says in any dialect.
    pub meaning: Meaning,
    /// What it is about: a task id, a path, a verdict.
    pub subject: Option<String>,
    /// Free text said with it.
    pub payload: Option<String>,
    /// Percentage, for signals that carry one.
    pub progress: Option<u8>,
    /// Further members.
    pub fields: Fields,
    /// What the delivery loop does with it.
    pub handler: Option<Arc<str>>,
    /// What was odd about it and tolerated.
    pub warnings: Vec<Warning>,
    /// Who said it.
    pub origin: Origin,
    /// Where.
    pub place: Place,
    /// Where its body ends, for dialects whose signals have one.
    pub body_end: Option<u64>,
    /// The bytes of `place.span`, lossily decoded.
    pub raw: String,
    /// How it came.
    pub via: Via,
}

impl Signal {
    /// Makes a signal that says nothing beside its name.
    ///
    /// ```
    /// use aldis_signal::{Meaning, Origin, Place, Signal};
    ///
    /// let (origin, place) = (Origin::assistant(), Place::default());
    /// let mut signal = Signal::new("mine", "SHIPPED", Meaning::Done, origin, place);
    /// signal.subject = Some("task-1".to_owned());
    /// assert!(signal.meaning.is_claim() && signal.fields.is_empty());
    /// ```
    pub fn new(
        dialect: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        meaning: Meaning,
        origin: Origin,
        place: Place,
    ) -> Self {
        Self {
            dialect: dialect.into(),
            name: name.into(),
            meaning,
            subject: None,
            payload: None,
            progress: None,
            fields: Fields::new(),
            handler: None,
            warnings: Vec::new(),
            origin,
            place,
            body_end: None,
            raw: String::new(),
            via: Via::Said,
        }
    }

    /// Makes a signal that stands in no text: an agent reported it by a call. `raw` is what it sent.
    pub fn by_call(dialect: &str, name: &str, meaning: Meaning, via: Via, raw: String) -> Self {
        let place = Place { line: 1, column: 1, ..Place::default() };
        Self { raw, via, ..Self::new(dialect, name, meaning, Origin::assistant(), place) }
    }

    /// Returns whether it claims that a merge is resolved, which is less than that the work is done.
    /// The name is the same in every dialect that has such a signal.
    pub fn resolves_merge(&self) -> bool {
        self.meaning == Meaning::Done && &*self.name == MERGE_RESOLVED
    }
}

/// How the ids of calls begin that Aldis answered: a transcript that has one in the answer to a call of
/// its tools vouches for that call.
pub const CALL_ID: &str = "aldis-call-";

/// The signal that claims that a merge is resolved, and nothing more.
pub const MERGE_RESOLVED: &str = "RESOLVED";

/// Looked like a signal and was not one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NearMiss {
    /// The dialect it resembles.
    pub dialect: Arc<str>,
    /// That dialect itself, for the hint.
    pub(crate) definition: Arc<Dialect>,
    /// The signal it resembles, canonical where it is known, as written otherwise.
    pub name: Arc<str>,
    /// Why it does not count.
    pub reason: Reason,
    /// What exactly is wrong, where that can be said in a word: a key, a value.
    pub about: Option<String>,
    /// Who said it.
    pub origin: Origin,
    /// Where.
    pub place: Place,
    /// The bytes of `place.span`, lossily decoded.
    pub raw: String,
    /// How many that came later in the message it stands for: beyond the first thousand of a dialect
    /// and a reason they are only counted.
    pub more: u64,
}

impl NearMiss {
    /// Returns what to write instead: one sentence that is itself no signal.
    ///
    /// ```
    /// use aldis_signal::{Finding, Origin, Rules, scan};
    ///
    /// let found = scan(Rules::builtin(), b"  REVIEW_PASSED: t-1", &Origin::assistant());
    /// let Finding::NearMiss(miss) = &found[0] else { panic!("{found:?}") };
    /// let want = "remove the leading spaces; \
    ///             write `REVIEW_PASSED: <id>` alone at the start of a line";
    /// assert_eq!(miss.hint(), want);
    /// ```
    pub fn hint(&self) -> String {
        hint(&self.definition, self.reason, &self.name, self.about.as_deref())
    }
}

impl PartialEq for NearMiss {
    fn eq(&self, other: &Self) -> bool {
        let Self { dialect, definition: _, name, reason, about, origin, place, raw, more } = self;
        *dialect == other.dialect
            && *name == other.name
            && *reason == other.reason
            && *about == other.about
            && *origin == other.origin
            && *place == other.place
            && *raw == other.raw
            && *more == other.more
    }
}

/// What the scanner reports, in the order it becomes certain. Both are large and passed on often.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It counts.
    Signal(Box<Signal>),
    /// It does not, and this is why.
    NearMiss(Box<NearMiss>),
}

impl From<Signal> for Finding {
    fn from(signal: Signal) -> Self {
        Self::Signal(Box::new(signal))
    }
}

impl From<NearMiss> for Finding {
    fn from(miss: NearMiss) -> Self {
        Self::NearMiss(Box::new(miss))
    }
}

impl Finding {
    /// Returns where it was found.
    pub fn place(&self) -> &Place {
        match self {
            Self::Signal(signal) => &signal.place,
            Self::NearMiss(miss) => &miss.place,
        }
    }

    /// Returns the signal, if it is one, and takes it out.
    pub fn into_signal(self) -> Option<Signal> {
        match self {
            Self::Signal(signal) => Some(*signal),
            Self::NearMiss(_) => None,
        }
    }

    /// Returns the signal, if it is one.
    ///
    /// ```
    /// use aldis_signal::{Origin, Rules, scan};
    ///
    /// let found = scan(Rules::builtin(), b"TURN_COMPLETE", &Origin::assistant());
    /// assert_eq!(&*found[0].signal().unwrap().name, "TURN_COMPLETE");
    /// ```
    pub fn signal(&self) -> Option<&Signal> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::NearMiss(_) => None,
        }
    }
}

codes! {
    /// Why something that looks like a signal is not one. The codes are stable.
    #[non_exhaustive]
    pub enum Reason {
        /// An id or path of the wrong shape, or one that leaves the project.
        BadSubject = "bad_subject",
        /// A value of the wrong type or not among the listed ones.
        BadValue = "bad_value",
        /// Bold, a heading, a bullet or a quote mark in front.
        Decorated = "decorated",
        /// A key that is given twice.
        DuplicateField = "duplicate_field",
        /// Letters, controls or terminal sequences that show a human something else.
        Hidden = "hidden",
        /// Part of a sentence, and not on its own on its line.
        InSentence = "in_sentence",
        /// Blanks in front of something that must start its line.
        Indented = "indented",
        /// The words that lead into it doubt it: an example, a condition, a plan, a denial.
        Introduced = "introduced",
        /// Not JSON, or JSON that is ambiguous or out of bounds.
        InvalidJson = "invalid_json",
        /// A required member is missing.
        MissingField = "missing_field",
        /// No colon between name and subject.
        MissingSeparator = "missing_separator",
        /// Nothing after the colon.
        MissingSubject = "missing_subject",
        /// A known name with other letters or separators.
        Misspelled = "misspelled",
        /// A tag closed inside another tag.
        Nested = "nested",
        /// Text follows something that must end the message.
        NotAtEnd = "not_at_end",
        /// Other words on a line that must hold nothing else.
        NotWholeLine = "not_whole_line",
        /// Blanks inside the tag.
        Padded = "padded",
        /// A template that was not filled in.
        Placeholder = "placeholder",
        /// Inside a fence, a quotation, a comment, a table, a search hit or a diff.
        Quoted = "quoted",
        /// Taken back by the text after it.
        Retracted = "retracted",
        /// A completion whose status says otherwise.
        StatusNotComplete = "status_not_complete",
        /// More than 64 KiB.
        TooLong = "too_long",
        /// The closing delimiter is missing.
        Unclosed = "unclosed",
        /// A key the dialect does not have.
        UnknownField = "unknown_field",
        /// A name the dialect does not have.
        UnknownName = "unknown_name",
        /// Not the agent's own words.
        UntrustedOrigin = "untrusted_origin",
        /// A known name in the wrong case.
        WrongCase = "wrong_case",
        /// Not the token of this run, or none where one is required.
        WrongToken = "wrong_token",
    }
}

/// What was odd about an accepted signal. The rendered codes are stable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Warning {
    /// A listed field has a value that is not on its list.
    BadValue,
    /// A number was out of range.
    Clamped,
    /// A value had another type and was converted.
    Coerced,
    /// A field that is given more than once: the first counts.
    DuplicateField(Arc<str>),
    /// A member of `indicators` is not a boolean and was dropped.
    IndicatorNotBool,
    /// A value of an old form could not be read.
    LegacyInvalid(Arc<str>),
    /// The end of the message, or the next opening, closed it.
    MissingClosingDelimiter,
    /// It stands alone, without the lines around it.
    MissingDelimiters,
    /// An expected field is missing.
    MissingField(Arc<str>),
    /// A type that needs words came without.
    MissingPayload,
    /// No blank after the colon.
    MissingSpace,
    /// The phase named is not the signal's own.
    PhaseMismatch,
    /// A type the dialect does not have: listed, not handled.
    UnknownType,
    /// A version the dialect does not have.
    UnknownVersion,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadValue => f.write_str("bad_value"),
            Self::Clamped => f.write_str("clamped"),
            Self::Coerced => f.write_str("coerced"),
            Self::DuplicateField(field) => write!(f, "duplicate_field:{field}"),
            Self::IndicatorNotBool => f.write_str("indicator_not_bool"),
            Self::LegacyInvalid(field) => write!(f, "legacy_invalid:{field}"),
            Self::MissingClosingDelimiter => f.write_str("missing_closing_delimiter"),
            Self::MissingDelimiters => f.write_str("missing_delimiters"),
            Self::MissingField(field) => write!(f, "missing_field:{field}"),
            Self::MissingPayload => f.write_str("missing_payload"),
            Self::MissingSpace => f.write_str("missing_space"),
            Self::PhaseMismatch => f.write_str("phase_mismatch"),
            Self::UnknownType => f.write_str("unknown_type"),
            Self::UnknownVersion => f.write_str("unknown_version"),
        }
    }
}
