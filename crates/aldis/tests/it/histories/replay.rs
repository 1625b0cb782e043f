//! Takes every event of a recorded journal again, with today's machines.
//!
//! Only this file knows the types of the machines. Whoever changes those changes it, and neither the
//! journals nor the comparison.

use std::collections::BTreeMap;

use aldis::engine::driver::{self, Origin};
use aldis_machine::{Begun, Machine, delivery, phases, run, turns};
use aldis_signal::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::journal::{Driver, Event, Journal};

/// What today's machine makes of a journal, in the forms in which it is stored.
#[derive(Default)]
pub(super) struct Replayed {
    /// All decisions, in order.
    pub(super) decisions: Vec<Value>,
    /// All effects that a hook or a process performs, in order. What a server answers with is in its
    /// decisions.
    pub(super) effects: Vec<Value>,
    /// When a server is to wake the machine.
    pub(super) wake: Option<Timestamp>,
    /// The parts of the state that the machine knows.
    pub(super) parts: BTreeMap<String, Value>,
    /// The state, without its version.
    pub(super) state: Value,
}

/// What one event led to.
#[derive(Default)]
struct Taken {
    decisions: Vec<Value>,
    effects: Vec<Value>,
    replies: Vec<Value>,
    warnings: Vec<String>,
}

pub(super) fn replay(journal: &Journal) -> Replayed {
    match &*journal.header.machine {
        "phases" => phases(journal),
        "run" => run(journal),
        "delivery" => delivery(journal),
        "turns" => turns(journal),
        other => panic!("{}: there is no machine `{other}`", journal.file),
    }
}

impl Replayed {
    /// Adds what an event led to, as whoever stepped the run stores it.
    fn add(&mut self, journal: &Journal, event: &Event, mut taken: Taken) {
        if journal.header.driver == Driver::Server {
            if let Some(first) = taken.decisions.first_mut() {
                first["effects"] = Value::Array(taken.effects);
                first["source"] = json!(event.source);
                // Deliveries answer no messages.
                if journal.header.machine != "delivery" {
                    first["replies"] = Value::Array(taken.replies);
                    first["warnings"] = json!(taken.warnings);
                }
            }
        } else {
            self.effects.extend(taken.effects);
        }
        self.decisions.extend(taken.decisions);
    }
}

fn phases(journal: &Journal) -> Replayed {
    let mut replayed = Replayed::default();
    let (first, rest) = journal.events.split_first().unwrap();
    let mut state = read::<Origin>(journal, first).state(first.at);
    // A run that was adopted takes its first event in the same step.
    if first.kind != "adopt" || rest.first().is_none_or(|next| next.at != first.at) {
        let served = journal.header.driver == Driver::Server;
        let effects = if served { vec![] } else { vec![phases::Effect::WriteView] };
        let outcome = phases::Outcome { effects, decisions: vec![driver::begun(&state)] };
        replayed.add(journal, first, of_phases(journal, outcome));
    }
    for event in rest {
        let outcome = state.on_event(event.at, &read(journal, event));
        replayed.add(journal, event, of_phases(journal, outcome));
    }
    replayed.state = value(&state);
    replayed
}

/// A hook stores only that the state file is to be written; the rest it answers at once.
fn of_phases(journal: &Journal, outcome: phases::Outcome) -> Taken {
    let phases::Outcome { effects, decisions } = outcome;
    let effects = match journal.header.driver {
        Driver::Server => values(&effects),
        Driver::Hook | Driver::Process => {
            let views = effects.iter().filter(|effect| **effect == phases::Effect::WriteView);
            views.map(|_| json!({ "project": journal.header.project })).collect()
        }
    };
    Taken { decisions: values(&decisions), effects, ..Taken::default() }
}

fn run(journal: &Journal) -> Replayed {
    let mut replayed = Replayed::default();
    let (first, rest) = journal.events.split_first().unwrap();
    let mut state = run::State::start(first.at, started(journal, first));
    for event in rest {
        let run::Outcome { effects, decisions } = state.on_event(event.at, &read(journal, event));
        let (decisions, effects) = (values(&decisions), values(&effects));
        replayed.add(journal, event, Taken { decisions, effects, ..Taken::default() });
    }
    replayed.state = value(&state);
    replayed
}

fn delivery(journal: &Journal) -> Replayed {
    let mut replayed = Replayed::default();
    let (first, rest) = journal.events.split_first().unwrap();
    let mut state = delivery::State::start(first.at, started(journal, first));
    for event in rest {
        let outcome = state.on_event(event.at, &read(journal, event));
        let (decisions, effects) = (values(&outcome.decisions), values(&outcome.effects));
        let served = journal.header.driver == Driver::Server;
        replayed.wake = state.next_wake().filter(|wake| served && *wake > event.at);
        replayed.add(journal, event, Taken { decisions, effects, ..Taken::default() });
    }
    let tasks = state.tasks().iter().enumerate();
    replayed.parts = tasks.map(|(no, task)| (format!("task/{no:08}"), value(task))).collect();
    replayed.state = value(state.run());
    replayed
}

fn turns(journal: &Journal) -> Replayed {
    let mut replayed = Replayed::default();
    let (first, rest) = journal.events.split_first().unwrap();
    let (mut state, outcome) = match &*first.kind {
        "adopt" => adopted(journal, first),
        _ => turns::State::start(first.at, started(journal, first)).unwrap(),
    };
    replayed.add(journal, first, of_turns(outcome));
    for event in rest {
        let outcome = state.on_event(event.at, &read(journal, event));
        replayed.add(journal, event, of_turns(outcome));
    }
    replayed.wake = state.next_wake();
    replayed.state = value(&state);
    replayed
}

/// A channel that was taken over from a state file.
fn adopted(journal: &Journal, first: &Event) -> (turns::State, turns::Outcome) {
    let state: turns::State = form(journal, first, &first.body["state"]);
    let Begun { state, outcome } = <turns::State as Machine>::adopt(first.at, state).unwrap();
    (state, outcome)
}

fn of_turns(outcome: turns::Outcome) -> Taken {
    let asked = |effect: &&turns::Effect| {
        !matches!(effect, turns::Effect::Reply(_) | turns::Effect::Warning { .. })
    };
    Taken {
        effects: outcome.effects.iter().filter(asked).map(value).collect(),
        replies: values(&outcome.replies()),
        warnings: outcome.warnings().into_iter().map(str::to_owned).collect(),
        decisions: values(&outcome.decisions),
    }
}

/// How a run began.
fn started<T: DeserializeOwned>(journal: &Journal, first: &Event) -> T {
    assert_eq!(first.kind, "start", "{}", journal.file);
    form(journal, first, &first.body["start"])
}

fn read<T: DeserializeOwned>(journal: &Journal, event: &Event) -> T {
    form(journal, event, &event.body)
}

fn form<T: DeserializeOwned>(journal: &Journal, event: &Event, body: &Value) -> T {
    let file = &journal.file;
    T::deserialize(body)
        .unwrap_or_else(|error| panic!("{file}: {} at {}: {error}", event.kind, event.at))
}

fn values<T: Serialize>(items: &[T]) -> Vec<Value> {
    items.iter().map(value).collect()
}

fn value(item: &impl Serialize) -> Value {
    serde_json::to_value(item).unwrap()
}
