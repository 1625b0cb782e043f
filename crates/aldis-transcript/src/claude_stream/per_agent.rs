//! What is kept for each agent of a stream. Mostly there is the main one alone, and it speaks often.

use std::collections::BTreeMap;

/// Something of each agent.
#[derive(Debug)]
pub(super) struct PerAgent<T> {
    main: Option<T>,
    others: BTreeMap<String, T>,
}

impl<T> Default for PerAgent<T> {
    fn default() -> Self {
        Self { main: None, others: BTreeMap::new() }
    }
}

impl<T> PerAgent<T> {
    /// Returns it of this agent, if it is there.
    pub(super) fn get_mut(&mut self, agent: &Option<String>) -> Option<&mut T> {
        match agent {
            None => self.main.as_mut(),
            Some(agent) => self.others.get_mut(agent),
        }
    }

    /// Puts a new one in the place of any that is there.
    pub(super) fn insert(&mut self, agent: Option<String>, new: T) {
        match agent {
            None => self.main = Some(new),
            Some(agent) => drop(self.others.insert(agent, new)),
        }
    }

    /// Takes it of this agent, if it is there.
    pub(super) fn remove(&mut self, agent: &Option<String>) -> Option<T> {
        match agent {
            None => self.main.take(),
            Some(agent) => self.others.remove(agent),
        }
    }

    /// Returns it of this agent, made if it is not there.
    pub(super) fn get_or_default(&mut self, agent: Option<String>) -> &mut T
    where
        T: Default,
    {
        match agent {
            None => self.main.get_or_insert_default(),
            Some(agent) => self.others.entry(agent).or_default(),
        }
    }

    /// Returns whether it is there of any sub-agent.
    pub(super) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns of which agents it is there.
    pub(super) fn agents(&self) -> impl Iterator<Item = Option<String>> {
        let main = self.main.iter().map(|_| None);
        main.chain(self.others.keys().cloned().map(Some))
    }
}
