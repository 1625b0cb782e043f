//! `aldis step run`: the machine without the processes, and a real journal through it.

use jsonschema::validator_for;
use serde_json::{Value, json};

use super::scripted::Stage;
use crate::sandbox::Sandbox;

fn stepped(lines: &[Value]) -> Vec<Value> {
    let sandbox = Sandbox::new();
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let done = sandbox.run_with(&["step", "run"], input.as_bytes());
    assert_eq!(done.code, 0, "{}", done.text());
    let schema: Value = serde_json::from_str(&sandbox.run(&["schema", "step-run"]).stdout).unwrap();
    let validator = validator_for(&schema).unwrap();
    let printed = done.json();
    assert_eq!(printed.len(), lines.len(), "one answer for each line");
    for line in &printed {
        assert!(validator.is_valid(line), "{line}");
    }
    printed
}

fn at(second: u32, event: &str, more: &Value) -> Value {
    let mut line = json!({ "at": format!("2026-03-02T10:00:{second:02}Z"), "event": event });
    for (name, value) in more.as_object().into_iter().flatten() {
        line[name] = value.clone();
    }
    line
}

#[test]
fn events_in_effects_out() {
    let none = json!({});
    let lines = stepped(&[
        at(0, "start", &json!({ "task": "Add CSV export", "config": { "verify": true } })),
        at(1, "begin", &none),
        at(2, "spent", &json!({ "tokens": 12 })),
        at(3, "heard", &json!({ "text": "<chorus>PROGRESS: 60</chorus>" })),
        at(4, "heard", &json!({ "text": "I will say <chorus>COMPLETE</chorus> later." })),
        at(5, "heard", &json!({ "text": "<chorus>COMPLETE</chorus>" })),
        at(6, "exited", &json!({ "code": 0, "signal": null })),
        at(7, "looked", &none),
        at(8, "checked", &json!({ "passed": false, "output": "one test failed" })),
        at(9, "heard", &json!({ "text": "<chorus>NEEDS_HELP: which?</chorus>" })),
        at(10, "exited", &json!({ "code": 0, "signal": null })),
        at(11, "answer", &json!({ "id": "q1", "text": "The left one." })),
    ]);
    let effects = |line: &Value| -> Vec<String> {
        let effects = line["effects"].as_array().unwrap();
        effects.iter().map(|effect| effect["effect"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(effects(&lines[1]), ["look", "start"]);
    assert_eq!(
        (&lines[2]["state"]["tokens"], &lines[3]["state"]["progress"]),
        (&12.into(), &60.into())
    );
    assert_eq!(effects(&lines[6]), ["look"], "only the real claim counts");
    assert_eq!(effects(&lines[7]), ["check"]);
    assert_eq!(effects(&lines[8]), ["start"]);
    let prompt = lines[8]["effects"][0]["prompt"].as_str().unwrap();
    assert!(prompt.contains("> one test failed"), "{prompt}");
    assert_eq!(lines[10]["state"]["status"], "asking");
    let prompt = lines[11]["effects"][0]["prompt"].as_str().unwrap();
    assert!(prompt.contains("> The left one."), "{prompt}");
    assert_eq!(lines[11]["state"]["iteration"], 2);
}

#[test]
fn a_journal_takes_the_same_steps() {
    let rounds = [
        "{ tool = { name = 'Bash' } }, { spend = { tokens = 7 } }",
        "{ limit = { seconds = 1 } }",
        "{ say = '<chorus>PROGRESS: 30</chorus>' }",
        "{ say = '<chorus>BLOCKED: no key</chorus>' }",
    ];
    let stage = Stage::new("claude-stream", &rounds);
    assert_eq!(stage.run(&[]).code, 3);
    let status = stage.status();
    let events = stage.0.run(&[
        "log",
        status["run"].as_str().unwrap(),
        "--events",
        "--json",
        "--lines",
        "10000",
    ]);
    let mut journal = events.json();
    journal.sort_by_key(|event| event["seq"].as_u64());
    let lines: Vec<Value> = journal
        .iter()
        .map(|event| {
            let mut line = event["body"].clone();
            if event["event"] == "start" {
                let start = &event["body"]["start"];
                line =
                    json!({ "event": "start", "task": start["task"], "config": start["config"] });
            }
            line["at"] = event["at"].clone();
            line
        })
        .collect();
    let last = stepped(&lines).pop().unwrap();
    for member in ["iteration", "exit_reason", "tokens", "progress"] {
        assert_eq!(last["state"][member], status[member], "{member}");
    }
}

#[test]
fn mistakes_name_their_line() {
    let start = r#"{"at":"2026-03-02T10:00:00Z","event":"start","task":"x"}"#;
    for (input, words) in [
        ("{}".to_owned(), "line 1: it has no `at`"),
        (start.replace(r#""task":"x""#, r#""tusk":"x""#), "line 1: unknown field `tusk`"),
        (
            start.replace('}', r#","config":{"max_iterations":0}}"#),
            "line 1: `config`: `max_iterations` must be at least 1",
        ),
        (format!("{start}\n{{}}"), "line 2: it has no `at`"),
        (format!("{start}\n\n{{\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"sing\"}}"), "line 3"),
    ] {
        let done = Sandbox::new().run_with(&["step", "run"], input.as_bytes());
        assert_eq!(done.code, 2, "{}", done.text());
        assert!(done.stderr.contains(words), "{}", done.text());
    }
}
