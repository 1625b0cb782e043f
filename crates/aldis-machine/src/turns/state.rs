//! One channel.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::{Config, ConfigError, Mode};
use super::event::{ChannelMessage, Effect, Event, Outcome, QueuePosition, TurnEndReason};
use super::holder::{Turn, TurnHolder};
use super::is_name;
use super::persona::Persona;
use super::queue::PERSONAS_MAX;
use super::rule::Rule;
use crate::Decision;
use crate::accessors::accessors;
use aldis_signal::time::Timestamp;

/// How much history a state keeps. The journal has everything.
pub const HISTORY_MAX: usize = 100;
/// How long after its deadline a turn is stuck: its timer should have fired.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// A channel: everything that decides what happens next in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub(super) channel: String,
    /// Its configuration.
    pub(super) config: Config,
    /// What is known about its agents.
    pub(super) personas: BTreeMap<String, Persona>,
    /// Who takes part, in order.
    pub(super) queue: Vec<String>,
    /// The place of the agent that has the turn, had it last, or gets it when the channel is resumed.
    pub(super) index: usize,
    /// Who has the turn.
    #[serde(alias = "floor", deserialize_with = "TurnHolder::read")]
    pub(super) holder: TurnHolder,
    /// The number of the latest turn; 0 before the first.
    pub(super) turn: u64,
    /// The agents that take part or did.
    pub(super) agents: BTreeMap<String, AgentRecord>,
    /// Messages from humans with which the next turn starts.
    pub(super) held: Vec<ChannelMessage>,
    /// Turns in a row that timed out without a message.
    pub(super) silent_turns: u32,
    /// Whether it is closed.
    pub(super) closed: bool,
    /// The latest events, oldest first.
    pub(super) history: VecDeque<HistoryEntry>,
    /// The latest time of an event. It never goes back.
    pub(super) now: Timestamp,
    /// What the step being taken has led to. It is empty between steps.
    #[serde(skip)]
    pub(super) out: Outcome,
}

accessors! { State {
    /// Returns the name of the channel.
    channel: &str = |it| &it.channel;
    /// Returns the configuration.
    config: &Config = |it| &it.config;
    /// Returns what is known about the agents.
    personas: &BTreeMap<String, Persona> = |it| &it.personas;
    /// Returns who takes part, in order.
    queue: &[String] = |it| &it.queue;
    /// Returns the place of the agent that has the turn, had it last, or gets it when the channel is resumed.
    index: usize = |it| it.index;
    /// Returns who has the turn.
    holder: &TurnHolder = |it| &it.holder;
    /// Returns the number of the latest turn; 0 before the first.
    turn: u64 = |it| it.turn;
    /// Returns the agents that take part or did.
    agents: &BTreeMap<String, AgentRecord> = |it| &it.agents;
    /// Returns whether the channel is closed.
    is_closed: bool = |it| it.closed;
    /// Returns the latest events, oldest first.
    history: &VecDeque<HistoryEntry> = |it| &it.history;
    /// Returns the latest time of an event. It never goes back.
    now: Timestamp = |it| it.now;
}}

/// What another program's state file says of a channel that is taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// Who takes part, in order.
    pub queue: Vec<String>,
    /// The place of the agent that has the turn or had it last.
    pub index: usize,
    /// The turn that runs.
    pub active: Option<Turn>,
    /// The number of the latest turn.
    pub turn: u64,
    /// What is known of the agents that take part.
    pub agents: BTreeMap<String, AgentRecord>,
    /// The latest events, oldest first.
    pub history: Vec<HistoryEntry>,
}

/// An agent in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// When a message of its was last taken. One that is refused does not count.
    pub last_activity: Option<Timestamp>,
    /// How its latest turn ended.
    pub last_ended: Option<TurnEndReason>,
    /// Whether its process or connection is gone.
    pub offline: bool,
}

/// What an agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AgentState {
    /// It has the turn.
    Active,
    /// It does not take part.
    Idle,
    /// Its process or connection is gone.
    Offline,
    /// It waits for its turn.
    Queued,
    /// Its turn waits for a human.
    Waiting,
}

/// One entry of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// When.
    pub at: Timestamp,
    /// What: `turn_started`, `turn_completed`, `turn_timeout`, `agent_added` or `agent_removed`.
    pub event: String,
    /// Who.
    pub agent: String,
    /// The turn.
    pub turn: u64,
    /// Why a turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<TurnEndReason>,
    /// How many seconds a turn took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Whose turn started when this one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_agent: Option<String>,
}

