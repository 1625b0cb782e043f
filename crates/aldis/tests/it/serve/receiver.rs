//! A receiver of webhooks that misbehaves as told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// What to do with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Answer with this status and body.
    Answer(u16, &'static str),
    /// Hang up without a word.
    HangUp,
    /// Say nothing, and do not hang up.
    Hang,
    /// Send somebody elsewhere.
    Redirect,
    /// Ask to be left alone for so many seconds.
    RetryAfter(u32),
}

/// A request that arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    head: String,
    pub(crate) body: String,
}

impl Arrived {
    /// The method and the path.
    pub(crate) fn request(&self) -> &str {
        self.head.lines().next().and_then(|line| line.strip_suffix(" HTTP/1.1")).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> String {
        let prefix = format!("{name}: ");
        let line = self.head.lines().find(|line| line.to_lowercase().starts_with(&prefix));
        line.and_then(|line| line.get(prefix.len()..)).unwrap_or_default().to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Where webhooks arrive.
pub(crate) struct Inbox {
    pub(crate) url: String,
    arrived: Receiver<Arrived>,
}

impl Inbox {
    /// Does these in turn, then answers everything with 204.
    pub(crate) fn open(acts: &'static [Act]) -> Self {
        Self::at("127.0.0.1:0", acts)
    }

    /// The same at an address that somebody knows already.
    pub(crate) fn at(address: &str, acts: &'static [Act]) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, arrived) = mpsc::channel();
        // Ends with the process of the test.
        thread::spawn(move || {
            let mut acts = acts.iter();
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let Some(request) = read(&mut stream) else { continue };
                let act = acts.next().copied().unwrap_or(Act::Answer(204, ""));
                sender.send(request).ok();
                match act {
                    Act::Hang => held.push(stream),
                    act => answer(&mut stream, act),
                }
            }
        });
        Self { url, arrived }
    }

    pub(crate) fn next(&self) -> Arrived {
        self.next_within(Duration::from_secs(60)).unwrap()
    }

    pub(crate) fn next_within(&self, limit: Duration) -> Option<Arrived> {
        self.arrived.recv_timeout(limit).ok()
    }
}

fn read(stream: &mut TcpStream) -> Option<Arrived> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length =
        lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Arrived { head, body: String::from_utf8(body).ok()? })
}

fn answer(stream: &mut TcpStream, act: Act) {
    let text = match act {
        Act::Answer(status, body) => {
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        }
        Act::HangUp | Act::Hang => return,
        Act::RetryAfter(seconds) => format!(
            "HTTP/1.1 429 X\r\nretry-after: {seconds}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        ),
        Act::Redirect => "HTTP/1.1 302 X\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\
                          content-length: 0\r\n\r\n"
            .to_owned(),
    };
    stream.write_all(text.as_bytes()).ok();
}
