//! A journal, taken again from its beginning.

use aldis_machine::phases::State;

use super::engine::{Entry, Happened};
use super::machine::Machine;

/// Returns every state that the journal leads to, oldest first.
pub(super) fn states(machine: Machine, journal: &[Entry]) -> impl Iterator<Item = State> {
    let mut current: Option<State> = None;
    journal.iter().filter_map(move |entry| {
        match (&entry.happened, &mut current) {
            (Happened::Began(origin), current) => {
                *current = Some(aldis::engine::driver::Origin::clone(origin).state(entry.at));
            }
            (Happened::Took(event), Some(state)) => {
                machine.take(state, entry.at, event);
            }
            (Happened::Took(_), None) => {}
        }
        current.clone()
    })
}

/// Returns the state that the whole journal leads to.
pub(super) fn last(machine: Machine, journal: &[Entry]) -> Option<State> {
    let mut current: Option<State> = None;
    for entry in journal {
        match (&entry.happened, &mut current) {
            (Happened::Began(origin), current) => {
                *current = Some(aldis::engine::driver::Origin::clone(origin).state(entry.at));
            }
            (Happened::Took(event), Some(state)) => {
                machine.take(state, entry.at, event);
            }
            (Happened::Took(_), None) => {}
        }
    }
    current
}
