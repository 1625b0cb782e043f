//! The state file of others: in, out and in again.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn import(text: &str) -> Result<Board, SeedError> {
    Board::import(text, &Config::default(), &BTreeMap::new(), at(0))
}

#[test]
fn a_board_survives_its_export() {
    let mut state = channel(&["pm", "dev"]);
    wait_until(&mut state, 61);
    says(&mut state, 70, "dev", "Hello.");
    let mut board = Board::default();
    board.channels.insert("c1".to_owned(), state.clone());
    let form = board.export(at(80));
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
    assert_eq!((back.turn, &back.queue, back.index), (2, &state.queue, 1));
    assert_eq!((&back.history, &back.agents), (&state.history, &state.agents));
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
    let board = import(
        r#"{"channels":{"c1":{"queue":["pm","dev","pm"],"currentIndex":0,"activeAgent":"dev"},
            "c2":{"queue":["pm"],"currentIndex":7,"activeAgent":"eve"}}}"#,
    )
    .unwrap();
    let first = &board.channels["c1"];
    assert_eq!((first.index, first.active_agent(), first.queue.len()), (1, Some("dev"), 2));
    let second = &board.channels["c2"];
    assert_eq!((second.index, second.active_agent()), (0, None));
}

#[test]
fn history_tells_how_turns_ended() {
    let mut board = import(
        r#"{"channels":{"c1":{"queue":["pm","dev"],"currentIndex":1,"activeAgent":"dev",
            "turnTimeoutAt":"2026-03-02T10:01:00Z"}},"history":[
            {"event":"turn_timeout","agentId":"pm","channelId":"c1","timestamp":"2026-03-02T09:59:00Z",
             "details":{"durationSeconds":61,"nextAgent":"dev"}}]}"#,
    )
    .unwrap();
    let event = sent(&board.channels["c1"], "pm", None, &["Sorry. TURN_COMPLETE"]);
    let outcome = board.on_event(at(1), "c1", &event);
    assert_eq!(outcome.replies()[0].reason, Some(ReplyReason::LateSignal));
    assert_eq!(
        board.on_event(at(1), "c9", &event).replies()[0].reason,
        Some(ReplyReason::UnknownChannel)
    );
}
