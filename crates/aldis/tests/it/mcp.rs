//! Agents that report by calls: `aldis mcp`, `aldis signal` and `/mcp`.

pub(crate) mod client;
mod http;
mod signal;

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use self::client::{Client, Era};
use crate::phases::project::{Answer, Project};
use crate::sandbox::ALDIS;

const S1: &[(&str, &str)] = &[("CLAUDE_CODE_SESSION_ID", "S1")];
const TOOLS: [&str; 7] =
    ["complete", "progress", "blocked", "ask_human", "verdict", "end_turn", "status"];

#[test]
fn both_eras_see_the_same_tools() {
    let project = Project::new();
    let mut listed = Vec::new();
    for era in [Era::Old, Era::New] {
        let mut client = Client::start(&project, era, &[]);
        let mut answer = client.request("tools/list", json!({}));
        let tools = answer["result"]["tools"].take();
        listed.push(tools);
        if era == Era::New {
            let about = client.request("server/discover", json!({}));
            let versions = about["result"]["supportedVersions"].to_string();
            assert!(versions.contains("2026-07-28") && versions.contains("2025-06-18"), "{about}");
        }
        client.end();
    }
    assert_eq!(listed[0], listed[1]);
    let tools = listed[0].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS);
    for tool in tools {
        let schema = tool["inputSchema"].to_string();
        assert!(!schema.contains("$ref") && !schema.contains("oneOf"), "{schema}");
        assert!(!schema.contains("anyOf") && !schema.contains("$defs"), "{schema}");
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool["description"].as_str().unwrap().len() < 300, "{tool}");
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "{tool}");
        let hints = &tool["annotations"];
        assert_eq!(hints["destructiveHint"], false, "{tool}");
        assert_eq!(hints["openWorldHint"], false, "{tool}");
        assert_eq!(hints["readOnlyHint"], tool["name"] == "status", "{tool}");
    }
}

#[test]
fn a_call_that_its_transcript_shows_ends_the_phase() {
    for era in [Era::Old, Era::New] {
        let project = Project::new();
        project.start(&[]);
        let mut client = Client::start(&project, era, S1);
        let told = client.call("complete", json!({"summary": "analysed"}), "toolu_1");
        assert_eq!(told["accepted"], true, "{told}");
        assert!(told["next"].as_str().unwrap().contains("Phase init is next"), "{told}");
        // Nothing has happened yet.
        assert_eq!(project.status()["phase"], "expansion");
        client.end();
        let answer = stop_with(&project, &[("toolu_1", "mcp__aldis__complete", &told)]);
        assert!(matches!(answer, Answer::Block(_)), "{answer:?}");
        let why = project.why();
        assert_eq!(project.status()["phase"], "init", "{why}");
        assert_eq!(why["evidence"][0]["name"], "EXPANSION_COMPLETE", "{why}");
        assert_eq!(why["evidence"][0]["via"], "call", "{why}");
        assert_eq!(project.run(&["replay", project.status()["run"].as_str().unwrap()]).code, 0);
        // It counted once.
        stop_with(&project, &[("toolu_1", "mcp__aldis__complete", &told)]);
        assert_eq!(project.status()["phase"], "init");
    }
}

/// Claude Code writes the transcript of a new session late: at the first stop there may be none.
#[test]
fn the_first_call_of_a_session_waits_for_its_transcript() {
    let project = Project::new();
    project.start(&[]);
    let mut client = Client::start(&project, Era::New, S1);
    let told = client.call("complete", json!({"summary": "analysed"}), "toolu_1");
    let payload = payload_with(&project, &[("toolu_1", "mcp__aldis__complete", &told)]);
    let path = PathBuf::from(payload["transcript_path"].as_str().unwrap());
    let kept = path.with_extension("late");
    fs::rename(&path, &kept).unwrap();
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_millis(400));
        fs::rename(kept, path).unwrap();
    });
    let answer = project.hook(&payload);
    late.join().unwrap();
    assert!(matches!(answer, Answer::Block(_)), "{answer:?}");
    let why = project.why();
    assert_eq!(why["evidence"][0]["via"], "call", "{why}");
}

