//! What humans send and want.

use super::config::{Config, HumanInterrupt, TurnOrder};
use super::event::{ChannelMessage, Effect, TurnEndReason};
use super::holder::TurnHolder;
use super::rule::Rule;
use super::state::State;

/// How many messages of humans wait for a turn.
const HELD_MAX: usize = 32;

impl State {
    pub(super) fn on_human(&mut self, text: &str, from: Option<&str>, to: Option<&str>) {
        let from = from.unwrap_or("human");
        let message = ChannelMessage { from: from.to_owned(), text: text.to_owned() };
        if let Some(to) = to
            && !self.queue.iter().any(|queued| queued == to)
        {
            return self.refuse(format!("{to} is not in the queue"));
        }
        if !self.takes_turns() {
            return self.give_all(message, "the channel has no turns");
        }
        if matches!(self.holder, TurnHolder::Paused { turn: None, .. }) {
            self.hold_message(message);
            self.resume_channel();
            self.decide(Rule::ResumedByMessage, "Resumed the channel")
                .because(format!("{from} sent a message"))
                .next("the agent whose turn starts next gets it");
            return;
        }
        let active = self.holder.active().map(|turn| turn.agent.clone());
        match (self.config.human_interrupt, active) {
            (HumanInterrupt::Parallel, _) => {
                self.give_all(message, "`human_interrupt` is `parallel`");
            }
            (HumanInterrupt::Inject, Some(active)) => {
                let to = to.map_or(active, str::to_owned);
                let summary = format!("Gave a message of {from} to {to}");
                self.out.effects.push(Effect::Deliver { to: vec![to], message });
                self.decide(Rule::MessageInjected, summary)
                    .because("`human_interrupt` is `inject`")
                    .next("the turn continues");
            }
            (HumanInterrupt::Interrupt, Some(active)) => {
                self.interrupt(to.unwrap_or(&active), message);
            }
            (HumanInterrupt::Queue, _) | (_, None) => {
                let because = match self.config.human_interrupt {
                    HumanInterrupt::Queue => "`human_interrupt` is `queue`",
                    _ => "no agent is active that could get it",
                };
                if !self.hold_message(message) {
                    return self.refuse(format!("{HELD_MAX} messages already wait"));
                }
                self.decide(Rule::MessageHeld, format!("Held a message of {from}"))
                    .because(because)
                    .next("the agent whose turn starts next gets it");
            }
        }
    }

    fn give_all(&mut self, message: ChannelMessage, because: &str) {
        let summary = format!("Gave a message of {} to all agents", message.from);
        self.out.effects.push(Effect::Deliver { to: self.queue.clone(), message });
        self.decide(Rule::MessageToAll, summary).because(because).next("no turn changes");
    }

    /// The turn waits until the agent that is asked has answered.
    fn interrupt(&mut self, asked: &str, message: ChannelMessage) {
        let until = self.now.after(self.config.timeout(self.personas.get(asked)));
        let Some((turn, remaining_ms)) = self.suspend_turn() else { return };
        let summary = format!("Interrupted {}'s turn", turn.agent);
        let because =
            format!("{} sent a message, and `human_interrupt` is `interrupt`", message.from);
        let asked = asked.to_owned();
        self.holder = TurnHolder::Interrupted { turn, remaining_ms, asked: asked.clone(), until };
        let next =
            format!("the turn continues when {asked} has answered, at {until} at the latest");
        self.out.effects.push(Effect::Deliver { to: vec![asked], message });
        self.decide(Rule::Interrupted, summary).because(because).next(next);
    }

    /// Keeps a message for the next turn; `false` if there are too many.
    fn hold_message(&mut self, message: ChannelMessage) -> bool {
        let room = self.held.len() < HELD_MAX;
        if room {
            self.held.push(message);
        }
        room
    }

    pub(super) fn on_pause(&mut self, by: &str) {
        if matches!(self.holder, TurnHolder::Paused { .. }) {
            return self.refuse("the channel is already paused");
        }
        if !self.takes_turns() {
            return self.refuse("the channel has no turns, so there is nothing to pause");
        }
        let (turn, remaining_ms) = self.suspend_turn().unzip();
        let remaining_ms = remaining_ms.unwrap_or_default();
        let next = match &turn {
            Some(turn) => {
                format!("resume it at any time; {} keeps the time it had left", turn.agent)
            }
            None => "resume it at any time".to_owned(),
        };
        self.holder = TurnHolder::Paused { turn, remaining_ms, why: format!("{by} paused it") };
        self.decide(Rule::Paused, "Paused the channel")
            .because(format!("requested by {by}"))
            .next(next);
    }

    pub(super) fn on_resume(&mut self, by: &str) {
        if !self.resume_channel() {
            return self.refuse("the channel is not paused, so there is nothing to resume");
        }
        let next = self.whose_turn();
        self.decide(Rule::Resumed, "Resumed the channel")
            .because(format!("requested by {by}"))
            .next(next);
    }

    /// Resumes what waits; `false` if nothing does.
    fn resume_channel(&mut self) -> bool {
        let paused = match &self.holder {
            TurnHolder::Paused { .. } => true,
            TurnHolder::Interrupted { .. } => false,
            TurnHolder::Nobody | TurnHolder::Active(_) => return false,
        };
        self.silent_turns = 0;
        if !self.resume_turn() {
            self.start_next(self.index);
        } else if let (true, Some(turn)) = (paused, self.holder.active()) {
            let (agent, deadline) = (turn.agent.clone(), turn.deadline);
            self.out.effects.push(Effect::Notify {
                agent,
                turn: self.turn,
                deadline,
                held: Vec::new(),
            });
        }
        true
    }

    pub(super) fn on_close(&mut self, by: &str) {
        self.end_turn(TurnEndReason::Manual);
        self.holder = TurnHolder::Nobody;
        self.closed = true;
        self.decide(Rule::Closed, "Closed the channel")
            .because(format!("requested by {by}"))
            .next("a closed channel stays closed; open another one");
    }

    pub(super) fn on_configure(&mut self, config: &Config) {
        if let Err(error) = config.check() {
            return self.refuse(error.to_string());
        }
        if let Err(error) = super::state::check_mode(config, self.queue.len()) {
            return self.refuse(error.to_string());
        }
        let had_turns = self.takes_turns();
        self.config = config.clone();
        match (had_turns, self.takes_turns()) {
            (true, false) => {
                self.end_turn(TurnEndReason::Manual);
                self.holder = TurnHolder::Nobody;
            }
            (false, true) => self.start_next(self.index),
            // Nobody will name the next any more.
            (true, true)
                if matches!(self.holder, TurnHolder::Nobody)
                    && config.turn_order != TurnOrder::Manual =>
            {
                self.start_next(self.index);
            }
            (true, true) | (false, false) => {}
        }
        if config.turn_order == TurnOrder::Priority {
            self.sort_by_priority();
        }
        self.decide(Rule::Configured, "Changed the configuration of the channel")
            .because("requested by a human or a program")
            .next("a running turn keeps its deadline");
    }
}
