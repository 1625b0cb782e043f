//! What an agent sends, and whether it counts.

use super::config::Mode;
use super::event::{ChannelMessage, Effect, Reply, ReplyReason, TurnEndReason};
use super::holder::TurnHolder;
use super::reader::IncomingMessage;
use super::rule::Rule;
use super::state::State;
use crate::Evidence;
use crate::evidence::ending;
use crate::trust;
use aldis_signal::scan::Token;
use aldis_signal::signal::Via;

/// How much of a message is quoted as evidence.
const QUOTE_MAX: usize = 200;

/// As what an agent sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SenderRole {
    /// It has the turn.
    Active,
    /// A human asked it, in another agent's turn.
    Asked,
    /// The channel has no turns.
    Free,
    /// Its turn was cut off, and it may not have known.
    Late,
    /// It has no turn.
    Waiting,
}

impl State {
    pub(super) fn on_message(
        &mut self,
        agent: &str,
        turn: Option<u64>,
        messages: &[IncomingMessage],
    ) {
        if self.closed {
            let reply = Reply::ignored(ReplyReason::ChannelClosed);
            self.out.effects.extend(messages.iter().map(|_| Effect::Reply(reply.clone())));
            self.decide(Rule::ChannelClosed, format!("Ignored the message of {agent}"))
                .because("the channel is closed")
                .next("open another channel");
            return;
        }
        let mut over = false;
        let mut last = None;
        for message in messages {
            if over {
                self.out.effects.push(Effect::Reply(Reply::ignored(ReplyReason::AfterTurnEnd)));
                continue;
            }
            let role = self.sender_role(agent, turn);
            if role != SenderRole::Waiting
                && let Some(known) = self.agents.get_mut(agent)
            {
                known.last_activity = Some(self.now);
            }
            let (reply, rule) = self.take_message(agent, message, role);
            over = reply.turn_advanced;
            self.out.effects.push(Effect::Reply(reply));
            last = Some((rule, message));
        }
        if let Some((rule, message)) = last {
            self.explain(agent, rule, message);
        }
    }

    fn sender_role(&self, agent: &str, named: Option<u64>) -> SenderRole {
        if !self.takes_turns() {
            let member = self.queue.iter().any(|queued| queued == agent);
            return if member { SenderRole::Free } else { SenderRole::Waiting };
        }
        let holds = self.holder.turn().is_some_and(|turn| turn.agent == agent);
        // A number that this channel has not reached comes from another state of it and means nothing.
        let ended = named.is_some_and(|named| named < self.turn);
        if holds {
            return if ended { SenderRole::Late } else { SenderRole::Active };
        }
        if matches!(&self.holder, TurnHolder::Interrupted { asked, .. } if asked == agent) {
            return SenderRole::Asked;
        }
        let last = self.agents.get(agent).and_then(|known| known.last_ended);
        if last.is_some_and(TurnEndReason::cut_off) {
            SenderRole::Late
        } else {
            SenderRole::Waiting
        }
    }

    /// Takes one message and returns what became of it and by which rule.
    fn take_message(
        &mut self,
        agent: &str,
        message: &IncomingMessage,
        role: SenderRole,
    ) -> (Reply, Rule) {
        if role == SenderRole::Waiting {
            return (Reply::ignored(ReplyReason::NotActiveAgent), Rule::NotActive);
        }
        let mut reply = self.post_message(agent, message);
        let rule = match role {
            SenderRole::Late => {
                reply.reason = Some(ReplyReason::LateSignal);
                Rule::LateMessage
            }
            SenderRole::Asked => {
                reply.reason = Some(ReplyReason::Answer);
                self.resume_turn();
                Rule::Answered
            }
            SenderRole::Free => {
                self.broadcast(agent, &reply);
                Rule::PostedWithoutTurns
            }
            SenderRole::Active | SenderRole::Waiting => self.take_active(message, &mut reply),
        };
        (reply, rule)
    }

    /// Posts what is left to show.
    fn post_message(&mut self, agent: &str, message: &IncomingMessage) -> Reply {
        let display = message.display.clone();
        let posted = !is_blank(&display);
        if posted {
            let persona = self.personas.get(agent);
            self.out.effects.push(Effect::Post {
                agent: agent.to_owned(),
                name: persona.and_then(|persona| persona.display_name.clone()),
                avatar: persona.and_then(|persona| persona.avatar_url.clone()),
                text: display.clone(),
            });
        }
        Reply { posted, display: Some(display), ..Reply::default() }
    }

