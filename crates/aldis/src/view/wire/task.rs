//! Tasks of deliveries as programs list them.

use aldis_machine::delivery::{State, Task, Wait};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VERSION;

/// A task of a delivery: a line of `tasks --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `task`.
    #[schemars(extend("const" = "task"))]
    pub kind: String,
    /// The delivery.
    pub run: String,
    /// Its name in signals.
    pub task: String,
    /// What people call it.
    pub title: String,
    /// Where it is: `pending`, `expanding`, `implementing`, `awaiting-review`, `awaiting-audit`,
    /// `awaiting-guidance`, `blocked`, `complete` or `failed`.
    pub status: String,
    /// How often its work was handed over.
    pub round: u32,
    /// The tasks that must be complete first.
    pub needs: Vec<String>,
    /// The role of the agent at work on it.
    pub role: Option<String>,
    /// Since when.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// The worker that runs this agent, where workers do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Whether the agent waits for a worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// How far the work is, as its agent reported last.
    pub progress: Option<String>,
    /// The question that it waits for.
    pub question: Option<String>,
    /// Why the last agent achieved nothing (a crash, a timeout, stagnation), until one reports
    /// something that counts.
    pub setback: Option<String>,
}

impl TaskLine {
    /// Returns the form of a task.
    pub(crate) fn new(run: &RunId, state: &State, task: &Task) -> Self {
        let agent = task.agent().and_then(|agent| state.agent(agent));
        let question = match &task.wait {
            Wait::Human { question } if state.takes_answers() => Some(question.clone()),
            _ => None,
        };
        Self {
            v: VERSION,
            kind: "task".to_owned(),
            run: run.to_string(),
            task: task.spec.id.clone(),
            title: task.spec.title.clone(),
            status: task.status().as_str().to_owned(),
            round: task.round,
            needs: task.spec.needs.clone(),
            role: agent.map(|agent| agent.role.as_str().to_owned()),
            since: agent.map(|agent| agent.started_at),
            worker: agent
                .filter(|agent| !agent.queued)
                .and_then(|agent| agent.worker.as_ref())
                .map(|worker| worker.name.clone()),
            queued: agent.is_some_and(|agent| agent.queued),
            progress: task.progress.clone(),
            question,
            setback: task.last_failure.clone(),
        }
    }
}
