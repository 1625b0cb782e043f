//! The workers of a store, as every surface shows them.

use aldis_signal::time::Timestamp;
use aldis_store::{Store, StoreError, WorkerRecord};

use crate::coordinate::worker::announced::{AnnouncedWorker, WorkerState};
use crate::view::wire::worker::{WorkerAgent, WorkerLine};

/// Returns the workers of a store, by name: those that are there, and for a day those that are gone
/// without having left.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn workers(store: &dyn Store, now: Timestamp) -> Result<Vec<WorkerLine>, StoreError> {
    Ok(store.workers()?.iter().filter_map(|worker| line(worker, now)).collect())
}

/// A worker of a later version may say something that this one does not understand.
fn line(record: &WorkerRecord, now: Timestamp) -> Option<WorkerLine> {
    let said: AnnouncedWorker = serde_json::from_str(&record.body).ok()?;
    let state = match said.state {
        _ if record.until <= now => "gone",
        WorkerState::Ready => "ready",
        WorkerState::Draining => "draining",
    };
    let agents = said.agents.into_iter().map(|agent| WorkerAgent {
        run: agent.run,
        agent: agent.agent,
        role: agent.role.as_str().to_owned(),
        task: agent.task,
        since: agent.since.to_string(),
    });
    Some(WorkerLine {
        v: 1,
        name: record.name.clone(),
        machine: said.machine,
        state: state.to_owned(),
        slots: said.slots,
        labels: said.labels,
        roles: said.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        started: said.started.to_string(),
        seen: record.seen.to_string(),
        agents: agents.collect(),
    })
}
