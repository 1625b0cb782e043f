//! The same steps on PostgreSQL, and what `pgbench` reaches with the same statement on the same server.

use std::io;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use aldis_signal::time::Timestamp;
use aldis_store::{
    ClaimRequest, NewEffect, PostgresAddress, PostgresStore, Revision, RunId, Step, Store,
};
use aldis_testkit::postgres::Cluster;

use super::measure::Bars;
use super::{Measured, Stores, WRITERS, message, middle, round, write};

/// Workers that claim, and effects there are for them.
const WORKERS: usize = 8;
const EFFECTS: usize = 8_000;
/// Workers that are connected at once, and how long they claim.
const CROWD: usize = 1_000;
/// Effects of one step.
const BATCH: usize = 500;

/// What is measured on a server of our own; nothing if PostgreSQL is not installed.
pub(super) struct Rounds {
    cluster: Option<Cluster>,
    ours: Vec<Measured>,
    pgbench: Vec<f64>,
    claims: Vec<f64>,
    crowd: Option<f64>,
}

impl Rounds {
    /// Starts a server that flushes what it acknowledges.
    pub(super) fn start() -> io::Result<Self> {
        let mut cluster = Cluster::start()?;
        if let Some(cluster) = &mut cluster {
            let settings = ["fsync=on", "shared_buffers=256MB", "max_connections=1200"];
            cluster.listen(&settings.map(str::to_owned))?;
            cluster.kill()?;
            cluster.restart()?;
        }
        let (ours, pgbench, claims) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { cluster, ours, pgbench, claims, crowd: None })
    }

    /// Measures everything once, each in a schema of its own.
    pub(super) fn round(&mut self) -> io::Result<()> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        self.ours.push(round(WRITERS, write, |_| shared(&cluster.address(), WRITERS))?);
        self.pgbench.push(pgbench(cluster)?);
        self.claims.push(claims(&cluster.address(), WORKERS)?);
        if self.crowd.is_none() {
            self.crowd = Some(claims(&cluster.address(), CROWD)?);
        }
        Ok(())
    }

    /// Prints the rows of the table.
    pub(super) fn tell(&mut self, out: &mut impl io::Write) -> io::Result<()> {
        if self.ours.is_empty() {
            return writeln!(out, "| PostgreSQL is not installed | | | |");
        }
        let ours = middle(std::mem::take(&mut self.ours));
        let Measured { per_second, median, p99 } = &ours;
        writeln!(
            out,
            "| 64 writers, PostgreSQL | {per_second:.0} | {median:.1?} | {p99:.1?} |\n\
             | 64 clients of pgbench, the same statement | {:.0} | | |\n\
             | claims taken and closed by {WORKERS} workers, PostgreSQL | {:.0} | | |\n\
             | the same by {CROWD} workers, a connection each | {:.0} | | |",
            in_the_middle(&mut self.pgbench),
            in_the_middle(&mut self.claims),
            self.crowd.unwrap_or_default(),
        )?;
        self.ours.push(ours);
        Ok(())
    }

    /// Adds what must be reached.
    pub(super) fn judge(&mut self, bars: &mut Bars) {
        let Some(ours) = self.ours.first().map(|ours| ours.per_second) else { return };
        let (pgbench, claims) = (in_the_middle(&mut self.pgbench), in_the_middle(&mut self.claims));
        bars.add(
            "5,000 durable steps/s on PostgreSQL, or half of what pgbench reaches",
            format!("{ours:.0}, {:.0} %", 100.0 * ours / pgbench),
            ours >= 5_000.0 || ours >= pgbench / 2.0,
        );
        bars.add("2,000 claims/s on PostgreSQL", format!("{claims:.0}"), claims >= 2_000.0);
        let crowd = self.crowd.unwrap_or_default();
        let what = "2,000 claims/s of 1,000 workers";
        bars.add(what, format!("{crowd:.0}"), crowd >= 2_000.0);
    }
}

