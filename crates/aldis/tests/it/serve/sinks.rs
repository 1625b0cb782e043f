//! Posts reach their sinks, whatever these do.

use std::path::Path;
use std::{fs, thread, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::client::{Server, command, place};
use super::receiver::{Act, Arrived, Inbox};

const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

pub(crate) fn configure(state: &Path, sinks: &[String]) {
    fs::create_dir_all(state).unwrap();
    fs::set_permissions(state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    fs::write(state.join("secret"), format!("whsec_{}\n", STANDARD.encode(SECRET))).unwrap();
    let mine = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(state.join("secret"), mine).unwrap();
    fs::write(state.join("serve.toml"), sinks.concat()).unwrap();
}

pub(crate) fn webhook(url: &str, more: &str) -> String {
    format!(
        "[[sinks]]\nname = \"audit\"\nkind = \"webhook\"\nurl = \"{url}\"\nsecret_file = \"secret\"\nwebhook_private = true\n{more}\n"
    )
}

fn discord(url: &str) -> String {
    format!(
        "[[sinks]]\nname = \"team\"\nkind = \"discord\"\nurl = \"{url}\"\nwebhook_private = true\n"
    )
}

pub(crate) fn talk(server: &Server, texts: &[&str]) {
    let persona =
        json!({ "pm": { "displayName": "Product", "avatarUrl": "https://example.org/pm.png" } });
    let start = json!({ "channel": "c1", "agents": ["pm"], "personas": persona });
    assert_eq!(server.post("/v1/channels", &start).status, 201);
    for text in texts {
        server.post("/v1/channels/c1/messages", &json!({ "agent": "pm", "text": text }));
    }
}

/// How many effects of all kinds wait.
fn pending(server: &Server) -> u64 {
    let metrics = server.get("/metrics").text;
    let lines = metrics.lines().filter(|line| line.starts_with("aldis_effects_pending{"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn wait_until_empty(server: &Server) {
    while pending(server) != 0 {
        thread::sleep(Duration::from_millis(50));
    }
}

/// What a receiver checks.
pub(crate) fn is_signed(id: &str, at: &str, body: &str, signature: &str) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    signature == format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Checks the signature over what really arrived.
fn check_signature(arrived: &Arrived) {
    let [id, at, signature] =
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| arrived.header(name));
    assert!(is_signed(&id, &at, &arrived.body, &signature), "{arrived:?}");
}

#[test]
fn a_webhook_arrives_signed_in_order_and_again_until_it_is_taken() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[Act::Answer(500, "no"), Act::HangUp, Act::Answer(503, "")]);
    configure(&state, &[webhook(&inbox.url, "effects = [\"post\"]")]);
    let server = Server::start(&state);
    talk(&server, &["one", "two"]);
    let arrived: Vec<Arrived> = (0..5).map(|_| inbox.next()).collect();
    arrived.iter().for_each(check_signature);
    let texts: Vec<Value> =
        arrived.iter().map(|one| one.json()["data"]["effect"]["text"].clone()).collect();
    assert_eq!(texts, ["one", "one", "one", "one", "two"]);
    let first = arrived[0].header("webhook-id");
    assert!(arrived[..4].iter().all(|one| one.header("webhook-id") == first));
    assert_ne!(arrived[4].header("webhook-id"), first);
    wait_until_empty(&server);
}

#[test]
fn what_was_not_delivered_is_delivered_after_a_crash() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[Act::HangUp]);
    configure(&state, &[webhook(&inbox.url, "effects = [\"post\"]")]);
    let server = Server::start(&state);
    talk(&server, &["before the crash"]);
    let first = inbox.next();
    server.crash();
    let server = Server::start(&state);
    let again = inbox.next();
    assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(again.json()["data"]["effect"]["text"], "before the crash");
    wait_until_empty(&server);
}

#[test]
fn what_a_killed_server_was_sending_is_sent_again_under_the_same_name() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[Act::Hang]);
    configure(&state, &[webhook(&inbox.url, "effects = [\"post\"]")]);
    let server = Server::start(&state);
    talk(&server, &["one", "two"]);
    // It is claimed and on its way, and nobody knows whether it arrived.
    let first = inbox.next();
    server.crash();
    let server = Server::start(&state);
    let [again, then] = [inbox.next(), inbox.next()];
    assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(again.json()["id"], first.header("webhook-id"));
    assert_eq!(then.json()["data"]["text"], "two");
    wait_until_empty(&server);
}

#[test]
fn a_receiver_that_asks_for_time_gets_it() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[Act::RetryAfter(3)]);
    configure(&state, &[webhook(&inbox.url, "effects = [\"post\"]")]);
    let server = Server::start(&state);
    talk(&server, &["one"]);
    let sent = |arrived: Arrived| arrived.header("webhook-timestamp").parse::<i64>().unwrap();
    let [first, second] = [sent(inbox.next()), sent(inbox.next())];
    // Seconds are cut off, not rounded.
    assert!(second - first >= 2, "{first} {second}");
    wait_until_empty(&server);
}

