//! Defects of the server: sinks, connections, memory, cookies, idempotency keys.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::pin;
use super::{right_if, seen, within};
use crate::sandbox::ALDIS;
use crate::serve::client::{Got, Server, place};
use crate::serve::receiver::Inbox;
use crate::serve::sinks::{configure, webhook};

/// More than the outbox looks at in one page.
const POSTS: usize = 4_300;
/// The default limit of connections per peer.
const CONNECTIONS: usize = 64;

/// A sink for the posts of one channel, named like it.
fn sink(channel: &str, url: &str) -> String {
    let only = format!("channels = [\"{channel}\"]\neffects = [\"post\"]");
    webhook(url, &only).replace("\"audit\"", &format!("\"{channel}\""))
}

fn open_channels(server: &Server, names: &[&str]) {
    for name in names {
        let channel = json!({ "channel": name, "agents": ["pm"] });
        assert_eq!(server.post("/v1/channels", &channel).status, 201);
    }
}

fn say(server: &Server, channel: &str, text: &str) {
    let path = format!("/v1/channels/{channel}/messages");
    assert_eq!(server.post(&path, &json!({ "agent": "pm", "text": text })).status, 200);
}

/// A long queue for a dead sink does not starve the others.
#[test]
fn d3a_a_dead_sink_does_not_starve_the_others() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[]);
    // The listener is closed again: connections are refused.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    configure(&state, &[sink("dead", &format!("http://{closed}/")), sink("well", &inbox.url)]);
    let server = Server::start(&state);
    open_channels(&server, &["dead", "well"]);
    say(&server, "well", "first");
    assert_eq!(inbox.next().json()["data"]["effect"]["text"], "first");
    let texts: Vec<String> = (0..POSTS).map(|number| format!("number {number}")).collect();
    let posts = json!({ "agent": "pm", "texts": texts });
    assert_eq!(server.post("/v1/channels/dead/messages", &posts).status, 200);
    say(&server, "well", "second");
    let arrived = inbox.next_within(Duration::from_secs(8));
    pin("attack/D3a", right_if(arrived.is_some(), "nothing arrives"));
}

/// Slow sinks do not delay the others.
#[test]
fn d3b_slow_sinks_do_not_delay_the_others() {
    let (_directory, state) = place();
    let inbox = Inbox::open(&[]);
    // Never accepted: the kernel takes the request and no answer ever comes.
    let hanging = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let url = |of: &TcpListener| format!("http://{}/", of.local_addr().unwrap());
    let sinks =
        [("slow", url(&hanging[0])), ("slower", url(&hanging[1])), ("well", inbox.url.clone())];
    configure(&state, &sinks.map(|(channel, url)| sink(channel, &url)));
    let server = Server::start(&state);
    open_channels(&server, &["slow", "slower", "well"]);
    for channel in ["slow", "slower", "well"] {
        say(&server, channel, "words");
    }
    let arrived = inbox.next_within(Duration::from_secs(8));
    pin("attack/D3b", right_if(arrived.is_some(), "nothing arrives while two others hang"));
}

/// The resident memory of a process, in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Opens the event stream from its beginning and never reads.
fn silent_client(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let (address, token) = (&server.address, &server.token);
    let head = format!(
        "GET /v1/events?after=0 HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// A client that does not read costs a backlog of 256 KiB, and some for the connection.
#[test]
fn d9_a_silent_client_costs_little_memory() {
    const CLIENTS: u64 = 4;
    const EACH_MAX: u64 = 3 << 20;
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channels(&server, &["c1"]);
    // More than the kernel buffers for a client, and more decisions than a page.
    let text = "some words of an agent ".repeat(1_800);
    (0..220).for_each(|_| say(&server, "c1", &text));
    // The first client also pays for what is allocated once.
    let _first = silent_client(&server);
    thread::sleep(Duration::from_secs(1));
    let before = resident(server.pid());
    let _others: Vec<TcpStream> = (0..CLIENTS).map(|_| silent_client(&server)).collect();
    let mut most = 0;
    let grew = within(Duration::from_secs(4), || {
        most = resident(server.pid()).saturating_sub(before).max(most);
        most > CLIENTS * EACH_MAX
    });
    assert_eq!(server.get("/healthz").status, 200);
    pin("attack/D9", right_if(!grew, format!("{most} bytes for {CLIENTS} clients")));
}

/// Uses up the connections of this peer with requests whose bodies never come.
fn without_bodies(server: &Server) -> Vec<TcpStream> {
    let (address, token) = (&server.address, &server.token);
    let head = format!(
        "POST /v1/scan HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n"
    );
    let open = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    (0..CONNECTIONS).map(|_| open()).collect()
}

fn health(server: &Server) -> std::io::Result<Got> {
    server.request("GET", "/healthz", &[], None)
}

/// Requests whose bodies never come are given up, so that others are served.
#[test]
fn d14a_missing_bodies_lock_nobody_out() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let _open = without_bodies(&server);
    let start = Instant::now();
    let answered = within(Duration::from_secs(12), || {
        thread::sleep(Duration::from_millis(100));
        health(&server).is_ok_and(|got| got.status == 200)
    });
    let waited = start.elapsed().as_secs();
    pin("attack/D14a", right_if(answered, format!("locked out for {waited} s")));
}

/// A refused connection gets an HTTP answer, not a reset.
#[test]
fn d14b_a_refused_connection_gets_an_answer() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    let open = without_bodies(&server);
    let answer = health(&server);
    drop(open);
    assert!(within(super::PATIENCE, || health(&server).is_ok()), "still locked out");
    let broken = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
    pin("attack/D14b", right_if(answer.is_ok(), broken));
}

