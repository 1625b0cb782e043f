//! What the machine is told of agents while they work: that they live, that their work progresses,
//! what they cost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use aldis_machine::delivery::State;
use aldis_signal::time::Timestamp;

use super::{Asked, DeliveryConduct};
use crate::coordinate::conduct::Conduct as _;
use crate::coordinate::coordinator::Core;
use crate::coordinate::world::RepositoryRequest;
use crate::error::CommandError;

/// How often work trees are looked at.
pub(in crate::coordinate) const LOOK: Duration = Duration::from_secs(10);
/// How often the machine is told of costs. Each time is a step that is written.
pub(in crate::coordinate) const COUNT: Duration = Duration::from_secs(1);

/// What was seen of the work so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    looked_at: Option<Timestamp>,
    counted_at: Option<Timestamp>,
    /// What the work trees looked like. Agents in one directory share what changes there.
    trees: BTreeMap<PathBuf, Option<String>>,
}

/// Whether it is time again; then it counts as done now.
pub(in crate::coordinate) fn again(
    last: &mut Option<Timestamp>,
    every: Duration,
    now: Timestamp,
) -> bool {
    let due = last.is_none_or(|last| now.since(last) >= every);
    if due {
        *last = Some(now);
    }
    due
}

impl DeliveryConduct<'_> {
    /// Tells the machine of checkpoints, signs of life, work and costs.
    pub(super) fn report(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let now = core.now();
        let config = &core.state().run().config;
        let (every, watched) = (config.report_interval(), config.stagnation.enabled);
        if watched && again(&mut self.watch.looked_at, every.min(LOOK), now) {
            self.look(core);
        }
        let count = again(&mut self.watch.counted_at, COUNT, now);
        let mut events = Vec::new();
        for at_work in self.agents.values_mut().filter(|at_work| !at_work.given_up) {
            let token = core.state().expected_token(at_work.dispatch.agent);
            events.extend(at_work.news(now, (every, count), (&self.plan.rules, &token)));
        }
        events.into_iter().try_for_each(|event| self.advance(core, event))
    }

    /// Asks where files have changed, unless it was asked before and is not answered yet.
    fn look(&mut self, core: &mut Core<'_, State>) {
        let asked: BTreeSet<&PathBuf> = self
            .asked
            .values()
            .filter_map(|asked| match asked {
                Asked::Look(directory) => Some(directory),
                _ => None,
            })
            .collect();
        let worked_in: BTreeSet<&PathBuf> =
            self.agents.values().map(|at_work| &at_work.directory).collect();
        self.watch.trees.retain(|directory, _| worked_in.contains(directory));
        let directories: Vec<PathBuf> = worked_in.difference(&asked).copied().cloned().collect();
        for directory in directories {
            let request = RepositoryRequest::Look { directory: directory.clone(), markers: None };
            self.ask(core, Asked::Look(directory), request);
        }
    }

    /// Notes how a directory looks: whoever works there may have changed it.
    pub(super) fn looked(&mut self, directory: PathBuf, fingerprint: Option<String>) {
        let before = self.watch.trees.insert(directory.clone(), fingerprint.clone());
        if before.is_some_and(|before| before != fingerprint) {
            let there = self.agents.values_mut().filter(|at_work| at_work.directory == directory);
            there.for_each(|at_work| at_work.reported.worked = true);
        }
    }
}
