//! Who has the turn, until when, and how it advances.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::config::{Mode, TurnOrder};
use super::event::{Effect, TurnEndReason};
use super::rule::Rule;
use super::state::State;
use aldis_signal::time::Timestamp;

/// After so many rounds of nothing but timeouts a channel is paused.
const SILENT_ROUNDS_MAX: usize = 3;
/// A deadline passes strictly: at the deadline itself nobody is late.
const PASSED: Duration = Duration::from_millis(1);

/// Who has the turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum TurnHolder {
    /// No agent.
    #[default]
    #[serde(alias = "free")]
    Nobody,
    /// An agent.
    #[serde(alias = "held")]
    Active(Turn),
    /// An agent whose turn waits until a human has an answer.
    Interrupted {
        /// The turn that waits.
        turn: Turn,
        /// How much of it is left.
        #[serde(alias = "left_ms")]
        remaining_ms: u64,
        /// Who is to answer.
        asked: String,
        /// How long that may take.
        until: Timestamp,
    },
    /// No agent, until the channel is resumed.
    Paused {
        /// The turn that waits, if one does.
        turn: Option<Turn>,
        /// How much of it is left.
        #[serde(alias = "left_ms")]
        remaining_ms: u64,
        /// Why the channel is paused.
        why: String,
    },
}

/// One agent's turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Whose.
    pub agent: String,
    /// Since when.
    pub started_at: Timestamp,
    /// When its time is over.
    pub deadline: Timestamp,
    /// Whether the agent was warned that its time is over.
    #[serde(default)]
    pub warned: bool,
    /// When the agent last sent a message in it.
    #[serde(default, alias = "spoke_at")]
    pub last_message_at: Option<Timestamp>,
    /// Whether that message ended with closing punctuation.
    #[serde(default, alias = "closed")]
    pub punctuated: bool,
}

impl Turn {
    /// Makes a turn in which nothing has happened yet.
    pub fn new(agent: String, started_at: Timestamp, deadline: Timestamp) -> Self {
        let (warned, last_message_at, punctuated) = (false, None, false);
        Self { agent, started_at, deadline, warned, last_message_at, punctuated }
    }
}

impl TurnHolder {
    /// Returns the turn that runs or waits.
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Self::Active(turn) | Self::Interrupted { turn, .. } => Some(turn),
            Self::Paused { turn, .. } => turn.as_ref(),
            Self::Nobody => None,
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::Active(turn) | Self::Interrupted { turn, .. } => Some(turn),
            Self::Paused { turn, .. } => turn.as_mut(),
            Self::Nobody => None,
        }
    }

    /// Returns the turn that runs right self.now.
    pub fn active(&self) -> Option<&Turn> {
        match self {
            Self::Active(turn) => Some(turn),
            Self::Nobody | Self::Interrupted { .. } | Self::Paused { .. } => None,
        }
    }

    /// Reads a stored holder. In 0.1.0 its tag was `floor`.
    pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        if let Some(members) = value.as_object_mut()
            && let Some(status) = members.remove("floor")
        {
            members.insert("status".to_owned(), status);
        }
        serde_json::from_value(value).map_err(serde::de::Error::custom)
    }
}

impl State {
    /// Returns when the machine must be woken.
    pub fn next_wake(&self) -> Option<Timestamp> {
        match &self.holder {
            TurnHolder::Active(turn) => {
                let over = self.ends_at(turn).after(PASSED);
                let silent = self.silent_at(turn).map(|at| at.after(PASSED));
                Some(silent.map_or(over, |silent| silent.min(over)))
            }
            TurnHolder::Interrupted { until, .. } => Some(until.after(PASSED)),
            TurnHolder::Nobody | TurnHolder::Paused { .. } => None,
        }
    }

    /// When a turn's time is over for good, as far as that is known self.now.
    fn ends_at(&self, turn: &Turn) -> Timestamp {
        match self.config.grace() {
            Some(grace) if turn.warned => turn.deadline.after(grace),
            _ => turn.deadline,
        }
    }

    /// When silence ends a turn, if it does.
    fn silent_at(&self, turn: &Turn) -> Option<Timestamp> {
        let auto = &self.config.auto_detect;
        let counts = auto.enabled && (turn.punctuated || !auto.detect_punctuation);
        let last = turn.last_message_at.filter(|_| counts)?;
        Some(last.after(Duration::from_secs(auto.silence_threshold)))
    }

