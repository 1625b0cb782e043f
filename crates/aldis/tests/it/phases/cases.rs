//! Every case of the conformance collection about phases, state level included.

use std::fs;

use serde_json::{Value, json};

use super::project::{
    Answer, Project, conversation, prompted, said, testdata, tool_result, tool_used,
};

fn cases() -> Vec<Value> {
    let text = fs::read_to_string(testdata("conformance/cases.jsonl")).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    cases.into_iter().filter(|case| case["system"] == "caw").collect()
}

/// The transcript that came before, with the input as its last message.
fn transcript(case: &Value) -> Vec<Value> {
    let earlier = case["given"]["earlier_transcript"].as_array().cloned().unwrap_or_default();
    let mut entries = Vec::new();
    for entry in earlier {
        let (text, at) = (entry["text"].as_str().unwrap(), entry["at"].as_str());
        match entry["role"].as_str().unwrap() {
            "assistant" => entries.push(said(text, at)),
            "user" => entries.push(prompted(text, at)),
            "tool_result" => {
                entries.push(tool_used(entry["tool"].as_str().unwrap()));
                entries.push(tool_result(text));
            }
            other => panic!("role {other}"),
        }
    }
    entries.push(said(case["input"].as_str().unwrap(), case["given"]["now"].as_str()));
    conversation(&entries)
}

/// A transcript that only tells when the session began: a state file is adopted if it is newer.
fn beginning(case: &Value) -> Vec<Value> {
    let at = case["given"]["now"].as_str().unwrap_or("2026-03-02T10:00:00Z");
    conversation(&[json!({"type": "system", "subtype": "informational", "timestamp": at})])
}

/// Compares what a stop did with what the case expects of it.
fn check(case: &Value, project: &Project, answer: &Answer, how: &str) {
    let id = &case["id"];
    let expect = case["expect"].as_object().unwrap();
    let view = || project.view();
    for (what, wanted) in expect {
        let got = match &**what {
            "decision" => json!(answer.word()),
            "phase_after" => view()["phase"].clone(),
            "iteration_after" => view()["iteration"].clone(),
            "active_after" => view()["active"].clone(),
            "exit_reason" => view()["exit_reason"].clone(),
            "effective_max_iterations" => view()["max_iterations"].clone(),
            "last_error" => {
                let error = &view()["last_error"];
                json!({"phase": error["phase"], "message": error["message"]})
            }
            "recorded" => {
                let signals = view()["signals"]["detected_signals"].clone();
                let name = |signal: &Value| signal["signal"].clone();
                Value::Array(signals.as_array().unwrap().iter().map(name).collect())
            }
            "completes_phase" => json!(view()["phase"] != case["given"]["state"]["phase"]),
            "state_file_untouched" => {
                let now = fs::read_to_string(project.view_path()).unwrap();
                json!(now == case["given"]["state_raw"])
            }
            // What the scanner says is the business of the core's own tests of these cases.
            "signal" | "all" | "last" | "kind" | "warnings" | "fields" | "near_misses"
            | "start_phase" | "near_miss" | "count" => continue,
            other => panic!("{id}: the test does not know `{other}`"),
        };
        assert_eq!(&got, wanted, "{id} ({how}): {what}");
    }
}

#[test]
fn every_stop_is_decided_as_expected() {
    let mut count = 0;
    for case in cases() {
        let given = &case["given"];
        let state = match (&given["state"], given["state_raw"].as_str()) {
            (_, Some(raw)) => raw.to_owned(),
            (Value::Null, None) => continue,
            (state, None) => state.to_string(),
        };
        // From the payload, from the file alone, and from both: the answer is the same.
        for how in ["payload", "file", "both"] {
            let project =
                Project::new().at(given["now"].as_str().unwrap_or("2026-03-02T10:00:00Z"));
            project.write_view(&state);
            let mut payload = project.payload(case["input"].as_str().unwrap());
            let lines = match how {
                "payload" if given.get("earlier_transcript").is_none() => beginning(&case),
                _ => transcript(&case),
            };
            payload["transcript_path"] = json!(project.transcript(&lines));
            if how == "file" {
                payload.as_object_mut().unwrap().remove("last_assistant_message");
            }
            let answer = project.hook(&payload);
            check(&case, &project, &answer, how);
        }
        count += 1;
    }
    assert!(count >= 20, "only {count} cases have a state");
}

#[test]
fn the_start_flag_skips_the_first_phase() {
    let project = Project::new();
    let started = project.start(&["--skip-expansion"]);
    assert_eq!(started["phase"], "init");
    assert_eq!(project.view()["phase"], "init");
}
