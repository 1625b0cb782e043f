//! The fleet, as the dashboard shows it: workers with their slots and agents, what waits for one, and who
//! coordinates what.

use std::collections::BTreeMap;

use aldis_engine::{Engine, Snapshot, State};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::{RunFilter, RunSummary, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use super::dashboard::Dashboard;
use crate::app::fleet;
use crate::view::display;
use crate::view::wire::card::clean;
use crate::view::wire::worker::WorkerLine;

/// How many runs that go on are looked at.
const RUNS_MAX: usize = 1_000;
/// How many agents that wait, and how many leases are told.
const LISTED_MAX: usize = 200;
/// How much of a title is told.
const TITLE_MAX: usize = 200;

/// Workers, what waits for one, and who coordinates what.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Fleet {
    /// The workers, by machine and name.
    workers: Vec<WorkerLine>,
    /// Agents that wait for a worker; the one that waits longest comes first.
    queue: Vec<QueuedAgent>,
    /// How many wait, told or not.
    queued: usize,
    /// Who coordinates the runs that go on.
    leases: Vec<RunLease>,
    /// What people call the runs that go on.
    titles: BTreeMap<String, String>,
}

/// An agent that waits for a worker.
#[derive(Debug, Serialize, JsonSchema)]
struct QueuedAgent {
    /// The delivery.
    run: String,
    /// The agent's number in it.
    agent: u64,
    /// What it is for.
    role: String,
    /// The task it is to work on, if it is one.
    task: Option<String>,
    /// Since when it is wanted.
    #[schemars(with = "String")]
    since: Timestamp,
}

/// The right to coordinate a run.
#[derive(Debug, Serialize, JsonSchema)]
struct RunLease {
    /// The run.
    run: String,
    /// The process that has it, and its machine.
    holder: String,
    /// Until when, unless it is renewed.
    #[schemars(with = "String")]
    until: Timestamp,
    /// Whether its time is over.
    over: bool,
}

impl Dashboard {
    /// Puts together what there is to say about the fleet.
    pub(super) fn fleet(&self, engine: &Engine, now: Timestamp) -> Result<Fleet, StoreError> {
        let workers = fleet::workers(engine.store(), now)?.into_iter().map(harmless).collect();
        let mut fleet = Fleet { workers, ..Fleet::default() };
        fleet
            .workers
            .sort_by(|one, other| (&one.machine, &one.name).cmp(&(&other.machine, &other.name)));
        let filter = RunFilter { active: Some(true), limit: RUNS_MAX, ..RunFilter::default() };
        for row in engine.store().list(&filter)? {
            let title = display::excerpt(&redact(row.title.trim()), TITLE_MAX);
            fleet.titles.insert(row.id.to_string(), title);
            fleet.leases.extend(lease(&row, now));
            if let Some(snapshot) = self.active_run(engine, &row, now)? {
                fleet.queue.extend(queued(&snapshot));
            }
        }
        fleet.queue.sort_by_key(|agent| agent.since);
        fleet.queued = fleet.queue.len();
        fleet.queue.truncate(LISTED_MAX);
        fleet.leases.truncate(LISTED_MAX);
        Ok(fleet)
    }
}

/// Whoever may write to the store names workers and labels; their words are shown as words.
fn harmless(worker: WorkerLine) -> WorkerLine {
    let all = |words: Vec<String>| words.iter().map(|word| clean(word)).collect();
    let mut agents = worker.agents;
    for agent in &mut agents {
        agent.task = agent.task.as_deref().map(clean);
    }
    WorkerLine {
        name: clean(&worker.name),
        machine: clean(&worker.machine),
        labels: all(worker.labels),
        agents,
        ..worker
    }
}

fn lease(row: &RunSummary, now: Timestamp) -> Option<RunLease> {
    let lease = row.lease.as_ref()?;
    // What stands in brackets is for programs.
    let holder = lease.holder.split(" [").next().unwrap_or_default();
    let (holder, until) = (clean(holder), lease.until);
    Some(RunLease { run: row.id.to_string(), holder, until, over: until <= now })
}

fn queued(run: &Snapshot) -> Vec<QueuedAgent> {
    let State::Delivery(state) = &run.state else { return Vec::new() };
    let waiting = state.run().agents.iter().filter(|(_, agent)| agent.queued);
    let waiting = waiting.map(|(no, agent)| QueuedAgent {
        run: run.id().to_string(),
        agent: *no,
        role: agent.role.as_str().to_owned(),
        task: state.subject_of(*no).map(|subject| clean(&subject)),
        since: agent.started_at,
    });
    waiting.collect()
}
