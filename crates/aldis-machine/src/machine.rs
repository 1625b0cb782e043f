//! What all machines have in common: one way to take an event, one form of what comes of it, one
//! word of a human.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Decision, Evidence};
use aldis_signal::time::Timestamp;

/// A pure state machine: it takes events with their time and says what must be done, and why.
///
/// Given the same events it takes the same steps, so that a journal can be replayed. Whoever drives
/// it makes a step durable before performing its effects.
pub trait Machine: Clone + fmt::Debug + PartialEq {
    /// Its stable name.
    const NAME: &'static str;
    /// Whether an event can matter although nothing was decided about it.
    const HAS_QUIET_EVENTS: bool;
    /// What a run is made of.
    type Start: Clone + fmt::Debug + Serialize + DeserializeOwned;
    /// What happens.
    type Event: Clone + fmt::Debug + Serialize + DeserializeOwned;
    /// What must be done.
    type Effect: Clone + fmt::Debug + Serialize + DeserializeOwned;

    /// Begins a run.
    ///
    /// # Errors
    ///
    /// Says what is wrong with `start`.
    fn start(now: Timestamp, start: Self::Start) -> Result<Begun<Self>, StartError>;

    /// Takes over a run that another program began, as its state file left it.
    ///
    /// # Errors
    ///
    /// Fails for machines that have no such file.
    fn adopt(_now: Timestamp, _state: Self) -> Result<Begun<Self>, StartError> {
        Err(StartError::new(format!("runs of the machine `{}` cannot be adopted", Self::NAME)))
    }

    /// Takes one event.
    fn on_event(&mut self, now: Timestamp, event: &Self::Event) -> Outcome<Self::Effect>;

    /// Returns when the machine must be woken, if time alone changes anything. Waking it early or
    /// more often is harmless.
    fn next_wake(&self) -> Option<Timestamp>;

    /// Returns the event that wakes it; `missed` when nobody watched while it was due.
    fn wake_event(&self, missed: bool) -> Option<Self::Event>;

    /// Returns the event by which a human's command reaches the machine; `by` says by what means it
    /// came, for the journal.
    ///
    /// # Errors
    ///
    /// Says why the command means nothing to the run as it stands.
    fn command(&self, command: &HumanCommand, by: &str) -> Result<Self::Event, NotPossible> {
        match command {
            HumanCommand::Answer { text, .. } | HumanCommand::Tell { text, .. }
                if text.trim().is_empty() =>
            {
                Err(NotPossible::NoText)
            }
            command => self.event_of(command, by.to_owned()),
        }
    }

    /// Returns the event of a command that has a text where it needs one; see [`Machine::command`].
    ///
    /// # Errors
    ///
    /// Says why the command means nothing to the run as it stands.
    fn event_of(&self, command: &HumanCommand, by: String) -> Result<Self::Event, NotPossible>;

    /// Returns how soon an event must be written that led to no decision.
    fn urgency(_event: &Self::Event) -> Urgency {
        Urgency::Eventually
    }

    /// Returns whether a quiet event says all that the quiet one before it said.
    fn supersedes(_event: &Self::Event, _earlier: &Self::Event) -> bool {
        false
    }

    /// Returns whether an event means something else before this one than behind it, so that it must
    /// stay between those that say the same.
    fn separates(_between: &Self::Event, _event: &Self::Event) -> bool {
        false
    }

    /// Returns what a list of runs shows.
    fn summary(&self) -> Summary<'_>;

    /// Returns the state as it is stored, as JSON, without its parts.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written as JSON.
    fn to_stored(&self) -> Result<String, serde_json::Error>;

    /// Returns every part of the state, by key.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be written as JSON.
    fn parts(&self) -> Result<Vec<(String, String)>, serde_json::Error> {
        Ok(Vec::new())
    }

    /// Returns the parts of the state that changed since this was last asked, by key.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be written as JSON.
    fn take_changed_parts(&mut self) -> Result<Vec<(String, String)>, serde_json::Error> {
        Ok(Vec::new())
    }

    /// Puts a stored state together again. Parts that are not the machine's are ignored.
    ///
    /// # Errors
    ///
    /// Says what does not fit.
    fn from_stored(state: &str, parts: &[(&str, &str)]) -> Result<Self, String>;
}

