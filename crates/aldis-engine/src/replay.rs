//! Takes a journal through today's machine and compares with what was stored.

use aldis_machine::{Begun, Decision, Machine};
use aldis_store::{DecisionFilter, Event, Loaded, RunId};
use serde_json::Value;

use crate::any::with_machine;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::record::{self, Began};
use crate::upcast;

/// What today's machine makes of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// How many events were taken.
    pub events: usize,
    /// What was decided, in order.
    pub decisions: Vec<Decision>,
    /// Where that is not what was stored.
    pub differences: Vec<Difference>,
}

/// Where today's machine does not do what was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Another decision was made.
    Decision {
        /// Which, from 1.
        number: usize,
        /// The member that differs: `rule`, `task`, `evidence` or `counters`. Sentences may change.
        member: &'static str,
        /// What was stored.
        was: String,
        /// What is decided today.
        is: String,
    },
    /// More or fewer decisions are made.
    Count {
        /// How many were stored.
        was: usize,
        /// How many are made today.
        is: usize,
    },
    /// The state differs in these members.
    State {
        /// Which, with the keys of parts before their members.
        members: Vec<String>,
    },
}

impl Engine {
    /// Takes every event of a run again, at the time it happened, and compares.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSuchRun`], [`EngineError::Unreadable`], and what the store says.
    pub fn replay(&self, id: &RunId) -> Result<Replay, EngineError> {
        let loaded = self.store().load(id)?.ok_or_else(|| EngineError::NoSuchRun(id.clone()))?;
        let machine = loaded.run.record.machine.clone();
        with_machine!(&*machine, M => self.replay_as::<M>(&loaded))
    }

    /// Takes the events of a run again, and shows every state on the way, the first one included.
    ///
    /// # Errors
    ///
    /// As [`replay`](Self::replay). The states before an event that cannot be read were shown.
    pub fn retrace<M: Machine>(
        &self,
        id: &RunId,
        mut show: impl FnMut(&M),
    ) -> Result<(), EngineError> {
        let events = self.store().events(id, 0, usize::MAX)?;
        taken(id, &events, &mut show).map(drop)
    }

    fn replay_as<M: Machine>(&self, loaded: &Loaded) -> Result<Replay, EngineError> {
        let id = &loaded.run.id;
        let events = self.store().events(id, 0, usize::MAX)?;
        let (state, decisions) = taken::<M>(id, &events, &mut |_| {})?;
        let filter = DecisionFilter { run: Some(id.clone()), ..DecisionFilter::default() };
        let stored = self.store().decisions(&filter)?;
        let stored = stored.iter().rev().filter_map(|kept| serde_json::from_str(&kept.body).ok());
        let stored: Vec<Decision> =
            stored.map(|decision| upcast::decision(M::NAME, decision)).collect();
        let mut differences = compare(&stored, &decisions);
        let kept: M = record::read_state(id, &loaded.run.record, &loaded.parts)?;
        if state != kept {
            let members = differing(&whole(id, &kept)?, &whole(id, &state)?);
            differences.push(Difference::State { members });
        }
        Ok(Replay { events: events.len(), decisions, differences })
    }
}

/// Takes the events of a journal and shows each state. Returns the last one and the decisions.
fn taken<M: Machine>(
    id: &RunId,
    events: &[Event],
    show: &mut dyn FnMut(&M),
) -> Result<(M, Vec<Decision>), EngineError> {
    let unreadable = |event: &Event, error: serde_json::Error| EngineError::Unreadable {
        run: id.clone(),
        detail: format!("event {} ({}): {error}", event.seq, event.kind),
    };
    let Some((first, rest)) = events.split_first() else {
        let detail = "it has no journal".to_owned();
        return Err(EngineError::Unreadable { run: id.clone(), detail });
    };
    let body: Value = serde_json::from_str(&first.body).map_err(|it| unreadable(first, it))?;
    let began = serde_json::from_value(upcast::first_event(M::NAME, body));
    let begun = match began.map_err(|error| unreadable(first, error))? {
        Began::Start::<M::Start> { start } => M::start(first.at, start),
        Began::Adopt { state } => {
            let state = M::from_stored(&state.to_string(), &[]).map_err(EngineError::Invalid)?;
            M::adopt(first.at, state)
        }
    };
    let Begun { mut state, outcome } = begun?;
    let mut decisions = outcome.decisions;
    show(&state);
    for event in rest {
        let taken = serde_json::from_str(&event.body).map_err(|error| unreadable(event, error))?;
        decisions.extend(state.on_event(event.at, &taken).decisions);
        show(&state);
    }
    Ok((state, decisions))
}

/// Says where decisions differ in more than their sentences.
fn compare(stored: &[Decision], today: &[Decision]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (number, (was, is)) in stored.iter().zip(today).enumerate() {
        let members = [
            ("rule", was.rule.clone(), is.rule.clone()),
            ("task", format!("{:?}", was.task), format!("{:?}", is.task)),
            ("evidence", evidence(was), evidence(is)),
            ("counters", format!("{:?}", was.counters), format!("{:?}", is.counters)),
        ];
        for (member, was, is) in members {
            if was != is {
                differences.push(Difference::Decision { number: number + 1, member, was, is });
            }
        }
    }
    if stored.len() != today.len() {
        differences.push(Difference::Count { was: stored.len(), is: today.len() });
    }
    differences
}

/// What a decision rests on, by codes.
fn evidence(decision: &Decision) -> String {
    let code = |evidence: &aldis_machine::Evidence| {
        let name = evidence.name.as_deref().unwrap_or_default();
        let reason = evidence.reason.as_deref().unwrap_or_default();
        format!("{}:{name}:{reason}", evidence.what)
    };
    decision.evidence.iter().map(code).collect::<Vec<_>>().join(", ")
}

/// A state with its parts, for comparing.
fn whole<M: Machine>(id: &RunId, state: &M) -> Result<Value, EngineError> {
    let unwritable = |error| EngineError::Unwritable { run: id.clone(), error };
    let text = state.to_stored().map_err(unwritable)?;
    serde_json::from_str(&text).map_err(unwritable)
}

/// The members in which two states differ.
fn differing(one: &Value, other: &Value) -> Vec<String> {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return Vec::new() };
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}
