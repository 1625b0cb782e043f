//! The journal of a supervised run.

use aldis_machine::Decision;
use aldis_machine::run::{Event, Start, State};
use aldis_store::{RunId, Store};
use serde::Deserialize;

use crate::error::CommandError;

/// How a run began, as the journal has it.
#[derive(Debug, Deserialize)]
struct Began {
    start: Start,
}

/// Takes every event again. Returns the state, the decisions, and how many events there were.
pub(super) fn replayed(
    store: &dyn Store,
    id: &RunId,
) -> Result<(State, Vec<Decision>, usize), CommandError> {
    let unreadable =
        |seq: u64| CommandError::new(format!("event {seq} of run {id} cannot be read"));
    let events = store.events(id, 0, usize::MAX)?;
    let Some((first, rest)) = events.split_first() else {
        return Err(CommandError::new(format!("run {id} has no journal")));
    };
    let began: Began = serde_json::from_str(&first.body).map_err(|_| unreadable(first.seq))?;
    let mut state = State::start(first.at, began.start);
    let mut decisions = Vec::new();
    for event in rest {
        let taken: Event = serde_json::from_str(&event.body).map_err(|_| unreadable(event.seq))?;
        decisions.extend(state.on_event(event.at, &taken).decisions);
    }
    Ok((state, decisions, events.len()))
}
