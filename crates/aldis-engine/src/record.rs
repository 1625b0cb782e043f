//! What every step of every machine looks like in the store.

use aldis_machine::{Decision, Machine};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, NewDecision, NewEvent, Part, RunId, RunRecord, Source};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::EngineError;
use crate::upcast;

/// The version of a stored state. Older ones are brought up by [`upcast`].
pub(crate) const VERSION: u32 = 2;

/// How a run began: the first event of its journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Began<S> {
    /// Somebody started it.
    Start {
        /// What it was made of.
        start: S,
    },
    /// A state file of another program told of it.
    Adopt {
        /// What the file said, as the machine stores it.
        state: Value,
    },
}

/// A state as it is stored.
#[derive(Deserialize)]
struct Stored<'s> {
    v: u32,
    #[serde(borrow)]
    state: &'s RawValue,
}

/// Returns what the store keeps of a run beside its history.
pub(crate) fn run_record<M: Machine>(
    run: &RunId,
    project: &str,
    driver: Driver,
    state: &M,
) -> Result<RunRecord, EngineError> {
    let text = state.to_stored().map_err(|error| unwritable(run, error))?;
    let summary = state.summary();
    Ok(RunRecord {
        project: project.to_owned(),
        session: summary.session.map(str::to_owned),
        machine: M::NAME.to_owned(),
        driver,
        title: summary.title.to_owned(),
        active: summary.active,
        state: format!(r#"{{"v":{VERSION},"state":{text}}}"#),
    })
}

/// Reads the state of a run.
pub(crate) fn read_state<M: Machine>(
    run: &RunId,
    record: &RunRecord,
    parts: &[Part],
) -> Result<M, EngineError> {
    let unreadable = |detail: String| EngineError::Unreadable { run: run.clone(), detail };
    if record.machine != M::NAME {
        return Err(unreadable(format!("it is a run of the machine `{}`", record.machine)));
    }
    let stored: Stored<'_> =
        serde_json::from_str(&record.state).map_err(|error| unreadable(error.to_string()))?;
    let parts: Vec<(&str, &str)> = parts.iter().map(|part| (&*part.key, &*part.body)).collect();
    match stored.v {
        VERSION => M::from_stored(stored.state.get(), &parts).map_err(unreadable),
        1 => {
            let state = upcast::state(M::NAME, stored.state.get()).map_err(unreadable)?;
            M::from_stored(&state, &parts).map_err(unreadable)
        }
        newer => Err(unreadable(format!("it has version {newer}, this program knows {VERSION}"))),
    }
}

/// Returns an event as the journal keeps it.
pub(crate) fn event(
    run: &RunId,
    event: &impl Serialize,
    source: Option<Source>,
    at: Timestamp,
) -> Result<NewEvent, EngineError> {
    let body = serde_json::to_string(event).map_err(|error| unwritable(run, error))?;
    Ok(NewEvent { kind: kind_of(&body).to_owned(), body, source, at })
}

/// Returns a decision as the journal keeps it, with the effects that whoever follows must see.
pub(crate) fn decision(
    run: &RunId,
    decision: &Decision,
    effects: &[Value],
    at: Timestamp,
) -> Result<NewDecision, EngineError> {
    #[derive(Serialize)]
    struct WithEffects<'d> {
        #[serde(flatten)]
        decision: &'d Decision,
        #[serde(skip_serializing_if = "<[Value]>::is_empty")]
        effects: &'d [Value],
    }
    let body = serde_json::to_string(&WithEffects { decision, effects });
    Ok(NewDecision { body: body.map_err(|error| unwritable(run, error))?, at })
}

/// Returns a value for sending or storing.
pub(crate) fn value(run: &RunId, value: &impl Serialize) -> Result<Value, EngineError> {
    serde_json::to_value(value).map_err(|error| unwritable(run, error))
}

fn unwritable(run: &RunId, error: serde_json::Error) -> EngineError {
    EngineError::Unwritable { run: run.clone(), error }
}

/// The name that an event gives itself: serde writes the tag of an enum before its members.
fn kind_of(body: &str) -> &str {
    let tagged = body.strip_prefix(r#"{"event":""#);
    tagged.and_then(|rest| rest.split('"').next()).unwrap_or("event")
}
