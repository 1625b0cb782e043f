//! Several servers of one PostgreSQL database: one of them does what must be done once, and whoever is
//! known to one is known to all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use super::client::{Server, command, place};
use super::receiver::{Act, Inbox};
use super::sinks::{configure, webhook};
use crate::sandbox::ALDIS;
use crate::shared::cluster;

/// A server on a machine of its own.
struct Replica {
    server: Server,
    state: PathBuf,
    store: String,
    _directory: tempfile::TempDir,
}

impl Replica {
    fn start(store: &str, prepare: impl FnOnce(&std::path::Path)) -> Self {
        let (directory, state) = place();
        prepare(&state);
        let mut command = command(&state, &[]);
        command.env("ALDIS_STORE", store);
        let server = Server::start_command(&state, command);
        Self { server, state, store: store.to_owned(), _directory: directory }
    }

    /// Runs a command on the same machine.
    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let mut command = std::process::Command::new(ALDIS);
        command.env_clear().env("ALDIS_STORE", &self.store).env("HOME", &self.state);
        command.current_dir(self.state.parent().unwrap());
        let done = command.args(["--state-dir", self.state.to_str().unwrap()]).args(args).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn status(&self, path: &str, token: &str) -> u16 {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n",
            self.server.address
        );
        self.server.raw(request.as_bytes()).unwrap().status
    }
}

#[test]
fn timers_fire_and_notices_go_out_once() {
    const CHANNELS: usize = 12;
    let Some(cluster) = cluster() else { return };
    let store = cluster.address_of("once");
    // The first is refused, so that a retry is due while both servers are at work.
    let inbox = Inbox::open(&[Act::Answer(503, "")]);
    let sink = webhook(&inbox.url, "effects = [\"notify\"]");
    let start = || Replica::start(&store, |state| configure(state, std::slice::from_ref(&sink)));
    let replicas = [start(), start()];
    for number in 0..CHANNELS {
        // Without a warning first, each alarm ends a turn.
        let config = json!({ "default_timeout_seconds": 1, "grace": false });
        let name = format!("c{number}");
        let channel = json!({ "channel": name, "agents": ["pm", "dev"], "config": config });
        assert_eq!(replicas[number % 2].server.post("/v1/channels", &channel).status, 201);
    }
    // Three turns of each end by time, with both servers watching.
    let timeouts = |name: &str| -> Vec<Value> {
        let journal = replicas[0].server.get(&format!("/v1/runs/{name}/events?limit=1000")).json();
        let events = journal["events"].as_array().unwrap().clone();
        events.into_iter().filter(|event| event["event"] == "wake").collect()
    };
    let names: Vec<String> = (0..CHANNELS).map(|number| format!("c{number}")).collect();
    while !names.iter().all(|name| timeouts(name).len() >= 3) {
        thread::sleep(Duration::from_millis(100));
    }
    for name in &names {
        // Each ended one turn: a second one for the same turn would be one too many.
        let fired = timeouts(name).len() as u64;
        let shown = replicas[1].server.get(&format!("/v1/channels/{name}")).json();
        let turn = shown["turn"].as_u64().unwrap();
        assert!(turn > fired, "{name}: turn {turn} after {fired} timeouts");
        assert!(turn <= timeouts(name).len() as u64 + 1, "{name}: turn {turn} of no timeout");
    }
    // Every notice arrived once, but for the one that was refused at first.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let first = inbox.next().header("webhook-id");
    seen.insert(first.clone(), 1);
    while seen.len() < CHANNELS * 3 || seen[&first] < 2 {
        *seen.entry(inbox.next().header("webhook-id")).or_default() += 1;
    }
    assert_eq!(seen.remove(&first), Some(2));
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
}

