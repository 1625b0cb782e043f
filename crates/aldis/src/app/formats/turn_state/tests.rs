//! The state file of others: in, out and in again.

mod cases;

use aldis_machine::turns::{MessageReader, Start};

use super::*;

/// Seconds after ten o'clock.
fn at(seconds: i64) -> Timestamp {
    let ten: Timestamp = "2026-03-02T10:00:00Z".parse().unwrap();
    Timestamp::from_millis(ten.as_millis() + seconds * 1_000)
}

/// A message of an agent.
fn sent(state: &State, agent: &str, text: &str) -> Event {
    let messages = vec![MessageReader::new(state.config()).read(text)];
    Event::Message { agent: agent.to_owned(), turn: None, messages }
}

fn import(text: &str) -> Result<ChannelSet, TurnStateError> {
    ChannelSet::import(text, &Config::default(), &BTreeMap::new(), at(0))
}

#[test]
fn channels_survive_their_export() {
    let agents = ["pm", "dev"].map(str::to_owned).to_vec();
    let start = Start { channel: "c1".to_owned(), agents, ..Start::default() };
    let (mut state, _) = State::start(at(0), start).unwrap();
    state.on_event(at(61), &Event::Wake { turn: Some(1) });
    let hello = sent(&state, "dev", "Hello.");
    state.on_event(at(70), &hello);
    let mut set = ChannelSet::default();
    set.channels.insert("c1".to_owned(), state.clone());
    let form = set.export(at(80));
    assert_eq!(form["version"], "1.0");
    assert_eq!(form["lastUpdated"], "2026-03-02T10:01:20Z");
    assert_eq!(form["agents"]["dev"]["state"], "ACTIVE");
    assert_eq!(
        form["agents"]["pm"],
        json!({"state": "QUEUED", "currentChannel": "c1", "lastActivity": null})
    );
    assert_eq!(form["channels"]["c1"]["activeAgent"], "dev");
    let history = form["history"].as_array().unwrap();
    assert_eq!(history.len(), 3);
    assert_eq!(history[1]["event"], "turn_timeout");
    assert_eq!(history[1]["details"]["nextAgent"], "dev");
    assert_eq!(history[2]["details"].get("nextAgent"), None);
    let again = import(&form.to_string()).unwrap();
    let back = &again.channels["c1"];
    assert_eq!((back.turn(), back.queue(), back.index()), (2, state.queue(), 1));
    assert_eq!((back.history(), back.agents()), (state.history(), state.agents()));
    assert_eq!(again.export(at(80)), form);
}

#[test]
fn files_that_are_damaged_or_newer_are_refused() {
    for (text, want) in [
        ("", "not a state file"),
        ("{\"channels\":{\"c1\":{\"queue\":[\"pm\"", "not a state file"),
        ("{\"version\":\"2.0\",\"channels\":{}}", "version `2.0`"),
        ("{\"version\":\"1.0\"}", "channels"),
        ("{\"channels\":{\"../x\":{}}}", "cannot name a channel"),
        ("{\"channels\":{\"c1\":{\"queue\":[\"a b\"]}}}", "queue"),
    ] {
        let error = import(text).unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn a_file_that_contradicts_itself_is_read_by_its_agent() {
    let set = import(
        r#"{"channels":{"c1":{"queue":["pm","dev","pm"],"currentIndex":0,"activeAgent":"dev"},
            "c2":{"queue":["pm"],"currentIndex":7,"activeAgent":"eve"}}}"#,
    )
    .unwrap();
    let first = &set.channels["c1"];
    assert_eq!((first.index(), first.active_agent(), first.queue().len()), (1, Some("dev"), 2));
    let second = &set.channels["c2"];
    assert_eq!((second.index(), second.active_agent()), (0, None));
}

#[test]
fn history_tells_how_turns_ended() {
    let mut set = import(
        r#"{"channels":{"c1":{"queue":["pm","dev"],"currentIndex":1,"activeAgent":"dev",
            "turnTimeoutAt":"2026-03-02T10:01:00Z"}},"history":[
            {"event":"turn_timeout","agentId":"pm","channelId":"c1","timestamp":"2026-03-02T09:59:00Z",
             "details":{"durationSeconds":61,"nextAgent":"dev"}}]}"#,
    )
    .unwrap();
    let event = sent(&set.channels["c1"], "pm", "Sorry. TURN_COMPLETE");
    let outcome = set.on_event(at(1), "c1", &event);
    assert_eq!(outcome.replies()[0].reason, Some(ReplyReason::LateSignal));
    assert_eq!(
        set.on_event(at(1), "c9", &event).replies()[0].reason,
        Some(ReplyReason::UnknownChannel)
    );
}
