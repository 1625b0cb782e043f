//! What 0.1.0 stored is read, and its journals replay to the same decisions and the same state.
//!
//! `v0.1.0.jsonl` holds channels as 0.1.0 itself wrote them: their events, the rule and summary of
//! each decision, and the state after the last one.

use serde::Deserialize as _;
use serde_json::Value;

use super::*;
use crate::Machine as _;

/// One channel of the file.
struct Recorded {
    name: String,
    events: Vec<(Timestamp, Value)>,
    decisions: Vec<(String, String)>,
    state: Value,
}

fn recorded() -> Vec<Recorded> {
    let mut channels: Vec<Recorded> = Vec::new();
    for line in include_str!("v0.1.0.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let time = |value: &Value| value.as_str().unwrap().parse().unwrap();
        if let Some(name) = line.get("run") {
            let (name, events, decisions) = (text(name), Vec::new(), Vec::new());
            channels.push(Recorded { name, events, decisions, state: Value::Null });
            continue;
        }
        let channel = channels.last_mut().unwrap();
        if let Some(event) = line.get("event") {
            channel.events.push((time(&event["at"]), event["body"].clone()));
        } else if let Some(decision) = line.get("decision") {
            channel.decisions.push((text(&decision["rule"]), text(&decision["summary"])));
        } else {
            channel.state = line["state"].clone();
        }
    }
    assert_eq!(channels.len(), 5);
    channels
}

fn begin(at: Timestamp, event: &Value) -> (State, Outcome) {
    if event["event"] == "adopt" {
        let begun = State::adopt(at, State::deserialize(&event["state"]).unwrap()).unwrap();
        return (begun.state, begun.outcome);
    }
    State::start(at, Start::deserialize(&event["start"]).unwrap()).unwrap()
}

#[test]
fn journals_of_0_1_0_replay_to_the_same_decisions() {
    for channel in recorded() {
        let name = &channel.name;
        let ((at, first), rest) = channel.events.split_first().unwrap();
        let (mut state, outcome) = begin(*at, first);
        let mut decisions = outcome.decisions;
        for (at, event) in rest {
            let event = Event::deserialize(event).unwrap_or_else(|error| panic!("{name}: {error}"));
            decisions.extend(state.on_event(*at, &event).decisions);
        }
        let rules: Vec<_> =
            decisions.iter().map(|it| Rule::of_stored(&it.rule, &it.summary).unwrap()).collect();
        let stored = channel.decisions.iter();
        let stored: Vec<_> =
            stored.map(|(rule, summary)| rule_of_0_1_0(rule, summary).unwrap()).collect();
        assert_eq!(rules, stored, "{name}");
        let mut then = State::deserialize(&channel.state).unwrap();
        // Since then, entries name the next agent, and refused messages are no activity.
        for (then, now) in then.history.iter_mut().zip(&state.history) {
            then.next_agent.clone_from(&now.next_agent);
        }
        for (agent, now) in &state.agents {
            then.agents.get_mut(agent).unwrap().last_activity = now.last_activity;
        }
        assert_eq!(state, then, "{name}");
    }
}

/// Every form in which 0.1.0 stored who has the turn.
#[test]
fn states_of_0_1_0_are_read() {
    let turn = r#"{"agent":"pm","started_at":"2026-11-02T10:00:00Z",
        "deadline":"2026-11-02T10:01:00Z","warned":true,
        "spoke_at":"2026-11-02T10:00:30Z","closed":true}"#;
    let held = turn.replacen('{', r#"{"floor":"held","#, 1);
    let interrupted = format!(
        r#"{{"floor":"interrupted","turn":{turn},"left_ms":7,"asked":"dev",
            "until":"2026-11-02T10:02:00Z"}}"#
    );
    let paused = format!(r#"{{"floor":"paused","turn":{turn},"left_ms":7,"why":"ada paused it"}}"#);
    let recorded = recorded().remove(0).state;
    for (floor, status) in [
        (r#"{"floor":"free"}"#, "nobody"),
        (&*held, "active"),
        (&*interrupted, "interrupted"),
        (&*paused, "paused"),
    ] {
        let mut stored = recorded.clone();
        stored["floor"] = serde_json::from_str(floor).unwrap();
        let state = State::deserialize(&stored).unwrap();
        let again = serde_json::to_value(&state).unwrap();
        assert_eq!(again["holder"]["status"], status, "{again}");
        assert_eq!(State::deserialize(&again).unwrap(), state);
        if let Some(turn) = state.holder.turn() {
            assert!(turn.warned && turn.punctuated && turn.last_message_at.is_some(), "{status}");
        }
    }
}

/// Programs that drive the machine themselves may still write what 0.1.0 understood.
#[test]
fn events_of_0_1_0_are_read() {
    let said = r#"{"event":"said","agent":"pm","turn":1,"messages":[
        {"display":"Yes.","signal":{"what":"signal","name":"TURN_COMPLETE","quote":"TURN_COMPLETE"}},
        {"display":"Done.","missed":[{"what":"near_miss","quote":"x"}],"phrase":true,"closed":true}]}"#;
    let event: Event = serde_json::from_str(said).unwrap();
    let Event::Message { messages, .. } = &event else { panic!("not a message") };
    assert!(messages[0].signal.is_some());
    assert_eq!(messages[1].near_misses.len(), 1);
    assert!(messages[1].completion_phrase && messages[1].punctuated);
    let again = serde_json::to_value(&event).unwrap();
    assert_eq!(again["event"], "message");
    assert_eq!(Event::deserialize(&again).unwrap(), event);
}
