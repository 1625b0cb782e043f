//! One channel.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::{Config, ConfigError, Mode};
use super::event::{Effect, Event, Outcome, Position, Reason, Words};
use super::floor::Floor;
use super::persona::Persona;
use super::{human, is_name, queue, speak};
use crate::Decision;
use aldis_signal::time::Timestamp;

/// How much history a state keeps. The journal has everything.
pub(super) const HISTORY_MAX: usize = 100;
/// How long after its deadline a turn is stuck: its timer should have fired.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// A channel: everything that decides what happens next in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub channel: String,
    /// How it is run.
    pub config: Config,
    /// What is known about its agents.
    pub personas: BTreeMap<String, Persona>,
    /// Who takes part, in order.
    pub queue: Vec<String>,
    /// The place of whoever has the floor, had it last, or will have it when the channel goes on.
    pub index: usize,
    /// Who has the floor.
    pub floor: Floor,
    /// The number of the latest turn; 0 before the first.
    pub turn: u64,
    /// Everybody who takes part or did.
    pub agents: BTreeMap<String, Agent>,
    /// What humans said that the next turn begins with.
    pub held: Vec<Words>,
    /// Turns in a row that ended by timeout without a word.
    pub silent_turns: u32,
    /// Whether it is over.
    pub closed: bool,
    /// The latest events, oldest first.
    pub history: VecDeque<Entry>,
    /// The latest moment that was heard of. Time never goes back.
    pub now: Timestamp,
}

/// An agent in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// When it last said something.
    pub last_activity: Option<Timestamp>,
    /// How its latest turn ended.
    pub last_ended: Option<Reason>,
    /// Whether it is gone.
    pub offline: bool,
}

/// How an agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AgentState {
    /// It has the floor.
    Active,
    /// It does not take part.
    Idle,
    /// It is gone.
    Offline,
    /// It waits for its turn.
    Queued,
    /// Its turn waits for a human.
    Waiting,
}

/// One line of history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
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
    pub reason: Option<Reason>,
    /// How many seconds a turn took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

/// How a channel begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Its name.
    pub channel: String,
    /// Who takes part, in order.
    pub agents: Vec<String>,
    /// How it is run.
    #[serde(default)]
    pub config: Config,
    /// What is known about the agents. Where this is not empty, it says who there is.
    #[serde(default)]
    pub personas: BTreeMap<String, Persona>,
}

/// Why a channel cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A name that cannot be one.
    #[error("`{0}` cannot name a channel; use 1 to 64 letters, digits, `.`, `_` or `-`")]
    Channel(String),
    /// The configuration cannot be meant.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The mode wants another number of agents.
    #[error("mode `{mode}` wants {wants}, and there are {found}")]
    Mode {
        /// Which mode.
        mode: &'static str,
        /// How many it wants.
        wants: &'static str,
        /// How many there are.
        found: usize,
    },
    /// Nobody is left to take part.
    #[error("no agent is left in the queue: {0}")]
    Nobody(String),
}