#[test]
fn who_is_known_to_one_is_known_to_all() {
    let Some(cluster) = cluster() else { return };
    let store = cluster.address_of("known");
    let [one, other] = [Replica::start(&store, |_| {}), Replica::start(&store, |_| {})];
    // A token that was made on one machine.
    let made = one.run(&["token", "new", "--scope", "observe", "--all-projects", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    let [token, id] = ["token", "id"].map(|member| made[member].as_str().unwrap().to_owned());
    for replica in [&one, &other] {
        assert_eq!(replica.status("/v1/runs", &token), 200);
    }
    // The server's own token is of its machine alone.
    assert_eq!(other.status("/v1/runs", &one.server.token), 401);
    // A link of one opens the other, once.
    let link = one.run(&["serve", "--link"]);
    let code = link.lines().find_map(|line| line.split_once("#code=")).unwrap().1;
    let body = json!({ "code": code });
    let log_in = |replica: &Replica| replica.server.post("/v1/login", &body).status;
    assert_eq!((log_in(&other), log_in(&one)), (200, 401));
    // Revoked on one machine, it is void on all.
    other.run(&["token", "revoke", &id]);
    for replica in [&one, &other] {
        assert_eq!(replica.status("/v1/runs", &token), 401);
    }
    // Nothing of it is in files.
    for file in ["tokens.json", "serve.sessions.json", "serve.logins", "serve.used"] {
        assert!(!one.state.join(file).exists(), "{file}");
    }
    let stored = cluster.sql("SELECT string_agg(key || body, ' ') FROM known.tickets").unwrap();
    assert!(!stored.contains(&token) && !stored.contains(code), "{stored}");
}

#[test]
fn each_sees_what_the_other_decides() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let Some(cluster) = cluster() else { return };
    let store = cluster.address_of("stream");
    let [one, other] = [Replica::start(&store, |_| {}), Replica::start(&store, |_| {})];
    let channel = json!({ "channel": "c1", "agents": ["pm", "dev"] });
    assert_eq!(one.server.post("/v1/channels", &channel).status, 201);
    let mut stream = std::net::TcpStream::connect(&other.server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (address, token) = (&other.server.address, &other.server.token);
    write!(
        stream,
        "GET /v1/events?after=0 HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    let speakers = ["pm", "dev", "pm", "dev", "pm", "dev"];
    for agent in speakers {
        let message = json!({ "agent": agent, "text": "Done here. TURN_COMPLETE" });
        assert!(one.server.post("/v1/channels/c1/messages", &message).status < 300);
    }
    let wanted = one.server.get("/v1/decisions?limit=1000").json()["decisions"].clone();
    let wanted = wanted.as_array().unwrap().len();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let ids: Vec<String> = lines
        .filter_map(|line| line.strip_prefix("id: ").map(str::to_owned))
        .take(wanted)
        .collect();
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!((ids.len(), unique.len()), (wanted, wanted), "each once: {ids:?}");
}

#[test]
fn files_of_an_older_server_are_taken_over() {
    let (_directory, state) = place();
    drop(Server::start(&state));
    let far = "2099-01-01T00:00:00Z";
    let hash = |text: &str| -> String {
        use sha2::{Digest as _, Sha256};
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let (secret, cookie, key) = ("s".repeat(64), "c".repeat(64), "k".repeat(64));
    let token = json!([{ "hash": hash(&secret), "scope": "signal", "agent": "helper",
                         "project": "/p", "created": "2026-03-02T10:00:00Z", "expires": far }]);
    fs::write(state.join("tokens.json"), token.to_string()).unwrap();
    let session = json!([{ "cookie": hash(&cookie), "key": hash(&key), "until": far }]);
    fs::write(state.join("serve.sessions.json"), session.to_string()).unwrap();
    for _ in 0..2 {
        let server = Server::start(&state);
        let list = |headers: &str| {
            let request = format!(
                "GET /v1/runs HTTP/1.1\r\nhost: {}\r\n{headers}\r\nconnection: close\r\n\r\n",
                server.address
            );
            server.raw(request.as_bytes()).unwrap().status
        };
        assert_eq!(list(&format!("authorization: Bearer {secret}")), 403, "it may only signal");
        let browser = format!("cookie: aldis_session={cookie}\r\nx-aldis-key: {key}");
        assert_eq!(list(&browser), 200);
        assert!(!state.join("tokens.json").exists() && !state.join("serve.sessions.json").exists());
    }
}