/// The cookie, which browsers send to every port of this host, is no permission by itself.
#[test]
fn d17_a_replayed_cookie_is_refused() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channels(&server, &["c1"]);
    let send = |line: &str, fields: &str| {
        let address = &server.address;
        let head = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{fields}");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        std::io::read_to_string(stream).unwrap()
    };
    let code = server.link.split_once("#code=").unwrap().1;
    let body = json!({ "code": code }).to_string();
    let length = body.len();
    let fields = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    let answer = send("POST /v1/login", &format!("{fields}{body}"));
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.unwrap_or_else(|| panic!("no cookie: {answer}")).split(';').next().unwrap();
    let page = send("GET /", &format!("cookie: {cookie}\r\n\r\n"));
    assert!(page.starts_with("HTTP/1.1 200"), "the page itself is there: {page}");
    let fields = format!(
        "cookie: {cookie}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    let answer = send("POST /v1/runs/c1/abort", &fields);
    let run = server.get("/v1/runs/c1").json();
    let refused = ["HTTP/1.1 401", "HTTP/1.1 403"].iter().any(|it| answer.starts_with(it));
    assert_eq!(run["active"] == true, refused, "{answer} {run}");
    pin("attack/D17", right_if(refused, "a cookie ended a run"));
}

fn with_key(server: &Server, key: &str, path: &str, body: &Value) -> Got {
    server.request("POST", path, &[("idempotency-key", key)], Some(body)).unwrap()
}

/// An idempotency key that was used for another body or request is refused.
#[test]
fn d21a_a_key_belongs_to_one_request() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channels(&server, &["c1"]);
    let path = "/v1/channels/c1/messages";
    let one = json!({ "agent": "pm", "text": "one" });
    let first = with_key(&server, "k1", path, &one);
    let again = with_key(&server, "k1", path, &one);
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.json()["result"], again.json()["result"]);
    let mut wrong = Vec::new();
    for (name, path, body) in [
        ("another body", path, json!({ "agent": "pm", "text": "two" })),
        ("another request", "/v1/runs/c1/abort", json!({})),
    ] {
        let got = with_key(&server, "k1", path, &body);
        if got.status != 422 {
            wrong.push(format!("{name}: {}", got.status));
        }
    }
    assert_eq!(server.get("/v1/runs/c1").json()["active"], true);
    pin("attack/D21a", seen(&wrong));
}

/// A repeat gets the first answer for as long as the run is kept.
#[test]
fn d21b_a_repeat_gets_the_first_answer() {
    let (_directory, state) = place();
    let server = Server::start(&state);
    open_channels(&server, &["c1"]);
    let path = "/v1/channels/c1/messages";
    let body = json!({ "agent": "pm", "text": "one" });
    let first = with_key(&server, "k1", path, &body).json();
    assert_eq!(first["result"]["posted"], true, "{first}");
    (0..1_010).for_each(|number| say(&server, "c1", &format!("number {number}")));
    let again = with_key(&server, "k1", path, &body);
    assert_eq!(again.status, 200, "{}", again.text);
    let again = again.json();
    assert_eq!(again["repeated"], true, "{again}");
    pin("attack/D21b", right_if(again["result"] == first["result"], again["result"].to_string()));
}

/// Past `RLIMIT_FSIZE` a write fails; SIGXFSZ does not kill the server.
#[test]
fn d23b_sigxfsz_does_not_kill_the_server() {
    let (directory, state) = place();
    let mut command = Command::new("sh");
    // In blocks of 512 or 1,024 bytes, depending on the shell.
    command.args(["-c", "ulimit -f 4096; exec \"$0\" --state-dir \"$@\"", ALDIS]).arg(&state);
    command.args(["serve", "--listen", "127.0.0.1:0"]).env_clear().current_dir(directory.path());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let server = Server::started(child.unwrap(), &state);
    open_channels(&server, &["c1"]);
    let message = json!({ "agent": "pm", "text": "some words of an agent ".repeat(9_000) });
    let mut taken = 0;
    for _ in 0..60 {
        match server.request("POST", "/v1/channels/c1/messages", &[], Some(&message)) {
            Ok(got) if got.status == 200 => taken += 1,
            _ => break,
        }
    }
    assert!((1..60).contains(&taken), "{taken} were taken: was there a limit?");
    let lives = health(&server).is_ok_and(|got| got.status == 200);
    pin("attack/D23b", right_if(lives, format!("killed after {taken} messages")));
}
