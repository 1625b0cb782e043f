//! Two servers on one PostgreSQL: the same channels through both, and what the event stream of each tells.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use aldis_store::{Cursor, PostgresAddress, PostgresStore, Store as _};
use aldis_testkit::postgres::Cluster;

use crate::follow::{self, Reads};
use crate::load::{self, Report, Work};
use crate::parts::{Bars, CHANNELS, HOUR, client, follow, opened, told};
use crate::server::Server;

/// Connections of clients to each server.
const CONNECTIONS: usize = 32;
const SECONDS: f64 = 20.0;
/// How long a follower may take to catch up once nobody speaks any more.
const REST: f64 = 15.0;

/// Decisions by run, in order.
type Told = BTreeMap<String, Vec<String>>;

pub(crate) fn measure(bars: &mut Bars) -> io::Result<()> {
    let Some(mut cluster) = Cluster::start()? else {
        bars.plain("two replicas", "PostgreSQL is not installed".to_owned());
        return Ok(());
    };
    // What is acknowledged is flushed.
    cluster.listen(&["fsync=on".to_owned(), "shared_buffers=256MB".to_owned()])?;
    cluster.kill()?;
    cluster.restart()?;
    let address = cluster.address();
    let servers = [Server::start_on(Some(&address))?, Server::start_on(Some(&address))?];
    opened(&servers[0], CHANNELS, HOUR)?;
    let store = PostgresAddress::parse(&address).and_then(PostgresStore::open);
    let store = store.map_err(io::Error::other)?;
    let after = newest(&store, Cursor::START)?;
    let follow = |server: &Server| {
        let reads = Reads::Behind { after: after.to_string(), log: server.note("seen") };
        follow(&server.address, 1, reads, 0, SECONDS + REST)
    };
    let followers = [follow(&servers[0])?, follow(&servers[1])?];
    thread::sleep(Duration::from_millis(500));
    let speak = |(server, round): (&Server, &str)| {
        let order = load::Order {
            address: server.address.clone(),
            work: Work::Say,
            connections: CONNECTIONS,
            channels: CHANNELS,
            round: round.to_owned(),
            seconds: SECONDS,
            rate: 0.0,
            patient: false,
            log: server.note("spoken"),
        };
        client("load-client", &order)
    };
    let speakers = [speak((&servers[0], "one"))?, speak((&servers[1], "other"))?];
    let mut answered = Vec::new();
    for speaker in speakers {
        answered.push(told::<Report>(speaker)?);
    }
    for follower in followers {
        told::<follow::Report>(follower)?;
    }
    let stored = stored(&store, after)?;
    let rate: f64 = answered.iter().map(Report::per_second).sum();
    let refused: usize = answered.iter().map(|report| report.refused).sum();
    let p99 = answered.iter().map(|report| report.p99).fold(0.0, f64::max);
    bars.plain("messages a second through two replicas", format!("{rate:.0}, p99 {p99:.1} ms"));
    bars.add("messages that were refused", refused.to_string(), "0", refused == 0);
    let decisions: usize = stored.values().map(Vec::len).sum();
    for server in &servers {
        let wrong = wrong(&stored, &server.note("seen"))?;
        let value = format!("{wrong} of {} runs, {decisions} decisions", stored.len());
        let what = "runs whose decisions a stream did not tell once and in order";
        bars.add(what, value, "0", wrong == 0 && decisions > 0);
    }
    Ok(())
}

fn newest(store: &PostgresStore, mut after: Cursor) -> io::Result<Cursor> {
    loop {
        let page = store.decisions_after(None, &after, 10_000).map_err(io::Error::other)?;
        let Some(last) = page.last() else { return Ok(after) };
        after = last.cursor;
    }
}

/// What was decided behind this position, by run.
fn stored(store: &PostgresStore, mut after: Cursor) -> io::Result<Told> {
    let mut told = Told::new();
    loop {
        let page = store.decisions_after(None, &after, 10_000).map_err(io::Error::other)?;
        let Some(last) = page.last() else { return Ok(told) };
        after = last.cursor;
        for decision in page {
            told.entry(decision.run.to_string()).or_default().push(decision.cursor.to_string());
        }
    }
}

/// How many runs were not told of as they are stored.
fn wrong(stored: &Told, log: &Path) -> io::Result<usize> {
    let mut seen = Told::new();
    for line in fs::read_to_string(log)?.lines() {
        let (id, run) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        seen.entry(run.to_owned()).or_default().push(id.to_owned());
    }
    let differs = |(run, told): &(&String, &Vec<String>)| seen.get(*run) != Some(told);
    Ok(stored.iter().filter(differs).count()
        + seen.keys().filter(|run| !stored.contains_key(*run)).count())
}
