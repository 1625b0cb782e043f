//! Who has the floor, until when, and how it passes on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::{Mode, TurnOrder};
use super::event::{Effect, Outcome, Reason};
use super::state::State;
use aldis_signal::time::Timestamp;

/// After so many rounds of nothing but timeouts a channel rests.
const SILENT_ROUNDS_MAX: usize = 3;
/// Deadlines are passed strictly: at the deadline itself nobody is late.
const PASSED: Duration = Duration::from_millis(1);

/// Who has the floor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "floor", rename_all = "snake_case")]
pub enum Floor {
    /// Nobody.
    Free,
    /// An agent.
    Held(Turn),
    /// An agent whose turn waits until a human is answered.
    Interrupted {
        /// The turn that waits.
        turn: Turn,
        /// How much of it is left.
        left_ms: u64,
        /// Who is to answer.
        asked: String,
        /// How long that may take.
        until: Timestamp,
    },
    /// Nobody, until somebody lets the channel go on.
    Paused {
        /// The turn that waits, if one does.
        turn: Option<Turn>,
        /// How much of it is left.
        left_ms: u64,
        /// Why the channel rests.
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
    /// When the agent last spoke in it.
    #[serde(default)]
    pub spoke_at: Option<Timestamp>,
    /// Whether what it last said ended with closing punctuation.
    #[serde(default)]
    pub closed: bool,
}

impl Floor {
    /// Returns the turn that goes on or waits.
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Self::Held(turn) | Self::Interrupted { turn, .. } => Some(turn),
            Self::Paused { turn, .. } => turn.as_ref(),
            Self::Free => None,
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::Held(turn) | Self::Interrupted { turn, .. } => Some(turn),
            Self::Paused { turn, .. } => turn.as_mut(),
            Self::Free => None,
        }
    }

    /// Returns whether somebody holds the floor right now.
    pub fn active(&self) -> Option<&Turn> {
        match self {
            Self::Held(turn) => Some(turn),
            Self::Free | Self::Interrupted { .. } | Self::Paused { .. } => None,
        }
    }
}

impl State {
    /// Returns when the machine must be woken.
    pub fn next_wake(&self) -> Option<Timestamp> {
        match &self.floor {
            Floor::Held(turn) => {
                let over = self.ends_at(turn).after(PASSED);
                let silent = self.silent_at(turn).map(|at| at.after(PASSED));
                Some(silent.map_or(over, |silent| silent.min(over)))
            }
            Floor::Interrupted { until, .. } => Some(until.after(PASSED)),
            Floor::Free | Floor::Paused { .. } => None,
        }
    }

    /// When a turn's time is over for good, as far as that is known now.
    fn ends_at(&self, turn: &Turn) -> Timestamp {
        match self.config.grace() {
            Some(grace) if turn.warned => turn.deadline.after(grace),
            _ => turn.deadline,
        }
    }

    /// When silence ends a turn, if it does.
    fn silent_at(&self, turn: &Turn) -> Option<Timestamp> {
        let auto = &self.config.auto_detect;
        let counts = auto.enabled && (turn.closed || !auto.detect_punctuation);
        let spoke = turn.spoke_at.filter(|_| counts)?;
        Some(spoke.after(Duration::from_secs(auto.silence_threshold)))
    }

    /// Time passed.
    pub(super) fn on_wake(&mut self, now: Timestamp, named: Option<u64>) -> Outcome {
        if named.is_some_and(|named| named != self.turn) {
            return Outcome::default();
        }
        match &self.floor {
            Floor::Held(turn) if now > self.ends_at(turn) => self.time_is_over(now),
            Floor::Held(turn) if self.silent_at(turn).is_some_and(|at| now > at) => {
                let seconds = self.config.auto_detect.silence_threshold;
                let agent = turn.agent.clone();
                let mut outcome = Outcome::default();
                self.pass_on(now, Reason::AutoDetect, &mut outcome);
                self.decide(outcome, "turns/silence", format!("Ended the turn of {agent}"))
                    .because(format!("it has been silent for more than {seconds} s"))
                    .next("an agent that wants to go on speaks in its next turn")
            }
            Floor::Interrupted { until, asked, .. } if now > *until => {
                let asked = asked.clone();
                self.take_up(now);
                self.decide(Outcome::default(), "turns/unanswered", "The turn goes on")
                    .because(format!("{asked} did not answer in time"))
                    .next("ask again when you like")
            }
            Floor::Free | Floor::Held(_) | Floor::Interrupted { .. } | Floor::Paused { .. } => {
                Outcome::default()
            }
        }
    }

    /// A deadline has passed: warn where that is wanted, else end the turn.
    fn time_is_over(&mut self, now: Timestamp) -> Outcome {
        let number = self.turn;
        let grace = self.config.grace();
        let Floor::Held(turn) = &mut self.floor else { return Outcome::default() };
        let agent = turn.agent.clone();
        let mut outcome = Outcome::default();
        if let Some(grace) = grace
            && !turn.warned
            && now <= turn.deadline.after(grace)
        {
            turn.warned = true;
            let until = turn.deadline.after(grace);
            outcome.effects.push(Effect::Warn { agent: agent.clone(), turn: number, until });
            return self
                .decide(outcome, "turns/grace", format!("Warned {agent}"))
                .because("its time is over and it has a moment more")
                .next(format!("the turn ends at {until}"));
        }
        let seconds = rounded_seconds(now.since(turn.started_at));
        if self.config.announce_timeouts {
            let words = self.config.timeout_words(&agent, seconds);
            outcome.effects.push(Effect::notice(words));
        }
        self.pass_on(now, Reason::Timeout, &mut outcome);
        let next = match self.floor {
            Floor::Paused { .. } => "look after the agents, then let the channel go on",
            _ => "what it still says is posted and passes nothing on",
        };
        self.decide(outcome, "turns/timeout", format!("Ended the turn of {agent}"))
            .because(format!("it had not ended its turn after {seconds} s"))
            .next(next)
    }

