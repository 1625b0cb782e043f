//! One place for each run: its lock, and the run as its last step left it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aldis_store::{Run, RunId};

/// How many runs are remembered: more than a busy server has channels.
const KEPT_MAX: usize = 16_384;
/// The longest state that is remembered, so that all of them together stay bounded.
const STATE_MAX: usize = 16 << 10;

/// The places of runs.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<RunId, Arc<Place>>>);

/// The place of a run.
#[derive(Debug, Default)]
pub(super) struct Place(Mutex<Option<Run>>);

/// Being the only one of this process to step a run.
#[derive(Debug)]
pub(super) struct Mine<'p>(MutexGuard<'p, Option<Run>>);

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

impl Place {
    pub(super) fn enter(&self) -> Mine<'_> {
        Mine(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Mine<'_> {
    /// Takes what is remembered: it may be old, and is forgotten until a step was kept.
    pub(super) fn take(&mut self) -> Option<Run> {
        self.0.take()
    }

    /// Remembers what is stored, while it can still step.
    pub(super) fn keep(&mut self, run: &Run) {
        let small = run.record.state.len() <= STATE_MAX;
        *self.0 = (small && run.record.active).then(|| run.clone());
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
