//! A server that is killed again and again while clients speak, follow and let turns run out.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use aldis_store::{Cursor, RunId, Store as _};
use serde_json::json;

use crate::follow::{self, Reads};
use crate::http::Connection;
use crate::load::{self, Report};
use crate::parts::{Bars, client, follow, opened, saying, told};
use crate::server::Server;

const KILLS: usize = 10;
const CHANNELS: usize = 1_000;
const CONNECTIONS: usize = 64;
const SECONDS: f64 = 20.0;
/// How long the server lives each time.
const LIFE: Duration = Duration::from_millis(1_200);
/// Channels in which nobody ever speaks, with turns of a second.
const SILENT: usize = 50;
/// So many agents that no channel rests before the end.
const AGENTS: usize = 30;

pub(crate) fn measure(bars: &mut Bars) -> io::Result<()> {
    let mut server = Server::start()?;
    opened(&server, CHANNELS, (3_600, 3_600))?;
    open_silent(&server)?;
    let ids = server.note("ids");
    let follower = follow(&server.address, 1, Reads::Ids { log: ids.clone() }, 0, SECONDS + 4.0)?;
    let order = load::Order {
        connections: CONNECTIONS,
        channels: CHANNELS,
        patient: true,
        ..saying(&server, "k", SECONDS, 0.0)
    };
    let speakers = client("load-client", &order)?;
    for _ in 0..KILLS {
        thread::sleep(LIFE);
        server.kill()?;
        server.start_again()?;
    }
    let spoken: Report = told(speakers)?;
    let seen: follow::Report = told(follower)?;
    server.kill()?;
    bars.plain("killed under load", format!("{KILLS} times, {} answers", spoken.answered));
    let lost = server.lost(&order.log)?;
    bars.add("answered and not on the disk", lost.to_string(), "0", lost + spoken.refused == 0);
    let doubled = doubled(&server, &order)?;
    bars.add("messages taken twice", doubled.to_string(), "0", doubled == 0);
    let (missed, followed) = missed(&server, &ids)?;
    let value = format!("{missed} of {followed}, {} reconnections", seen.resumed - 1);
    // It may find two of the kills in one silence.
    let met = missed == 0 && seen.gaps == 0 && seen.resumed > KILLS / 2;
    bars.add("events that the stream missed or had twice", value, "0", met);
    let fewest = fewest_timeouts(&server)?;
    // A start takes a moment, and so does each turn that ends by it.
    let met = fewest >= SECONDS as u64 / 3;
    bars.add("timeouts in each silent channel, at least", fewest.to_string(), "6", met);
    Ok(())
}

fn silent(number: usize) -> String {
    format!("silent{number}")
}

fn open_silent(server: &Server) -> io::Result<()> {
    let mut connection = Connection::open(&server.address)?;
    let agents: Vec<String> = (0..AGENTS).map(|number| format!("a{number}")).collect();
    for number in 0..SILENT {
        let config = json!({ "default_timeout_seconds": 1 });
        let channel = silent(number);
        let body = json!({ "channel": channel, "agents": agents, "config": config });
        let path = "/v1/channels";
        let (status, _) = connection.post(&server.address, path, &channel, &body.to_string())?;
        if status != 201 {
            return Err(io::Error::other(format!("a silent channel: {status}")));
        }
    }
    Ok(())
}

/// How many messages the journals have more than were ever asked for.
fn doubled(server: &Server, order: &load::Order) -> io::Result<usize> {
    let store = server.store()?;
    let asked = fs::read_to_string(&order.log)?.lines().count();
    let mut said = 0;
    for channel in 0..order.channels {
        let run = RunId::new(load::name(channel)).map_err(io::Error::other)?;
        let events = store.events(&run, 0, usize::MAX).map_err(io::Error::other)?;
        said += events.iter().filter(|event| event.kind == "said").count();
    }
    Ok(said.saturating_sub(asked))
}

/// How many decisions the follower did not see exactly once, in order, between its first and last.
fn missed(server: &Server, log: &std::path::Path) -> io::Result<(usize, usize)> {
    let text = fs::read_to_string(log)?;
    let seen: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return Ok((1, 0)) };
    let store = server.store()?;
    let before: Cursor = (first - 1).to_string().parse().map_err(io::Error::other)?;
    let decisions = store.decisions_after(None, &before, usize::MAX).map_err(io::Error::other)?;
    let numbers = decisions.iter().filter_map(|decision| decision.cursor.to_string().parse().ok());
    let there: BTreeSet<u64> = numbers.filter(|number| number <= last).collect();
    let in_order = seen.windows(2).filter(|pair| pair[0] >= pair[1]).count();
    let unseen = there.difference(&seen.iter().copied().collect()).count();
    Ok((unseen + in_order, seen.len()))
}

/// The number of turns of the silent channel that had the fewest.
fn fewest_timeouts(server: &Server) -> io::Result<u64> {
    let store = server.store()?;
    let mut fewest = u64::MAX;
    for number in 0..SILENT {
        let run = RunId::new(silent(number)).map_err(io::Error::other)?;
        let decisions = store
            .decisions(&aldis_store::DecisionFilter {
                run: Some(run),
                limit: usize::MAX,
                before: None,
            })
            .map_err(io::Error::other)?;
        let ended = decisions.iter().filter(|decision| {
            ["turns/timeout", "turns/recovered"].iter().any(|rule| decision.body.contains(rule))
        });
        fewest = fewest.min(ended.count() as u64);
    }
    Ok(fewest)
}
