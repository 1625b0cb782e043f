//! Turns in channels, and the server that keeps them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Stepper, effect, pin_all};
use crate::defects::{Seen, pin};
use crate::serve::client::{Server, command, place};

/// Starts a server and ends it again; says why if it does not serve.
fn starts(state: &Path, args: &[&str]) -> Result<(), String> {
    let address = state.join("serve.address");
    fs::remove_file(&address).ok();
    let mut server = command(state, args).spawn().unwrap();
    for _ in 0..600 {
        if address.exists() {
            server.kill().unwrap();
            server.wait().unwrap();
            return Ok(());
        }
        if server.try_wait().unwrap().is_some() {
            let output = server.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{}: {said}", output.status));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    server.kill().unwrap();
    server.wait().unwrap();
    panic!("it neither serves nor ends");
}

#[test]
fn b13_the_server_starts_without_a_corrupt_state_file() {
    let (directory, state) = place();
    let file = directory.path().join("turns.json");
    let args = ["--import", file.to_str().unwrap()];
    fs::write(&file, r#"{"version":"1.0","channels":{"c1":{"queue":["pm"],"activeAgent":"pm"}}}"#)
        .unwrap();
    assert_eq!(starts(&state, &args), Ok(()));
    fs::write(&file, "{\"version\":").unwrap();
    let mut symptoms = Vec::new();
    // The second time the file is gone: it was set aside.
    for time in ["first", "second"] {
        symptoms.extend(starts(&state, &args).err().map(|why| format!("{time} start: {why}")));
        assert!(!file.exists(), "set aside");
    }
    let aside: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("turns.json.corrupted."))
        .collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(fs::read_to_string(directory.path().join(&aside[0])).unwrap(), "{\"version\":");
    pin_all("mission/B13", &symptoms);
}

#[test]
fn b16_an_answer_to_a_question_that_nobody_asked_is_refused() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let (mut symptoms, mut agent) = (Vec::new(), Value::Null);
    let plan = json!({ "tasks": [{ "id": "t1", "acceptance": ["it works"] }] });
    for (machine, start) in
        [("run", json!({ "task": "Add CSV export" })), ("delivery", json!({ "plan": plan }))]
    {
        let begin = json!({ "machine": machine, "id": machine, "start": start });
        let got = server.post("/v1/runs", &begin);
        assert_eq!(got.status, 201, "{}", got.text);
        let got = server.post(&format!("/v1/runs/{machine}/events"), &json!({ "event": "begin" }));
        assert_eq!(got.status, 200, "{}", got.text);
        if let Some(dispatch) = effect(&got.json(), "dispatch") {
            agent = dispatch["agent"].clone();
        }
        let answer = json!({ "id": "q9", "text": "yes" });
        let got = server.post(&format!("/v1/runs/{machine}/answer"), &answer);
        assert!(got.status < 500, "{}", got.text);
        let warned = got.json()["warnings"].as_array().is_some_and(|all| !all.is_empty());
        if got.status < 400 && !warned {
            symptoms.push(format!("{machine}: {} {}", got.status, got.text));
        }
    }
    // One that was asked is taken.
    let text = "SEEKING_DIVINE_CLARIFICATION\nTask: t1\nQuestion: left or right?\n";
    let asks = json!({ "event": "finished", "agent": agent, "text": text });
    let got = server.post("/v1/runs/delivery/events", &asks);
    assert_eq!(got.status, 200, "{}", got.text);
    let question = effect(&got.json(), "ask").unwrap()["id"].clone();
    let answer = json!({ "id": question, "text": "THE-LEFT-ONE" });
    let got = server.post("/v1/runs/delivery/answer", &answer);
    assert_eq!(got.status, 200, "{}", got.text);
    assert!(got.json()["effects"].to_string().contains("THE-LEFT-ONE"), "{}", got.text);
    pin_all("mission/B16", &symptoms);
}

/// A channel in which `pm` has the floor and `dev` is next.
fn channel() -> Stepper {
    let mut step = Stepper::new("turns");
    let opened = step.send("start", &json!({ "channel": "c1", "agents": ["pm", "dev"] }));
    assert_eq!(opened["state"]["active_agent"], "pm", "{opened}");
    step
}

fn exported(step: &mut Stepper) -> Value {
    step.send("export", &json!({}))["exported"].clone()
}

#[test]
fn b17a_the_history_of_a_timeout_names_the_next_agent() {
    let mut step = channel();
    let woken = step.later(61).send("wake", &json!({ "channel": "c1", "turn": 1 }));
    assert_eq!(woken["state"]["active_agent"], "dev", "{woken}");
    let state = exported(&mut step);
    let history = state["history"].as_array().unwrap();
    let timeout = history.iter().find(|entry| entry["event"] == "turn_timeout").unwrap();
    assert_eq!(timeout["details"]["durationSeconds"], 61, "{timeout}");
    let seen = match timeout["details"]["nextAgent"] == "dev" {
        true => Seen::Right,
        false => Seen::Wrong(timeout.to_string()),
    };
    pin("mission/B17a", seen);
}

#[test]
fn b17b_a_refused_message_is_no_activity() {
    let mut step = channel();
    let activity =
        |step: &mut Stepper, agent: &str| exported(step)["agents"][agent]["lastActivity"].clone();
    let before = (activity(&mut step, "pm"), activity(&mut step, "dev"));
    let message = |agent: &str| json!({ "channel": "c1", "agent": agent, "text": "Hello." });
    let refused = step.later(10).send("said", &message("dev"));
    assert_eq!(refused["replies"][0]["reason"], "not_active_agent", "{refused}");
    let after = activity(&mut step, "dev");
    // The one who has the floor is active.
    step.later(10).send("said", &message("pm"));
    assert_ne!(activity(&mut step, "pm"), before.0);
    let seen = match after == before.1 {
        true => Seen::Right,
        false => Seen::Wrong(format!("from {} to {after}", before.1)),
    };
    pin("mission/B17b", seen);
}
