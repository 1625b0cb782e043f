//! One slot for each run: its lock, and the run as its last step left it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aldis_engine::AnyHandle;
use aldis_store::{RunId, Step};
use tokio::sync::OwnedMutexGuard;

/// How many runs are remembered: more than a busy server has channels.
const SLOTS_MAX: usize = 16_384;
/// The longest state that is remembered, so that all of them together stay bounded.
const STATE_MAX: usize = 16 << 10;

/// The slots of runs.
#[derive(Debug, Default)]
pub(super) struct Slots(Mutex<HashMap<RunId, Arc<tokio::sync::Mutex<Slot>>>>);

/// Whoever has it is the only one of this process to step the run.
pub(super) type SlotGuard = OwnedMutexGuard<Slot>;

/// The run as its last step left it, if it is known. Other processes step it too, so it may be old.
#[derive(Debug, Default)]
pub(super) struct Slot(Option<Arc<AnyHandle>>);

impl Slots {
    /// Waits until nobody else of this process steps the run.
    pub(super) async fn lock(&self, id: &RunId) -> SlotGuard {
        self.of(id).lock_owned().await
    }

    /// Returns the slot of a run. Those that nobody uses are given up when there are too many.
    fn of(&self, id: &RunId) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(id) {
            return Arc::clone(slot);
        }
        if slots.len() >= SLOTS_MAX {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(id.clone()).or_default())
    }
}

impl Slot {
    /// Takes what is remembered: it is forgotten until a step is durable.
    pub(super) fn take(&mut self) -> Option<AnyHandle> {
        // Whoever was answered last has usually dropped it.
        self.0.take().map(Arc::unwrap_or_clone)
    }

    /// Remembers what a step led to, while the run can take further ones. Not the tasks of a
    /// delivery: they are as many as its plan has.
    pub(super) fn remember(&mut self, step: &Step, run: &Arc<AnyHandle>) {
        let is_small = step.record.state.len() <= STATE_MAX;
        let is_small = is_small && !matches!(**run, AnyHandle::Delivery(_));
        self.0 = (is_small && step.record.active).then(|| Arc::clone(run));
    }
}

#[cfg(test)]
mod tests {
    //! What is in use stays, what is not is bounded.

    use super::*;

    #[test]
    fn slots_are_few_and_those_in_use_stay() {
        let slots = Slots::default();
        let id = |number: usize| RunId::new(format!("r{number}")).unwrap();
        let used = slots.of(&id(0));
        for number in 1..3 * SLOTS_MAX {
            slots.of(&id(number));
        }
        assert!(slots.0.lock().unwrap().len() <= SLOTS_MAX);
        assert!(Arc::ptr_eq(&used, &slots.of(&id(0))));
    }
}
