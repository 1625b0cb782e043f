//! Beginning, files, limits, recovery and end.

use std::os::unix::fs::PermissionsExt as _;
use std::{fs, thread, time::Duration};

use nix::sys::signal::Signal;
use serde_json::json;

use super::client::{Server, command, place};

#[test]
fn serves_until_it_is_told_to_stop() {
    let (_directory, state) = place();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let server = Server::start(&state);
        assert_eq!(server.get("/healthz").text, "ok\n");
        assert_eq!(server.get("/v1/runs").json()["runs"], json!([]));
        let mode = fs::metadata(state.join("serve.token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let written = fs::read_to_string(state.join("serve.address")).unwrap();
        assert_eq!(written.trim(), format!("http://{}", server.address));
        server.signal(signal);
        assert!(server.end().success());
        assert!(!state.join("serve.address").exists());
    }
}

#[test]
fn the_link_it_prints_logs_in() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let more = || {
        let mut serve = std::process::Command::new(crate::sandbox::ALDIS);
        serve.env_clear().args(["--state-dir", state.to_str().unwrap(), "serve", "--link"]);
        let output = serve.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said, String::from_utf8(output.stderr).unwrap())
    };
    let (code, said, help) = more();
    assert_eq!(code, Some(0), "{help}");
    assert!(said.contains('█') && help.contains("serve.public_url"), "{said}{help}");
    let links: Vec<&str> = said.lines().filter(|line| line.starts_with("http://")).collect();
    assert_eq!(links.len(), 1, "{said}");
    for link in [&*server.link, links[0]] {
        let code = link.strip_prefix(&format!("http://{}/login#code=", server.address)).unwrap();
        let log_in = || server.post("/v1/login", &json!({ "code": code })).status;
        assert_eq!((log_in(), log_in()), (200, 401), "{link}");
    }
    drop(server);
    let (code, _, help) = more();
    assert!(code == Some(2) && help.contains("start one: aldis serve"), "{help}");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let (_directory, state) = place();
    let refused = |args: &[&str]| {
        let output = command(&state, args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&["--listen", "0.0.0.0:0"]);
    assert!(said.contains("0.0.0.0:0 is not a loopback address"), "{said}");
    let said = refused(&["--config", "missing.toml"]);
    assert!(said.contains("missing.toml"), "{said}");
    let server = Server::start(&state);
    let said = refused(&[]);
    assert!(said.contains("another server uses"), "{said}");
    drop(server);
    fs::set_permissions(state.join("serve.token"), fs::Permissions::from_mode(0o644)).unwrap();
    let said = refused(&[]);
    assert!(said.contains("can be read by others"), "{said}");
}

