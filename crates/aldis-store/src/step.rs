//! What a machine hands over: one step of one run, complete, to be written whole or not at all.

use std::fmt;
use std::str::FromStr;

use aldis_signal::time::Timestamp;

/// The name of a run: 1 to 64 of `A-Z a-z 0-9 . _ -`, starting with a letter or digit, not ending
/// in a dot.
///
/// The alphabet is this narrow because ids end up in file names, URLs and command lines.
///
/// ```
/// use aldis_store::RunId;
///
/// assert!("auto-7f3a".parse::<RunId>().is_ok());
/// assert!("../etc".parse::<RunId>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(String);

/// A text that cannot name a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name a run; use 1 to 64 letters, digits, `.`, `_` or `-`, a letter or digit first \
     and no dot last"
)]
pub struct BadRunId(String);

impl RunId {
    /// The longest id, in bytes.
    pub const MAX: usize = 64;

    /// Checks `text` and takes it as an id.
    ///
    /// # Errors
    ///
    /// [`BadRunId`] when it is outside the alphabet above.
    pub fn new(text: impl Into<String>) -> Result<Self, BadRunId> {
        let text = text.into();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let good = (1..=Self::MAX).contains(&text.len())
            && text.bytes().all(allowed)
            && text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && !text.ends_with('.');
        if good { Ok(Self(text)) } else { Err(BadRunId(text)) }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<Self, BadRunId> {
        Self::new(text)
    }
}

/// Counts the steps of one run. A step names the revision it was computed from; 0 is before the
/// first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Everything one step of a machine changed.
///
/// Cheap to clone into a variant with `..` in tests; in earnest it is built once and committed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whose step it is.
    pub run: RunId,
    /// The revision the step was computed from; `Revision(0)` creates the run.
    pub expected: Revision,
    /// The fencing number of the writer's [`Lease`](crate::Lease), if it works under one. A writer
    /// without a lease, such as a hook, relies on `expected` alone.
    pub fence: Option<u64>,
    /// The run after the step.
    pub record: RunRecord,
    /// When the step was taken.
    pub at: Timestamp,
    /// What happened, in order. Append-only: the history a replay starts from.
    pub events: Vec<NewEvent>,
    /// What was decided and why, in order.
    pub decisions: Vec<NewDecision>,
    /// What the world must now do. Visible only once the step is durable.
    pub effects: Vec<NewEffect>,
    /// Keys of this run's effects that have been performed, those of this very step included.
    /// Unknown keys are ignored: their run's history may have been pruned.
    pub done: Vec<String>,
    /// Alarms to set or clear, in order.
    pub timers: Vec<TimerChange>,
    /// Parts of the state that changed, in order. A machine whose state is large keeps it in parts
    /// beside `record.state`, so that a step writes only what it touched.
    pub parts: Vec<PartChange>,
}

impl Step {
    /// Creates a step that saves `record` and does nothing else.
    pub fn new(run: RunId, expected: Revision, record: RunRecord, at: Timestamp) -> Self {
        Self {
            run,
            expected,
            fence: None,
            record,
            at,
            events: Vec::new(),
            decisions: Vec::new(),
            effects: Vec::new(),
            done: Vec::new(),
            timers: Vec::new(),
            parts: Vec::new(),
        }
    }
}

/// What is known about a run, apart from its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// The project it works on, as the caller names projects; empty when there is none.
    pub project: String,
    /// The host's session it is bound to, if any.
    pub session: Option<String>,
    /// Which machine decides.
    pub machine: String,
    /// Who takes its steps.
    pub driver: Driver,
    /// What people call it.
    pub title: String,
    /// Whether it can still step. A run that ended is kept until it is pruned.
    pub active: bool,
    /// The machine's state, or the part of it that every step writes, as JSON. A cache of the events: losing it loses time, not truth.
    pub state: String,
}

/// Who takes the steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// A hook that a host calls.
    Hook,
    /// A process of its own.
    Process,
    /// A server, on request.
    Server,
    /// A worker that claimed it.
    Worker,
}

impl Driver {
    const ALL: [Self; 4] = [Self::Hook, Self::Process, Self::Server, Self::Worker];

    /// Returns the name under which it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Process => "process",
            Self::Server => "server",
            Self::Worker => "worker",
        }
    }

    /// Returns the driver of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|driver| driver.as_str() == name)
    }
}

/// Something that happened, not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// What kind of event it is.
    pub kind: String,
    /// The event, as JSON.
    pub body: String,
    /// Where it came from: a second delivery of the same source changes nothing.
    pub source: Option<Source>,
    /// When it happened.
    pub at: Timestamp,
}

/// What makes a second delivery recognisable, for as long as the run is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The idempotency key, unique in its run.
    pub key: String,
    /// A digest of the request, so that another request with the same key is told apart; empty when
    /// the key says it all.
    pub digest: String,
}

impl Source {
    /// Creates a source whose key says it all.
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), digest: String::new() }
    }
}

/// A decision with its reasons, not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDecision {
    /// The decision, as JSON.
    pub body: String,
    /// When it was made.
    pub at: Timestamp,
}

/// Something the world must do, not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEffect {
    /// Unique in the whole store: a key that is already known is not enqueued again, done or not.
    pub key: String,
    /// What kind of effect it is.
    pub kind: String,
    /// The effect, as JSON.
    pub body: String,
    /// Not to be performed before.
    pub due: Timestamp,
    /// The queue it waits in: effects of one lane are handed out in the order they were enqueued,
    /// whichever run or kind they are of. Those of the lane `""` need no order.
    pub lane: String,
    /// The labels a worker must have to perform it.
    pub requires: Vec<String>,
}

/// A change to a run's alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerChange {
    /// Arms the timer, replacing what was set under the same key.
    Set {
        /// Unique in its run.
        key: String,
        /// When it fires.
        due: Timestamp,
    },
    /// Disarms the timer, if it is set.
    Clear {
        /// The key it was set under.
        key: String,
    },
}

/// A change to the parts of a run's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartChange {
    /// Keeps this part, replacing what was kept under the same key.
    Set {
        /// Unique in its run.
        key: String,
        /// The part, as JSON.
        body: String,
    },
    /// Forgets the part, if there is one.
    Clear {
        /// The key it was kept under.
        key: String,
    },
}

/// What a committed step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The run's revision after the step: expect this in the next one.
    pub revision: Revision,
    /// The number of the run's last event; 0 when it has none.
    pub last_event: u64,
}

#[cfg(test)]
mod tests {
    //! Which texts can name a run.

    use super::*;

    #[test]
    fn ids_are_harmless_anywhere() {
        let longest = "x".repeat(RunId::MAX);
        for good in ["a", "7", "Run_1.2-b", "a..b", &longest] {
            assert_eq!(RunId::new(good).map(|id| id.to_string()), Ok(good.to_owned()));
        }
        let too_long = "x".repeat(RunId::MAX + 1);
        for bad in ["", ".", "..", "-x", ".x", "x.", "a/b", "a b", "é", "a\0", "a\n", &too_long] {
            assert_eq!(RunId::new(bad), Err(BadRunId(bad.to_owned())));
        }
    }
}
