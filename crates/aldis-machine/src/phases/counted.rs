//! Which signals of sub-agents were counted, so that each counts once however often it is read.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

/// How many are remembered. The oldest are forgotten first: no host repeats what is that old.
const COUNTED_MAX: usize = 1_024;

/// The signals of sub-agents that were counted, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct CountedSignals {
    by_age: VecDeque<String>,
    known: BTreeSet<String>,
}

impl CountedSignals {
    /// Returns whether a signal was counted.
    pub fn contains(&self, key: &str) -> bool {
        self.known.contains(key)
    }

    pub(super) fn insert(&mut self, key: String) {
        if self.known.insert(key.clone()) {
            self.by_age.push_back(key);
        }
        if self.by_age.len() > COUNTED_MAX
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl From<Vec<String>> for CountedSignals {
    fn from(keys: Vec<String>) -> Self {
        let mut counted = Self::default();
        keys.into_iter().for_each(|key| counted.insert(key));
        counted
    }
}

impl From<CountedSignals> for Vec<String> {
    fn from(counted: CountedSignals) -> Self {
        counted.by_age.into()
    }
}

#[cfg(test)]
mod tests {
    //! The newest are kept, once each, through the stored form.

    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let mut counted = CountedSignals::default();
        for number in 0..COUNTED_MAX + 10 {
            counted.insert(format!("a{number}/QA_COMPLETE"));
            counted.insert("a0/QA_COMPLETE".to_owned());
        }
        assert_eq!((counted.by_age.len(), counted.known.len()), (COUNTED_MAX, COUNTED_MAX));
        assert!(!counted.contains("a5/QA_COMPLETE") && counted.contains("a1033/QA_COMPLETE"));
        let stored = serde_json::to_string(&counted).unwrap();
        assert_eq!(serde_json::from_str::<CountedSignals>(&stored).unwrap(), counted);
    }
}
