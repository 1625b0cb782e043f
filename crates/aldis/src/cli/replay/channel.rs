//! The journal of a channel, taken again.

use aldis_machine::Decision;
use aldis_machine::turns::State;
use aldis_store::{RunId, Store};
use serde_json::Value;

use crate::engine::machines::{self, TURNS};
use crate::error::CommandError;

/// Returns the state, the decisions and the number of events.
pub(super) fn replayed(
    store: &dyn Store,
    id: &RunId,
) -> Result<(State, Vec<Decision>, usize), CommandError> {
    let machine = machines::named(TURNS).ok_or_else(|| CommandError::new("no such machine"))?;
    let events = store.events(id, 0, usize::MAX)?;
    let mut decisions = Vec::new();
    let mut stored: Option<String> = None;
    for event in &events {
        let wrong = |why: String| {
            CommandError::new(format!("event {} of channel {id} cannot be taken: {why}", event.seq))
        };
        let body: Value =
            serde_json::from_str(&event.body).map_err(|error| wrong(error.to_string()))?;
        let stepped = match (&stored, body) {
            (None, body) => machine.begin_again(event.at, &body),
            (Some(state), Value::Object(body)) => machine.step(event.at, state, body),
            (Some(_), _) => return Err(wrong("it is no object".to_owned())),
        };
        let stepped = stepped.map_err(|refused| wrong(refused.to_string()))?;
        decisions.extend(stepped.decision);
        stored = Some(stepped.state);
    }
    let none = || CommandError::new(format!("channel {id} has no journal"));
    let state = machines::restore(&stored.ok_or_else(none)?);
    Ok((state.map_err(|refused| CommandError::new(refused.to_string()))?, decisions, events.len()))
}
