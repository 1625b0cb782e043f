//! What `aldis step run` prints.

use aldis_machine::run::{Effect, State};
use aldis_machine::{Decision, Machine as _};
use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VERSION;

/// A line of `step run`: what one event led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStepForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// The time of the event.
    pub at: String,
    /// What must now be done: `start` with a prompt, `end`, `suspend`, `continue`, `check`, `look`,
    /// `ask`, `keep_work`, `notice`, `finish`.
    pub effects: Vec<Value>,
    /// Why; `null` when nothing changed that is worth keeping.
    pub decision: Option<Value>,
    /// When to send `tick`, if nothing else happens before.
    #[serde(default)]
    pub wake: Option<String>,
    /// The run after it.
    pub state: RunStepState,
}

/// The part of a supervised run that a driver needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStepState {
    /// Whether it goes on.
    pub active: bool,
    /// Where it is: `working`, `looking`, `checking`, `asking`, `paused`, `limited`, `backoff`,
    /// `ended`, ...
    pub status: String,
    /// The current iteration, from 1.
    pub iteration: u32,
    /// How it ended: a stable code.
    pub exit_reason: Option<String>,
    /// The percentage the agent says.
    pub progress: Option<u8>,
    /// How worried one should be: `none`, `warn`, `pause` or `abort`.
    pub stagnation: String,
    /// What it has cost in tokens.
    pub tokens: u64,
    /// What it has cost, in millionths of a dollar.
    pub micro_dollars: u64,
}

impl RunStepForm {
    pub(crate) fn new(
        at: Timestamp,
        effects: &[Effect],
        decision: Option<&Decision>,
        state: &State,
    ) -> Self {
        let value = |effect: &Effect| serde_json::to_value(effect).unwrap_or_default();
        let cost = state.cost();
        Self {
            v: VERSION,
            at: at.to_string(),
            effects: effects.iter().map(value).collect(),
            decision: decision.map(|decision| serde_json::to_value(decision).unwrap_or_default()),
            wake: state.next_wake().map(|wake| wake.to_string()),
            state: RunStepState {
                active: state.ending().is_none(),
                status: state.status().name().to_owned(),
                iteration: state.iteration(),
                exit_reason: state.ending().map(|ending| ending.as_str().to_owned()),
                progress: state.progress(),
                stagnation: state.monitor().level().as_str().to_owned(),
                tokens: cost.tokens,
                micro_dollars: cost.micro_dollars,
            },
        }
    }
}
