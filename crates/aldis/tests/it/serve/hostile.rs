//! The rows of `testdata/hostile` that a server meets: raw requests, words for terminals and pages,
//! secrets, and what a receiver of our webhooks must be able to tell apart.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Server, place};
use super::receiver::Inbox;
use super::sinks::{configure, is_signed, talk, webhook};
use super::stream::Stream;
use crate::sandbox::ALDIS;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/hostile")
}

/// The rows about one thing: a file, and what is expected.
fn rows(about: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(directory().join("other.jsonl")).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rows = rows.filter(|row| row["dialect"] == about);
    let member = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.map(|row| (member(&row, "file"), member(&row, "expected"))).collect()
}

/// Sends bytes and returns the status of the answer, whether or not the connection stays open.
fn status(address: &str, bytes: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The server may refuse before it has read everything.
    stream.write_all(bytes).ok();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

#[test]
fn raw_requests_are_refused_as_labelled() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let port = server.address.rsplit(':').next().unwrap();
    let rows = rows("http");
    assert!(rows.len() >= 12, "{rows:?}");
    for (file, expected) in rows {
        // They were written for another address, another token and other paths.
        let text = String::from_utf8(fs::read(directory().join(&file)).unwrap()).unwrap();
        let text = text.replace(":7717", &format!(":{port}")).replace("T0KEN", &server.token);
        let text = text.replace(" /api/", " /v1/");
        let want: u16 = expected.strip_prefix("http:").unwrap().parse().unwrap();
        assert_eq!(status(&server.address, text.as_bytes()), want, "{file}");
    }
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn hostile_words_stay_words() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let open = json!({ "channel": "c1", "agents": ["pm"] });
    assert_eq!(server.post("/v1/channels", &open).status, 201);
    let page = server.get("/").text;
    for (file, _) in rows("display") {
        let bytes = fs::read(directory().join(&file)).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut stream = Stream::open(&server, "", None);
        stream.greeted();
        let said = json!({ "agent": "pm", "text": text });
        assert_eq!(server.post("/v1/channels/c1/messages", &said).status, 200, "{file}");
        // One event, with the very words in it, whatever ends lines.
        let event = stream.next();
        assert_eq!(event.data["data"]["effects"][0]["text"], json!(text), "{file}");
        assert_eq!(event.data["data"]["rule"], "turns/posted", "{file}");
        for args in [&["why", "c1"][..], &["log", "c1"], &["log", "c1", "--events"], &["status"]] {
            assert_harmless(&state, args, &file);
        }
    }
    assert_eq!(server.get("/").text, page, "the page itself has no words of agents");
}

/// A command's output has nothing that a terminal would obey.
fn assert_harmless(state: &Path, args: &[&str], file: &str) {
    let output = Command::new(ALDIS)
        .env_clear()
        .current_dir(state.parent().unwrap())
        .args(["--state-dir", state.to_str().unwrap()])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{file} {args:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let obeyed = |c: &char| {
        let bidi = matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        bidi || c.is_control() && !"\n\t".contains(*c)
    };
    assert_eq!(shown.chars().find(obeyed), None, "{file} {args:?}: {shown:?}");
}

#[test]
fn secrets_are_neither_stored_nor_shown_nor_sent() {
    let secrets = |file: &str| match file {
        "redact_00_anthropic.txt" => vec!["Zz9Zz9"],
        "redact_02_aws.txt" => vec!["QQQQ", "wwww"],
        "redact_03_pem.txt" => vec!["MIIB"],
        "redact_06_split_chunks.txt" | "redact_07_ansi_inside.txt" => vec!["QQQQ"],
        // A documented miss, and the code of a run, which no channel has.
        "redact_08_base64.txt" | "redact_10_engine_nonce.txt" => Vec::new(),
        other => panic!("{other} is new"),
    };
    for (file, _) in rows("redact") {
        let text = String::from_utf8(fs::read(directory().join(&file)).unwrap()).unwrap();
        let (_directory, state) = place();
        let inbox = Inbox::open(&[]);
        configure(&state, &[webhook(&inbox.url, "effects = [\"post\"]")]);
        let server = Server::start(&state);
        let mut stream = Stream::open(&server, "", None);
        stream.greeted();
        talk(&server, &[&text]);
        let human = json!({ "text": text });
        assert_eq!(server.post("/v1/channels/c1/human", &human).status, 200);
        let mut told = inbox.next().body;
        for _ in 0..3 {
            told += &stream.next().data.to_string();
        }
        for path in ["/v1/channels/c1", "/v1/runs/c1/events", "/v1/decisions"] {
            told += &server.get(path).text;
        }
        server.crash();
        for entry in fs::read_dir(&state).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap_or_default();
            told += &String::from_utf8_lossy(&bytes);
        }
        for secret in secrets(&file) {
            assert!(told.contains("[redacted]"), "{file}");
            assert!(!told.contains(secret), "{file}: {secret}");
        }
    }
}

#[test]
fn a_receiver_can_tell_what_is_not_ours() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[]);
    configure(&state, &[webhook(&inbox.url, "effects = [\"post\"]")]);
    let server = Server::start(&state);
    talk(&server, &["words"]);
    let arrived = inbox.next();
    let [id, at, signature] =
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| arrived.header(name));
    let genuine = |at: &str, body: &str| is_signed(&id, at, body, &signature);
    for (file, _) in rows("webhook") {
        let row: Value =
            serde_json::from_slice(&fs::read(directory().join(&file)).unwrap()).unwrap();
        match &*file {
            // Its time is part of what is signed: an old one cannot be made new, nor a new one old.
            "webhook_00_replay.json" => {
                let old = row["headers"]["webhook-timestamp"].as_str().unwrap();
                assert!(genuine(&at, &arrived.body) && !genuine(old, &arrived.body));
            }
            // Every try has the same id: whoever remembers it takes one.
            "webhook_01_dup_id.json" => {
                assert!(!id.is_empty() && id.contains("c1"), "{id}");
            }
            "webhook_03_body_changed.json" => {
                assert!(!genuine(&at, row["body"].as_str().unwrap()));
            }
            other => panic!("{other} is new"),
        }
    }
}
