//! What an agent sends, and whether it counts.

use super::config::Mode;
use super::event::{ChannelMessage, Effect, Outcome, Reply, ReplyReason, TurnEndReason};
use super::holder::TurnHolder;
use super::reader::IncomingMessage;
use super::rule::Rule;
use super::state::State;
use crate::Evidence;
use aldis_signal::time::Timestamp;

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

pub(super) fn on_message(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    turn: Option<u64>,
    messages: &[IncomingMessage],
) -> Outcome {
    let mut outcome = Outcome::default();
    if state.closed {
        let reply = Reply::ignored(ReplyReason::ChannelClosed);
        outcome.effects.extend(messages.iter().map(|_| Effect::Reply(reply.clone())));
        return state
            .decide(outcome, Rule::ChannelClosed, format!("Ignored the message of {agent}"))
            .because("the channel is closed")
            .next("open another channel");
    }
    let mut over = false;
    let mut last = None;
    for message in messages {
        if over {
            outcome.effects.push(Effect::Reply(Reply::ignored(ReplyReason::AfterTurnEnd)));
            continue;
        }
        let role = role(state, agent, turn);
        if role != SenderRole::Waiting
            && let Some(known) = state.agents.get_mut(agent)
        {
            known.last_activity = Some(now);
        }
        let (reply, rule) = take(state, now, agent, message, role, &mut outcome);
        over = reply.turn_advanced;
        outcome.effects.push(Effect::Reply(reply));
        last = Some((rule, message));
    }
    match last {
        Some((rule, message)) => explained(state, outcome, agent, rule, message),
        None => outcome,
    }
}

fn role(state: &State, agent: &str, named: Option<u64>) -> SenderRole {
    if !state.takes_turns() {
        let member = state.queue.iter().any(|queued| queued == agent);
        return if member { SenderRole::Free } else { SenderRole::Waiting };
    }
    let holds = state.holder.turn().is_some_and(|turn| turn.agent == agent);
    // A number that this channel has not reached comes from another state of it and means nothing.
    let ended = named.is_some_and(|named| named < state.turn);
    if holds {
        return if ended { SenderRole::Late } else { SenderRole::Active };
    }
    if matches!(&state.holder, TurnHolder::Interrupted { asked, .. } if asked == agent) {
        return SenderRole::Asked;
    }
    let last = state.agents.get(agent).and_then(|known| known.last_ended);
    if last.is_some_and(TurnEndReason::cut_off) { SenderRole::Late } else { SenderRole::Waiting }
}

/// Takes one message and returns what became of it and by which rule.
fn take(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    message: &IncomingMessage,
    role: SenderRole,
    outcome: &mut Outcome,
) -> (Reply, Rule) {
    if role == SenderRole::Waiting {
        return (Reply::ignored(ReplyReason::NotActiveAgent), Rule::NotActive);
    }
    let mut reply = post(state, agent, message, outcome);
    let rule = match role {
        SenderRole::Late => {
            reply.reason = Some(ReplyReason::LateSignal);
            Rule::LateMessage
        }
        SenderRole::Asked => {
            reply.reason = Some(ReplyReason::Answer);
            state.resume_turn(now);
            Rule::Answered
        }
        SenderRole::Free => {
            broadcast(state, agent, &reply, outcome);
            Rule::PostedWithoutTurns
        }
        SenderRole::Active | SenderRole::Waiting => {
            active(state, now, message, &mut reply, outcome)
        }
    };
    (reply, rule)
}

/// Posts what is left to show.
fn post(state: &State, agent: &str, message: &IncomingMessage, outcome: &mut Outcome) -> Reply {
    let display = message.display.clone();
    let posted = !is_blank(&display);
    if posted {
        let persona = state.personas.get(agent);
        outcome.effects.push(Effect::Post {
            agent: agent.to_owned(),
            name: persona.and_then(|persona| persona.display_name.clone()),
            avatar: persona.and_then(|persona| persona.avatar_url.clone()),
            text: display.clone(),
        });
    }
    Reply { posted, display: Some(display), ..Reply::default() }
}

