//! Active runs of older releases are stepped on: by hooks, by processes of their own, by requests.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::assert_replays;
use super::release::Release;
use crate::phases::project::block;
use crate::serve::client::Server;

const VERSION: &str = "v0.1.0";

/// Says that it is done, and counts its starts.
const DONE: &str = "#!/bin/sh\ncat > prompt\necho >> starts\necho '<chorus>COMPLETE</chorus>'\n";
/// Says what its role should.
const ROLES: &str = "#!/bin/sh\ncat > prompt\necho \"$ALDIS_ROLE $ALDIS_TASK\" >> starts\n\
    case $ALDIS_ROLE in\n\
    developer) printf 'READY_FOR_REVIEW: %s\\nSummary: done\\n' \"$ALDIS_TASK\";;\n\
    critic) printf 'REVIEW_PASSED: %s\\n' \"$ALDIS_TASK\";;\n\
    auditor) printf 'AUDIT_PASSED: %s\\n' \"$ALDIS_TASK\";;\n\
    esac\n";

/// What a command says about the run of a scenario.
fn status(release: &Release, name: &str) -> Value {
    let done = release.run_in(name, &["status", release.id(name), "--json"], b"");
    assert_eq!(done.code, 0, "{name}: {}", done.text());
    done.json().remove(0)
}