/// How a channel begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Its name.
    pub channel: String,
    /// Who takes part, in order.
    pub agents: Vec<String>,
    /// Its configuration.
    #[serde(default)]
    pub config: Config,
    /// What is known about the agents. Where this is not empty, only these can take part.
    #[serde(default)]
    pub personas: BTreeMap<String, Persona>,
}

/// Why a channel cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelStartError {
    /// A name that cannot be one.
    #[error("`{0}` cannot name a channel; use 1 to 64 letters, digits, `.`, `_` or `-`")]
    Channel(String),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The mode needs another number of agents.
    #[error("mode `{mode}` needs {needs}; the channel has {found}")]
    Mode {
        /// Which mode.
        mode: &'static str,
        /// How many it needs.
        needs: &'static str,
        /// How many there are.
        found: usize,
    },
    /// No agents were named.
    #[error("a channel needs at least one agent")]
    Empty,
    /// None of the agents can take part.
    #[error("no agent can take part: {0}")]
    Nobody(String),
    /// Too many personas.
    #[error("a channel knows at most {PERSONAS_MAX} personas, not {0}")]
    Personas(usize),
}

/// A turn that should have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckTurn {
    /// Whose.
    pub agent: String,
    /// Its number.
    pub turn: u64,
    /// When its time was over.
    pub deadline: Timestamp,
}

impl State {
    /// Begins a channel, and its first turn.
    ///
    /// # Errors
    ///
    /// [`ChannelStartError`] when something is wrong with it. Agents that cannot take part are left
    /// out with a warning; if none is left, that is an error.
    pub fn start(now: Timestamp, start: Start) -> Result<(Self, Outcome), ChannelStartError> {
        let Start { channel, agents, config, personas } = start;
        if !is_name(&channel) {
            return Err(ChannelStartError::Channel(channel));
        }
        if personas.len() > PERSONAS_MAX {
            return Err(ChannelStartError::Personas(personas.len()));
        }
        config.check()?;
        let mut state = Self { channel, config, personas, now, ..Self::default() };
        let mut warnings = Vec::new();
        for agent in &agents {
            if let Err(warning) = state.enqueue(agent) {
                warnings.push(warning);
            }
        }
        if agents.is_empty() {
            return Err(ChannelStartError::Empty);
        }
        if state.queue.is_empty() {
            return Err(ChannelStartError::Nobody(warnings.join("; ")));
        }
        check_mode(&state.config, state.queue.len())?;
        state.index = 0;
        warnings.into_iter().for_each(|warning| state.refuse(warning));
        state.start_next(0);
        let agents = state.queue.join(", ");
        let because = match state.queue.len() {
            1 => format!("1 agent takes part: {agents}"),
            count => format!("{count} agents take part: {agents}"),
        };
        let next = state.whose_turn();
        state.decide(Rule::Started, "Opened the channel").because(because).next(next);
        let outcome = std::mem::take(&mut state.out);
        Ok((state, outcome))
    }

    /// Takes over a channel that another program opened.
    pub fn adopted(
        now: Timestamp,
        (channel, config, personas): (String, Config, BTreeMap<String, Persona>),
        found: Adoption,
    ) -> Self {
        let Adoption { queue, index, active, turn, agents, history } = found;
        let surplus = history.len().saturating_sub(HISTORY_MAX);
        let history = history.into_iter().skip(surplus).collect();
        let holder = active.map_or(TurnHolder::Nobody, TurnHolder::Active);
        let channel = Self { channel, config, personas, now, ..Self::default() };
        Self { queue, index, holder, turn, agents, history, ..channel }
    }

    /// Puts an agent at the end of the queue, or returns why not.
    fn enqueue(&mut self, agent: &str) -> Result<(), String> {
        self.check_agent(agent, false)?;
        self.insert_agent(agent, QueuePosition::End);
        self.remember_agent(agent);
        Ok(())
    }

