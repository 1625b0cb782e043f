//! What `aldis step phases` and `aldis step run` print.

use aldis_machine::{Machine, Outcome, phases, run};
use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VERSION;
use super::effects::EffectForm;

/// A line that `step phases` and `step run` print: what one event led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepForm<S> {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// The time of the event.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// What must now be done.
    #[schemars(with = "Vec<EffectForm>")]
    pub effects: Vec<Value>,
    /// Why; `null` when nothing changed that is worth keeping.
    pub decision: Option<Value>,
    /// When to send `tick`, if nothing else happens before.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub wake: Option<Timestamp>,
    /// The run after it.
    pub state: S,
}

/// The part of a run through phases that a driver needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhasesStepState {
    /// Whether it goes on.
    pub active: bool,
    /// The current phase, `complete` or `failed`.
    pub phase: String,
    /// Stops refused in this phase.
    pub iteration: u32,
    /// Why it ended.
    pub exit_reason: Option<String>,
    /// The session it belongs to.
    pub session: Option<String>,
    /// The run token that signals must carry.
    pub token: Option<String>,
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
    /// The percentage that the agent reported.
    pub progress: Option<u8>,
    /// How long nothing has moved: `none`, `warn`, `pause` or `abort`.
    pub stagnation: String,
    /// What it has cost in tokens.
    pub tokens: u64,
    /// What it has cost, in millionths of a dollar.
    pub micro_dollars: u64,
}

impl<S> StepForm<S> {
    /// Returns what an event led to, and what is shown of the state after it.
    ///
    /// # Errors
    ///
    /// Fails if an effect cannot be written as JSON.
    pub(crate) fn new<M: Machine<Effect: Serialize>>(
        at: Timestamp,
        outcome: &Outcome<M::Effect>,
        machine: &M,
        state: impl FnOnce(&M) -> S,
    ) -> serde_json::Result<Self> {
        Ok(Self {
            v: VERSION,
            at,
            effects: outcome.effects.iter().map(serde_json::to_value).collect::<Result<_, _>>()?,
            decision: outcome.decision().map(serde_json::to_value).transpose()?,
            wake: machine.next_wake(),
            state: state(machine),
        })
    }
}

impl PhasesStepState {
    pub(crate) fn new(state: &phases::State) -> Self {
        Self {
            active: state.is_live(),
            phase: state.phase().to_owned(),
            iteration: state.iteration(),
            exit_reason: state.exit_reason().map(|reason| reason.as_str().to_owned()),
            session: state.session().map(str::to_owned),
            token: state.token().map(str::to_owned),
        }
    }
}

impl RunStepState {
    pub(crate) fn new(state: &run::State) -> Self {
        let cost = state.cost();
        Self {
            active: state.ending().is_none(),
            status: state.status().name().to_owned(),
            iteration: state.iteration(),
            exit_reason: state.ending().map(|ending| ending.as_str().to_owned()),
            progress: state.progress(),
            stagnation: state.monitor().level().as_str().to_owned(),
            tokens: cost.tokens,
            micro_dollars: cost.micro_dollars,
        }
    }
}
