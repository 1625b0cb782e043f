//! A fleet on one machine that is treated badly: real workers, servers, coordinator and PostgreSQL, all
//! behind a proxy that cuts and delays connections; each is killed again and again, one is frozen for
//! longer than its claim. What it must lead to all the same is checked from the journal
//! ([`history`](crate::history)).

mod fleet;
mod proxy;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use aldis_engine::Engine;
use aldis_store::{PostgresAddress, PostgresStore, RunFilter, RunId, Store};

use self::fleet::Fleet;
use crate::corpus::rng::Rng;
use crate::history::{History, Violation};
use crate::postgres::Cluster;

/// How long the rest may take once it is calm.
const CALM_MAX: Duration = Duration::from_secs(15 * 60);
/// Longer than a claim lasts.
const FROZEN: Duration = Duration::from_secs(40);
/// What is said of workers that were frozen.
const FREEZES: &str = "workers frozen";
/// How often it is looked whether the plan is delivered.
const LOOK: Duration = Duration::from_secs(1);

/// How much is broken, and for how long.
#[derive(Clone, Debug)]
pub struct ChaosOptions {
    /// The program.
    pub aldis: PathBuf,
    /// How long things are broken.
    pub last: Duration,
    /// The tasks of the plan.
    pub tasks: usize,
    /// How many workers there are.
    pub workers: usize,
    /// What is broken when.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct ChaosReport {
    /// What must not be.
    pub violations: Vec<String>,
    /// How often what was broken.
    pub broken: [(&'static str, usize); 6],
    /// How many messages of people were acknowledged.
    pub acknowledged: usize,
    /// How many agents were claimed, and how many of these again.
    pub claims: (usize, usize),
    /// How many results came too late and were refused.
    pub late: usize,
    /// How many events the journal has.
    pub events: usize,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for ChaosReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = self.broken.iter().filter(|(what, _)| !what.is_empty());
        let broken: Vec<String> = broken.map(|(what, times)| format!("{times} {what}")).collect();
        writeln!(f, "broken: {}", broken.join(", "))?;
        let (claims, again) = self.claims;
        writeln!(f, "claims: {claims}, of these {again} of agents whose worker was lost")?;
        writeln!(f, "late results refused: {}", self.late)?;
        writeln!(f, "messages acknowledged: {}", self.acknowledged)?;
        writeln!(f, "events: {}, in {} s", self.events, self.took.as_secs())?;
        if self.violations.is_empty() {
            return write!(f, "everything held");
        }
        write!(f, "violated:\n  {}", self.violations.join("\n  "))
    }
}

/// Delivers a plan through all that, and checks what is left.
///
/// # Errors
///
/// Fails if it cannot be set up, for example without PostgreSQL.
pub fn run(options: &ChaosOptions, progress: &mut dyn Write) -> io::Result<ChaosReport> {
    let began = Instant::now();
    let Some(mut cluster) = Cluster::start()? else {
        return Err(io::Error::other("PostgreSQL is not installed"));
    };
    let port = cluster.listen(&[])?;
    cluster.kill()?;
    cluster.restart()?;
    let mut fleet = Fleet::start(options, port)?;
    let direct = format!("postgres://aldis@127.0.0.1:{port}/postgres?schema=chaos");
    let broken = disturb(options, &mut cluster, &mut fleet, progress)?;
    writeln!(progress, "calm after {} s", began.elapsed().as_secs())?;
    fleet.calm()?;
    let over = wait(&mut fleet, progress);
    let store = PostgresStore::open(address(&direct)?).map_err(io::Error::other)?;
    let mut report = judge(store, &fleet.acknowledged)?;
    report.violations.extend(over.err().map(|error| error.to_string()));
    report.violations.extend(fleet.outside()?);
    let never = broken.iter().find(|(what, times)| *times == 0 && *what == FREEZES);
    if report.late == 0 || never.is_some() {
        report.violations.push("no late result of a frozen worker was refused and kept".to_owned());
    }
    (report.broken, report.took) = (broken, began.elapsed());
    Ok(report)
}

fn address(text: &str) -> io::Result<PostgresAddress> {
    PostgresAddress::parse(text).map_err(|error| io::Error::other(error.to_string()))
}

/// Breaks something every one to five seconds.
fn disturb(
    options: &ChaosOptions,
    cluster: &mut Cluster,
    fleet: &mut Fleet,
    progress: &mut dyn Write,
) -> io::Result<[(&'static str, usize); 6]> {
    let mut broken = [
        ("workers killed", 0),
        ("servers killed", 0),
        ("databases killed", 0),
        ("coordinators killed", 0),
        ("times all connections cut", 0),
        (FREEZES, 0),
    ];
    let (mut rng, began) = (Rng::new(options.seed), Instant::now());
    let mut frozen: Option<Instant> = None;
    while began.elapsed() < options.last {
        let pause = u64::try_from(rng.between(1_000, 5_000)).unwrap_or(1_000);
        thread::sleep(Duration::from_millis(pause));
        fleet.tell(&mut rng)?;
        if frozen.is_some_and(|since| since.elapsed() > FROZEN) {
            fleet.thaw()?;
        }
        let held = if frozen.is_none() { fleet.held()? } else { None };
        let what = match rng.below(100) {
            _ if held.is_some() => 5,
            0..40 => 0,
            40..60 => 1,
            60..75 => 2,
            75..85 => 3,
            _ => 4,
        };
        match what {
            0 => fleet.kill_worker(&mut rng)?,
            1 => fleet.kill_server(&mut rng)?,
            2 => {
                cluster.kill()?;
                thread::sleep(Duration::from_millis(200));
                cluster.restart()?;
            }
            3 => fleet.kill_coordinator()?,
            4 => fleet.cut(),
            _ => {
                fleet.freeze(&held.unwrap_or_default())?;
                frozen = Some(Instant::now());
            }
        }
        broken[what].1 += 1;
        writeln!(progress, "{:>4} s: {}", began.elapsed().as_secs(), broken[what].0)?;
        fleet.keep_going()?;
    }
    // Frozen for longer than its claim, also where everything else was short.
    if let Some(since) = frozen {
        thread::sleep(FROZEN.saturating_sub(since.elapsed()));
    }
    Ok(broken)
}

/// Waits until the plan is delivered.
fn wait(fleet: &mut Fleet, progress: &mut dyn Write) -> io::Result<()> {
    let began = Instant::now();
    while !fleet.is_delivered()? {
        if began.elapsed() > CALM_MAX {
            return Err(io::Error::other("the plan is not delivered"));
        }
        fleet.answer()?;
        thread::sleep(LOOK);
    }
    writeln!(progress, "delivered {} s later", began.elapsed().as_secs())
}

/// Checks the journal.
fn judge(store: PostgresStore, acknowledged: &[String]) -> io::Result<ChaosReport> {
    let filter = RunFilter { machine: Some("delivery".to_owned()), ..RunFilter::default() };
    let runs = store.list(&filter).map_err(io::Error::other)?;
    let [run] = &*runs else {
        return Err(io::Error::other(format!("{} deliveries where there is one", runs.len())));
    };
    let run: &RunId = &run.id;
    let history = History::read(&store, run, acknowledged.to_vec()).map_err(io::Error::other)?;
    let is = |event: &&crate::history::HistoryEvent, name: &str| event.body["event"] == name;
    let claims = history.events.iter().filter(|event| is(event, "claimed")).count();
    let rule = |name: &str| history.decisions.iter().filter(|it| it.rule == name).count();
    let mut report = ChaosReport {
        violations: history.check().iter().map(Violation::to_string).collect(),
        acknowledged: acknowledged.len(),
        claims: (claims, rule("delivery/worker-lost")),
        late: rule("delivery/late-signal"),
        events: history.events.len(),
        ..ChaosReport::default()
    };
    report.violations.extend(store.check().map_err(io::Error::other)?);
    let replay = Engine::new(std::sync::Arc::new(store)).replay(run).map_err(io::Error::other)?;
    report.violations.extend(replay.differences.iter().map(|it| format!("replay: {it:?}")));
    Ok(report)
}
