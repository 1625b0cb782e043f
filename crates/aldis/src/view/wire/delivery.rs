//! Deliveries and plans as programs read them.

use std::collections::{BTreeMap, BTreeSet};

use aldis_machine::delivery::{
    Effect, Outcome, Plan, PlanProblem as Problem, Role, State, Status, Task,
};
use aldis_machine::{Decision, Machine as _};
use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VERSION;
use super::effects::DeliveryEffect;

/// A line of `step delivery`: what one event led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryStepForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// The time of the event.
    pub at: String,
    /// What must now be done.
    #[schemars(with = "Vec<DeliveryEffect>")]
    pub effects: Vec<Effect>,
    /// What was decided and why, with the task it is about.
    #[schemars(with = "Vec<Value>")]
    pub decisions: Vec<Decision>,
    /// When to send `tick`, if nothing else happens before.
    #[serde(default)]
    pub wake: Option<String>,
    /// The tasks that changed.
    pub tasks: Vec<TaskForm>,
    /// The delivery after it.
    pub state: DeliveryState,
}

/// A task of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskForm {
    /// Its name.
    pub id: String,
    /// Where it is: `pending`, `expanding`, `implementing`, `awaiting-review`, `awaiting-audit`,
    /// `awaiting-guidance`, `blocked`, `complete` or `failed`.
    pub status: String,
    /// Whose turn it is.
    pub role: String,
    /// The agent at work on it.
    pub agent: Option<u64>,
    /// How often a developer handed it over.
    pub round: u32,
    /// What was counted about it and is not 0: `review_failures`, `audit_failures`, `unknown`, ...
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
}

/// The part of a delivery that a driver needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryState {
    /// Whether it goes on.
    pub active: bool,
    /// How it ended.
    pub ending: Option<String>,
    /// How many tasks there are in each status.
    pub counts: BTreeMap<String, usize>,
    /// The agents at work.
    pub agents: Vec<u64>,
    /// The questions that wait for an answer.
    pub questions: Vec<String>,
    /// Whether what all tasks need is being repaired.
    pub remediation: bool,
    /// Attempts at that, the current one included; 0 while nothing is repaired.
    #[serde(default)]
    pub remediation_attempts: u32,
    /// The tasks that a critic must look at, or looks at.
    #[serde(default)]
    pub pending_critique: Vec<String>,
    /// The tasks that an auditor must look at, or looks at.
    #[serde(default)]
    pub pending_audit: Vec<String>,
}

impl DeliveryStepForm {
    /// `changed` are the tasks to show, by their place in the plan.
    pub(crate) fn new(
        at: Timestamp,
        outcome: &Outcome,
        changed: &BTreeSet<usize>,
        state: &State,
    ) -> Self {
        let changed = changed.iter().filter_map(|no| state.tasks().get(*no));
        Self {
            v: VERSION,
            at: at.to_string(),
            effects: outcome.effects.clone(),
            decisions: outcome.decisions.clone(),
            wake: state.next_wake().map(|wake| wake.to_string()),
            tasks: changed.map(TaskForm::new).collect(),
            state: DeliveryState {
                active: state.ending().is_none(),
                ending: state.ending().map(|ending| ending.as_str().to_owned()),
                counts: state
                    .tally()
                    .into_iter()
                    .map(|(status, count)| (status.as_str().to_owned(), count))
                    .collect(),
                agents: state.run().agents.keys().copied().collect(),
                questions: state.run().questions.keys().cloned().collect(),
                remediation: state.run().remediation.is_some(),
                remediation_attempts: state.run().remediation.as_ref().map_or(0, |it| it.attempts),
                pending_critique: with(state, Role::Critic),
                pending_audit: with(state, Role::Auditor),
            },
        }
    }
}

impl TaskForm {
    pub(crate) fn new(task: &Task) -> Self {
        Self {
            id: task.spec.id.clone(),
            status: task.status().as_str().to_owned(),
            role: task.role.as_str().to_owned(),
            agent: task.agent(),
            round: task.round,
            counters: task.counters.named(),
        }
    }
}

/// The tasks whose work is with a role.
fn with(state: &State, role: Role) -> Vec<String> {
    let over = |task: &Task| matches!(task.status(), Status::Complete | Status::Failed);
    let tasks = state.tasks().iter().filter(|task| task.role == role && !over(task));
    tasks.map(|task| task.spec.id.clone()).collect()
}

/// A line of `plan check --json`: what a plan file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `plan`.
    #[schemars(extend("const" = "plan"))]
    pub kind: String,
    /// The file.
    pub file: String,
    /// Whether it can be used.
    pub ok: bool,
    /// What people call the plan; `null` if it cannot be used.
    pub title: Option<String>,
    /// Its tasks, in order; `null` if it cannot be used.
    pub tasks: Option<Vec<String>>,
    /// Those that can begin at once.
    pub ready: Vec<String>,
    /// What its author should know.
    pub problems: Vec<ProblemForm>,
}

/// Something about a plan that its author should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemForm {
    /// The line, from 1; 0 for the plan as a whole.
    pub line: usize,
    /// Whether the plan cannot be used like this.
    pub fatal: bool,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

impl PlanForm {
    pub(crate) fn new(file: &str, plan: Option<&Plan>, problems: &[Problem]) -> Self {
        let problem = |problem: &Problem| ProblemForm {
            line: problem.line,
            fatal: problem.fatal,
            what: problem.what.clone(),
            help: problem.help.clone(),
        };
        Self {
            v: VERSION,
            kind: "plan".to_owned(),
            file: file.to_owned(),
            ok: plan.is_some(),
            title: plan.map(|plan| plan.title.clone()),
            tasks: plan.map(|plan| plan.tasks.iter().map(|task| task.id.clone()).collect()),
            ready: plan.map(ready).unwrap_or_default(),
            problems: problems.iter().map(problem).collect(),
        }
    }
}

/// The tasks that can begin at once.
pub(crate) fn ready(plan: &Plan) -> Vec<String> {
    let done: BTreeSet<&str> =
        plan.tasks.iter().filter(|task| task.done).map(|task| &*task.id).collect();
    let met = |need: &String| done.contains(need.as_str());
    let ready = plan.tasks.iter().filter(|task| !task.done && task.needs.iter().all(met));
    ready.map(|task| task.id.clone()).collect()
}
