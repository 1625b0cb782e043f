//! Turns as a filter.

use serde_json::{Value, json};

use crate::sandbox::{Done, Sandbox};

fn step(lines: &[Value]) -> Done {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Sandbox::new().run_with(&["step", "turns"], input.as_bytes())
}

#[test]
fn channels_are_a_filter() {
    let at = |second: u32| format!("2026-03-02T10:{:02}:{:02}Z", second / 60, second % 60);
    let done = step(&[
        json!({"at": at(0), "event": "start", "channel": "c1", "agents": ["pm", "dev"]}),
        json!({"at": at(5), "event": "said", "channel": "c1", "agent": "pm", "text": "Yes. TURN_COMPLETE"}),
        json!({"at": at(6), "event": "said", "channel": "c9", "agent": "pm", "text": "Hello."}),
        json!({"at": at(7), "event": "human", "channel": "c1", "text": "hurry TURN_COMPLETE"}),
        json!({"at": at(66), "event": "wake", "channel": "c1", "turn": 2}),
        json!({"at": at(67), "event": "said", "channel": "c1", "agent": "dev", "turn": 2, "texts": ["Sorry.", "TURN_COMPLETE"]}),
        json!({"at": at(68), "event": "export"}),
    ]);
    let lines = done.json();
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(lines[0]["state"]["active_agent"], "pm");
    assert_eq!(lines[0]["wake"], "2026-03-02T10:01:00.001Z");
    assert_eq!(lines[0]["state"]["turn_timeout_at"], "2026-03-02T10:01:00Z");
    let reply =
        json!({"posted": true, "turnAdvanced": true, "nextAgent": "dev", "display": "Yes."});
    assert_eq!(lines[1]["replies"], json!([reply]));
    assert_eq!(lines[2]["replies"][0]["reason"], "unknown_channel");
    assert_eq!(lines[2]["state"], Value::Null);
    assert_eq!(lines[3]["effects"][0]["text"], "hurry TURN_COMPLETE");
    assert_eq!(lines[4]["effects"][0]["text"], "⏱️ dev turn timed out after 61s");
    let reasons: Vec<&Value> =
        lines[5]["replies"].as_array().unwrap().iter().map(|r| &r["reason"]).collect();
    assert_eq!(reasons, ["late_signal", "late_signal"]);
    let exported = &lines[6]["exported"];
    assert_eq!(exported["channels"]["c1"]["activeAgent"], "pm");
    let again = step(&[
        json!({"at": at(69), "event": "import", "state": exported}),
        json!({"at": at(70), "event": "said", "channel": "c1", "agent": "pm", "text": "TURN_COMPLETE"}),
    ]);
    assert_eq!(again.json()[1]["state"]["turn"], 4, "{}", again.text());
}

#[test]
fn what_cannot_be_meant_is_said_with_its_line() {
    let start =
        json!({"at": "2026-03-02T10:00:00Z", "event": "start", "channel": "c1", "agents": ["pm"]});
    for (line, want) in [
        (json!({"event": "wake", "channel": "c1"}), "line 2: it has no `at`"),
        (json!({"at": "2026-03-02T10:00:00Z", "event": "wake"}), "line 2: it has no `channel`"),
        (
            json!({"at": "2026-03-02T10:00:00Z", "event": "dance", "channel": "c1"}),
            "line 2: unknown variant",
        ),
        (start.clone(), "was started before"),
        (
            json!({"at": "2026-03-02T10:00:00Z", "event": "start", "channel": "c2", "agents": []}),
            "at least one agent",
        ),
        (
            json!({"at": "2026-03-02T10:00:00Z", "event": "import", "state": {"version": "9"}}),
            "not a state file",
        ),
    ] {
        let done = step(&[start.clone(), line]);
        assert_eq!(done.code, 2);
        assert!(done.stderr.contains(want), "{want}: {}", done.text());
    }
}

#[test]
fn steps_are_as_their_schema_says() {
    let sandbox = Sandbox::new();
    let schema: Value =
        serde_json::from_str(&sandbox.run(&["schema", "step-turns"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let done = step(&[
        json!({"at": "2026-03-02T10:00:00Z", "event": "start", "channel": "c1", "agents": ["pm", "dev", "../x"]}),
        json!({"at": "2026-03-02T10:00:01Z", "event": "said", "channel": "c1", "agent": "pm", "text": "Yes. TURN_COMPLETE."}),
        json!({"at": "2026-03-02T10:00:02Z", "event": "pause", "channel": "c1", "by": "me"}),
    ]);
    for line in done.json() {
        let errors: Vec<String> =
            validator.iter_errors(&line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{line}");
    }
}
