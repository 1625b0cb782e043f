//! A message and its timeout, at the same moment, in many channels: one of them ends the turn.

use std::thread;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use serde_json::{Value, json};

use super::client::{Server, place};

const CHANNELS: usize = 24;
const TURNS: u64 = 3;

/// Milliseconds until a moment, by the clock of this machine.
fn until(moment: &str) -> i64 {
    let moment: Timestamp = moment.parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    moment.as_millis() - i64::try_from(now.as_millis()).unwrap()
}

/// Speaks at the end of every turn, a little before or after its time is over.
fn race(server: &Server, number: usize) {
    let channel = format!("c{number}");
    let config = json!({ "default_timeout_seconds": 1 });
    let start = json!({ "channel": channel, "agents": ["pm", "dev"], "config": config });
    assert_eq!(server.post("/v1/channels", &start).status, 201);
    let mut spoken: Vec<(u64, Value)> = Vec::new();
    for round in 0..TURNS {
        let shown = server.get(&format!("/v1/channels/{channel}")).json();
        let turn = shown["turn"].as_u64().unwrap();
        let left = until(shown["turn_timeout_at"].as_str().unwrap());
        let early = i64::try_from((number as u64 + round * 5) % 9).unwrap() - 4;
        thread::sleep(Duration::from_millis(u64::try_from(left - early).unwrap_or(0)));
        let body =
            json!({ "agent": shown["active_agent"], "turn": turn, "text": "Done. TURN_COMPLETE" });
        let got = server.post(&format!("/v1/channels/{channel}/messages"), &body);
        assert_eq!(got.status, 200, "{}", got.text);
        spoken.push((turn, got.json()["result"].clone()));
    }
    let events = server.get(&format!("/v1/channels/{channel}")).json();
    let ends = |turn: u64| {
        let lines = events["history"].as_array().unwrap().iter();
        let of_turn = lines.filter(move |line| line["turn"] == turn && !line["reason"].is_null());
        of_turn.map(|line| line["reason"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (turn, result) in spoken {
        assert_eq!(result["posted"], true, "{result}");
        let (want, reason) = match result["turnAdvanced"].as_bool().unwrap() {
            true => ("TURN_COMPLETE", Value::Null),
            false => ("TIMEOUT", json!("late_signal")),
        };
        assert_eq!(ends(turn), [want], "{channel}, turn {turn}: {result}");
        assert_eq!(result["reason"], reason, "{result}");
    }
    for turn in 1..events["turn"].as_u64().unwrap() {
        assert_eq!(ends(turn).len(), 1, "{channel}, turn {turn}: {events}");
    }
}

#[test]
fn a_message_and_its_timeout_end_a_turn_once() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    thread::scope(|scope| {
        let racers: Vec<_> = (0..CHANNELS)
            .map(|number| {
                scope.spawn({
                    let server = &server;
                    move || race(server, number)
                })
            })
            .collect();
        racers.into_iter().for_each(|racer| racer.join().unwrap());
    });
}
