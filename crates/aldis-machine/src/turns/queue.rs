//! Who takes part, and in which order.

use super::config::{Mode, TurnOrder};
use super::event::{Effect, Outcome, Position, Reason};
use super::floor::Floor;
use super::is_name;
use super::persona::Persona;
use super::state::State;
use aldis_signal::time::Timestamp;

/// The longest queue.
pub(super) const QUEUE_MAX: usize = 64;
/// How many agents a channel remembers, those that left included.
const AGENTS_MAX: usize = 256;

pub(super) fn on_add(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    position: Position,
    persona: Option<Persona>,
) -> Outcome {
    if let Err(why) = may_join(state, agent, persona.is_some()) {
        return Outcome::refused(why);
    }
    if let Some(persona) = persona {
        state.personas.insert(agent.to_owned(), persona);
    }
    let was_empty = state.queue.is_empty();
    let place = insert(state, agent, position);
    remember(state, agent);
    state.note(now, "agent_added", agent, None, None);
    let mut outcome = Outcome::default();
    let waits = matches!(state.floor, Floor::Free);
    if was_empty && waits {
        state.begin_next(now, place, &mut outcome);
    }
    state
        .decide(outcome, "turns/added", format!("Put {agent} at place {} of the queue", place + 1))
        .because("somebody asked for it")
        .next("it is told when its turn comes")
}

/// Returns why an agent cannot join.
fn may_join(state: &State, agent: &str, introduced: bool) -> Result<(), String> {
    if !is_name(agent) || agent == Effect::SYSTEM {
        return Err(format!("`{agent}` cannot name an agent"));
    }
    if state.queue.iter().any(|queued| queued == agent) {
        return Err(format!("{agent} is in the queue already"));
    }
    if !introduced && !is_known(state, agent) {
        return Err(format!("there is no persona `{agent}`"));
    }
    if state.config.mode == Some(Mode::Single) && !state.queue.is_empty() {
        return Err("the channel is for a single agent".to_owned());
    }
    if state.queue.len() >= QUEUE_MAX {
        return Err(format!("the queue is full; {QUEUE_MAX} agents are the most"));
    }
    Ok(())
}

/// Where personas are given, they say who there is.
pub(super) fn is_known(state: &State, agent: &str) -> bool {
    state.personas.is_empty() || state.personas.contains_key(agent)
}

/// Puts an agent into the queue without moving the floor, and returns its place.
pub(super) fn insert(state: &mut State, agent: &str, position: Position) -> usize {
    let wanted = match position {
        Position::At(place) => place.min(state.queue.len()),
        Position::End => state.queue.len(),
        Position::Start => 0,
    };
    let place = match state.config.turn_order {
        TurnOrder::Priority => by_priority(state, agent, wanted),
        TurnOrder::Manual | TurnOrder::RoundRobin => wanted,
    };
    if !state.queue.is_empty() && place <= state.index {
        state.index += 1;
    }
    state.queue.insert(place, agent.to_owned());
    place
}

/// The place nearest to the wanted one that keeps the order of priorities.
fn by_priority(state: &State, agent: &str, wanted: usize) -> usize {
    let priority = |agent: &str| state.personas.get(agent).map_or(0, |persona| persona.priority);
    let own = priority(agent);
    let first = state.queue.partition_point(|queued| priority(queued) > own);
    let last = state.queue.partition_point(|queued| priority(queued) >= own);
    wanted.clamp(first, last)
}

/// Keeps what is known about an agent, and forgets those that left long ago.
pub(super) fn remember(state: &mut State, agent: &str) {
    if state.agents.len() >= AGENTS_MAX && !state.agents.contains_key(agent) {
        let State { agents, queue, .. } = state;
        agents.retain(|known, _| queue.contains(known));
    }
    let known = state.agents.entry(agent.to_owned()).or_default();
    known.offline = false;
}

pub(super) fn on_remove(state: &mut State, now: Timestamp, agent: &str) -> Outcome {
    let mut outcome = Outcome::default();
    if !leave(state, now, agent, &mut outcome) {
        return Outcome::refused(format!("{agent} is not in the queue"));
    }
    let next = after_leaving(state);
    state
        .decide(outcome, "turns/removed", format!("Took {agent} out of the queue"))
        .because("somebody asked for it")
        .next(next)
}

pub(super) fn on_crashed(state: &mut State, now: Timestamp, agent: &str) -> Outcome {
    let Some(known) = state.agents.get_mut(agent).filter(|known| !known.offline) else {
        return Outcome::default();
    };
    known.offline = true;
    let notice = Effect::notice(format!("⚠️ {agent} is offline"));
    let mut outcome = Outcome { effects: vec![notice], ..Outcome::default() };
    leave(state, now, agent, &mut outcome);
    let next = after_leaving(state);
    state
        .decide(outcome, "turns/crashed", format!("Took {agent} out of the queue"))
        .because("it is gone")
        .next(next)
}

fn after_leaving(state: &State) -> String {
    match (state.active_agent(), state.queue.is_empty()) {
        (_, true) => "nobody is left: add an agent".to_owned(),
        (Some(active), false) => format!("{active} has the floor"),
        (None, false) => "nobody has the floor".to_owned(),
    }
}

/// Takes an agent out; if it had the floor, the next one has it at once.
fn leave(state: &mut State, now: Timestamp, agent: &str, outcome: &mut Outcome) -> bool {
    let Some(place) = state.queue.iter().position(|queued| queued == agent) else { return false };
    let held = state.floor.turn().is_some_and(|turn| turn.agent == agent);
    let paused = match &state.floor {
        Floor::Paused { why, .. } => Some(why.clone()),
        Floor::Free | Floor::Held(_) | Floor::Interrupted { .. } => None,
    };
    if held {
        state.end_turn(now, Reason::Removed);
    } else if matches!(&state.floor, Floor::Interrupted { asked, .. } if asked == agent) {
        state.take_up(now);
    }
    state.queue.remove(place);
    state.note(now, "agent_removed", agent, None, None);
    if place < state.index {
        state.index -= 1;
    }
    if state.index >= state.queue.len() {
        state.index = 0;
    }
    match paused {
        Some(why) if held => {
            state.floor = Floor::Paused { turn: None, left_ms: 0, why };
        }
        None if held => state.begin_next(now, state.index, outcome),
        Some(_) | None => {}
    }
    true
}

/// Somebody names who speaks next.
pub(super) fn on_next(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    named: Option<u64>,
) -> Outcome {
    if named.is_some_and(|named| named != state.turn) {
        return Outcome::refused(format!("turn {} is the current one", state.turn));
    }
    if !state.takes_turns() {
        return Outcome::refused("the channel has no turns");
    }
    let Some(place) = state.queue.iter().position(|queued| queued == agent) else {
        return Outcome::refused(format!("{agent} is not in the queue"));
    };
    let mut outcome = Outcome::default();
    state.end_turn(now, Reason::Manual);
    state.silent_turns = 0;
    state.begin(now, place, &mut outcome);
    state
        .decide(outcome, "turns/next", format!("Gave the floor to {agent}"))
        .because("somebody named it")
        .next("it is told")
}
