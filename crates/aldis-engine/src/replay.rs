//! Takes a journal through today's machine and compares with what was stored.

use std::collections::BTreeMap;

use aldis_machine::{Begun, Decision, Machine, Outcome};
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
    /// The same was decided, for other reasons.
    Decision {
        /// Which of those that were stored, from 1.
        number: usize,
        /// The member that differs: `evidence` or `counters`. Sentences may change.
        member: &'static str,
        /// What was stored.
        was: String,
        /// What is decided today.
        is: String,
    },
    /// A decision that was stored is not made today.
    Missing {
        /// Which of those that were stored, from 1.
        number: usize,
        /// Its rule.
        rule: String,
    },
    /// A decision is made today that was not stored.
    Added {
        /// Which of those that are made, from 1.
        number: usize,
        /// Its rule.
        rule: String,
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
        tracing::debug!(run = %id, events = events.len(), differences = differences.len(), "replayed");
        Ok(Replay { events: events.len(), decisions, differences })
    }
}

/// A journal that is taken through today's machine, event by event: for replaying it, and for following
/// it while it grows.
#[derive(Clone, Debug)]
pub struct Retrace<M> {
    run: RunId,
    /// Nothing before the first event.
    state: Option<M>,
}

impl<M: Machine> Retrace<M> {
    /// Nothing of this run's journal has been taken.
    pub fn new(run: RunId) -> Self {
        Self { run, state: None }
    }

    /// Returns the state that the events so far led to.
    pub fn state(&self) -> Option<&M> {
        self.state.as_ref()
    }

    /// Takes the next event, at the time it happened. Returns what came of it.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unreadable`] if it cannot be understood; the state stays as it was.
    pub fn take(&mut self, event: &Event) -> Result<Outcome<M::Effect>, EngineError> {
        let unreadable = |error: serde_json::Error| EngineError::Unreadable {
            run: self.run.clone(),
            detail: format!("event {} ({}): {error}", event.seq, event.kind),
        };
        if let Some(state) = &mut self.state {
            let taken = serde_json::from_str(&event.body).map_err(unreadable)?;
            return Ok(state.on_event(event.at, &taken));
        }
        let body: Value = serde_json::from_str(&event.body).map_err(unreadable)?;
        let began = serde_json::from_value(upcast::first_event(M::NAME, body));
        let begun = match began.map_err(unreadable)? {
            Began::Start::<M::Start> { start } => M::start(event.at, start),
            Began::Adopt { state } => {
                let state =
                    M::from_stored(&state.to_string(), &[]).map_err(EngineError::Invalid)?;
                M::adopt(event.at, state)
            }
        };
        let Begun { state, outcome } = begun?;
        self.state = Some(state);
        Ok(outcome)
    }
}

/// Takes the events of a journal and shows each state. Returns the last one and the decisions.
fn taken<M: Machine>(
    id: &RunId,
    events: &[Event],
    show: &mut dyn FnMut(&M),
) -> Result<(M, Vec<Decision>), EngineError> {
    let mut retrace = Retrace::new(id.clone());
    let mut decisions = Vec::new();
    for event in events {
        decisions.extend(retrace.take(event)?.decisions);
        retrace.state().into_iter().for_each(&mut *show);
    }
    let detail = "it has no journal".to_owned();
    let none = || EngineError::Unreadable { run: id.clone(), detail };
    Ok((retrace.state.ok_or_else(none)?, decisions))
}

/// Says where decisions differ in more than their sentences.
fn compare(stored: &[Decision], today: &[Decision]) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut one = |pair: Pair| match pair {
        (Some(was), Some(is)) => {
            members_of(was + 1, &stored[was], &today[is], &mut differences);
        }
        (Some(was), None) => {
            let rule = stored[was].rule.clone();
            differences.push(Difference::Missing { number: was + 1, rule });
        }
        (None, Some(is)) => {
            let rule = today[is].rule.clone();
            differences.push(Difference::Added { number: is + 1, rule });
        }
        (None, None) => {}
    };
    align(stored, today).into_iter().for_each(&mut one);
    differences
}

/// Compares what was decided by the same rule.
fn members_of(number: usize, was: &Decision, is: &Decision, differences: &mut Vec<Difference>) {
    let members = [
        ("evidence", evidence(was), evidence(is)),
        ("counters", format!("{:?}", was.counters), format!("{:?}", is.counters)),
    ];
    for (member, was, is) in members {
        if was != is {
            differences.push(Difference::Decision { number, member, was, is });
        }
    }
}

/// How many pairs are looked at; beyond that everything behind the first difference differs.
const PAIRS_MAX: usize = 4_000_000;

/// A decision that was stored and one that is made today, by place.
type Pair = (Option<usize>, Option<usize>);

/// Pairs decisions by rule and task, as many as possible, in order: one that is made today and was
/// not made then does not make all later ones differ.
fn align(stored: &[Decision], today: &[Decision]) -> Vec<Pair> {
    let same = |was: usize, is: usize| {
        let (was, is) = (&stored[was], &today[is]);
        was.task == is.task && upcast::same_rule(&was.rule, &is.rule)
    };
    let shorter = stored.len().min(today.len());
    let begin = (0..shorter).take_while(|at| same(*at, *at)).count();
    let mut pairs: Vec<Pair> = (0..begin).map(|at| (Some(at), Some(at))).collect();
    let (rows, columns) = (stored.len() - begin, today.len() - begin);
    if rows.saturating_mul(columns) > PAIRS_MAX {
        pairs.extend((begin..stored.len()).map(|at| (Some(at), None)));
        pairs.extend((begin..today.len()).map(|at| (None, Some(at))));
        return pairs;
    }
    // How many can be paired from here on.
    let mut longest = vec![vec![0_usize; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            longest[row][column] = match same(begin + row, begin + column) {
                true => longest[row + 1][column + 1] + 1,
                false => longest[row + 1][column].max(longest[row][column + 1]),
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < rows || column < columns {
        let (was, is) = (begin + row, begin + column);
        if row < rows && column < columns && same(was, is) {
            pairs.push((Some(was), Some(is)));
            (row, column) = (row + 1, column + 1);
        } else if column == columns
            || row < rows && longest[row + 1][column] >= longest[row][column + 1]
        {
            pairs.push((Some(was), None));
            row += 1;
        } else {
            pairs.push((None, Some(is)));
            column += 1;
        }
    }
    pairs
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

/// The members of a state by name, and of its parts by key and name.
type StateMembers = BTreeMap<String, Value>;

/// A state with its parts, for comparing.
fn whole<M: Machine>(id: &RunId, state: &M) -> Result<StateMembers, EngineError> {
    let unwritable = |error| EngineError::Unwritable { run: id.clone(), error };
    let mut whole = members(id, "", &state.to_stored().map_err(unwritable)?)?;
    for (key, body) in state.parts().map_err(unwritable)? {
        whole.extend(members(id, &key, &body)?);
    }
    Ok(whole)
}

fn members(id: &RunId, part: &str, body: &str) -> Result<StateMembers, EngineError> {
    let unreadable = |error: serde_json::Error| EngineError::Unreadable {
        run: id.clone(),
        detail: format!("{part}: {error}"),
    };
    let members: StateMembers = serde_json::from_str(body).map_err(unreadable)?;
    let named = |(name, value)| match part {
        "" => (name, value),
        _ => (format!("{part}: {name}"), value),
    };
    Ok(members.into_iter().map(named).collect())
}

/// The members in which two states differ.
fn differing(one: &StateMembers, other: &StateMembers) -> Vec<String> {
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}
