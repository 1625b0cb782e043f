//! What the machine is told of agents while they work: that they live, that their work moves, what
//! they cost.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use aldis_machine::delivery::Event;
use aldis_machine::run::Usage;

use super::Delivery;
use crate::agents::git::Git;
use crate::error::CommandError;
use crate::settings::clock;

/// How often work trees are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How often the machine is told of costs. Each time is a step that is kept.
const COUNT: Duration = Duration::from_secs(1);

/// What was seen of the work so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    looked: Duration,
    counted: Duration,
    /// What the work trees looked like. Agents in one directory share what moves there.
    trees: BTreeMap<PathBuf, Option<String>>,
}

impl Delivery<'_> {
    /// Tells the machine of checkpoints, signs of life, work and costs.
    pub(super) fn tell_signs(&mut self) -> Result<(), CommandError> {
        let boot = clock::since_boot();
        let config = &self.book.state.run().config;
        let (every, watched) = (config.report_interval(), config.stagnation.enabled);
        if watched && boot.saturating_sub(self.watch.looked) >= every.min(LOOK) {
            self.watch.looked = boot;
            self.look();
        }
        let count = boot.saturating_sub(self.watch.counted) >= COUNT;
        if count {
            self.watch.counted = boot;
        }
        let mut events = Vec::new();
        for (agent, worker) in &mut self.workers {
            let (agent, token) = (*agent, self.book.state.expected_token(*agent));
            if let Some(said) = worker.heard.take_checkpoint(&self.plan.rules, &token) {
                events.push(Event::Reported { agent, reply: said });
            }
            if count {
                let usage = worker.take_spent();
                events.extend((usage != Usage::default()).then_some(Event::Spent { agent, usage }));
            }
            let heard = &mut worker.heard;
            if std::mem::take(&mut heard.waiting) {
                events.push(Event::Waiting { agent });
            }
            let stirred = heard.stirred || heard.worked;
            if stirred && boot.saturating_sub(worker.told) >= every {
                worker.told = boot;
                heard.stirred = false;
                let worked = std::mem::take(&mut heard.worked);
                events.push(if worked { Event::Worked { agent } } else { Event::Active { agent } });
            }
        }
        events.iter().try_for_each(|event| self.advance(event))
    }

    /// Looks where files have changed: whoever works there may have changed them.
    fn look(&mut self) {
        let mut trees = BTreeMap::new();
        for worker in self.workers.values() {
            let looked = || Git::around(&worker.directory)?.look().ok()?.fingerprint;
            trees.entry(worker.directory.clone()).or_insert_with(looked);
        }
        for worker in self.workers.values_mut() {
            let before = self.watch.trees.get(&worker.directory);
            let moved = before.is_some_and(|before| Some(before) != trees.get(&worker.directory));
            worker.heard.worked |= moved;
        }
        self.watch.trees = trees;
    }
}
