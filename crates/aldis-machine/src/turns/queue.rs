//! Who takes part, and in which order.

use super::config::{Mode, TurnOrder};
use super::event::{Effect, QueuePosition, TurnEndReason};
use super::holder::TurnHolder;
use super::is_name;
use super::persona::Persona;
use super::rule::Rule;
use super::state::State;

/// The longest queue.
pub const QUEUE_MAX: usize = 64;
/// How many agents a channel remembers, those that left included.
const AGENTS_MAX: usize = 256;
/// How many personas a channel knows.
pub(super) const PERSONAS_MAX: usize = 1_024;
/// Who asked for a change of the queue.
const REQUESTED: &str = "requested by a human or a program";

impl State {
    pub(super) fn on_add(
        &mut self,
        agent: &str,
        position: QueuePosition,
        persona: Option<Persona>,
    ) {
        if let Err(why) = self.check_agent(agent, persona.is_some()) {
            return self.refuse(why);
        }
        if self.config.mode == Some(Mode::Single) && !self.queue.is_empty() {
            return self.refuse("the channel has a single agent (`mode` is `single`)");
        }
        if let Some(persona) = persona {
            self.personas.insert(agent.to_owned(), persona);
        }
        let was_empty = self.queue.is_empty();
        let place = self.insert_agent(agent, position);
        self.remember_agent(agent);
        self.note("agent_added", agent, None, None);
        let waits = matches!(self.holder, TurnHolder::Nobody);
        if was_empty && waits {
            self.start_next(place);
        }
        self.decide(Rule::AgentAdded, format!("Added {agent} at place {} of the queue", place + 1))
            .because(REQUESTED)
            .next(format!("{agent} is notified when its turn starts"));
    }

    /// Returns why an agent cannot join the queue.
    pub(super) fn check_agent(&self, agent: &str, introduced: bool) -> Result<(), String> {
        if !is_name(agent) || agent == Effect::SYSTEM {
            return Err(format!(
                "`{agent}` cannot name an agent; use 1 to 64 letters, digits, `.`, `_` or `-`"
            ));
        }
        if self.queue.iter().any(|queued| queued == agent) {
            return Err(format!("{agent} is already in the queue"));
        }
        if !introduced && !self.is_known(agent) {
            return Err(format!("no persona is named `{agent}`"));
        }
        if introduced && self.personas.len() >= PERSONAS_MAX && !self.personas.contains_key(agent) {
            return Err(format!("the channel already knows {PERSONAS_MAX} personas"));
        }
        if self.queue.len() >= QUEUE_MAX {
            return Err(format!("the queue is full: it has {QUEUE_MAX} agents"));
        }
        Ok(())
    }

    /// Where personas are given, only those can take part.
    fn is_known(&self, agent: &str) -> bool {
        self.personas.is_empty() || self.personas.contains_key(agent)
    }

    /// Puts an agent into the queue without moving the turn, and returns its place.
    pub(super) fn insert_agent(&mut self, agent: &str, position: QueuePosition) -> usize {
        let wanted = match position {
            QueuePosition::At(place) => place.min(self.queue.len()),
            QueuePosition::End => self.queue.len(),
            QueuePosition::Start => 0,
        };
        let place = match self.config.turn_order {
            TurnOrder::Priority => self.by_priority(agent, wanted),
            TurnOrder::Manual | TurnOrder::RoundRobin => wanted,
        };
        if !self.queue.is_empty() && place <= self.index {
            self.index += 1;
        }
        self.queue.insert(place, agent.to_owned());
        place
    }

    /// The place nearest to the wanted one that keeps the order of priorities.
    fn by_priority(&self, agent: &str, wanted: usize) -> usize {
        let priority = |agent: &str| self.personas.get(agent).map_or(0, |persona| persona.priority);
        let own = priority(agent);
        let first = self.queue.partition_point(|queued| priority(queued) > own);
        let last = self.queue.partition_point(|queued| priority(queued) >= own);
        wanted.clamp(first, last)
    }

    /// Keeps a record of an agent that takes part, and drops those of agents that left where there are too many.
    pub(super) fn remember_agent(&mut self, agent: &str) {
        if self.agents.len() >= AGENTS_MAX && !self.agents.contains_key(agent) {
            let Self { agents, queue, .. } = self;
            agents.retain(|known, _| queue.contains(known));
        }
        let known = self.agents.entry(agent.to_owned()).or_default();
        known.offline = false;
    }

    pub(super) fn on_remove(&mut self, agent: &str) {
        if !self.remove_agent(agent) {
            return self.refuse(format!("{agent} is not in the queue"));
        }
        let next = self.whose_turn();
        self.decide(Rule::AgentRemoved, format!("Removed {agent} from the queue"))
            .because(REQUESTED)
            .next(next);
    }

    pub(super) fn on_crashed(&mut self, agent: &str) {
        let Some(known) = self.agents.get_mut(agent).filter(|known| !known.offline) else {
            return;
        };
        known.offline = true;
        let notice = Effect::notice(format!("⚠️ {agent} is offline"));
        self.out.effects.push(notice);
        self.remove_agent(agent);
        let next = self.whose_turn();
        self.decide(Rule::AgentCrashed, format!("Removed {agent} from the queue"))
            .because("its process or connection is gone")
            .next(next);
    }

    /// Takes an agent out; if it had the turn, the turn of the next one starts at once.
    fn remove_agent(&mut self, agent: &str) -> bool {
        let Some(place) = self.queue.iter().position(|queued| queued == agent) else {
            return false;
        };
        let held = self.holder.turn().is_some_and(|turn| turn.agent == agent);
        let paused = match &self.holder {
            TurnHolder::Paused { why, .. } => Some(why.clone()),
            TurnHolder::Nobody | TurnHolder::Active(_) | TurnHolder::Interrupted { .. } => None,
        };
        if held {
            self.end_turn(TurnEndReason::Removed);
        } else if matches!(&self.holder, TurnHolder::Interrupted { asked, .. } if asked == agent) {
            self.resume_turn();
        }
        self.queue.remove(place);
        self.note("agent_removed", agent, None, None);
        if place < self.index {
            self.index -= 1;
        }
        if self.index >= self.queue.len() {
            self.index = 0;
        }
        match paused {
            Some(why) if held => {
                self.holder = TurnHolder::Paused { turn: None, remaining_ms: 0, why };
            }
            None if held => self.start_next(self.index),
            Some(_) | None => {}
        }
        true
    }

    /// A human or a program names the next agent.
    pub(super) fn on_next(&mut self, agent: &str, named: Option<u64>) {
        if let Some(named) = named.filter(|named| *named != self.turn) {
            let current = self.turn;
            return self.refuse(format!("turn {named} is not the current turn; {current} is"));
        }
        if !self.takes_turns() {
            return self.refuse("the channel has no turns");
        }
        let Some(place) = self.queue.iter().position(|queued| queued == agent) else {
            return self.refuse(format!("{agent} is not in the queue"));
        };
        self.end_turn(TurnEndReason::Manual);
        self.silent_turns = 0;
        self.start_turn(place);
        self.decide(Rule::NextNamed, format!("Gave the turn to {agent}"))
            .because(REQUESTED)
            .next(format!("{agent} has the turn"));
    }
}
