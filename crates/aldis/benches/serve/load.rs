//! The second process: asks as fast as it is told to, and writes down every answer.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::http::{Address, Connection};

/// How long a client waits before it looks for the server again.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// How long a client looks for a server that has gone.
const GONE_MAX: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) address: Address,
    pub(crate) work: Work,
    pub(crate) connections: usize,
    pub(crate) channels: usize,
    /// What distinguishes the keys of this order from those of others.
    pub(crate) round: String,
    /// Until when; opening ends when all channels are open.
    pub(crate) seconds: f64,
    /// Requests a second of all connections together; 0 for as many as possible.
    pub(crate) rate: f64,
    /// Whether to ask again when the server goes away.
    pub(crate) patient: bool,
    /// Where every answer is written down: the channel and, for messages, the key; for channels
    /// their deadline.
    pub(crate) log: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Opens the channels, with turns of so many seconds: from the first up to the second.
    Open { timeout: (u64, u64) },
    /// Lets their agents speak in turn.
    Say,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) answered: usize,
    /// Answers that were not what they should be.
    pub(crate) refused: usize,
    /// How often a connection broke.
    pub(crate) broken: usize,
    pub(crate) seconds: f64,
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) most: f64,
}

impl Report {
    pub(crate) fn per_second(&self) -> f64 {
        self.answered as f64 / self.seconds
    }
}

/// What one connection did.
#[derive(Default)]
struct Done {
    /// Milliseconds.
    waits: Vec<f64>,
    lines: Vec<String>,
    refused: usize,
    broken: usize,
}

pub(crate) fn work(order: &Order) -> io::Result<Report> {
    let began = Instant::now();
    let done: Vec<Done> = thread::scope(|scope| {
        let start = |number| scope.spawn(move || client(order, number, began));
        let clients: Vec<_> = (0..order.connections).map(start).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<io::Result<_>>()
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let mut log = BufWriter::new(File::create(&order.log)?);
    for line in done.iter().flat_map(|done| &done.lines) {
        writeln!(log, "{line}")?;
    }
    log.flush()?;
    let mut waits: Vec<f64> = done.iter().flat_map(|done| &done.waits).copied().collect();
    waits.sort_by(f64::total_cmp);
    Ok(Report {
        answered: waits.len(),
        refused: done.iter().map(|done| done.refused).sum(),
        broken: done.iter().map(|done| done.broken).sum(),
        seconds,
        median: share(&waits, 0.5),
        p99: share(&waits, 0.99),
        most: share(&waits, 1.0),
    })
}

/// One connection: it has every so many-th channel to itself.
fn client(order: &Order, number: usize, began: Instant) -> io::Result<Done> {
    let mut done = Done::default();
    let mut connection = Some(Connection::open(&order.address)?);
    let mine = (number..order.channels).step_by(order.connections);
    let pause = (order.rate > 0.0).then(|| order.connections as f64 / order.rate);
    // Each begins at another moment of the pause.
    let first = pause.unwrap_or(0.0) * number as f64 / order.connections as f64;
    for asked in 0.. {
        let channel = number + asked % mine.len() * order.connections;
        let spoken = asked / mine.len();
        let due = first + pause.unwrap_or(0.0) * asked as f64;
        let opened = matches!(order.work, Work::Open { .. }) && spoken > 0;
        if opened || began.elapsed().as_secs_f64().max(due) > order.seconds {
            break;
        }
        thread::sleep(Duration::from_secs_f64(due).saturating_sub(began.elapsed()));
        ask(order, channel, spoken, &mut connection, &mut done)?;
    }
    Ok(done)
}

/// Asks one thing, again and again if need be.
fn ask(
    order: &Order,
    channel: usize,
    spoken: usize,
    connection: &mut Option<Connection>,
    done: &mut Done,
) -> io::Result<()> {
    let (path, key, json) = request(order, channel, spoken);
    let asked = Instant::now();
    let (status, body) = loop {
        let answer = match connection {
            Some(open) => open.post(&order.address, &path, &key, &json),
            None => Connection::open(&order.address)
                .and_then(|open| connection.insert(open).post(&order.address, &path, &key, &json)),
        };
        match answer {
            Ok(answer) => break answer,
            Err(_) if order.patient && asked.elapsed() < GONE_MAX => {
                done.broken += 1;
                *connection = None;
                thread::sleep(AGAIN_AFTER);
            }
            Err(error) => return Err(error),
        }
    };
    done.waits.push(asked.elapsed().as_secs_f64() * 1_000.0);
    if status >= 300 {
        done.refused += 1;
        return Ok(());
    }
    let line = match order.work {
        Work::Open { .. } => deadline(&body),
        Work::Say => key,
    };
    done.lines.push(format!("{} {line}", name(channel)));
    Ok(())
}

fn request(order: &Order, channel: usize, spoken: usize) -> (String, String, String) {
    let (name, round) = (name(channel), &order.round);
    match order.work {
        Work::Open { timeout: (least, most) } => {
            // Spread evenly, and not in the order in which they are opened.
            let timeout = least + channel as u64 * 7_919 % (most - least).max(1);
            let config = json!({ "default_timeout_seconds": timeout });
            let body = json!({ "channel": name, "agents": ["pm", "dev"], "config": config });
            ("/v1/channels".to_owned(), format!("{round}-{name}"), body.to_string())
        }
        Work::Say => {
            // Two messages in each turn.
            let agent = if (spoken / 2).is_multiple_of(2) { "pm" } else { "dev" };
            let end = if spoken % 2 == 1 { "\n\nTURN_COMPLETE" } else { "" };
            let text = format!("{round} {spoken}: {WORDS}{end}");
            let body = json!({ "agent": agent, "text": text });
            let path = format!("/v1/channels/{name}/messages");
            (path, format!("{round}-{channel}-{spoken}"), body.to_string())
        }
    }
}

/// When the first turn of a channel that was just opened is over.
fn deadline(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap();
    let effects = answer["effects"].as_array().unwrap();
    effects.iter().find_map(|effect| effect["deadline"].as_str()).unwrap().to_owned()
}

pub(crate) fn name(channel: usize) -> String {
    format!("c{channel}")
}

/// The value that this share of them does not exceed.
pub(crate) fn share(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

const WORDS: &str = "I have looked at the plan again and would rather keep the smaller change: it \
                     is easier to review, and what is missing can follow once the tests pass.";
