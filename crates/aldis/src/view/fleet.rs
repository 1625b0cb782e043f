//! Which worker runs which agent of a delivery, in words.

use std::collections::BTreeMap;

use aldis_machine::delivery::State;

/// How many workers are named in a line.
const WORKERS_SHOWN: usize = 3;

/// Which worker runs what, where workers run the agents.
pub(super) fn workers(state: &State) -> Option<String> {
    let listed = by_worker(state).into_iter();
    let listed = listed.map(|(name, agents)| format!("{name}: {}", agents.join(", ")));
    Some(listed.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// Where agents are at work, for a line.
pub(super) fn at_workers(state: &State) -> String {
    let names: Vec<&str> = by_worker(state).into_keys().collect();
    match &*names {
        [] => String::new(),
        names if names.len() <= WORKERS_SHOWN => format!(" on {}", names.join(", ")),
        names => format!(" on {} workers", names.len()),
    }
}

/// The agents that workers run, by worker.
fn by_worker(state: &State) -> BTreeMap<&str, Vec<String>> {
    let mut listed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (no, agent) in state.run().agents.iter().filter(|(_, agent)| !agent.queued) {
        let Some(worker) = &agent.worker else { continue };
        let about = state.subject_of(*no).map(|subject| format!(" of {subject}"));
        let what = format!("{}{}", agent.role.label(), about.unwrap_or_default());
        listed.entry(&worker.name).or_default().push(what);
    }
    listed
}
