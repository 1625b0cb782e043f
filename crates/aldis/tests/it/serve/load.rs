//! Many clients, a crash in the middle: what was acknowledged is there, and there once.

use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

use super::client::{Server, place};

const CHANNELS: usize = 12;
const MESSAGES: usize = 40;

fn key(channel: usize, number: usize) -> String {
    format!("{channel}.{number}")
}

/// Says a message under its key; `false` if the server went away.
fn say(server: &Server, channel: usize, number: usize) -> bool {
    let path = format!("/v1/channels/c{channel}/messages");
    let body = json!({ "agent": "pm", "text": format!("message {number}") });
    let key = key(channel, number);
    let got = server.request("POST", &path, &[("idempotency-key", &key)], Some(&body));
    got.is_ok_and(|got| {
        assert_eq!(got.status, 200, "{}", got.text);
        true
    })
}

#[test]
fn a_crash_under_load_loses_nothing_and_repeats_nothing() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    for channel in 0..CHANNELS {
        let config = json!({ "default_timeout_seconds": 3_600 });
        let start =
            json!({ "channel": format!("c{channel}"), "agents": ["pm", "dev"], "config": config });
        assert_eq!(server.post("/v1/channels", &start).status, 201);
    }
    let acknowledged: Mutex<Vec<(usize, usize)>> = Mutex::default();
    thread::scope(|scope| {
        for channel in 0..CHANNELS {
            let (server, acknowledged) = (&server, &acknowledged);
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    if !say(server, channel, number) {
                        return;
                    }
                    acknowledged.lock().unwrap().push((channel, number));
                    if channel == 0 && number == MESSAGES / 2 {
                        server.signal(nix::sys::signal::Signal::SIGKILL);
                    }
                }
            });
        }
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() < CHANNELS * MESSAGES, "the crash came too late to matter");
    server.crash();
    let server = Server::start(&state);
    // Everybody who is in doubt says it again.
    for channel in 0..CHANNELS {
        for number in 0..MESSAGES {
            assert!(say(&server, channel, number));
        }
    }
    for channel in 0..CHANNELS {
        let events = server.get(&format!("/v1/runs/c{channel}/events?limit=1000")).json();
        let said: Vec<Value> = events["events"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["event"] == "message")
            .map(|event| event["body"]["messages"][0]["display"].clone())
            .collect();
        let want: Vec<String> = (0..MESSAGES).map(|number| format!("message {number}")).collect();
        assert_eq!(said, want, "channel {channel}");
    }
}