/// A turn that should have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
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
    /// [`StartError`] when it cannot be meant. Agents that cannot take part are left out with a
    /// warning; if nobody is left, that is an error.
    pub fn start(now: Timestamp, start: Start) -> Result<(Self, Outcome), StartError> {
        let Start { channel, agents, config, personas } = start;
        if !is_name(&channel) {
            return Err(StartError::Channel(channel));
        }
        config.check()?;
        let mut state = Self::empty(now, channel, config, personas);
        let mut warnings = Vec::new();
        for agent in &agents {
            if let Some(warning) = state.seat(agent) {
                warnings.push(warning);
            }
        }
        if state.queue.is_empty() {
            return Err(StartError::Nobody(warnings.join("; ")));
        }
        check_mode(&state.config, state.queue.len())?;
        state.index = 0;
        let effects = warnings.into_iter().map(Effect::warning).collect();
        let mut outcome = Outcome { effects, decisions: Vec::new() };
        state.begin_next(now, 0, &mut outcome);
        let because = format!("{} agents take part", state.queue.len());
        let outcome = state
            .decide(outcome, "turns/start", "Opened the channel")
            .because(because)
            .next("the first agent is told, unless somebody must name it");
        Ok((state, outcome))
    }

    pub(super) fn empty(
        now: Timestamp,
        channel: String,
        config: Config,
        personas: BTreeMap<String, Persona>,
    ) -> Self {
        Self {
            channel,
            config,
            personas,
            queue: Vec::new(),
            index: 0,
            floor: Floor::Free,
            turn: 0,
            agents: BTreeMap::new(),
            held: Vec::new(),
            silent_turns: 0,
            closed: false,
            history: VecDeque::new(),
            now,
        }
    }

    /// Puts an agent at the end of the queue, or says why not.
    fn seat(&mut self, agent: &str) -> Option<String> {
        if !is_name(agent) || agent == Effect::SYSTEM {
            return Some(format!("`{agent}` cannot name an agent"));
        }
        if !queue::is_known(self, agent) {
            return Some(format!("there is no persona `{agent}`"));
        }
        if self.queue.iter().any(|queued| queued == agent) {
            return Some(format!("{agent} is in the queue already"));
        }
        if self.queue.len() >= queue::QUEUE_MAX {
            return Some(format!("the queue is full, {agent} is left out"));
        }
        queue::insert(self, agent, Position::End);
        queue::remember(self, agent);
        None
    }

    /// Takes one event and says what must now be done, and why.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        // A delayed event must not move time back.
        self.now = self.now.max(now);
        let now = self.now;
        match event {
            Event::Said { agent, turn, messages } => {
                speak::on_said(self, now, agent, *turn, messages)
            }
            Event::Wake { turn } => self.on_wake(now, *turn),
            _ if self.closed => Outcome::refused("the channel is closed"),
            Event::Add { agent, position, persona } => {
                queue::on_add(self, now, agent, *position, persona.clone())
            }
            Event::Close { by } => human::on_close(self, now, by),
            Event::Configure { config } => human::on_configure(self, now, config),
            Event::Crashed { agent } => queue::on_crashed(self, now, agent),
            Event::Human { text, from, to } => {
                human::on_human(self, now, text, from.as_deref(), to.as_deref())
            }
            Event::Next { agent, turn } => queue::on_next(self, now, agent, *turn),
            Event::Pause { by } => human::on_pause(self, now, by),
            Event::Recovered => self.on_recovered(now),
            Event::Remove { agent } => queue::on_remove(self, now, agent),
            Event::Resume { by } => human::on_resume(self, now, by),
        }
    }

    /// Returns who has the floor.
    pub fn active_agent(&self) -> Option<&str> {
        self.floor.active().map(|turn| &*turn.agent)
    }

    /// Returns how an agent stands.
    pub fn agent_state(&self, agent: &str) -> AgentState {
        let holds = |turn: &super::floor::Turn| turn.agent == agent;
        if self.agents.get(agent).is_some_and(|known| known.offline) {
            AgentState::Offline
        } else if self.floor.active().is_some_and(holds) {
            AgentState::Active
        } else if self.floor.turn().is_some_and(holds) {
            AgentState::Waiting
        } else if self.takes_turns() && self.queue.iter().any(|queued| queued == agent) {
            AgentState::Queued
        } else {
            AgentState::Idle
        }
    }

    /// Returns the turn that should have ended by now, if there is one: for a check of health.
    pub fn stuck(&self, now: Timestamp) -> Option<Stuck> {
        let turn = self.floor.active()?;
        let grace = self.config.grace().unwrap_or_default();
        let overdue = now > turn.deadline.after(grace).after(STUCK_AFTER);
        overdue.then(|| Stuck {
            agent: turn.agent.clone(),
            turn: self.turn,
            deadline: turn.deadline,
        })
    }

    /// Adds the reason of what was done.
    pub(super) fn decide(
        &self,
        mut outcome: Outcome,
        rule: &str,
        summary: impl Into<String>,
    ) -> Outcome {
        let count = |number: usize| number as u64;
        let counters = BTreeMap::from([
            ("turn".to_owned(), self.turn),
            ("queue".to_owned(), count(self.queue.len())),
            ("silent_turns".to_owned(), u64::from(self.silent_turns)),
        ]);
        outcome.decisions.push(Decision::new(rule, summary).counted(counters));
        outcome
    }

    /// Writes a line of history.
    pub(super) fn note(
        &mut self,
        at: Timestamp,
        event: &str,
        agent: &str,
        reason: Option<Reason>,
        seconds: Option<u64>,
    ) {
        let (event, agent, turn) = (event.to_owned(), agent.to_owned(), self.turn);
        self.history.push_back(Entry { at, event, agent, turn, reason, seconds });
        while self.history.len() > HISTORY_MAX {
            self.history.pop_front();
        }
    }

    /// Brings the queue into the order of priorities; the floor stays with its holder.
    pub(super) fn sort_by_priority(&mut self) {
        let current = self.queue.get(self.index).cloned();
        let personas = &self.personas;
        let priority = |agent: &String| personas.get(agent).map_or(0, |persona| persona.priority);
        self.queue.sort_by_key(|agent| std::cmp::Reverse(priority(agent)));
        let place = self.queue.iter().position(|agent| Some(agent) == current.as_ref());
        self.index = place.unwrap_or(0);
    }
}

/// Checks that there are as many agents as the mode is for.
pub(super) fn check_mode(config: &Config, found: usize) -> Result<(), StartError> {
    let (mode, wants) = match config.mode {
        Some(Mode::Single) if found != 1 => ("single", "exactly one agent"),
        Some(Mode::TurnBased) if found < 2 => ("turn-based", "two agents or more"),
        None | Some(Mode::Broadcast | Mode::Direct | Mode::Single | Mode::TurnBased) => {
            return Ok(());
        }
    };
    Err(StartError::Mode { mode, wants, found })
}