    /// Time passed.
    pub(super) fn on_wake(&mut self, named: Option<u64>) {
        if named.is_some_and(|named| named != self.turn) {
            return;
        }
        match &self.holder {
            TurnHolder::Active(turn) if self.now > self.ends_at(turn) => self.on_deadline(),
            TurnHolder::Active(turn) if self.silent_at(turn).is_some_and(|at| self.now > at) => {
                let seconds = self.config.auto_detect.silence_threshold;
                let agent = turn.agent.clone();
                self.advance(TurnEndReason::AutoDetect);
                self.decide(Rule::Silence, format!("Ended {agent}'s turn"))
                    .because(format!("{agent} sent nothing for more than {seconds} s"))
                    .next(format!("{agent} can continue in its next turn"));
            }
            TurnHolder::Interrupted { until, asked, turn, .. } if self.now > *until => {
                let (asked, until) = (asked.clone(), *until);
                let summary = format!("Resumed {}'s turn", turn.agent);
                self.resume_turn();
                self.decide(Rule::Unanswered, summary)
                    .because(format!("{asked} did not answer by {until}"))
                    .next("ask again if you still need the answer");
            }
            TurnHolder::Nobody
            | TurnHolder::Active(_)
            | TurnHolder::Interrupted { .. }
            | TurnHolder::Paused { .. } => {}
        }
    }

    /// A deadline has passed: warn where that is wanted, else end the turn.
    fn on_deadline(&mut self) {
        let number = self.turn;
        let (grace, grace_seconds) = (self.config.grace(), self.config.grace_seconds);
        let TurnHolder::Active(turn) = &mut self.holder else { return };
        let (agent, deadline) = (turn.agent.clone(), turn.deadline);
        if let Some(grace) = grace
            && !turn.warned
            && self.now <= deadline.after(grace)
        {
            turn.warned = true;
            let until = deadline.after(grace);
            self.out.effects.push(Effect::Warn { agent: agent.clone(), turn: number, until });
            self.decide(Rule::Grace, format!("Warned {agent} that its turn ends soon"))
                .because(format!("its deadline was {deadline}; it has {grace_seconds} s of grace"))
                .next(format!("the turn ends at {until}"));
            return;
        }
        let seconds = rounded_seconds(self.now.since(turn.started_at));
        if self.config.announce_timeouts {
            let notice = self.config.timeout_notice(&agent, seconds);
            self.out.effects.push(Effect::notice(notice));
        }
        self.advance(TurnEndReason::Timeout);
        let ended = format!("Ended {agent}'s turn: it timed out after {seconds} s");
        if matches!(self.holder, TurnHolder::Paused { .. }) {
            self.decide(Rule::PausedAfterSilence, format!("{ended}. Paused the channel"))
                .because("no agent took a turn for three rounds")
                .next("check the agents, then resume the channel");
            return;
        }
        self.decide(Rule::Timeout, ended)
            .because(format!("{agent} did not end its turn by {deadline}"))
            .next(late_messages(&agent));
    }

    /// The machine is back after a restart: what was due meanwhile is due now.
    pub(super) fn on_recovered(&mut self) {
        match &self.holder {
            TurnHolder::Active(turn) if self.now > self.ends_at(turn) => {
                let (agent, deadline) = (turn.agent.clone(), turn.deadline);
                self.advance(TurnEndReason::Recovery);
                self.decide(Rule::Recovered, format!("Ended {agent}'s turn"))
                    .because(format!("its deadline, {deadline}, passed before the restart"))
                    .next(late_messages(&agent));
            }
            // Silence and unanswered questions may have come due as well.
            TurnHolder::Active(_) | TurnHolder::Interrupted { .. } => self.on_wake(None),
            TurnHolder::Nobody | TurnHolder::Paused { .. } => {}
        }
    }

    /// Ends the turn and gives the next one to the next agent in the queue.
    pub(super) fn advance(&mut self, reason: TurnEndReason) {
        self.end_turn(reason);
        if self.is_silent() {
            self.index = self.following(self.index);
            let why = "no agent took a turn for three rounds".to_owned();
            self.holder = TurnHolder::Paused { turn: None, remaining_ms: 0, why };
            let notice = "⏸️ No agent took a turn for three rounds. The channel is paused until \
                          somebody resumes it.";
            self.out.effects.push(Effect::notice(notice));
        } else {
            self.start_next(self.following(self.index));
        }
    }