#[test]
fn a_call_that_no_transcript_shows_is_only_words() {
    let project = Project::new();
    project.start(&[]);
    let mut client = Client::start(&project, Era::New, S1);
    let told = client.call("complete", json!({"summary": "analysed"}), "toolu_1");
    assert_eq!(told["accepted"], true, "{told}");
    project.stop("I am through.");
    let why = project.why();
    assert_eq!(project.status()["phase"], "init", "{why}");
    assert!(why["evidence"][0].get("via").is_none_or(|via| via == "said"), "{why}");
    // What would end the whole run needs more than that.
    let all = json!({"summary": "all of it", "phase": "all"});
    let told = client.call("complete", all, "toolu_2");
    assert_eq!(told["accepted"], true, "{told}");
    project.stop("I am through.");
    assert_eq!(project.status()["active"], true);
}

#[test]
fn where_only_calls_count_words_do_not() {
    let project = Project::new();
    fs::write(project.path().join("aldis.toml"), "[signals]\naccept = \"call\"\n").unwrap();
    project.start(&[]);
    let block = "Done.\n\n---\nSIGNAL: EXPANSION_COMPLETE\nPHASE: expansion\nSTATUS: complete\n\
                 TIMESTAMP: 2026-03-02T10:00:00Z\nNEXT: init\n---\n";
    let answer = project.stop(block);
    let Answer::Block(reason) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("only `call` counts here"), "{reason}");
    let why = project.why();
    assert_eq!(project.status()["phase"], "expansion", "{why}");
    assert_eq!(why["evidence"][0]["reason"], "unattested", "{why}");
    let mut client = Client::start(&project, Era::New, S1);
    let told = client.call("complete", json!({"summary": "analysed"}), "toolu_1");
    stop_with(&project, &[("toolu_1", "mcp__aldis__complete", &told)]);
    assert_eq!(project.status()["phase"], "init");
}