#[test]
fn requests_have_limits() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let long = "x".repeat(40_000);
    let got = server.request("GET", "/healthz", &[("x-long", &long)], None).unwrap();
    assert_eq!(got.status, 431);
    let many: Vec<(String, &str)> = (0..150).map(|number| (format!("x-{number}"), "y")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
    assert_eq!(server.request("GET", "/healthz", &many, None).unwrap().status, 431);
    let huge = json!({ "text": "x".repeat(2 << 20) });
    let refused = server.request("POST", "/v1/scan", &[], Some(&huge));
    // The server need not read what it refuses, so the answer may be lost in a reset.
    assert!(refused.is_err() || refused.is_ok_and(|got| got.status == 413));
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn turns_end_by_timer_and_recover_after_a_crash() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let config = json!({ "default_timeout_seconds": 1 });
    let channel = json!({ "channel": "c1", "agents": ["pm", "dev"], "config": config });
    assert_eq!(server.post("/v1/channels", &channel).status, 201);
    let reasons = |server: &Server| {
        let shown = server.get("/v1/channels/c1").json();
        let history = shown["history"].as_array().unwrap().clone();
        history
            .iter()
            .filter_map(|entry| entry["reason"].as_str())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    while reasons(&server).is_empty() {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(reasons(&server)[0], "TIMEOUT");
    let turn = server.get("/v1/channels/c1").json()["turn"].as_u64().unwrap();
    server.crash();
    // Longer than the turn that goes on.
    thread::sleep(Duration::from_millis(1_500));
    let server = Server::start(&state);
    let found = reasons(&server);
    assert!(found.contains(&"RECOVERY".to_owned()), "{found:?}");
    assert!(server.get("/v1/channels/c1").json()["turn"].as_u64().unwrap() > turn);
}

#[test]
fn the_commands_know_channels() {
    let (directory, state) = place();
    let server = Server::start(&state);
    server.post("/v1/channels", &json!({ "channel": "c1", "agents": ["pm", "dev"] }));
    server
        .post("/v1/channels/c1/messages", &json!({ "agent": "pm", "text": "Yes. TURN_COMPLETE" }));
    let run = |args: &[&str]| {
        let output = std::process::Command::new(crate::sandbox::ALDIS)
            .env_clear()
            .current_dir(directory.path())
            .args(["--state-dir", state.to_str().unwrap()])
            .args(args)
            .output()
            .unwrap();
        let (out, err) = (output.stdout, String::from_utf8(output.stderr).unwrap());
        assert_eq!((output.status.code(), &*err), (Some(0), ""), "{args:?}");
        String::from_utf8(out).unwrap()
    };
    assert!(run(&["status"]).contains("dev's turn (turn 2)"));
    assert!(run(&["status", "--json"]).contains("\"channel\":\"c1\""));
    let why = run(&["why", "c1"]);
    assert!(why.contains("turns/turn-complete") && why.contains("Ended pm's turn"), "{why}");
    assert!(run(&["log"]).contains("turns/started"));
    let again = run(&["replay", "c1"]);
    assert_eq!(again, "2 events, 2 decisions: the same today\n");
    for (args, words) in [
        (&["tell", "c1", "Hurry.", "--to", "dev"][..], "Message sent to run c1\n"),
        (&["pause", "c1"], "Run c1: paused"),
        (&["resume", "c1"], "Run c1: dev's turn"),
        (&["abort", "c1"], "Run c1: closed\n"),
    ] {
        let said = run(args);
        assert!(said.starts_with(words), "{args:?}: {said}");
    }
    let journal = server.get("/v1/runs/c1/events").text;
    assert!(journal.contains("Hurry.") && journal.contains("`aldis abort`"), "{journal}");
}

#[test]
fn files_of_other_turn_managers_are_taken_over() {
    let (directory, state) = place();
    let personas = directory.path().join("personas");
    fs::create_dir(&personas).unwrap();
    fs::write(
        personas.join("pm.json"),
        r#"{"displayName":"Product","turnBehavior":{"timeoutSeconds":90}}"#,
    )
    .unwrap();
    fs::write(personas.join("dev.json"), r#"{"id":"dev","turnBehavior":{"timeoutSeconds":120}}"#)
        .unwrap();
    let file = directory.path().join("turns.json");
    fs::write(
        &file,
        r#"{"version":"1.0","channels":{"old":{"queue":["pm","dev"],"activeAgent":"pm"}}}"#,
    )
    .unwrap();
    let args = ["--personas", personas.to_str().unwrap(), "--import", file.to_str().unwrap()];
    let server = Server::start_with(&state, &args);
    assert_eq!(server.get("/v1/channels/old").json()["active_agent"], "pm");
    let got =
        server.post("/v1/channels", &json!({ "channel": "new", "agents": ["pm", "eve"] })).json();
    assert_eq!(got["warnings"], json!(["no persona is named `eve`"]), "{got}");
    drop(server);
    fs::write(&file, "{\"version\":").unwrap();
    drop(Server::start_with(&state, &args));
    let names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("turns.json"))
        .collect();
    assert!(names.len() == 1 && names[0].starts_with("turns.json.corrupted."), "{names:?}");
}