#[test]
fn what_other_processes_decide_reaches_the_sinks() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[]);
    configure(&state, &[webhook(&inbox.url, "")]);
    let server = Server::start(&state);
    talk(&server, &[]);
    let tell = |text: &str| {
        let mut command = std::process::Command::new(crate::sandbox::ALDIS);
        command.env_clear().current_dir(state.parent().unwrap());
        command.args(["--state-dir", state.to_str().unwrap(), "tell", "c1", text]);
        assert!(command.status().unwrap().success());
    };
    let arrives = |text: &str| {
        while !inbox.next().body.contains(text) {}
    };
    tell("while it runs");
    arrives("while it runs");
    server.crash();
    tell("while it does not");
    let server = Server::start(&state);
    arrives("while it does not");
    wait_until_empty(&server);
}

#[test]
fn a_dead_sink_is_seen_and_its_queue_stays_short() {
    let (_directory, state) = place();
    // The listener is closed again: connections are refused.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    configure(&state, &[webhook(&format!("http://{closed}/"), "effects = [\"post\"]")]);
    let server = Server::start(&state);
    talk(&server, &[]);
    let texts: Vec<String> = (0..1_200).map(|number| format!("number {number}")).collect();
    let posts = json!({ "agent": "pm", "texts": texts });
    assert_eq!(server.post("/v1/channels/c1/messages", &posts).status, 200);
    while !server.get("/metrics").text.contains("aldis_deliveries_dropped_total 200") {
        thread::sleep(Duration::from_millis(50));
    }
    while !server.get("/v1/health").text.contains("wait for another attempt") {
        thread::sleep(Duration::from_millis(50));
    }
    assert!(server.get("/readyz").text.contains("a sink takes nothing"));
    assert_eq!(server.get("/readyz").status, 200, "everything else works");
    assert_eq!(pending(&server), 1000);
    let health = server.get("/v1/health").text;
    for want in ["audit: 1000 notices wait for another attempt", "200 effects were given up"] {
        assert!(health.contains(want), "{health}");
    }
    for (command, want) in [
        ("status", "audit: 1000 notices wait"),
        ("doctor", "audit: 1000 notices wait"),
        ("log", "audit: 200 notices were dropped: more than 1000 waited"),
    ] {
        let mut aldis = std::process::Command::new(crate::sandbox::ALDIS);
        aldis.env_clear().env("HOME", state.parent().unwrap()).current_dir(state.parent().unwrap());
        let output =
            aldis.args(["--state-dir", state.to_str().unwrap(), command]).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(want), "{command}: {said}");
    }
}

#[test]
fn what_is_refused_for_good_is_given_up_and_holds_nobody_up() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[Act::Answer(410, ""), Act::Redirect]);
    configure(&state, &[webhook(&inbox.url, "effects = [\"post\"]")]);
    let server = Server::start(&state);
    talk(&server, &["gone", "elsewhere", "here"]);
    let texts: Vec<Value> =
        (0..3).map(|_| inbox.next().json()["data"]["effect"]["text"].clone()).collect();
    assert_eq!(texts, ["gone", "elsewhere", "here"]);
    wait_until_empty(&server);
    assert!(server.get("/metrics").text.contains("aldis_deliveries_given_up_total 2"));
}

#[test]
fn discord_gets_pieces_with_a_face_and_nobody_is_mentioned() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[Act::Answer(429, "{\"retry_after\":0.05,\"global\":false}")]);
    configure(&state, &[discord(&inbox.url)]);
    let server = Server::start(&state);
    let long = format!("@everyone {}\n{}", "a".repeat(1_500), "b".repeat(1_500));
    talk(&server, &[&format!("{long} TURN_COMPLETE")]);
    let arrived: Vec<Arrived> = (0..3).map(|_| inbox.next()).collect();
    let bodies: Vec<Value> = arrived.iter().map(Arrived::json).collect();
    assert_eq!(bodies[0]["content"], bodies[1]["content"], "again after it was told to wait");
    assert_eq!(bodies[2]["content"], "b".repeat(1_500));
    for body in &bodies {
        assert_eq!(
            (&body["username"], &body["avatar_url"]),
            (&json!("Product"), &json!("https://example.org/pm.png"))
        );
        assert_eq!(body["allowed_mentions"], json!({ "parse": [] }));
    }
    wait_until_empty(&server);
}

#[test]
fn sinks_that_cannot_be_meant_are_refused() {
    let (_directory, state) = place();
    for (sink, want) in [
        (webhook("http://127.0.0.1:1/", "").replace("webhook_private = true", ""), "https"),
        (
            webhook("https://127.0.0.1:1/", "").replace("webhook_private = true", ""),
            "this machine or network",
        ),
        (webhook("https://example.org/", "").replace("secret\"", "missing\""), "missing"),
        (discord("https://example.org/").replace("team", "a b"), "a name has"),
        (discord("https://example.org/").repeat(2), "two of that name"),
        (discord("https://example.org/") + "colour = 1\n", "unknown field"),
    ] {
        configure(&state, std::slice::from_ref(&sink));
        let output = command(&state, &[]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{sink}");
        assert!(said.contains(want), "{want}: {said}");
    }
}
