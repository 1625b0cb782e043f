//! What an agent says, and whether it counts.

use super::config::Mode;
use super::ear::Heard;
use super::event::{Effect, Outcome, Reason, Reply, Verdict, Words};
use super::floor::Floor;
use super::state::State;
use crate::Evidence;
use aldis_signal::time::Timestamp;

/// How much of a message is quoted as evidence.
const QUOTE_MAX: usize = 200;

/// As what somebody speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has the floor.
    Active,
    /// It was asked by a human, in somebody else's turn.
    Asked,
    /// The channel has no floor.
    Free,
    /// Its turn is over, and it may not have known.
    Late,
    /// It has no say now.
    None,
}

pub(super) fn on_said(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    turn: Option<u64>,
    messages: &[Heard],
) -> Outcome {
    let mut outcome = Outcome::default();
    if state.closed {
        let reply = Reply::ignored(Verdict::ChannelClosed);
        outcome.effects.extend(messages.iter().map(|_| Effect::Reply(reply.clone())));
        return state
            .decide(outcome, "turns/closed", format!("Ignored {agent}"))
            .because("the channel is closed")
            .next("open another one");
    }
    if let Some(known) = state.agents.get_mut(agent) {
        known.last_activity = Some(now);
    }
    let mut over = false;
    let mut last = None;
    for message in messages {
        if over {
            outcome.effects.push(Effect::Reply(Reply::ignored(Verdict::AfterTurnEnd)));
            continue;
        }
        let standing = standing(state, agent, turn);
        let (reply, rule) = take(state, now, agent, message, standing, &mut outcome);
        over = reply.turn_advanced;
        outcome.effects.push(Effect::Reply(reply));
        last = Some((standing, rule, message));
    }
    match last {
        Some((standing, rule, message)) => {
            explained(state, outcome, agent, standing, rule, message)
        }
        None => outcome,
    }
}

fn standing(state: &State, agent: &str, named: Option<u64>) -> Standing {
    if !state.takes_turns() {
        let member = state.queue.iter().any(|queued| queued == agent);
        return if member { Standing::Free } else { Standing::None };
    }
    let holds = state.floor.turn().is_some_and(|turn| turn.agent == agent);
    // A number that this channel has not reached comes from another state of it and says nothing.
    let ended = named.is_some_and(|named| named < state.turn);
    if holds {
        return if ended { Standing::Late } else { Standing::Active };
    }
    if matches!(&state.floor, Floor::Interrupted { asked, .. } if asked == agent) {
        return Standing::Asked;
    }
    let last = state.agents.get(agent).and_then(|known| known.last_ended);
    if last.is_some_and(Reason::cut_off) { Standing::Late } else { Standing::None }
}

/// Takes one message and returns what became of it and by which rule.
fn take(
    state: &mut State,
    now: Timestamp,
    agent: &str,
    message: &Heard,
    standing: Standing,
    outcome: &mut Outcome,
) -> (Reply, &'static str) {
    if standing == Standing::None {
        return (Reply::ignored(Verdict::NotActiveAgent), "turns/not_active");
    }
    let mut reply = post(state, agent, message, outcome);
    let rule = match standing {
        Standing::Late => {
            reply.reason = Some(Verdict::LateSignal);
            "turns/late"
        }
        Standing::Asked => {
            reply.reason = Some(Verdict::Answer);
            state.take_up(now);
            "turns/answer"
        }
        Standing::Free => {
            broadcast(state, agent, &reply, outcome);
            "turns/free"
        }
        Standing::Active | Standing::None => active(state, now, message, &mut reply, outcome),
    };
    (reply, rule)
}

/// Shows what is left to show.
fn post(state: &State, agent: &str, message: &Heard, outcome: &mut Outcome) -> Reply {
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

/// The agent that has the floor speaks.
fn active(
    state: &mut State,
    now: Timestamp,
    message: &Heard,
    reply: &mut Reply,
    outcome: &mut Outcome,
) -> &'static str {
    if matches!(state.floor, Floor::Interrupted { .. }) {
        state.take_up(now);
    }
    if let Some(turn) = state.floor.turn_mut() {
        turn.spoke_at = Some(now);
        turn.closed = message.closed;
    }
    state.silent_turns = 0;
    let (reason, rule) = match message {
        Heard { signal: Some(_), .. } => (Reason::TurnComplete, "turns/signal"),
        Heard { phrase: true, .. } => (Reason::AutoDetect, "turns/phrase"),
        Heard { .. } => return "turns/said",
    };
    reply.turn_advanced = true;
    if let Floor::Paused { why, .. } = &state.floor {
        // The next one begins when the channel goes on.
        let why = why.clone();
        state.end_turn(now, reason);
        state.index = state.following(state.index);
        state.floor = Floor::Paused { turn: None, left_ms: 0, why };
        return rule;
    }
    state.pass_on(now, reason, outcome);
    reply.next_agent = state.active_agent().map(str::to_owned);
    rule
}

/// Where everyone hears everyone, the others get it.
fn broadcast(state: &State, agent: &str, reply: &Reply, outcome: &mut Outcome) {
    let to: Vec<String> = state.queue.iter().filter(|queued| *queued != agent).cloned().collect();
    let text = reply.display.clone().filter(|_| reply.posted);
    if let (Some(Mode::Broadcast), Some(text), false) = (state.config.mode, text, to.is_empty()) {
        let words = Words { from: agent.to_owned(), text };
        outcome.effects.push(Effect::Deliver { to, words });
    }
}

/// Says why.
fn explained(
    state: &State,
    outcome: Outcome,
    agent: &str,
    standing: Standing,
    rule: &'static str,
    message: &Heard,
) -> Outcome {
    let advanced = outcome.replies().iter().any(|reply| reply.turn_advanced);
    let posted = outcome.replies().iter().any(|reply| reply.posted);
    let holder = state.active_agent().unwrap_or("nobody").to_owned();
    let summary = match (standing, advanced, posted) {
        (Standing::None, ..) => format!("Did not post what {agent} said"),
        (_, true, _) => format!("Ended the turn of {agent}"),
        (_, false, true) => format!("Posted what {agent} said"),
        (_, false, false) => format!("Heard {agent}, with nothing to post"),
    };
    let (because, next) = match rule {
        "turns/signal" => ("it ended its message with the keyword", "the next agent is told"),
        "turns/phrase" => ("its last sentence is a completion phrase", "the next agent is told"),
        "turns/late" => ("its turn was over before it spoke", "the turn of others goes on"),
        "turns/answer" => ("a human had asked it", "the turn that waited goes on"),
        "turns/free" => ("the channel has no turns", "nothing to do"),
        "turns/not_active" => ("it does not have the floor", "it speaks when its turn comes"),
        _ => (
            "it has the floor and did not end its message with the keyword",
            "it goes on, says the keyword, or runs out of time",
        ),
    };
    let evidence = message.signal.iter().chain(&message.missed).cloned();
    let mut evidence: Vec<Evidence> = evidence.collect();
    if evidence.is_empty() {
        let quote = tail(&message.display);
        evidence.push(Evidence { what: "said".to_owned(), quote, ..Evidence::default() });
    }
    let outcome = state.decide(outcome, rule, summary).because(because).next(next).seen(evidence);
    if standing == Standing::None {
        return outcome.because(format!("it does not have the floor; {holder} does"));
    }
    outcome
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