    /// Ends the turn that runs or waits, if there is one.
    pub(super) fn end_turn(&mut self, reason: TurnEndReason) {
        let Some(turn) = self.holder.turn().cloned() else { return };
        match reason {
            TurnEndReason::Timeout if turn.last_message_at.is_none() => {
                self.silent_turns = self.silent_turns.saturating_add(1);
            }
            // Nobody could answer before the restart.
            TurnEndReason::Recovery => {}
            _ => self.silent_turns = 0,
        }
        let seconds = rounded_seconds(self.now.since(turn.started_at));
        let event = if reason.cut_off() { "turn_timeout" } else { "turn_completed" };
        self.note(event, &turn.agent, Some(reason), Some(seconds));
        if let Some(agent) = self.agents.get_mut(&turn.agent) {
            agent.last_ended = Some(reason);
        }
        self.holder = TurnHolder::Nobody;
    }

    /// Starts the turn of the agent at this place, unless a human or a program must name it first.
    pub(super) fn start_next(&mut self, index: usize) {
        if self.config.turn_order == TurnOrder::Manual {
            self.holder = TurnHolder::Nobody;
            return;
        }
        self.start_turn(index);
    }

    /// Starts the turn of the agent at this place.
    pub(super) fn start_turn(&mut self, index: usize) {
        self.holder = TurnHolder::Nobody;
        let Some(agent) = self.queue.get(index).cloned().filter(|_| self.takes_turns()) else {
            return;
        };
        self.index = index;
        self.turn += 1;
        let deadline = self.now.after(self.config.timeout(self.personas.get(&agent)));
        self.holder = TurnHolder::Active(Turn::new(agent.clone(), self.now, deadline));
        if let Some(ended) = self.history.back_mut().filter(|entry| entry.reason.is_some()) {
            ended.next_agent = Some(agent.clone());
        }
        self.note("turn_started", &agent, None, None);
        let held = std::mem::take(&mut self.held);
        self.out.effects.push(Effect::Notify { agent, turn: self.turn, deadline, held });
    }

    /// Suspends the turn, and returns how much of it is left.
    pub(super) fn suspend_turn(&mut self) -> Option<(Turn, u64)> {
        match std::mem::replace(&mut self.holder, TurnHolder::Nobody) {
            TurnHolder::Active(turn) => {
                let remaining = turn.deadline.since(self.now).as_millis();
                Some((turn, u64::try_from(remaining).unwrap_or(u64::MAX)))
            }
            TurnHolder::Interrupted { turn, remaining_ms, .. } => Some((turn, remaining_ms)),
            TurnHolder::Paused { turn, remaining_ms, .. } => turn.map(|turn| (turn, remaining_ms)),
            TurnHolder::Nobody => None,
        }
    }

    /// Resumes the turn that waits, with the time it had left.
    pub(super) fn resume_turn(&mut self) -> bool {
        let Some((mut turn, remaining)) = self.suspend_turn() else { return false };
        turn.deadline = self.now.after(Duration::from_millis(remaining));
        turn.warned = false;
        turn.last_message_at = turn.last_message_at.map(|_| self.now);
        self.holder = TurnHolder::Active(turn);
        true
    }

    /// Returns whether the channel has turns at all.
    pub(super) fn takes_turns(&self) -> bool {
        let turns = match self.config.mode {
            Some(Mode::Broadcast | Mode::Direct) => false,
            None | Some(Mode::Single | Mode::TurnBased) => true,
        };
        turns && !self.closed
    }

    /// The place after this one.
    pub(super) fn following(&self, index: usize) -> usize {
        if self.queue.is_empty() { 0 } else { (index + 1) % self.queue.len() }
    }

    fn is_silent(&self) -> bool {
        let turns = usize::try_from(self.silent_turns).unwrap_or(usize::MAX);
        !self.queue.is_empty() && turns >= self.queue.len().saturating_mul(SILENT_ROUNDS_MAX)
    }
}

fn late_messages(agent: &str) -> String {
    format!("a late message of {agent} is posted and does not advance the turn")
}

/// Seconds, to the nearest.
fn rounded_seconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis().saturating_add(500) / 1_000).unwrap_or(u64::MAX)
}