    /// The agent that has the turn sends a message.
    fn take_active(&mut self, message: &IncomingMessage, reply: &mut Reply) -> Rule {
        if matches!(self.holder, TurnHolder::Interrupted { .. }) {
            self.resume_turn();
        }
        if let Some(turn) = self.holder.turn_mut() {
            turn.last_message_at = Some(self.now);
            turn.punctuated = message.punctuated;
        }
        self.silent_turns = 0;
        let (reason, rule) = match message {
            IncomingMessage { signal: Some(_), .. } => {
                (TurnEndReason::TurnComplete, Rule::TurnComplete)
            }
            IncomingMessage { completion_phrase: true, .. } => {
                (TurnEndReason::AutoDetect, Rule::CompletionPhrase)
            }
            IncomingMessage { .. } => return Rule::Posted,
        };
        reply.turn_advanced = true;
        if let TurnHolder::Paused { why, .. } = &self.holder {
            // The next turn starts when the channel is resumed.
            let why = why.clone();
            self.end_turn(reason);
            self.index = self.following(self.index);
            self.holder = TurnHolder::Paused { turn: None, remaining_ms: 0, why };
            return rule;
        }
        self.advance(reason);
        reply.next_agent = self.active_agent().map(str::to_owned);
        rule
    }

    /// In a broadcast channel the other agents get every message.
    fn broadcast(&mut self, agent: &str, reply: &Reply) {
        let to: Vec<String> =
            self.queue.iter().filter(|queued| *queued != agent).cloned().collect();
        let text = reply.display.clone().filter(|_| reply.posted);
        if let (Some(Mode::Broadcast), Some(text), false) = (self.config.mode, text, to.is_empty())
        {
            let message = ChannelMessage { from: agent.to_owned(), text };
            self.out.effects.push(Effect::Deliver { to, message });
        }
    }

    /// Adds the decision about the last message that was taken.
    fn explain(&mut self, agent: &str, rule: Rule, message: &IncomingMessage) {
        let posted = self.out.replies().iter().any(|reply| reply.posted);
        let took = |what: &str| match posted {
            true => format!("Posted the {what} of {agent}"),
            false => format!("Received an empty {what} of {agent}"),
        };
        let keyword = &self.config.keyword;
        let continues = || format!("{}'s turn continues", self.active_agent().unwrap_or("nobody"));
        let (summary, because, next) = match rule {
            Rule::TurnComplete => {
                let signal = message.signal.as_ref();
                let keyword = signal.and_then(|signal| signal.name.as_deref()).unwrap_or_default();
                let because = match signal.map(|signal| signal.via) {
                    Some(via @ (Via::Call | Via::Receipt)) => {
                        format!("it reported {keyword} {}", trust::how(via))
                    }
                    _ => format!("its message ends with {keyword}"),
                };
                (format!("Ended {agent}'s turn"), because, self.whose_turn())
            }
            Rule::CompletionPhrase => {
                let because = "the last sentence of its message is a completion phrase".to_owned();
                (format!("Ended {agent}'s turn"), because, self.whose_turn())
            }
            Rule::LateMessage => {
                let because = format!("{agent}'s turn had ended before");
                (took("late message"), because, self.whose_turn())
            }
            Rule::Answered => (took("answer"), "a human had asked".to_owned(), continues()),
            Rule::PostedWithoutTurns => {
                let because = "the channel has no turns".to_owned();
                (took("message"), because, "nothing to do".to_owned())
            }
            Rule::NotActive => {
                let because = match self.active_agent() {
                    Some(holder) => format!("{holder} has the turn, not {agent}"),
                    None => format!("{agent} does not have the turn; {}", self.whose_turn()),
                };
                let next = format!("{agent} can post in its own turn");
                (format!("Did not post the message of {agent}"), because, next)
            }
            _ => (
                took("message"),
                format!("{agent} has the turn, and its message does not end with {keyword}"),
                format!("{agent} can continue, end its turn with {keyword}, or time out"),
            ),
        };
        let evidence = message.signal.iter().chain(&message.near_misses).cloned();
        let mut evidence: Vec<Evidence> = evidence.collect();
        if evidence.is_empty() {
            let quote = ending(message.display.trim(), QUOTE_MAX, &Token::Off);
            evidence.push(Evidence::new("said", quote));
        }
        self.decide(rule, summary).because(because).next(next).seen(evidence);
    }

    /// Says whose turn it is.
    pub(super) fn whose_turn(&self) -> String {
        let holder = self.holder.turn().map(|turn| &*turn.agent);
        match (&self.holder, holder) {
            (TurnHolder::Active(_), Some(agent)) => format!("{agent} has the turn"),
            (TurnHolder::Interrupted { asked, .. }, Some(agent)) => {
                format!("{agent}'s turn waits until {asked} has answered")
            }
            (TurnHolder::Paused { .. }, Some(agent)) => {
                format!("{agent}'s turn continues when the channel is resumed")
            }
            (TurnHolder::Paused { .. }, None) => {
                "the next turn starts when the channel is resumed".to_owned()
            }
            _ if self.queue.is_empty() => "no agent is left: add one".to_owned(),
            _ if self.takes_turns() => "no agent has the turn: name the next".to_owned(),
            _ => "the channel has no turns".to_owned(),
        }
    }
}

/// Returns whether there is nothing to see.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || aldis_signal::scan::is_zero_width(c))
}