/// A run that has just begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun<M: Machine> {
    /// Its state.
    pub state: M,
    /// What must now be done, and why.
    pub outcome: Outcome<M::Effect>,
}

/// What one event led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome<E> {
    /// What must now be done, in order. Without a decision there are only answers to whoever asked.
    pub effects: Vec<E>,
    /// What was decided and why, in order; none when nothing changed that anybody wants to read.
    pub decisions: Vec<Decision>,
}

impl<E> Default for Outcome<E> {
    fn default() -> Self {
        Self { effects: Vec::new(), decisions: Vec::new() }
    }
}

impl<E> Outcome<E> {
    /// Nothing to do, nothing to say.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Adds what is decided by a rule. Its reasons follow.
    pub(crate) fn decide(
        mut self,
        rule: impl Into<String>,
        summary: impl Into<String>,
        counters: BTreeMap<String, u64>,
    ) -> Self {
        self.decisions.push(Decision::new(rule, summary, counters));
        self
    }

    /// Adds what must now be done.
    #[must_use]
    pub(crate) fn with(mut self, effects: impl IntoIterator<Item = E>) -> Self {
        self.effects.extend(effects);
        self
    }

    /// Says why the last rule applied.
    pub(crate) fn because(self, because: impl Into<String>) -> Self {
        self.about_last(|decision| decision.because(because))
    }

    /// Says what the last decision rests on.
    pub(crate) fn seen(self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.about_last(|decision| decision.seen(evidence))
    }

    /// Says what happens next, or what to do.
    pub(crate) fn next(self, remedy: impl Into<String>) -> Self {
        self.about_last(|decision| decision.next(remedy))
    }

    fn about_last(mut self, change: impl FnOnce(&mut Decision) -> &mut Decision) -> Self {
        self.decisions.last_mut().map(change);
        self
    }

    /// Adds what came after it in the same step.
    #[must_use]
    pub(crate) fn then(mut self, later: Self) -> Self {
        self.effects.extend(later.effects);
        self.decisions.extend(later.decisions);
        self
    }

    /// Returns the last decision: what whoever asks why wants to read first.
    pub fn decision(&self) -> Option<&Decision> {
        self.decisions.last()
    }

    /// Returns whether there is nothing to do and nothing to say.
    pub fn is_nothing(&self) -> bool {
        self.effects.is_empty() && self.decisions.is_empty()
    }
}

/// How soon an event must be written that led to no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Only together with an event after it: time passed, and nothing else.
    Never,
    /// Some time: others want to know that the work moves.
    Eventually,
    /// At once, or nearly: what it says cannot be found out again.
    Soon,
}

/// What a human wants of a run, whoever passes it on. Exhaustive: every machine knows what each
/// means for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum HumanCommand {
    /// The run is to end.
    Abort,
    /// A question has its answer.
    Answer {
        /// The question.
        id: String,
        /// The answer.
        text: String,
    },
    /// The run is to rest.
    Pause,
    /// The run is to go on.
    Resume,
    /// An agent is to know something.
    Tell {
        /// What.
        text: String,
        /// Who or what it is about, where the machine has several: a task, a role, an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
}

impl HumanCommand {
    /// Returns the stable name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Answer { .. } => "answer",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Tell { .. } => "tell",
        }
    }
}

/// Why a human's command means nothing to a run as it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotPossible {
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
    /// The run is paused already.
    #[error("the run is paused already")]
    AlreadyPaused,
    /// The run is not paused.
    #[error("the run is not paused")]
    NotPaused,
    /// No agent is at work that could be paused.
    #[error("no agent is working, so there is nothing to pause")]
    NothingToPause,
    /// Nobody asked that.
    #[error("no open question `{0}`")]
    NoSuchQuestion(String),
    /// An answer or a message without a word in it.
    #[error("the text is empty")]
    NoText,
    /// There is nobody and nothing of that name.
    #[error("there is no `{0}` in this run")]
    NoSuchRecipient(String),
    /// The machine has nothing of the kind.
    #[error("{0}")]
    Never(&'static str),
}

/// What is wrong with how a run is to begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl StartError {
    /// Says what is wrong.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// What a list of runs shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary<'s> {
    /// What the run is about.
    pub title: &'s str,
    /// Whether it can still take steps.
    pub active: bool,
    /// The host's session it belongs to.
    pub session: Option<&'s str>,
}
