//! How machines are kept: what every step of every machine looks like in the store.

use aldis_machine::{Decision, phases, run};
use aldis_signal::time::Timestamp;
use aldis_store::{
    Driver, NewDecision, NewEffect, NewEvent, Revision, Run, RunId, RunRecord, Source, Step,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::engine::driver::DriverError;

/// The version of what is stored.
const VERSION: u32 = 2;

/// A state as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Stored<T> {
    v: u32,
    state: T,
}

/// What the store must know of a machine.
pub(crate) trait Machine: Clone + Serialize + DeserializeOwned {
    /// How the store names it.
    const NAME: &'static str;
    /// What happens.
    type Event: Clone + Serialize + DeserializeOwned;
    /// What must be done.
    type Effect: Serialize + DeserializeOwned;

    /// Takes an event.
    fn take(&mut self, now: Timestamp, event: &Self::Event) -> (Vec<Self::Effect>, Vec<Decision>);
    /// What it is about.
    fn title(&self) -> &str;
    /// Whether it goes on.
    fn is_active(&self) -> bool;
    /// The host's session it belongs to.
    fn session(&self) -> Option<&str> {
        None
    }
}

impl Machine for phases::State {
    const NAME: &'static str = "phases";
    type Event = phases::Event;
    type Effect = phases::Effect;

    fn take(
        &mut self,
        now: Timestamp,
        event: &phases::Event,
    ) -> (Vec<phases::Effect>, Vec<Decision>) {
        let outcome = self.on_event(now, event);
        (outcome.effects, outcome.decisions)
    }

    fn title(&self) -> &str {
        &self.task
    }

    fn is_active(&self) -> bool {
        self.active
    }

    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl Machine for run::State {
    const NAME: &'static str = "run";
    type Event = run::Event;
    type Effect = run::Effect;

    fn take(&mut self, now: Timestamp, event: &run::Event) -> (Vec<run::Effect>, Vec<Decision>) {
        let outcome = self.on_event(now, event);
        (outcome.effects, outcome.decisions)
    }

    fn title(&self) -> &str {
        &self.task
    }

    fn is_active(&self) -> bool {
        self.ending().is_none()
    }
}

/// Reads the state of a run.
///
/// # Errors
///
/// [`DriverError::Unreadable`] if another version wrote it, or if it is damaged.
pub(crate) fn state<T: DeserializeOwned>(run: &Run) -> Result<T, DriverError> {
    let unreadable = |detail: String| DriverError::Unreadable { run: run.id.clone(), detail };
    let stored: Stored<T> =
        serde_json::from_str(&run.record.state).map_err(|error| unreadable(error.to_string()))?;
    if !(1..=VERSION).contains(&stored.v) {
        return Err(unreadable(format!("version {}, this one knows {VERSION}", stored.v)));
    }
    Ok(stored.state)
}

/// Returns a state as it is stored.
pub(crate) fn encode(state: &impl Serialize) -> String {
    json(&Stored { v: VERSION, state })
}

/// Begins a step that keeps a state.
pub(crate) fn step<M: Machine>(
    run: RunId,
    expected: Revision,
    (project, driver): (&str, Driver),
    state: &M,
    now: Timestamp,
) -> Step {
    let record = RunRecord {
        project: project.to_owned(),
        session: state.session().map(str::to_owned),
        machine: M::NAME.to_owned(),
        driver,
        title: state.title().to_owned(),
        active: state.is_active(),
        state: encode(state),
    };
    Step::new(run, expected, record, now)
}

/// Returns an event as the journal keeps it: under the name it gives itself.
pub(crate) fn event(event: &impl Serialize, source: Option<&str>, at: Timestamp) -> NewEvent {
    let body = serde_json::to_value(event).unwrap_or_default();
    let kind = body.get("event").and_then(|kind| kind.as_str()).unwrap_or("event").to_owned();
    NewEvent { kind, body: body.to_string(), source: source.map(Source::new), at }
}

/// Returns a decision as the journal keeps it.
pub(crate) fn decision(decision: &impl Serialize, at: Timestamp) -> NewDecision {
    NewDecision { body: json(decision), at }
}

/// Returns an effect as the outbox keeps it: known by the step that wanted it.
pub(crate) fn effect(
    machine: &str,
    (run, revision, number): (&RunId, Revision, usize),
    effect: &impl Serialize,
    due: Timestamp,
) -> NewEffect {
    let key = format!("{run}/{revision}/{number}");
    let (lane, requires) = (String::new(), Vec::new());
    NewEffect { key, kind: machine.to_owned(), body: json(effect), due, lane, requires }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
