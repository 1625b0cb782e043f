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

/// What came of a journal, in the forms in which it is stored today, without sentences.
#[derive(Default)]
pub(super) struct Replayed {
    /// All decisions, in order, with the time of their step.
    pub(super) decisions: Vec<(Timestamp, Value)>,
    /// All effects that a hook or a process performs, in order. What a server answers with is in its
    /// decisions.
    pub(super) effects: Vec<(Timestamp, Value)>,
    /// When a server is to wake the machine.
    pub(super) wake: Option<Timestamp>,
    /// The parts of the state that the machine knows.
    pub(super) parts: BTreeMap<String, Value>,
    /// The state, without its version.
    pub(super) state: Value,
    /// How often the work tree was to be inspected where 0.1.0 did not.
    pub(super) looks: usize,
}

/// What one event led to.
#[derive(Default)]
struct Taken {
    decisions: Vec<Value>,
    effects: Vec<Value>,
    replies: Vec<Value>,
    warnings: Vec<String>,
}

/// Sentences and prompts. They are reworded from release to release and decide nothing.
const SENTENCES: &[&str] =
    &["because", "output_preview", "prompt", "question", "reason", "remedy", "summary", "text"];
/// What effects of 0.1.0 did not say.
const ADDED: &[&str] = &["base", "timeout", "title"];

/// What the release itself stored, with the names of today.
pub(super) fn recorded(journal: &Journal) -> Replayed {
    match &*journal.header.machine {
        "phases" => upgraded::<phases::State, phases::Effect>(journal),
        "run" => upgraded::<run::State, run::Effect>(journal),
        "delivery" => upgraded::<delivery::DeliveryRun, delivery::Effect>(journal),
        "turns" => upgraded::<turns::State, turns::Effect>(journal),
        other => panic!("{}: there is no machine `{other}`", journal.file),
    }
}

/// Reads what is stored as the types of today and writes it again.
fn upgraded<S, E>(journal: &Journal) -> Replayed
where
    S: Serialize + DeserializeOwned,
    E: Serialize + DeserializeOwned,
{
    let read = |body: &Value| -> Value {
        // When a machine must be woken was an effect once.
        let known = (body["effect"] != "wake").then(|| again::<E>(journal, body));
        known.map_or(Value::Null, plain)
    };
    let mut recorded = Replayed::default();
    for decision in &journal.decisions {
        let mut body = decision.body.clone();
        if let Some(effects) = body.get_mut("effects").and_then(Value::as_array_mut) {
            *effects = effects.iter().map(read).filter(|effect| !effect.is_null()).collect();
        }
        recorded.decisions.push((decision.at, plain_decision(body)));
    }
    // A server only sends them on.
    let own = journal.header.driver != Driver::Server;
    for effect in journal.effects.iter().filter(|_| own) {
        let body = match journal.header.machine.as_str() {
            "phases" => effect.body.clone(),
            _ => read(&effect.body),
        };
        if !body.is_null() {
            recorded.effects.push((journal.decided_at(effect), body));
        }
    }
    // Processes and sessions are parts, too, and none of the machine's business.
    for part in journal.parts.iter().filter(|part| part.key.starts_with("task/")) {
        let task = again::<delivery::Task>(journal, &part.body);
        recorded.parts.insert(part.key.clone(), task);
    }
    recorded.state = plain_state(again::<S>(journal, &journal.state["state"]));
    let alarms: Vec<(&str, Timestamp)> =
        journal.timers.iter().map(|timer| (&*timer.key, timer.due)).collect();
    recorded.wake = match alarms[..] {
        [] => None,
        [("wake", due)] => Some(due),
        _ => panic!("{}: a run has one alarm at most: {alarms:?}", journal.file),
    };
    recorded
}

fn again<T: Serialize + DeserializeOwned>(journal: &Journal, body: &Value) -> Value {
    let read = T::deserialize(body);
    let read = read.unwrap_or_else(|error| panic!("{}: {body}: {error}", journal.file));
    value(&read)
}

/// An effect without its sentences.
fn plain(mut effect: Value) -> Value {
    let members = effect.as_object_mut().unwrap();
    members.retain(|name, _| !SENTENCES.contains(&&**name) && !ADDED.contains(&&**name));
    effect
}

/// A decision without its sentences. Its rule stays with its summary, which tells rules of 0.1.0 apart.
fn plain_decision(mut decision: Value) -> Value {
    let rule = json!({ "id": decision["rule"], "summary": decision["summary"] });
    for member in ["effects", "replies"] {
        if let Some(items) = decision.get_mut(member).and_then(Value::as_array_mut) {
            items.iter_mut().for_each(|item| *item = plain(item.take()));
        }
    }
    if let Some(warnings) = decision.get_mut("warnings") {
        *warnings = json!(warnings.as_array().unwrap().len());
    }
    decision["rule"] = rule;
    plain(decision)
}

/// A state without sentences and without what depends on them.
fn plain_state(mut state: Value) -> Value {
    if let Some(limit) = state.get_mut("block_limit") {
        limit["last_prompt"] = Value::Null;
    }
    if let Some(error) = state.get_mut("last_error").filter(|error| error.is_object()) {
        error["message"] = Value::Null;
    }
    state
}

/// What today's machine makes of a journal.
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
            self.effects.extend(taken.effects.into_iter().map(|it| (event.at, plain(it))));
        }
        let decisions = taken.decisions.into_iter();
        self.decisions.extend(decisions.map(|it| (event.at, plain_decision(it))));
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
    replayed.state = plain_state(value(&state));
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
    for (number, event) in rest.iter().enumerate() {
        let mut outcome = state.on_event(event.at, &read(journal, event));
        let next = rest.get(number + 1);
        if asks_anew(&outcome) && next.is_none_or(|next| next.kind != "looked") {
            // 0.1.0 did not inspect the work tree when an iteration had ended. Nothing had changed.
            replayed.looks += 1;
            outcome.effects.retain(|effect| *effect != run::Effect::Look);
            outcome.decisions.retain(|it| it.rule != run::Rule::IterationEnded.as_str());
            let looked = run::Event::Looked(state.tree.clone());
            let more = state.on_event(event.at, &looked);
            outcome.effects.extend(more.effects);
            outcome.decisions.extend(more.decisions);
        }
        let (decisions, effects) = (values(&outcome.decisions), values(&outcome.effects));
        replayed.add(journal, event, Taken { decisions, effects, ..Taken::default() });
    }
    replayed.state = value(&state);
    replayed
}

/// Whether the work tree is to be inspected before the next iteration.
fn asks_anew(outcome: &run::Outcome) -> bool {
    let rules = [run::Rule::IterationEnded, run::Rule::Contradiction].map(run::Rule::as_str);
    let decided = outcome.decision().is_some_and(|decision| rules.contains(&&*decision.rule));
    decided && outcome.effects.contains(&run::Effect::Look)
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
