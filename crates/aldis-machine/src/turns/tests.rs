//! The machine against its specification, rule by rule.

mod people;
mod properties;
mod reading;
mod rules;
mod sentences;
mod stored;

use super::*;
use aldis_signal::time::Timestamp;

/// Seconds after ten o'clock.
fn at(seconds: i64) -> Timestamp {
    let ten: Timestamp = "2026-03-02T10:00:00Z".parse().unwrap();
    Timestamp::from_millis(ten.as_millis() + seconds * 1_000)
}

fn persona(priority: i64, timeout_seconds: Option<u64>) -> Persona {
    let turn_behavior = TurnBehavior { timeout_seconds };
    Persona { priority, turn_behavior, ..Persona::default() }
}

/// A channel of these agents with turns of 60 s.
fn channel(agents: &[&str]) -> State {
    channel_with(agents, |_| {})
}

fn channel_with(agents: &[&str], change: impl FnOnce(&mut Start)) -> State {
    let agents = agents.iter().map(|agent| (*agent).to_owned()).collect();
    let mut start = Start { channel: "c1".to_owned(), agents, ..Start::default() };
    change(&mut start);
    State::start(at(0), start).unwrap().0
}

fn sent(state: &State, agent: &str, turn: Option<u64>, texts: &[&str]) -> Event {
    let reader = MessageReader::new(&state.config);
    let messages = texts.iter().map(|text| reader.read(text)).collect();
    Event::Message { agent: agent.to_owned(), turn, messages }
}

fn says(state: &mut State, seconds: i64, agent: &str, text: &str) -> Outcome {
    let event = sent(state, agent, None, &[text]);
    state.on_event(at(seconds), &event)
}

/// Lets time pass: the machine is woken exactly when it asks.
fn wait_until(state: &mut State, seconds: i64) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while let Some(due) = state.next_wake().filter(|due| *due <= at(seconds)) {
        outcomes.push(state.on_event(due, &Event::Wake { turn: Some(state.turn) }));
        assert!(outcomes.len() < 1_000, "a waking must change something");
    }
    outcomes
}

fn human(text: &str) -> Event {
    Event::Human {
        text: text.to_owned(),
        from: Some("ada".to_owned()),
        to: None,
        by: String::new(),
    }
}

fn by(make: impl FnOnce(String) -> Event) -> Event {
    make("ada".to_owned())
}

/// The rule that fired.
fn rule(outcome: &Outcome) -> &str {
    outcome.decision().map_or("-", |decision| &decision.rule)
}

/// What is shown in the channel, one line each.
fn posts(outcome: &Outcome) -> Vec<String> {
    let effects = outcome.effects.iter();
    effects
        .filter_map(|effect| match effect {
            Effect::Post { agent, text, .. } => Some(format!("{agent}: {text}")),
            _ => None,
        })
        .collect()
}

/// Who is notified that it has the turn.
fn notified(outcome: &Outcome) -> Vec<(String, u64)> {
    let effects = outcome.effects.iter();
    effects
        .filter_map(|effect| match effect {
            Effect::Notify { agent, turn, .. } => Some((agent.clone(), *turn)),
            _ => None,
        })
        .collect()
}

fn events(state: &State) -> Vec<String> {
    let entries = state.history.iter();
    entries.map(|entry| format!("{} {}", entry.event, entry.agent)).collect()
}
