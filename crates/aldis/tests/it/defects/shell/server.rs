//! Defects of the server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::installation::{Installation, Started, wait_until, within};
use super::{PATIENCE, pin, seen};
use crate::phases::fault::has_strace;
use crate::sandbox::ALDIS;
use crate::serve::client::{Server, command, place};

/// How many decisions lie between a request and its repetition.
const DECISIONS_BETWEEN: usize = 1_001;

#[test]
fn b5_a_repeated_request_gets_its_first_answer_however_much_was_decided_since() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let start = json!({ "channel": "c1", "agents": ["pm", "dev"] });
    assert_eq!(server.post("/v1/channels", &start).status, 201);
    let speak = || {
        let body = json!({ "agent": "pm", "text": "Yes. TURN_COMPLETE" });
        let key = [("idempotency-key", "first")];
        let got = server.request("POST", "/v1/channels/c1/messages", &key, Some(&body)).unwrap();
        assert!(got.status < 500, "{}", got.text);
        let got = got.json();
        (got["result"].clone(), got["effects"].clone())
    };
    let first = speak();
    assert_eq!(first.0["turnAdvanced"], true, "{first:?}");
    assert_eq!(speak(), first, "at once it is the same");
    for _ in 0..DECISIONS_BETWEEN {
        let got = server.post("/v1/channels/c1/human", &json!({ "text": "hurry" }));
        assert_eq!(got.status, 200, "{}", got.text);
    }
    let again = speak();
    let differ = (again != first).then(|| format!("{again:?} instead of {first:?}"));
    pin("B5", seen(differ));
}

/// A thread on which requests are read and answered must not wait for the disk: all others that it
/// serves would wait with it. Which threads those are, strace tells: they use the sockets.
///
/// A repair that gives such a thread away for as long as it waits would need another observation.
#[test]
fn b6_threads_that_serve_requests_do_not_read_the_store() {
    if !has_strace() {
        return;
    }
    let (directory, state) = place();
    let trace = directory.path().join("trace");
    let server = Server::start_command(&state, traced(&state, &trace));
    let plan = json!({ "title": "Export", "tasks": [{ "id": "csv", "acceptance": ["it works"] }] });
    let delivery = json!({ "machine": "delivery", "id": "d1", "start": { "plan": plan } });
    for (path, body, status) in [
        (CHANNELS, json!({ "channel": "c1", "agents": ["pm", "dev"] }), 201),
        ("/v1/channels/c1/human", json!({ "text": "hurry" }), 200),
        (DELIVERIES, delivery, 201),
        ("/v1/runs/d1/events", json!({ "event": "begin" }), 200),
        ("/v1/runs/d1/pause", json!({}), 200),
        ("/v1/runs/d1/resume", json!({}), 200),
    ] {
        let got = server.post(path, &body);
        assert_eq!(got.status, status, "{path}: {}", got.text);
    }
    let pid = server.pid().to_string();
    server.signal(Signal::SIGTERM);
    assert!(server.end().success());
    let ended = |line: &str| line.contains("+++ exited") && line.starts_with(&pid);
    wait_until("the trace is complete", || fs::read_to_string(&trace).unwrap().lines().any(ended));

    let trace = fs::read_to_string(&trace).unwrap();
    // Whoever ends the server may close the store.
    let (trace, _) = trace.split_once("--- SIGTERM").unwrap();
    let first = |path: &str| trace.find(&format!("POST {path} ")).unwrap();
    let (opening, deliveries) = trace.split_at(first(DELIVERIES));
    let channels = read_by_serving_thread(&opening[first(CHANNELS)..]);
    assert_eq!(channels, None, "other threads read what is stored about channels");
    pin("B6", seen(read_by_serving_thread(deliveries)));
}

const CHANNELS: &str = "/v1/channels";
const DELIVERIES: &str = "/v1/runs";

