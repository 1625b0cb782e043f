//! What clients of the event stream cost everybody else.
//!
//! The same messages with and without them, in pairs of a few seconds whose order changes, because a
//! database that has grown takes a little longer. What counts is the median of the pairs: one alone is
//! off by several per cent when the disk or another program is in the way.

use std::io;
use std::thread;
use std::time::Duration;

use crate::follow::{self, Reads};
use crate::load::{Report, share};
use crate::parts::{Bars, CHANNELS, HOUR, follow, opened, said, told};
use crate::server::Server;

const PAIRS: usize = 7;
const SECONDS: f64 = 3.0;
/// Until all clients follow.
const SETTLE: Duration = Duration::from_millis(500);
const FOLLOWERS: usize = 180;
const IDLE: usize = 20;
/// No slow-down, as far as a few pairs can tell.
const KEPT_MIN: f64 = 0.95;

/// What one round gave.
struct Round {
    report: Report,
    /// Processor time of the server for each message, in microseconds.
    cost: f64,
    events: usize,
}

pub(crate) fn measure(bars: &mut Bars) -> io::Result<()> {
    let server = Server::start()?;
    opened(&server, CHANNELS, HOUR)?;
    let (mut alone, mut followed) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for first in [true, false] {
            let name = format!("s{pair}{first}");
            if first == pair.is_multiple_of(2) {
                alone.push(round(&server, &name, 0, 0)?);
            } else {
                followed.push(round(&server, &name, FOLLOWERS, IDLE)?);
            }
        }
    }
    let kept = |(one, other): (&Round, &Round)| one.report.per_second() / other.report.per_second();
    let mut pairs: Vec<f64> = followed.iter().zip(&alone).map(kept).collect();
    pairs.sort_by(f64::total_cmp);
    let [least, kept, most] = [0.0, 0.5, 1.0].map(|place| share(&pairs, place));
    bars.plain("messages a second without streams", words(&alone));
    bars.plain("the same with 180 streams, and 20 that never read", words(&followed));
    let [least, in_percent, most] = [least, kept, most].map(|kept| kept * 100.0);
    let value = format!("{in_percent:.1} %, pairs from {least:.0} to {most:.0} %");
    bars.add("messages kept, median of seven pairs", value, "95 %", kept >= KEPT_MIN);
    let events: usize = followed.iter().map(|round| round.events).sum();
    bars.plain("events that the 180 saw", events.to_string());
    Ok(())
}

fn round(server: &Server, name: &str, readers: usize, idle: usize) -> io::Result<Round> {
    let lasting = SECONDS + 2.0 * SETTLE.as_secs_f64();
    let followers = follow(&server.address, readers, Reads::Own, idle, lasting)?;
    thread::sleep(SETTLE);
    let before = server.spent()?;
    let report = said(server, name, SECONDS, 0.0)?;
    let cost = (server.spent()? - before) * 1e6 / report.answered as f64;
    let seen: follow::Report = told(followers)?;
    Ok(Round { report, cost, events: seen.events })
}

fn words(rounds: &[Round]) -> String {
    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let rate = of(|round| round.report.per_second());
    let (p99, cost) = (of(|round| round.report.p99), of(|round| round.cost));
    format!("{rate:.0}, p99 {p99:.1} ms, {cost:.0} µs of the server's processor time each")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    share(&values, 0.5)
}
