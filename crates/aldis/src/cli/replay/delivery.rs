//! The journal of a delivery.

use aldis_machine::Decision;
use aldis_machine::delivery::{Event, Start, State};
use aldis_store::{RunId, Store};
use serde_json::Value;

use crate::engine::book::Began;
use crate::error::CommandError;

/// Takes every event again. Returns the state, the decisions, and how many events there were.
pub(super) fn replayed(
    store: &dyn Store,
    id: &RunId,
) -> Result<(Value, Vec<Decision>, usize), CommandError> {
    let unreadable =
        |seq: u64| CommandError::new(format!("event {seq} of run {id} cannot be read"));
    let events = store.events(id, 0, usize::MAX)?;
    let Some((first, rest)) = events.split_first() else {
        return Err(CommandError::new(format!("run {id} has no journal")));
    };
    let began: Began<Start> =
        serde_json::from_str(&first.body).map_err(|_| unreadable(first.seq))?;
    let mut state = State::start(first.at, began.start);
    let mut decisions = Vec::new();
    for event in rest {
        let taken: Event = serde_json::from_str(&event.body).map_err(|_| unreadable(event.seq))?;
        decisions.extend(state.on_event(event.at, &taken).decisions);
    }
    Ok((members(&state), decisions, events.len()))
}

/// Returns the parts of a state for comparing.
pub(super) fn members(state: &State) -> Value {
    serde_json::json!({ "run": state.run(), "tasks": state.tasks() })
}