fn starts(release: &Release, name: &str) -> Vec<String> {
    let text = fs::read_to_string(release.directory(name).join("starts")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Calls the hook at a stop of this session; returns why the stop is refused, if it is.
fn stop(release: &Release, name: &str, session: &str, text: &str) -> Option<String> {
    let payload = json!({
        "session_id": session, "cwd": release.directory(name), "hook_event_name": "Stop",
        "stop_hook_active": false, "last_assistant_message": text,
    });
    let done = release.run_in(name, &["hook", "claude-code"], payload.to_string().as_bytes());
    assert_eq!((done.code, &*done.stderr), (0, ""), "{name}: {}", done.text());
    let answer: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    answer["reason"].as_str().map(str::to_owned)
}

#[test]
fn hooks_go_on_with_stored_phases() {
    let release = Release::moved(VERSION);
    let name = "phases-active";
    let session = "session-phases-active";
    let reason = stop(&release, name, session, "Not yet.").unwrap();
    assert!(reason.contains("INIT_COMPLETE"), "{reason}");
    assert_eq!(status(&release, name)["iteration"], 2);
    let reason = stop(&release, name, session, &block("init")).unwrap();
    assert!(reason.contains("phase planning"), "{reason}");
    assert_eq!(status(&release, name)["phase"], "planning");
    // The state file goes on with it.
    let view = release.directory(name).join(".caw/auto-state.json");
    let view: Value = serde_json::from_str(&fs::read_to_string(view).unwrap()).unwrap();
    assert_eq!((&view["phase"], &view["active"]), (&json!("planning"), &json!(true)));

    // A run that no session had yet is bound by the first.
    assert!(stop(&release, "phases-unbound", "a new one", &block("expansion")).is_some());
    assert_eq!(status(&release, "phases-unbound")["session"], "a new one");

    // One that was capped goes on when a human wants it.
    let done = release.run_in("phases-capped", &["auto", "resume"], b"");
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(stop(&release, "phases-capped", "a newer one", "Not yet.").is_some());

    // A state file that was deleted meanwhile still ends its run.
    fs::remove_file(release.directory("phases-cursor").join(".caw/auto-state.json")).unwrap();
    let name = "phases-cursor";
    assert_eq!(stop(&release, name, "session-phases-cursor", "Not yet."), None);
    assert_eq!(status(&release, name)["exit_reason"], "user_cancelled");
    for name in ["phases-active", "phases-unbound", "phases-capped", "phases-cursor"] {
        assert_replays(&release, release.journal(name));
    }
}

#[test]
fn supervised_runs_of_dead_processes_are_continued() {
    let release = Release::moved(VERSION);
    for (name, question) in
        [("run-dead", None), ("run-dead-asking", Some("q1")), ("run-dead-answered", None)]
    {
        release.script(name, DONE);
        if let Some(question) = question {
            let run = ["--run", release.id(name)];
            let done = release.run_in(name, &["answer", question, "Drop it.", run[0], run[1]], b"");
            assert_eq!(done.code, 0, "{name}: {}", done.text());
        }
        let done = release.run_in(name, &["run", "--continue"], b"");
        assert_eq!(done.code, 0, "{name}: {}", done.text());
        assert_eq!(status(&release, name)["exit_reason"], "done", "{name}");
        // What the dead supervisor was about to do is not done beside it.
        assert_eq!(starts(&release, name).len(), 1, "{name}");
        assert_replays(&release, release.journal(name));
    }
    // One that ended is opened again.
    let name = "run-blocked";
    release.script(name, DONE);
    let done = release.run_in(name, &["run", "--continue"], b"");
    assert_eq!(done.code, 0, "{}", done.text());
    assert_replays(&release, release.journal(name));
}

#[test]
fn deliveries_of_dead_processes_are_continued() {
    let release = Release::moved(VERSION);
    for (name, question, dispatches) in [
        ("delivery-dead", None, 9),
        ("delivery-dead-answered", None, 3),
        ("delivery-waiting", Some("q1"), 3),
    ] {
        release.script(name, ROLES);
        if let Some(question) = question {
            let run = ["--run", release.id(name)];
            let done = release.run_in(name, &["answer", question, "Drop it.", run[0], run[1]], b"");
            assert_eq!(done.code, 0, "{name}: {}", done.text());
        }
        let done = release.run_in(name, &["deliver", "--continue"], b"");
        assert_eq!(done.code, 0, "{name}: {}", done.text());
        assert_eq!(status(&release, name)["exit_reason"], "complete", "{name}");
        assert_eq!(starts(&release, name).len(), dispatches, "{name}");
        assert_replays(&release, release.journal(name));
    }
    // One that a human had ended is opened again.
    let name = "delivery-stagnated";
    release.script(name, ROLES);
    let done = release.run_in(name, &["answer", "q1", "Go on.", "--run", release.id(name)], b"");
    assert_eq!(done.code, 0, "questions outlive an abort: {}", done.text());
    let done = release.run_in(name, &["deliver", "--continue", "--no-wait"], b"");
    assert_eq!(done.code, 0, "the task goes on with the answer: {}", done.text());
    assert_replays(&release, release.journal(name));
}

#[test]
fn a_server_goes_on_with_stored_runs_of_every_machine() {
    let release = Release::moved(VERSION);
    let server = Server::start(&release.project.state_dir());
    let post = |path: &str, body: Value| {
        let got = server.post(path, &body);
        assert_eq!(got.status, 200, "{path}: {}", got.text);
        got.json()
    };
    let happens = |name: &str, event: Value| post(&format!("/v1/runs/{name}/events"), event);
    let listed = server.get("/v1/runs?limit=1000").json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), release.journals.len());

    // The turn that was going on ended while nobody watched.
    let channel = server.get("/v1/channels/turns-active").json();
    let (agent, turn) = (channel["active_agent"].clone(), channel["turn"].as_u64().unwrap());
    let ended = channel["history"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .find_map(|line| line["reason"].as_str());
    assert_eq!(ended, Some("RECOVERY"), "{channel}");
    let said = json!({ "agent": agent, "text": "Yes. TURN_COMPLETE", "turn": turn });
    let got = post("/v1/channels/turns-active/messages", said);
    assert_eq!(got["result"]["turnAdvanced"], true, "{got}");

    let stop = json!({ "event": "stop", "session": "S9", "text": "<chorus>COMPLETE</chorus>" });
    let got = happens("phases-served-active", stop);
    assert_eq!(got["run"]["exit_reason"], "all_phases_complete", "{got}");

    happens("run-served-active", json!({ "event": "heard", "text": "<chorus>COMPLETE</chorus>" }));
    happens("run-served-active", json!({ "event": "exited", "code": 0, "signal": null }));
    let got = happens("run-served-active", json!({ "event": "looked" }));
    // It began when it was recorded, and a run may take a day.
    assert_eq!(got["run"]["exit_reason"], "timed_out", "{got}");
    let got = happens("run-served-ready", json!({ "event": "begin" }));
    assert_eq!(got["effects"][1]["effect"], "start", "{got}");

    let answer = json!({ "id": "q1", "text": "Drop it." });
    let got = post("/v1/runs/delivery-served-active/answer", answer);
    let started = got["effects"].as_array().unwrap().iter().any(|it| it["effect"] == "dispatch");
    assert!(started, "{got}");
    let got = happens("delivery-served-ready", json!({ "event": "begin" }));
    assert_eq!(got["effects"][0]["effect"], "dispatch", "{got}");

    // A request that 0.1.0 had taken is known.
    let stored = release.journal("turns-signals");
    assert!(stored.events.iter().any(|event| event.source.as_deref() == Some("api:k1")));
    let again = json!({ "agent": "pm", "text": "Yes. TURN_COMPLETE" });
    let path = "/v1/channels/turns-signals/messages";
    let got = server.request("POST", path, &[("idempotency-key", "k1")], Some(&again)).unwrap();
    assert_eq!((got.status, &got.json()["repeated"]), (200, &json!(true)), "{}", got.text);

    server.signal(Signal::SIGTERM);
    assert!(server.end().success());
    for journal in release.journals.iter().filter(|journal| journal.header.project == "serve") {
        assert_replays(&release, journal);
    }
}
