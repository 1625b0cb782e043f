//! What is measured, and the bars.

use std::env;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::follow::{self, Reads};
use crate::load::{self, Report, Work, share};
use crate::server::Server;
use crate::{http::Address, kills, replicas, streams};

pub(crate) const CHANNELS: usize = 10_000;
const CONNECTIONS: usize = 64;
const SECONDS: f64 = 20.0;
/// Channels whose turns all end by timeout, so many seconds after they were opened.
const WAITING: usize = 100_000;
const TIMEOUT: (u64, u64) = (60, 160);
/// A turn that nothing ends here.
pub(crate) const HOUR: (u64, u64) = (3_600, 3_600);
/// All channels are open long before.
const OPENING_MAX: f64 = 600.0;

pub(crate) fn main() -> io::Result<ExitCode> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [role, order] = &args[..]
        && role.ends_with("-client")
    {
        let told = match &**role {
            "load-client" => answer(load::work, order)?,
            _ => answer(follow::work, order)?,
        };
        println!("{told}");
        return Ok(ExitCode::SUCCESS);
    }
    let all = !args.iter().any(|arg| !arg.starts_with("--"));
    let wanted = |part: &str| all || args.iter().any(|arg| arg == part);
    let mut bars = Bars::default();
    println!("| | value | bar | |\n|---|---|---|---|");
    bars.plain("one flush of 64 KiB, p99", format!("{:.1} ms", flush()?));
    if wanted("messages") {
        messages(&mut bars)?;
    }
    if wanted("timeouts") {
        timeouts(&mut bars)?;
    }
    if wanted("streams") {
        streams::measure(&mut bars)?;
    }
    if wanted("kills") {
        kills::measure(&mut bars)?;
    }
    if wanted("replicas") {
        replicas::measure(&mut bars)?;
    }
    let failed = bars.missed && args.iter().any(|arg| arg == "--check");
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The table, printed as it grows.
#[derive(Default)]
pub(crate) struct Bars {
    missed: bool,
}

impl Bars {
    /// Adds a row without a bar.
    pub(crate) fn plain(&self, what: &str, value: String) {
        println!("| {what} | {value} | | |");
    }

    pub(crate) fn add(&mut self, what: &str, value: String, bar: &str, met: bool) {
        self.missed |= !met;
        println!("| {what} | {value} | {bar} | {} |", if met { "met" } else { "**missed**" });
    }
}

/// As many messages as it takes; all on the disk afterwards.
fn messages(bars: &mut Bars) -> io::Result<()> {
    let mut server = Server::start()?;
    opened(&server, CHANNELS, HOUR)?;
    let before = server.spent()?;
    let report = said(&server, "m", SECONDS, 0.0)?;
    let cost = (server.spent()? - before) * 1e6 / report.answered as f64;
    let (rate, p99, memory) = (report.per_second(), report.p99, server.memory()?);
    server.kill()?;
    let lost = server.lost(&server.note("m"))?;
    bars.add("messages a second", format!("{rate:.0}"), "5,000", rate >= 5_000.0);
    bars.plain("processor time of the server for each", format!("{cost:.0} µs"));
    bars.plain("median, request to durable answer", format!("{:.1} ms", report.median));
    bars.add("p99, request to durable answer", format!("{p99:.1} ms"), "50 ms", p99 <= 50.0);
    bars.add("most memory", format!("{memory:.0} MiB"), "1 GiB", memory < 1_024.0);
    let value = format!("{lost} of {}", report.answered);
    bars.add("answered and not on the disk", value, "0", lost == 0 && report.refused == 0);
    Ok(())
}

/// Many pending timeouts, some of which come due while we look.
fn timeouts(bars: &mut Bars) -> io::Result<()> {
    let server = Server::start()?;
    opened(&server, WAITING, TIMEOUT)?;
    // Not earlier: until the shortest turn of the last channel is over, only the channels that were
    // opened first have turns that end.
    thread::sleep(Duration::from_secs(TIMEOUT.0));
    let reads = Reads::Late { deadlines: server.note("opened") };
    let follower = follow(&server.address, 1, reads, 0, SECONDS)?;
    let report: follow::Report = told(follower)?;
    let p99 = report.late_p99;
    bars.plain("timeouts pending", WAITING.to_string());
    bars.plain("timeouts a second", format!("{:.0}", report.timeouts as f64 / SECONDS));
    bars.plain("lateness, median", format!("{:.0} ms", report.late_median));
    let met = p99 <= 50.0 && report.timeouts > 0;
    bars.add("lateness, p99", format!("{p99:.0} ms"), "50 ms", met);
    let memory = server.memory()?;
    bars.add("most memory", format!("{memory:.0} MiB"), "1 GiB", memory < 1_024.0);
    Ok(())
}

/// Opens channels, as quickly as that goes.
pub(crate) fn opened(server: &Server, channels: usize, timeout: (u64, u64)) -> io::Result<Report> {
    let order = load::Order {
        address: server.address.clone(),
        work: Work::Open { timeout },
        connections: CONNECTIONS,
        channels,
        round: "open".to_owned(),
        seconds: OPENING_MAX,
        rate: 0.0,
        patient: false,
        log: server.note("opened"),
    };
    let report: Report = told(client("load-client", &order)?)?;
    if report.answered != channels || report.refused > 0 {
        return Err(io::Error::other(format!("not all channels are open: {report:?}")));
    }
    Ok(report)
}

/// Lets agents speak, as often as that goes or at a rate.
pub(crate) fn said(server: &Server, round: &str, seconds: f64, rate: f64) -> io::Result<Report> {
    told(client("load-client", &saying(server, round, seconds, rate))?)
}

pub(crate) fn saying(server: &Server, round: &str, seconds: f64, rate: f64) -> load::Order {
    load::Order {
        address: server.address.clone(),
        work: Work::Say,
        connections: CONNECTIONS,
        channels: CHANNELS,
        round: round.to_owned(),
        seconds,
        rate,
        patient: false,
        log: server.note(round),
    }
}

pub(crate) fn follow(
    address: &Address,
    readers: usize,
    reads: Reads,
    idle: usize,
    seconds: f64,
) -> io::Result<Child> {
    let address = address.clone();
    client("follow-client", &follow::Order { address, readers, reads, idle, seconds })
}

/// Starts this program again, in another role.
pub(crate) fn client(role: &str, order: &impl Serialize) -> io::Result<Child> {
    Command::new(env::current_exe()?)
        .arg(role)
        .arg(serde_json::to_string(order)?)
        .stdout(Stdio::piped())
        .spawn()
}

/// Waits for a client and what it tells.
pub(crate) fn told<T: DeserializeOwned>(mut client: Child) -> io::Result<T> {
    let mut text = String::new();
    client.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_to_string(&mut text)?;
    client.wait()?;
    Ok(serde_json::from_str(&text)?)
}

/// Carries out an order and puts what came of it into words.
fn answer<O: DeserializeOwned, R: Serialize>(
    work: fn(&O) -> io::Result<R>,
    order: &str,
) -> io::Result<String> {
    Ok(serde_json::to_string(&work(&serde_json::from_str(order)?)?)?)
}

/// What the disk itself takes to make something durable, in milliseconds.
fn flush() -> io::Result<f64> {
    let file: File = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR"))?;
    let block = [7; 64 * 1_024];
    let mut waits = Vec::new();
    for number in 0..200 {
        file.write_all_at(&block, number * block.len() as u64)?;
        let began = Instant::now();
        file.sync_data()?;
        waits.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    waits.sort_by(f64::total_cmp);
    io::stdout().flush()?;
    Ok(share(&waits, 0.99))
}
