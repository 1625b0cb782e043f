//! One place for each run: its lock, and the run as its last step left it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aldis_store::{Run, RunId};

/// How many runs are remembered: more than a busy server has channels.
const KEPT_MAX: usize = 16_384;
/// The longest state that is remembered, so that all of them together stay bounded.
const STATE_MAX: usize = 16 << 10;

/// The places of runs.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<RunId, Arc<Place>>>);

/// The place of a run. Whoever has locked it is the only one of this process to step the run; one that
/// can wait with its thread does, others wait without.
pub(super) type Place = tokio::sync::Mutex<Remembered>;

/// The run as its last step left it, if it is known. Other processes step it too, so it may be old.
#[derive(Debug, Default)]
pub(super) struct Remembered(Option<Run>);

impl Places {
    /// Returns the place of a run. Those that nobody uses are given up when there are too many.
    pub(super) fn of(&self, id: &RunId) -> Arc<Place> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(id) {
            return place.clone();
        }
        if places.len() >= KEPT_MAX {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        places.entry(id.clone()).or_default().clone()
    }
}

impl Remembered {
    /// Takes what is remembered: it is forgotten until a step was kept.
    pub(super) fn take(&mut self) -> Option<Run> {
        self.0.take()
    }

    /// Remembers what is stored, while it can still step.
    pub(super) fn keep(&mut self, run: &Run) {
        let small = run.record.state.len() <= STATE_MAX;
        self.0 = (small && run.record.active).then(|| run.clone());
    }
}

#[cfg(test)]
mod tests {
    //! What is in use stays, what is not is bounded.

    use super::*;

    #[test]
    fn places_are_few_and_those_in_use_stay() {
        let places = Places::default();
        let id = |number: usize| RunId::new(format!("r{number}")).unwrap();
        let used = places.of(&id(0));
        for number in 1..3 * KEPT_MAX {
            places.of(&id(number));
        }
        assert!(places.0.lock().unwrap().len() <= KEPT_MAX);
        assert!(Arc::ptr_eq(&used, &places.of(&id(0))));
    }
}