    /// Takes one event, and decides what must now be done and why.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        // A delayed event must not move time back.
        self.now = self.now.max(now);
        match event {
            Event::Message { agent, turn, messages } => self.on_message(agent, *turn, messages),
            Event::Wake { turn } => self.on_wake(*turn),
            _ if self.closed => self.refuse("the channel is closed"),
            Event::Add { agent, position, persona } => {
                self.on_add(agent, *position, persona.clone());
            }
            Event::Close { by } => self.on_close(by),
            Event::Configure { config } => self.on_configure(config),
            Event::Crashed { agent } => self.on_crashed(agent),
            Event::Human { text, from, to, .. } => {
                self.on_human(text, from.as_deref(), to.as_deref());
            }
            Event::Next { agent, turn } => self.on_next(agent, *turn),
            Event::Pause { by } => self.on_pause(by),
            Event::Recovered => self.on_recovered(),
            Event::Remove { agent } => self.on_remove(agent),
            Event::Resume { by } => self.on_resume(by),
        }
        std::mem::take(&mut self.out)
    }

    /// Returns who has the turn.
    pub fn active_agent(&self) -> Option<&str> {
        self.holder.active().map(|turn| &*turn.agent)
    }

    /// Returns what an agent is doing.
    pub fn agent_state(&self, agent: &str) -> AgentState {
        let holds = |turn: &Turn| turn.agent == agent;
        if self.agents.get(agent).is_some_and(|known| known.offline) {
            AgentState::Offline
        } else if self.holder.active().is_some_and(holds) {
            AgentState::Active
        } else if self.holder.turn().is_some_and(holds) {
            AgentState::Waiting
        } else if self.takes_turns() && self.queue.iter().any(|queued| queued == agent) {
            AgentState::Queued
        } else {
            AgentState::Idle
        }
    }

    /// Returns the turn that should have ended by now, if there is one: for the health check.
    pub fn stuck(&self, now: Timestamp) -> Option<StuckTurn> {
        let turn = self.holder.active()?;
        let grace = self.config.grace().unwrap_or_default();
        let overdue = now > turn.deadline.after(grace).after(STUCK_AFTER);
        overdue.then(|| StuckTurn {
            agent: turn.agent.clone(),
            turn: self.turn,
            deadline: turn.deadline,
        })
    }

    /// Decides something by a rule. The reasons follow.
    pub(super) fn decide(&mut self, rule: Rule, summary: impl Into<String>) -> &mut Decision {
        let mut decision = Decision::new(rule, summary, BTreeMap::new());
        decision
            .count("turn", self.turn)
            .count("queue", self.queue.len())
            .count("silent_turns", self.silent_turns);
        self.out.decisions.push_mut(decision)
    }

    /// Does nothing; whoever asked is told why.
    pub(super) fn refuse(&mut self, why: impl Into<String>) {
        self.out.effects.push(Effect::Warning { text: why.into() });
    }

    /// Adds an entry to the history.
    pub(super) fn note(
        &mut self,
        event: &str,
        agent: &str,
        reason: Option<TurnEndReason>,
        seconds: Option<u64>,
    ) {
        let (at, turn, next_agent) = (self.now, self.turn, None);
        let (event, agent) = (event.to_owned(), agent.to_owned());
        let entry = HistoryEntry { at, event, agent, turn, reason, seconds, next_agent };
        self.history.push_back(entry);
        while self.history.len() > HISTORY_MAX {
            self.history.pop_front();
        }
    }

    /// Sorts the queue by priority; the turn stays with its holder.
    pub(super) fn sort_by_priority(&mut self) {
        let current = self.queue.get(self.index).cloned();
        let personas = &self.personas;
        let priority = |agent: &String| personas.get(agent).map_or(0, |persona| persona.priority);
        self.queue.sort_by_key(|agent| std::cmp::Reverse(priority(agent)));
        let place = self.queue.iter().position(|agent| Some(agent) == current.as_ref());
        self.index = place.unwrap_or(0);
    }
}

/// Checks that there are as many agents as the mode needs.
pub(super) fn check_mode(config: &Config, found: usize) -> Result<(), ChannelStartError> {
    let (mode, needs) = match config.mode {
        Some(Mode::Single) if found != 1 => ("single", "exactly one agent"),
        Some(Mode::TurnBased) if found < 2 => ("turn-based", "two agents or more"),
        None | Some(Mode::Broadcast | Mode::Direct | Mode::Single | Mode::TurnBased) => {
            return Ok(());
        }
    };
    Err(ChannelStartError::Mode { mode, needs, found })
}