fn in_the_middle(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

fn open(address: &str, connections: usize) -> io::Result<Arc<dyn Store>> {
    let address = format!("{address}&connections={connections}");
    let address = PostgresAddress::parse(&address).map_err(io::Error::other)?;
    Ok(Arc::new(PostgresStore::open(address).map_err(io::Error::other)?))
}

fn shared(address: &str, writers: usize) -> io::Result<Stores> {
    Ok(vec![open(address, writers)?; writers])
}

/// Returns how many steps a second `pgbench` commits with as many clients.
fn pgbench(cluster: &Cluster) -> io::Result<f64> {
    let address = cluster.address();
    // Makes the tables.
    drop(open(&address, 1)?);
    let schema = address.rsplit_once('=').map_or("", |(_, schema)| schema);
    let text = |letter: &str, count: usize| format!("'{}'", letter.repeat(count));
    let (state, event, decision, post) =
        (text("s", 1_200), text("e", 300), text("d", 400), text("p", 250));
    let script = format!(
        "\\set expected :expected + 1\n\
         SELECT * FROM {schema}.commit_step('channel-' || :client_id, :expected, NULL, 0, '', NULL, \
         'turns', 'server', 'channel', true, {state}, ARRAY[0], ARRAY['said'], ARRAY[{event}], \
         ARRAY['message-' || :expected], ARRAY[''], ARRAY[0], ARRAY[{decision}], \
         ARRAY['c' || :client_id || '/' || :expected], ARRAY['post'], ARRAY[{post}], ARRAY[0], \
         ARRAY[''], ARRAY[''], '{{}}', '{{}}', '{{}}', '{{}}', '{{}}');\n"
    );
    let script = cluster.write("step.sql", &script)?;
    let mut pgbench = cluster.program(&cluster.installed("pgbench").display().to_string())?;
    pgbench.arg("-n").arg("-h").arg(cluster.socket()).args(["-p", &cluster.port().to_string()]);
    pgbench.args(["-U", "aldis", "-d", "postgres", "-M", "extended", "-D", "expected=-1"]);
    pgbench.args(["-c", &WRITERS.to_string(), "-j", "4", "-T", "2"]).arg("-f").arg(script);
    let done = pgbench.output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rate| rate.split(' ').next()?.parse().ok());
    rate.ok_or_else(|| io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()))
}

/// Returns how many effects a second workers claim and close, one at a time: a few that share a pool, or
/// as many machines, with a connection each.
fn claims(address: &str, workers: usize) -> io::Result<f64> {
    let store = open(address, WORKERS)?;
    let run = RunId::new("claims").map_err(io::Error::other)?;
    for expected in 0..EFFECTS / BATCH {
        let mut step = message(&run, expected as u64);
        step.effects = (0..BATCH).map(|number| effect(&step, number)).collect();
        step.expected = Revision(expected as u64);
        store.commit(&step).map_err(io::Error::other)?;
    }
    let stores: Stores = match workers {
        WORKERS => vec![store; workers],
        _ => (0..workers).map(|_| open(address, 1)).collect::<io::Result<_>>()?,
    };
    let start = Barrier::new(workers + 1);
    let work = |worker: usize, store: &dyn Store| -> io::Result<usize> {
        let (name, ttl) = (format!("worker-{worker}"), Duration::from_secs(30));
        let request = ClaimRequest::new(&["dispatch"], &name, Timestamp::from_millis(0), ttl);
        let request = ClaimRequest { limit: 1, ..request };
        // Everybody is connected before anybody claims.
        let connected = store.change();
        start.wait();
        connected.map_err(io::Error::other)?;
        let mut done = 0;
        while let Some(claim) = store.claim(&request).map_err(io::Error::other)?.pop() {
            done += usize::from(store.done(&claim).map_err(io::Error::other)?);
        }
        Ok(done)
    };
    let (done, took) = thread::scope(|scope| -> io::Result<(usize, Duration)> {
        let (work, stores) = (&work, &stores);
        let workers: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(worker, store)| scope.spawn(move || work(worker, &**store)))
            .collect();
        start.wait();
        let began = Instant::now();
        let done = workers
            .into_iter()
            .map(|it| it.join().map_err(|_| io::Error::other("failed"))?)
            .sum::<io::Result<usize>>();
        done.map(|done| (done, began.elapsed()))
    })?;
    assert_eq!(done, EFFECTS, "each once");
    Ok(done as f64 / took.as_secs_f64())
}

fn effect(step: &Step, number: usize) -> NewEffect {
    NewEffect {
        key: format!("dispatch/{}/{number}", step.expected),
        kind: "dispatch".to_owned(),
        body: "p".repeat(250),
        due: Timestamp::from_millis(0),
        lane: String::new(),
        requires: Vec::new(),
    }
}
