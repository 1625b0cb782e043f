//! The event stream: in order, resumable, honest about gaps, never waiting for the slow.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Server, place};

/// One event as it arrives.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) data: Value,
}

/// A client of the stream.
pub(super) struct Stream(BufReader<Body>);

/// The body of an answer that comes in chunks, behind its head.
struct Body {
    connection: BufReader<TcpStream>,
    /// What is left of the chunk at hand.
    left: usize,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            // Behind a chunk there is a line end, before it a line with its length.
            while line.trim().is_empty() {
                line.clear();
                if self.connection.read_line(&mut line)? == 0 {
                    return Ok(0);
                }
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap();
        }
        let most = self.left.min(buffer.len());
        let length = self.connection.read(&mut buffer[..most])?;
        self.left -= length;
        Ok(length)
    }
}

impl Stream {
    pub(super) fn open(server: &Server, query: &str, last: Option<&str>) -> Self {
        Self::at(server, &format!("/v1/events{query}"), last)
    }

    pub(super) fn at(server: &Server, path: &str, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{last}\r\n",
            server.address, server.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut connection = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(connection.read_line(&mut head).unwrap() > 0, "no head: {head}");
        }
        Self(BufReader::new(Body { connection, left: 0 }))
    }

    /// Reads the greeting: from here on nothing is missed.
    pub(super) fn greeted(&mut self) {
        let mut line = String::new();
        while !line.starts_with("retry: ") {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
    }

    /// Reads until an event is complete.
    pub(super) fn next(&mut self) -> Event {
        let mut event = Event { id: String::new(), kind: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            let line = line.trim_end();
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut event.id);
            } else if let Some(kind) = line.strip_prefix("event: ") {
                kind.clone_into(&mut event.kind);
            } else if let Some(data) = line.strip_prefix("data: ") {
                event.data = serde_json::from_str(data).unwrap();
                return event;
            }
        }
    }
}

fn open_channel(server: &Server, name: &str) {
    let got = server.post("/v1/channels", &json!({ "channel": name, "agents": ["pm", "dev"] }));
    assert_eq!(got.status, 201);
}

fn say(server: &Server, channel: &str, agent: &str, text: &str) {
    let path = format!("/v1/channels/{channel}/messages");
    assert_eq!(server.post(&path, &json!({ "agent": agent, "text": text })).status, 200);
}

#[test]
fn nothing_is_missed_across_a_reconnection() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channel(&server, "c1");
    let mut stream = Stream::open(&server, "?after=0", None);
    let first = stream.next();
    assert_eq!(first.data["type"], "dev.aldis.turns.started");
    say(&server, "c1", "pm", "line one\nline two\r\n<b>data: x</b> TURN_COMPLETE");
    let second = stream.next();
    assert_eq!((&*second.kind, &second.data["subject"]), ("decision", &json!("c1")));
    assert_eq!(second.data["specversion"], "1.0");
    assert_eq!(second.data["data"]["effects"][0]["text"], "line one\nline two\r\n<b>data: x</b>");
    assert_eq!(second.data["data"]["effects"][1]["agent"], "dev");
    drop(stream);
    for number in 0..5 {
        say(&server, "c1", "dev", &format!("number {number}"));
    }
    let mut stream = Stream::open(&server, "", Some(&second.id));
    for number in 0..5 {
        let event = stream.next();
        assert_eq!(event.data["data"]["effects"][0]["text"], format!("number {number}"));
    }
    // A restart changes nothing about that.
    server.crash();
    let server = Server::start(&state);
    let mut stream = Stream::open(&server, "", Some(&second.id));
    assert_eq!(stream.next().data["data"]["effects"][0]["text"], "number 0");
}

#[test]
fn a_stream_can_be_of_one_channel() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channel(&server, "c1");
    open_channel(&server, "c2");
    let mut stream = Stream::open(&server, "?channel=c2&after=0", None);
    assert_eq!(stream.next().data["subject"], "c2");
    say(&server, "c1", "pm", "not for you");
    say(&server, "c2", "pm", "for you");
    let event = stream.next();
    assert_eq!(
        (&event.data["subject"], &event.data["data"]["effects"][0]["text"]),
        (&json!("c2"), &json!("for you"))
    );
}

#[test]
fn an_id_from_elsewhere_is_a_gap() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channel(&server, "c1");
    let mut stream = Stream::open(&server, "", Some("4711"));
    let gap = stream.next();
    assert_eq!((&*gap.kind, &gap.data["after"]), ("gap", &json!(4711)));
    say(&server, "c1", "pm", "after the gap");
    assert_eq!(stream.next().data["data"]["effects"][0]["text"], "after the gap");
    assert_eq!(
        server.request("GET", "/v1/events", &[("last-event-id", "x")], None).unwrap().status,
        400
    );
}

/// What a client has not taken is neither kept for it nor lost, even in the middle of a decision.
#[test]
fn a_client_that_rests_gets_everything_whole() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channel(&server, "c1");
    // Several times what waits for a client, and more than the kernel buffers, some while it rests.
    let texts: Vec<String> =
        (0..24).map(|number| format!("{number} {}", "x".repeat(30_000 * (number + 1)))).collect();
    texts[..20].iter().for_each(|text| say(&server, "c1", "pm", text));
    let mut all = Stream::open(&server, "?after=0", None);
    let mut one = Stream::open(&server, "?after=0&channel=c1", None);
    thread::sleep(Duration::from_secs(1));
    texts[20..].iter().for_each(|text| say(&server, "c1", "pm", text));
    for stream in [&mut all, &mut one] {
        assert_eq!(stream.next().data["type"], "dev.aldis.turns.started");
        for text in &texts {
            let event = stream.next();
            let got = event.data["data"]["effects"][0]["text"].as_str().unwrap();
            assert!(got == text, "{} bytes instead of {}", got.len(), text.len());
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channel(&server, "c1");
    let idle = Stream::open(&server, "?after=0", None);
    // More than the kernel buffers for it.
    let text = "x".repeat(900_000);
    for _ in 0..24 {
        say(&server, "c1", "pm", &text);
    }
    let cut = || {
        let text = server.get("/metrics").text;
        text.lines().any(|line| line == "aldis_event_clients_cut_total 1")
    };
    while !cut() {
        thread::sleep(Duration::from_millis(200));
    }
    drop(idle);
    assert_eq!(server.get("/v1/channels/c1").json()["turn"], 1);
}