    /// We are back: what was due meanwhile is due now.
    pub(super) fn on_recovered(&mut self, now: Timestamp) -> Outcome {
        match &self.floor {
            Floor::Held(turn) if now > turn.deadline => {
                let (agent, deadline) = (turn.agent.clone(), turn.deadline);
                let mut outcome = Outcome::default();
                self.pass_on(now, Reason::Recovery, &mut outcome);
                self.decide(outcome, "turns/recovery", format!("Ended the turn of {agent}"))
                    .because(format!("its time was over at {deadline}, while nobody watched"))
                    .next("what it still says is posted and passes nothing on")
            }
            // Silence and unanswered questions may have come due as well.
            Floor::Held(_) | Floor::Interrupted { .. } => self.on_wake(now, None),
            Floor::Free | Floor::Paused { .. } => Outcome::default(),
        }
    }

    /// Ends the turn and gives the floor to the next in the queue.
    pub(super) fn pass_on(&mut self, now: Timestamp, reason: Reason, outcome: &mut Outcome) {
        self.end_turn(now, reason);
        if self.is_silent() {
            self.index = self.following(self.index);
            let why = "nobody has taken a turn for three rounds".to_owned();
            self.floor = Floor::Paused { turn: None, left_ms: 0, why };
            let words = "⏸️ Nobody has taken a turn for three rounds. The channel rests until \
                         somebody lets it go on.";
            outcome.effects.push(Effect::notice(words));
        } else {
            self.begin_next(now, self.following(self.index), outcome);
        }
    }

    /// Ends the turn that goes on or waits, if there is one.
    pub(super) fn end_turn(&mut self, now: Timestamp, reason: Reason) {
        let Some(turn) = self.floor.turn().cloned() else { return };
        let spoke = turn.spoke_at.is_some();
        match reason {
            Reason::Timeout if !spoke => self.silent_turns = self.silent_turns.saturating_add(1),
            // Nobody could answer while we were not there.
            Reason::Recovery => {}
            _ => self.silent_turns = 0,
        }
        let seconds = rounded_seconds(now.since(turn.started_at));
        let event = if reason.cut_off() { "turn_timeout" } else { "turn_completed" };
        self.note(now, event, &turn.agent, Some(reason), Some(seconds));
        if let Some(agent) = self.agents.get_mut(&turn.agent) {
            agent.last_ended = Some(reason);
        }
        self.floor = Floor::Free;
    }

    /// Gives the floor to whoever stands at this place, unless somebody must choose first.
    pub(super) fn begin_next(&mut self, now: Timestamp, index: usize, outcome: &mut Outcome) {
        if self.config.turn_order == TurnOrder::Manual {
            self.floor = Floor::Free;
            return;
        }
        self.begin(now, index, outcome);
    }

    /// Gives the floor to whoever stands at this place.
    pub(super) fn begin(&mut self, now: Timestamp, index: usize, outcome: &mut Outcome) {
        self.floor = Floor::Free;
        let Some(agent) = self.queue.get(index).cloned().filter(|_| self.takes_turns()) else {
            return;
        };
        self.index = index;
        self.turn += 1;
        let deadline = now.after(self.config.timeout(self.personas.get(&agent)));
        self.floor = Floor::Held(Turn {
            agent: agent.clone(),
            started_at: now,
            deadline,
            warned: false,
            spoke_at: None,
            closed: false,
        });
        self.note(now, "turn_started", &agent, None, None);
        let held = std::mem::take(&mut self.held);
        outcome.effects.push(Effect::Notify { agent, turn: self.turn, deadline, held });
    }

    /// Lets the turn wait, and returns how much of it is left.
    pub(super) fn set_aside(&mut self, now: Timestamp) -> Option<(Turn, u64)> {
        match std::mem::replace(&mut self.floor, Floor::Free) {
            Floor::Held(turn) => {
                let left = turn.deadline.since(now).as_millis();
                Some((turn, u64::try_from(left).unwrap_or(u64::MAX)))
            }
            Floor::Interrupted { turn, left_ms, .. } => Some((turn, left_ms)),
            Floor::Paused { turn, left_ms, .. } => turn.map(|turn| (turn, left_ms)),
            Floor::Free => None,
        }
    }

    /// Lets the turn that waits go on, with the time it had left.
    pub(super) fn take_up(&mut self, now: Timestamp) -> bool {
        let Some((mut turn, left)) = self.set_aside(now) else { return false };
        turn.deadline = now.after(Duration::from_millis(left));
        turn.warned = false;
        turn.spoke_at = turn.spoke_at.map(|_| now);
        self.floor = Floor::Held(turn);
        true
    }

    /// Returns whether the channel has a floor at all.
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

/// Seconds, to the nearest.
fn rounded_seconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis().saturating_add(500) / 1_000).unwrap_or(u64::MAX)
}
