//! Who takes part, and in which order.

use super::config::{Mode, TurnOrder};
use super::event::{Effect, Outcome, Position, TurnEndReason};
use super::holder::TurnHolder;
use super::is_name;
use super::message::whose_turn;
use super::persona::Persona;
use super::rule::Rule;
use super::state::State;
use aldis_signal::time::Timestamp;

/// The longest queue.
pub const QUEUE_MAX: usize = 64;
/// How many agents a channel remembers, those that left included.
const AGENTS_MAX: usize = 256;
/// How many personas a channel knows.
pub(super) const PERSONAS_MAX: usize = 1_024;
/// Who asked for a change of the queue.
const REQUESTED: &str = "requested by a human or a program";

pub(super) fn on_add(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    position: Position,
    persona: Option<Persona>,
) -> Outcome {
    if let Err(why) = check_agent(state, agent, persona.is_some()) {
        return Outcome::refused(why);
    }
    if state.config.mode == Some(Mode::Single) && !state.queue.is_empty() {
        return Outcome::refused("the channel has a single agent (`mode` is `single`)");
    }
    if let Some(persona) = persona {
        state.personas.insert(agent.to_owned(), persona);
    }
    let was_empty = state.queue.is_empty();
    let place = insert(state, agent, position);
    remember(state, agent);
    state.note(now, "agent_added", agent, None, None);
    let mut outcome = Outcome::default();
    let waits = matches!(state.holder, TurnHolder::Nobody);
    if was_empty && waits {
        state.start_next(now, place, &mut outcome);
    }
    state
        .decide(
            outcome,
            Rule::AgentAdded,
            format!("Added {agent} at place {} of the queue", place + 1),
        )
        .because(REQUESTED)
        .next(format!("{agent} is notified when its turn starts"))
}

/// Returns why an agent cannot join the queue.
pub(super) fn check_agent(state: &State, agent: &str, introduced: bool) -> Result<(), String> {
    if !is_name(agent) || agent == Effect::SYSTEM {
        return Err(format!(
            "`{agent}` cannot name an agent; use 1 to 64 letters, digits, `.`, `_` or `-`"
        ));
    }
    if state.queue.iter().any(|queued| queued == agent) {
        return Err(format!("{agent} is already in the queue"));
    }
    if !introduced && !is_known(state, agent) {
        return Err(format!("no persona is named `{agent}`"));
    }
    if introduced && state.personas.len() >= PERSONAS_MAX && !state.personas.contains_key(agent) {
        return Err(format!("the channel already knows {PERSONAS_MAX} personas"));
    }
    if state.queue.len() >= QUEUE_MAX {
        return Err(format!("the queue is full: it has {QUEUE_MAX} agents"));
    }
    Ok(())
}

/// Where personas are given, only those can take part.
fn is_known(state: &State, agent: &str) -> bool {
    state.personas.is_empty() || state.personas.contains_key(agent)
}

/// Puts an agent into the queue without moving the turn, and returns its place.
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

/// Keeps a record of an agent, and drops those of agents that left where there are too many.
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
    let next = whose_turn(state);
    state
        .decide(outcome, Rule::AgentRemoved, format!("Removed {agent} from the queue"))
        .because(REQUESTED)
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
    let next = whose_turn(state);
    state
        .decide(outcome, Rule::AgentCrashed, format!("Removed {agent} from the queue"))
        .because("its process or connection is gone")
        .next(next)
}

/// Takes an agent out; if it had the turn, the turn of the next one starts at once.
fn leave(state: &mut State, now: Timestamp, agent: &str, outcome: &mut Outcome) -> bool {
    let Some(place) = state.queue.iter().position(|queued| queued == agent) else { return false };
    let held = state.holder.turn().is_some_and(|turn| turn.agent == agent);
    let paused = match &state.holder {
        TurnHolder::Paused { why, .. } => Some(why.clone()),
        TurnHolder::Nobody | TurnHolder::Active(_) | TurnHolder::Interrupted { .. } => None,
    };
    if held {
        state.end_turn(now, TurnEndReason::Removed);
    } else if matches!(&state.holder, TurnHolder::Interrupted { asked, .. } if asked == agent) {
        state.resume_turn(now);
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
            state.holder = TurnHolder::Paused { turn: None, remaining_ms: 0, why };
        }
        None if held => state.start_next(now, state.index, outcome),
        Some(_) | None => {}
    }
    true
}

/// A human or a program names the next agent.
pub(super) fn on_next(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    named: Option<u64>,
) -> Outcome {
    if let Some(named) = named.filter(|named| *named != state.turn) {
        let current = state.turn;
        return Outcome::refused(format!("turn {named} is not the current turn; {current} is"));
    }
    if !state.takes_turns() {
        return Outcome::refused("the channel has no turns");
    }
    let Some(place) = state.queue.iter().position(|queued| queued == agent) else {
        return Outcome::refused(format!("{agent} is not in the queue"));
    };
    let mut outcome = Outcome::default();
    state.end_turn(now, TurnEndReason::Manual);
    state.silent_turns = 0;
    state.start_turn(now, place, &mut outcome);
    state
        .decide(outcome, Rule::NextNamed, format!("Gave the turn to {agent}"))
        .because(REQUESTED)
        .next(format!("{agent} has the turn"))
}