/// The first read of the store in a trace by a thread that also reads or answers requests.
fn read_by_serving_thread(trace: &str) -> Option<String> {
    let calls = || trace.lines().filter_map(|line| line.split_once(' '));
    let serves = |call: &str| {
        let call = call.trim_start();
        ["recvfrom(", "sendto(", "writev("].iter().any(|name| call.starts_with(name))
            && call.contains("<socket:")
    };
    let reads = |call: &str| call.contains("/aldis.db");
    let threads: BTreeSet<&str> =
        calls().filter(|(_, call)| serves(call)).map(|(thread, _)| thread).collect();
    assert!(!threads.is_empty(), "requests were served: {trace}");
    assert!(calls().any(|(_, call)| reads(call)), "the store was read: {trace}");
    let wrong = calls().find(|(thread, call)| threads.contains(thread) && reads(call));
    wrong.map(|(thread, call)| format!("{thread} {call}"))
}

/// A server whose use of sockets and of the database is written down, thread by thread. It stays a
/// child of ours; strace is the one who is not.
fn traced(state: &Path, trace: &Path) -> Command {
    let mut traced = Command::new("strace");
    traced
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .current_dir(state.parent().unwrap())
        .args(["-D", "-f", "-q", "-y", "-e", "trace=pread64,recvfrom,sendto,writev,fcntl", "-o"])
        .args([trace, Path::new(ALDIS), Path::new("--state-dir"), state])
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    traced
}

/// Every address of this machine is one of its addresses. What is wrong with it is that others can
/// reach it.
#[test]
fn b9_an_address_that_is_refused_is_refused_for_what_it_is() {
    let installation = Installation::new();
    let mut command = command(&installation.state(), &["--listen", "0.0.0.0:0"]);
    let errors = installation.project("out").join("stderr");
    command.stdout(Stdio::null()).stderr(fs::File::create(&errors).unwrap());
    let mut started = Started(command.spawn().unwrap());
    // A server that serves there is right, too.
    let serves = || installation.state().join("serve.address").exists().then_some(None);
    let ended = within(PATIENCE, || started.ends_within(Duration::ZERO).or_else(serves));
    let said = fs::read_to_string(errors).unwrap();
    let code = ended.expect("it ends or serves");
    assert!(code.is_none_or(|code| code == 2), "{code:?}: {said}");
    let wrong = (code == Some(2) && !said.contains("loopback")).then_some(said);
    pin("B9", seen(wrong));
}

/// Who asks whether the server is ready wants to know whether to send it requests. It takes all of
/// them, whatever became of one channel.
#[test]
fn b10_a_stuck_channel_does_not_make_the_server_unready() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let start = json!({ "channel": "stuck", "agents": ["pm", "dev"] });
    assert_eq!(server.post("/v1/channels", &start).status, 201);
    let ready = |server: &Server| {
        let ask = format!(
            "GET /readyz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            server.address
        );
        server.raw(ask.as_bytes()).unwrap()
    };
    assert_eq!(ready(&server).status, 200);
    let shown = server.get("/v1/channels/stuck").json();
    let deadline = shown["turn_timeout_at"].as_str().unwrap().to_owned();
    server.signal(Signal::SIGTERM);
    assert!(server.end().success());

    // The timer was lost, and the turn should have ended long ago.
    let database = rusqlite::Connection::open(state.join("aldis.db")).unwrap();
    let lost = database.execute("DELETE FROM timers WHERE run = 'stuck'", []).unwrap();
    let earlier = "UPDATE runs SET state = replace(state, ?1, '2020-01-01T00:00:00Z')";
    let changed = database.execute(earlier, [&deadline]).unwrap();
    assert_eq!((lost, changed), (1, 1));
    drop(database);

    let server = Server::start(&state);
    let health = server.get("/v1/health").json();
    let troubled = |trouble: &Value| trouble["run"] == "stuck";
    assert!(health["troubles"].as_array().unwrap().iter().any(troubled), "{health}");
    let got = ready(&server);
    let wrong = (got.status != 200).then(|| format!("{}: {}", got.status, got.text));
    pin("B10", seen(wrong));
}
