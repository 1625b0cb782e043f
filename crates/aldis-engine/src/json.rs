//! The machines for programs: how a run begins and what happens in it, in JSON.
//!
//! A program that has no scanner of its own hands over an agent's message as `text`; it is scanned
//! here, before the machine sees it. Secrets are taken out of everything that is kept.

mod delivery;
mod phases;
mod run;
mod turns;

use std::sync::Arc;

use aldis_machine::Machine;
use aldis_signal::redact::redact_value;
use aldis_signal::{Dialect, Rules};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The members of a JSON object.
pub type Members = Map<String, Value>;

/// The dialects that agents may speak.
pub trait Dialects {
    /// Returns the dialect of that name.
    ///
    /// # Errors
    ///
    /// Says that there is none, in words for whoever asked.
    fn dialect(&self, name: &str) -> Result<Arc<Dialect>, String>;

    /// Returns the rules of one dialect alone.
    ///
    /// # Errors
    ///
    /// As [`dialect`](Self::dialect).
    fn rules(&self, name: &str) -> Result<Arc<Rules>, String> {
        Ok(Arc::new(Rules::new([self.dialect(name)?])))
    }
}

/// How programs begin runs of a machine and report what happens in them.
pub trait JsonEdge: Machine {
    /// Reads how a run begins.
    ///
    /// # Errors
    ///
    /// Says what cannot be meant.
    fn start_from_json(members: Members, dialects: &dyn Dialects) -> Result<Self::Start, String>;

    /// Reads an event; an agent's message in `text` is scanned.
    ///
    /// # Errors
    ///
    /// Says what cannot be meant.
    fn event_from_json(
        &self,
        members: Members,
        dialects: &dyn Dialects,
    ) -> Result<Self::Event, String>;
}

/// Reads a value from its members, without secrets.
fn read<T: DeserializeOwned>(mut members: Members) -> Result<T, String> {
    members.values_mut().for_each(redact_value);
    serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())
}

/// Takes the message in `text` out of an event that is one of these.
fn take_text(members: &mut Members, events: &[&str]) -> Result<Option<String>, String> {
    let kind = members.get("event").and_then(Value::as_str);
    if !kind.is_some_and(|kind| events.contains(&kind)) {
        return Ok(None);
    }
    match members.remove("text") {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err("`text` is not a string".to_owned()),
    }
}
