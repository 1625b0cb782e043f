//! Where effects go once their step is durable.

use std::fmt;

use aldis_machine::Decision;
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, RunId};
use serde_json::Value;

/// The kind of effects that go to a sink of a server.
pub const SINK: &str = "sink";
/// The kind of effects that go to a sink of the run's own.
pub const NOTICE: &str = "notice";

/// The kind of effects that start an agent.
pub const DISPATCH: &str = "dispatch";
/// What the label begins with that a worker must have to run agents of a role.
pub const ROLE_LABEL: &str = "role:";
/// What the label begins with that a worker has for each of its environment variables.
pub const ENVIRONMENT_LABEL: &str = "env:";

/// The kind of effects that write the receipt of something that is done.
pub const RECEIPT: &str = "receipt";

/// An effect on its way to whoever performs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundEffect {
    /// Who can perform it: `effect` and `dispatch` for the run's coordinator or a worker, [`SINK`]
    /// and [`NOTICE`] for whoever delivers to sinks, [`RECEIPT`] for whoever writes receipts.
    pub kind: &'static str,
    /// What it must not overtake: effects of one lane are performed in order. Empty for no order.
    pub lane: String,
    /// The labels that a worker must have.
    pub requires: Vec<String>,
    /// What is to be done, as JSON.
    pub body: Value,
}

/// A run whose step has effects, as the step leaves it.
#[derive(Clone, Copy, Debug)]
pub struct RoutedRun<'r> {
    /// Its name.
    pub id: &'r RunId,
    /// Who drives it.
    pub driver: Driver,
    /// Its machine.
    pub machine: &'static str,
    /// The project it works on; empty where there is none.
    pub project: &'r str,
    /// What people call it.
    pub title: &'r str,
    /// Whether it can still step.
    pub active: bool,
    /// What the step decided last.
    pub decision: Option<&'r Decision>,
    /// When the step is taken.
    pub at: Timestamp,
    /// The note of its driver's that says who is told of it, as JSON; see [`NOTIFY`].
    pub notify: Option<&'r str>,
}

/// The key of the driver's note that says who is told of a run.
pub const NOTIFY: &str = "notify";

/// Says where the effects of a run go. Those that go nowhere are only told to whoever asked.
pub trait Route: Send + Sync + fmt::Debug {
    /// Routes one effect of a run.
    fn route(&self, run: &RoutedRun<'_>, effect: &Value) -> Vec<OutboundEffect>;

    /// Says what follows from the decisions of a step, whatever effects it has.
    fn follow(&self, _run: &RoutedRun<'_>, _decisions: &[Decision]) -> Vec<OutboundEffect> {
        Vec::new()
    }
}

/// Effects go to whoever drives the run: a process or a worker finds them in the outbox, a hook and
/// a server perform what they are told at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Route for Direct {
    fn route(&self, run: &RoutedRun<'_>, effect: &Value) -> Vec<OutboundEffect> {
        match run.driver {
            Driver::Hook | Driver::Server => Vec::new(),
            Driver::Process | Driver::Worker => {
                let kind = if is_dispatch(effect) { DISPATCH } else { "effect" };
                let claimed = kind == DISPATCH && run.driver == Driver::Worker;
                let requires = if claimed { needs(effect) } else { Vec::new() };
                let body = effect.clone();
                vec![OutboundEffect { kind, lane: String::new(), requires, body }]
            }
        }
    }
}

/// The labels that a worker must have to run an agent: its role, and what its run asks for.
fn needs(effect: &Value) -> Vec<String> {
    let listed = |member: &str, prefix: &'static str| {
        let names = effect.pointer(member).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(move |name| format!("{prefix}{name}"))
    };
    let role = effect.get("role").and_then(Value::as_str);
    listed("/launch/labels", "")
        .chain(listed("/launch/environment", ENVIRONMENT_LABEL))
        .chain(role.map(|role| format!("{ROLE_LABEL}{role}")))
        .collect()
}

/// Whether an effect starts an agent.
pub(crate) fn is_dispatch(effect: &Value) -> bool {
    matches!(effect.get("effect").and_then(Value::as_str), Some("dispatch" | "start"))
}
