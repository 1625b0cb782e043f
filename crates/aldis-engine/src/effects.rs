//! Where effects go once their step is durable.

use std::fmt;

use aldis_store::{Driver, RunId};
use serde_json::Value;

/// An effect on its way to whoever performs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundEffect {
    /// Who can perform it: `effect` and `dispatch` for the run's coordinator or a worker, `sink` for
    /// a server.
    pub kind: &'static str,
    /// What it must not overtake: effects of one lane are performed in order. Empty for no order.
    pub lane: String,
    /// The labels that a worker must have.
    pub requires: Vec<String>,
    /// What is to be done, as JSON.
    pub body: Value,
}

/// Says where the effects of a run go. Those that go nowhere are only told to whoever asked.
pub trait Route: Send + Sync + fmt::Debug {
    /// Routes one effect of a run that `driver` drives.
    fn route(&self, run: &RunId, driver: Driver, effect: &Value) -> Vec<OutboundEffect>;
}

/// Effects go to whoever drives the run: a process or a worker finds them in the outbox, a hook and
/// a server perform what they are told at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Route for Direct {
    fn route(&self, _run: &RunId, driver: Driver, effect: &Value) -> Vec<OutboundEffect> {
        match driver {
            Driver::Hook | Driver::Server => Vec::new(),
            Driver::Process | Driver::Worker => {
                let kind = if is_dispatch(effect) { "dispatch" } else { "effect" };
                let body = effect.clone();
                vec![OutboundEffect { kind, lane: String::new(), requires: Vec::new(), body }]
            }
        }
    }
}

/// Whether an effect starts an agent.
pub(crate) fn is_dispatch(effect: &Value) -> bool {
    matches!(effect.get("effect").and_then(Value::as_str), Some("dispatch" | "start"))
}
