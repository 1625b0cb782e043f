//! The machines as a keeper of many runs needs them: JSON in, JSON out, one shape for all.
//!
//! A machine's own types stay with those who know it. Here it is only begun, stepped, shown, paused
//! and asked, so that a new machine is one file and a line in [`MACHINES`].

pub(crate) mod delivery;
pub(crate) mod phases;
pub(crate) mod run;
mod turns;

use aldis_machine::Decision;
use aldis_signal::time::Timestamp;
use aldis_store::{Run, Store};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::view::known::Known;

pub(crate) use self::phases::PHASES;
pub(crate) use self::turns::{TURNS, adopting};

/// The members of a JSON object.
pub(crate) type Members = Map<String, Value>;

/// Every machine that can be kept.
pub(crate) const MACHINES: &[&dyn Machine] = &[&phases::Phases, &run::Supervised, &turns::Turns];

/// The version of what is stored.
const VERSION: u32 = 1;

/// Returns the machine of that name.
pub(crate) fn named(name: &str) -> Option<&'static dyn Machine> {
    MACHINES.iter().copied().find(|machine| machine.name() == name)
}

/// What a run looks like from outside. One that cannot be read still has a name.
pub(crate) fn shown(store: &dyn Store, run: &Run) -> Value {
    let known = Known::of(store, run.clone()).ok();
    let mut form = known.map_or_else(|| json!({}), |known| known.form());
    if let Value::Object(members) = &mut form {
        let mut add = |name: &str, value: Value| {
            members.entry(name).or_insert(value);
        };
        add("v", json!(1));
        add("run", json!(run.id.as_str()));
        add("machine", json!(run.record.machine));
        add("project", json!(run.record.project));
        add("title", json!(run.record.title));
        add("active", json!(run.record.active));
        add("revision", json!(run.revision.0));
        add("created", json!(run.created));
        add("updated", json!(run.updated));
    }
    form
}

/// A machine, seen from outside.
pub(crate) trait Machine: Sync {
    /// Returns its name.
    fn name(&self) -> &'static str;

    /// Begins a run.
    fn begin(&self, now: Timestamp, start: Members) -> Result<Stepped, Refused>;

    /// Begins a run again as the first event of its journal says, where this is how to replay it.
    fn begin_again(&self, _now: Timestamp, _event: &Value) -> Result<Stepped, Refused> {
        Err(Refused::Bad("the journal has no start".to_owned()))
    }

    /// Lets a run take an event.
    fn step(&self, now: Timestamp, stored: &str, event: Members) -> Result<Stepped, Refused>;

    /// Returns the event by which a human's wish reaches the machine, if it can be wished.
    fn wish(&self, wish: &Wish) -> Option<Value>;

    /// Returns whether an event can matter although nothing was decided about it.
    fn listens(&self) -> bool {
        false
    }

    /// Returns the event of an alarm; `missed` when it was due while nobody watched.
    fn alarm(&self, _missed: bool) -> Option<Value> {
        None
    }

    /// Returns what is wrong with a run, for a check of health.
    fn trouble(&self, _run: &Run, _now: Timestamp) -> Option<String> {
        None
    }
}

/// What a human wants of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// That it ends.
    Abort,
    /// That a question is answered.
    Answer { id: String, text: String },
    /// That it rests.
    Pause,
    /// That it goes on.
    Resume,
}

/// What an event led to.
#[derive(Clone, Debug)]
pub(crate) struct Stepped {
    /// What people call the run.
    pub(crate) title: String,
    /// Whether it can still step.
    pub(crate) active: bool,
    /// The host's session it belongs to.
    pub(crate) session: Option<String>,
    /// The state as it is stored.
    pub(crate) state: String,
    /// The event as it is stored.
    pub(crate) event: Value,
    /// Why; nothing is stored without.
    pub(crate) decision: Option<Decision>,
    /// What must now be done.
    pub(crate) effects: Vec<Value>,
    /// What became of each message.
    pub(crate) replies: Vec<Value>,
    /// What was asked for and not done.
    pub(crate) warnings: Vec<String>,
    /// When to wake the machine, where that has changed.
    pub(crate) wake: Option<Option<Timestamp>>,
}

/// Why a machine did not take an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The event cannot be meant.
    #[error("{0}")]
    Bad(String),
    /// What is stored cannot be understood.
    #[error("the run is stored in a form this version does not know ({0})")]
    Unreadable(String),
}

impl From<serde_json::Error> for Refused {
    fn from(error: serde_json::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

/// A state as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored<T> {
    v: u32,
    state: T,
}

fn store<T: Serialize>(state: &T) -> Result<String, Refused> {
    Ok(serde_json::to_string(&Stored { v: VERSION, state })?)
}

pub(crate) fn restore<T: DeserializeOwned>(text: &str) -> Result<T, Refused> {
    let unreadable = |error: serde_json::Error| Refused::Unreadable(error.to_string());
    let stored: Stored<T> = serde_json::from_str(text).map_err(unreadable)?;
    if stored.v != VERSION {
        return Err(Refused::Unreadable(format!("version {}", stored.v)));
    }
    Ok(stored.state)
}

fn values<T: Serialize>(items: &[T]) -> Vec<Value> {
    items.iter().map(|item| serde_json::to_value(item).unwrap_or_default()).collect()
}

fn read<T: DeserializeOwned>(members: Members) -> Result<T, Refused> {
    Ok(serde_json::from_value(Value::Object(members))?)
}