#[test]
fn what_does_not_count_is_refused_with_the_rule() {
    let project = Project::new();
    let mut client = Client::start(&project, Era::New, S1);
    let told = client.call("complete", json!({"summary": "x"}), "toolu_0");
    assert_eq!(told["rule"], "call/no-run", "{told}");
    project.start(&[]);
    for (tool, arguments, rule) in [
        ("complete", json!({"summary": "tests pass", "phase": "qa"}), "call/out-of-order"),
        ("complete", json!({"summary": ""}), "call/bad-arguments"),
        ("complete", json!({"summary": "[summary]"}), "call/bad-arguments"),
        ("complete", json!({}), "call/bad-arguments"),
        ("blocked", json!({"reason": "x", "needs": "money"}), "call/bad-arguments"),
        ("verdict", json!({"verdict": "approve", "summary": "x"}), "call/role-not-allowed"),
        ("end_turn", json!({"channel": "nowhere"}), "call/no-run"),
    ] {
        let told = client.call(tool, arguments.clone(), "toolu_1");
        assert_eq!(told["accepted"], false, "{tool} {arguments}: {told}");
        assert_eq!(told["rule"], rule, "{tool} {arguments}: {told}");
        for said in ["reason", "next"] {
            assert!(!told[said].as_str().unwrap().is_empty(), "{told}");
        }
    }
    // Cured at once, in the same turn.
    let told = client.call("complete", json!({"summary": "analysed"}), "toolu_2");
    assert_eq!(told["accepted"], true, "{told}");
    let answer = client.request("tools/call", json!({"name": "no_such_tool", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    client.end();
}

#[test]
fn calls_of_other_sessions_are_refused() {
    let project = Project::new();
    project.start(&[]);
    let mut client = Client::start(&project, Era::New, &[("CLAUDE_CODE_SESSION_ID", "S2")]);
    let told = client.call("complete", json!({"summary": "x"}), "toolu_1");
    assert_eq!(told["rule"], "call/other-session", "{told}");
    // Codex says in the request which session it is.
    let turn = json!({"thread_id": "S2", "session_id": "S2"});
    let mut codex = Client::start(&project, Era::Old, &[]);
    let params = json!({"name": "complete", "arguments": {"summary": "x"},
                        "_meta": {"callId": "call_1", "x-codex-turn-metadata": turn}});
    let told = codex.request("tools/call", params)["result"]["structuredContent"].take();
    assert_eq!(told["rule"], "call/other-session", "{told}");
}

#[test]
fn a_sub_agent_ends_its_phase_and_not_the_run() {
    let project = Project::new();
    project.start(&[]);
    let mut client = Client::start(&project, Era::Old, &[]);
    let turn = json!({"thread_id": "S1", "thread_source": "subagent"});
    let mut call = |arguments: Value, id: &str| {
        let params = json!({"name": "complete", "arguments": arguments,
                            "_meta": {"callId": id, "x-codex-turn-metadata": turn}});
        client.request("tools/call", params)["result"]["structuredContent"].take()
    };
    let told = call(json!({"summary": "all", "phase": "all"}), "call_1");
    assert_eq!(told["rule"], "call/role-not-allowed", "{told}");
    let told = call(json!({"summary": "my part"}), "call_2");
    assert_eq!(told["accepted"], true, "{told}");
}

#[test]
fn a_question_lets_the_agent_stop() {
    let project = Project::new();
    project.start(&[]);
    let mut client = Client::start(&project, Era::New, S1);
    let question = json!({"question": "Keep it?", "options": ["keep", "drop"], "default": "keep"});
    let told = client.call("ask_human", question, "toolu_1");
    assert_eq!(told["accepted"], true, "{told}");
    let answer = stop_with(&project, &[("toolu_1", "mcp__aldis__ask_human", &told)]);
    assert!(!matches!(answer, Answer::Block(_)), "{answer:?}");
    let status = project.status();
    assert_eq!(status["active"], true);
    let asked =
        json!({"id": "q1", "text": "Keep it?", "options": ["keep", "drop"], "default": "keep"});
    assert_eq!(status["question"], asked);
    for shown in [project.run(&["status"]).stdout, project.run(&["auto", "status"]).stdout] {
        assert!(shown.contains("Keep it?"), "{shown}");
    }
    let answered = project.run(&["answer", "q1", "Keep it."]);
    assert_eq!(answered.code, 0, "{}", answered.text());
    assert!(answered.stdout.starts_with("Answered q1 of run "), "{}", answered.text());
    // It was one stop.
    assert!(matches!(project.stop("And now?"), Answer::Block(_)));
}

#[test]
fn a_call_that_is_delivered_twice_counts_once() {
    let project = Project::new();
    project.start(&[]);
    let mut client = Client::start(&project, Era::New, S1);
    let first = client.call("complete", json!({"summary": "analysed"}), "toolu_1");
    let again = client.call("complete", json!({"summary": "analysed"}), "toolu_1");
    assert_eq!(first["id"], again["id"]);
    stop_with(&project, &[("toolu_1", "mcp__aldis__complete", &first)]);
    assert_eq!(project.status()["phase"], "init");
}

#[test]
fn a_store_that_cannot_be_used_is_an_answer() {
    let project = Project::new();
    let file = project.root().join("no-directory");
    fs::write(&file, "").unwrap();
    let variables = [("ALDIS_STATE_DIR", file.to_str().unwrap())];
    let mut client = Client::start(&project, Era::New, &variables);
    for id in ["toolu_1", "toolu_2"] {
        let told = client.call("complete", json!({"summary": "x"}), id);
        assert_eq!(told["rule"], "call/store-unavailable", "{told}");
        assert!(told["next"].as_str().unwrap().contains("final message"), "{told}");
    }
    // It works as soon as the store does.
    fs::remove_file(&file).unwrap();
    let told = client.call("complete", json!({"summary": "x"}), "toolu_3");
    assert_eq!(told["rule"], "call/no-run", "{told}");
    client.end();
}

#[test]
fn a_thousand_calls_at_once_are_kept() {
    const CALLS: usize = 1_000;
    let project = Project::new().patient();
    project.start(&[]);
    let mut client = Client::start(&project, Era::Old, S1);
    let calls: Vec<Value> = (0..CALLS)
        .map(|number| {
            json!({"name": "complete", "arguments": {"summary": format!("part {number}")},
                   "_meta": {"claudecode/toolUseId": format!("toolu_{number}")}})
        })
        .collect();
    let (mut answered, mut kept) = (HashSet::new(), HashSet::new());
    for answer in client.call_at_once(&calls) {
        let told = &answer["result"]["structuredContent"];
        assert_eq!(told["accepted"], true, "{answer}");
        assert!(answered.insert(answer["id"].as_u64().unwrap()));
        assert!(kept.insert(told["id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(kept.len(), CALLS);
    client.end();
    project.stop("I am through.");
    assert_eq!(project.status()["phase"], "init");
}

#[test]
fn what_can_be_read_and_asked_for() {
    let project = Project::new();
    project.start(&[]);
    let mut client = Client::start(&project, Era::Old, S1);
    let status = client.call("status", json!({}), "toolu_1");
    assert_eq!(status["accepted"], true, "{status}");
    assert_eq!(status["tools"], json!(["ask_human", "blocked", "complete", "progress"]));
    assert!(status["status"].as_str().unwrap().contains("phase expansion"), "{status}");
    for uri in ["aldis://run/current", "aldis://why/last"] {
        let answer = client.request("resources/read", json!({"uri": uri}));
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value["run"], status["run"], "{value}");
    }
    let answer = client.request("resources/read", json!({"uri": "aldis://other"}));
    assert!(answer["error"].is_object(), "{answer}");
    for (name, said) in [("start", "phase expansion"), ("handover", "Started the run")] {
        let answer = client.request("prompts/get", json!({"name": name}));
        let text = answer["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains(said), "{text}");
    }
    client.end();
}

/// A stop of session S1 whose transcript shows calls with their answers.
fn stop_with(project: &Project, calls: &[(&str, &str, &Value)]) -> Answer {
    project.hook(&payload_with(project, calls))
}

/// What the hook is told at such a stop.
fn payload_with(project: &Project, calls: &[(&str, &str, &Value)]) -> Value {
    let shown: Vec<_> = calls
        .iter()
        .map(|(id, tool, told)| (*id, *tool, json!({}), json!(told.to_string())))
        .collect();
    payload_showing(project, &shown)
}

/// What the hook is told where the transcript shows these calls: id, tool, arguments, result.
fn payload_showing(project: &Project, calls: &[(&str, &str, Value, Value)]) -> Value {
    let line = |kind: &str, number: usize, content: Value| {
        json!({ "type": kind, "sessionId": "S1", "uuid": format!("u{number}"),
                "parentUuid": number.checked_sub(1).map(|number| format!("u{number}")),
                "isSidechain": false, "timestamp": "2026-03-02T09:59:00Z",
                "message": { "id": format!("m{number}"), "role": kind, "content": content } })
    };
    let mut lines = vec![line("user", 0, json!("Add CSV export"))];
    for (id, tool, input, result) in calls {
        let number = lines.len();
        let call = json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]);
        lines.push(line("assistant", number, call));
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": result}]);
        lines.push(line("user", number + 1, result));
    }
    lines.push(line("assistant", lines.len(), json!([{"type": "text", "text": "I am through."}])));
    let path = project.transcript(&lines);
    let mut payload = project.payload("I am through.");
    payload["transcript_path"] = json!(path);
    payload
}

/// Where the binary is, for agents that are scripts.
fn aldis() -> &'static str {
    ALDIS
}