/// The agent that has the turn sends a message.
fn active(
    state: &mut State,
    now: Timestamp,
    message: &IncomingMessage,
    reply: &mut Reply,
    outcome: &mut Outcome,
) -> Rule {
    if matches!(state.holder, TurnHolder::Interrupted { .. }) {
        state.resume_turn(now);
    }
    if let Some(turn) = state.holder.turn_mut() {
        turn.last_message_at = Some(now);
        turn.punctuated = message.punctuated;
    }
    state.silent_turns = 0;
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
    if let TurnHolder::Paused { why, .. } = &state.holder {
        // The next turn starts when the channel is resumed.
        let why = why.clone();
        state.end_turn(now, reason);
        state.index = state.following(state.index);
        state.holder = TurnHolder::Paused { turn: None, remaining_ms: 0, why };
        return rule;
    }
    state.advance(now, reason, outcome);
    reply.next_agent = state.active_agent().map(str::to_owned);
    rule
}

/// In a broadcast channel the other agents get every message.
fn broadcast(state: &State, agent: &str, reply: &Reply, outcome: &mut Outcome) {
    let to: Vec<String> = state.queue.iter().filter(|queued| *queued != agent).cloned().collect();
    let text = reply.display.clone().filter(|_| reply.posted);
    if let (Some(Mode::Broadcast), Some(text), false) = (state.config.mode, text, to.is_empty()) {
        let message = ChannelMessage { from: agent.to_owned(), text };
        outcome.effects.push(Effect::Deliver { to, message });
    }
}

/// Adds the decision about the last message that was taken.
fn explained(
    state: &State,
    outcome: Outcome,
    agent: &str,
    rule: Rule,
    message: &IncomingMessage,
) -> Outcome {
    let posted = outcome.replies().iter().any(|reply| reply.posted);
    let took = |what: &str| match posted {
        true => format!("Posted the {what} of {agent}"),
        false => format!("Received an empty {what} of {agent}"),
    };
    let keyword = &state.config.keyword;
    let continues = || format!("{}'s turn continues", state.active_agent().unwrap_or("nobody"));
    let (summary, because, next) = match rule {
        Rule::TurnComplete => {
            let keyword = message.signal.as_ref().and_then(|signal| signal.name.as_deref());
            let because = format!("its message ends with {}", keyword.unwrap_or_default());
            (format!("Ended {agent}'s turn"), because, whose_turn(state))
        }
        Rule::CompletionPhrase => {
            let because = "the last sentence of its message is a completion phrase".to_owned();
            (format!("Ended {agent}'s turn"), because, whose_turn(state))
        }
        Rule::LateMessage => {
            let because = format!("{agent}'s turn had ended before");
            (took("late message"), because, whose_turn(state))
        }
        Rule::Answered => (took("answer"), "a human had asked".to_owned(), continues()),
        Rule::PostedWithoutTurns => {
            let because = "the channel has no turns".to_owned();
            (took("message"), because, "nothing to do".to_owned())
        }
        Rule::NotActive => {
            let because = match state.active_agent() {
                Some(holder) => format!("{holder} has the turn, not {agent}"),
                None => format!("{agent} does not have the turn; {}", whose_turn(state)),
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
        let quote = tail(&message.display);
        evidence.push(Evidence::new("said", quote));
    }
    state.decide(outcome, rule, summary).because(because).next(next).seen(evidence)
}

/// Says whose turn it is.
pub(super) fn whose_turn(state: &State) -> String {
    let holder = state.holder.turn().map(|turn| &*turn.agent);
    match (&state.holder, holder) {
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
        _ if state.queue.is_empty() => "no agent is left: add one".to_owned(),
        _ if state.takes_turns() => "no agent has the turn: name the next".to_owned(),
        _ => "the channel has no turns".to_owned(),
    }
}

/// The end of a message.
fn tail(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().rev().nth(QUOTE_MAX - 1) {
        Some((at, _)) => text.get(at..).unwrap_or_default().to_owned(),
        None => text.to_owned(),
    }
}

/// Returns whether there is nothing to see.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || aldis_signal::scan::is_zero_width(c))
}
