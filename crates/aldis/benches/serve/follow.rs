//! Clients of the event stream, in a process of their own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::{Address, Connection};
use crate::load::{name, share};

const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Who follows what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) address: Address,
    /// Clients that read, and what.
    pub(crate) readers: usize,
    pub(crate) reads: Reads,
    /// Clients that follow everything and never read.
    pub(crate) idle: usize,
    pub(crate) seconds: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reads {
    /// Everything.
    All,
    /// Everything, as well as it can: it counts the ids and comes back when the server goes away.
    Ids { log: PathBuf },
    /// Everything behind this id; every id is written down with what it is about.
    Behind { after: String, log: PathBuf },
    /// Everything, for the first timeout of each channel, whose deadlines are listed there.
    Late { deadlines: PathBuf },
    /// One channel each.
    Own,
}

/// What they saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) events: usize,
    pub(crate) gaps: usize,
    /// How many timeouts, and how late they were, in milliseconds.
    pub(crate) timeouts: usize,
    pub(crate) late_median: f64,
    pub(crate) late_p99: f64,
    pub(crate) late_most: f64,
    /// How often the stream was taken up again.
    pub(crate) resumed: usize,
}

/// What one client saw.
#[derive(Default)]
struct Seen {
    ids: Vec<u64>,
    /// Ids as they came, and what each is about.
    about: Vec<(String, String)>,
    late: Vec<f64>,
    gaps: usize,
    resumed: usize,
}

pub(crate) fn work(order: &Order) -> io::Result<Report> {
    let began = Instant::now();
    let open = |_| Connection::follow(&order.address, "", None);
    let idle: Vec<Connection> = (0..order.idle).map(open).collect::<io::Result<_>>()?;
    let seen: Vec<Seen> = thread::scope(|scope| {
        let start = |number| scope.spawn(move || client(order, number, began));
        let clients: Vec<_> = (0..order.readers).map(start).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    thread::sleep(Duration::from_secs_f64(order.seconds).saturating_sub(began.elapsed()));
    drop(idle);
    if let Reads::Behind { log, .. } = &order.reads {
        let about = seen.iter().flat_map(|seen| &seen.about);
        fs::write(log, about.map(|(id, run)| format!("{id} {run}\n")).collect::<String>())?;
    }
    if let Reads::Ids { log } = &order.reads {
        let ids = seen.iter().flat_map(|seen| &seen.ids);
        fs::write(log, ids.map(|id| format!("{id}\n")).collect::<String>())?;
    }
    let mut late: Vec<f64> = seen.iter().flat_map(|seen| &seen.late).copied().collect();
    late.sort_by(f64::total_cmp);
    Ok(Report {
        events: seen.iter().map(|seen| seen.ids.len().max(seen.about.len())).sum(),
        gaps: seen.iter().map(|seen| seen.gaps).sum(),
        timeouts: late.len(),
        late_median: share(&late, 0.5),
        late_p99: share(&late, 0.99),
        late_most: share(&late, 1.0),
        resumed: seen.iter().map(|seen| seen.resumed).sum(),
    })
}

/// Follows until the time is over, through restarts of the server.
fn client(order: &Order, number: usize, began: Instant) -> Seen {
    let mut seen = Seen::default();
    let mut deadlines = match &order.reads {
        Reads::Late { deadlines } => read_deadlines(deadlines),
        Reads::All | Reads::Behind { .. } | Reads::Ids { .. } | Reads::Own => BTreeMap::new(),
    };
    let over = || began.elapsed().as_secs_f64() > order.seconds;
    while !over() {
        let query = match &order.reads {
            Reads::Behind { after, .. } => format!("?after={after}"),
            Reads::Own => format!("?channel={}", name(number)),
            Reads::All | Reads::Ids { .. } | Reads::Late { .. } => String::new(),
        };
        let last = seen.ids.last().copied();
        if let Ok(mut stream) = Connection::follow(&order.address, &query, last) {
            seen.resumed += 1;
            // In a quiet channel nothing comes that would end the waiting.
            let left = Duration::from_secs_f64(order.seconds).saturating_sub(began.elapsed());
            stream.wait_at_most(left).ok();
            // A connection that breaks is taken up again.
            let keeps = matches!(order.reads, Reads::Behind { .. });
            read(&mut stream, &mut seen, (&mut deadlines, keeps), &over).ok();
        }
        thread::sleep(AGAIN_AFTER);
    }
    seen
}

fn read(
    stream: &mut Connection,
    seen: &mut Seen,
    (deadlines, keeps): (&mut BTreeMap<String, i64>, bool),
    over: &dyn Fn() -> bool,
) -> io::Result<()> {
    while !over() {
        let line = stream.line()?;
        if keeps && let Some(data) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(data).map_err(io::Error::other)?;
            let member = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            seen.about.push((member("id"), member("subject")));
        } else if let Some(id) = line.strip_prefix("id: ") {
            seen.ids.extend(id.parse::<u64>().ok());
        } else if line == "event: gap" {
            seen.gaps += 1;
        } else if !deadlines.is_empty()
            && line.contains("turns.timeout")
            && let Some(data) = line.strip_prefix("data: ")
        {
            let event: Value = serde_json::from_str(data).map_err(io::Error::other)?;
            let deadline = deadlines.remove(event["subject"].as_str().unwrap_or_default());
            seen.late.extend(deadline.map(|deadline| (now() - deadline) as f64));
        }
    }
    Ok(())
}

/// Reads when turns are over. One that is over already is not seen: what ends then is a later turn.
fn read_deadlines(log: &PathBuf) -> BTreeMap<String, i64> {
    let text = fs::read_to_string(log).unwrap();
    let began = now();
    let deadline = |line: &str| {
        let (channel, deadline) = line.split_once(' ')?;
        Some((channel.to_owned(), deadline.parse::<Timestamp>().ok()?.as_millis()))
    };
    let to_come = |(_, deadline): &(String, i64)| *deadline > began;
    text.lines().filter_map(deadline).filter(to_come).collect()
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}
