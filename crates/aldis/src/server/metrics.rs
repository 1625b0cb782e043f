//! What operators measure, in the OpenMetrics text format.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use crate::notify::courier::SinkReport;

/// The content type of the format.
pub(super) const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Names and values that tell the series of a metric apart.
type Labels<const N: usize> = [(&'static str, String); N];

/// What is measured.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Labels<3>, Histogram, fn() -> Histogram>,
    pub(super) decisions: Decisions,
    pub(super) connections: Counter,
    pub(super) connections_refused: Counter,
    pub(super) timers: Counter,
    pub(super) followers: Gauge,
    pub(super) followers_cut: Counter,
    delivered: Counter,
    delivery_failures: Counter,
    given_up: Counter,
    dropped: Counter,
    /// What happens in all runs of the store.
    pub(super) journal: JournalMetrics,
    runs_active: Family<Labels<1>, Gauge>,
    effects_pending: Family<Labels<1>, Gauge>,
    effects_claimed: Family<Labels<1>, Gauge>,
    queue_age: Family<Labels<1>, Gauge>,
    sink_pending: Family<Labels<1>, Gauge>,
    turns_stuck: Gauge,
    store_writable: Gauge,
    store_bytes: Gauge,
}

/// What happens in all runs of the store, counted from the journal.
#[derive(Clone, Debug)]
pub(super) struct JournalMetrics {
    runs_ended: Family<Labels<2>, Counter>,
    signals: Family<Labels<2>, Counter>,
    near_misses: Family<Labels<1>, Counter>,
    stops: Family<Labels<1>, Counter>,
    hooks: Histogram,
    checks: Family<Labels<1>, Counter>,
    leases_lost: Counter,
    cost_dollars: Counter<f64, AtomicU64>,
    tokens: Counter,
    questions_open: Gauge,
    /// When the oldest question was asked; its age is for whoever looks.
    oldest_question: Arc<Mutex<Option<Timestamp>>>,
    oldest_question_seconds: Gauge,
}

/// Decisions, by the machine that made them.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions(Family<Labels<1>, Counter>);

/// What is looked up when somebody asks.
#[derive(Debug)]
pub(super) struct Readings {
    /// When that is.
    pub(super) now: Timestamp,
    /// Runs that can still step, by machine.
    pub(super) runs_active: Vec<(&'static str, u64)>,
    /// Effects that wait, by kind.
    pub(super) queues: Vec<QueueReading>,
    /// Effects that wait for a sink, by its name.
    pub(super) sinks: Vec<(String, u64)>,
    /// How long the database is.
    pub(super) store_bytes: u64,
    /// Turns that should have ended.
    pub(super) turns_stuck: usize,
    /// Whether the store can be written.
    pub(super) store_writable: bool,
}

/// The effects of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueReading {
    pub(super) kind: String,
    /// Those that wait, handed out or not.
    pub(super) pending: u64,
    /// Those that somebody has taken and not closed.
    pub(super) claimed: u64,
    /// How long the first one has waited since it was due.
    pub(super) age: Duration,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("aldis");
        let build = [("version", env!("CARGO_PKG_VERSION")), ("arch", std::env::consts::ARCH)];
        registry.register("build", "The program that answers", Info::new(build));
        let requests: Family<_, _, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(SECONDS));
        let about = "Time until the head of an answer was ready";
        registry.register("request_duration_seconds", about, requests.clone());
        let decisions = Decisions::default();
        registry.register(
            "decisions",
            "Decisions of runs that the server steps",
            decisions.0.clone(),
        );
        let sink_pending = Family::default();
        registry.register("sink_pending", "Effects that wait for a sink", sink_pending.clone());
        let add = &mut registry;
        Self {
            connections: added(add, "connections", "Connections that were accepted"),
            connections_refused: added(add, "connections_refused", "Connections over the limit"),
            timers: added(add, "alarms", "Timers that fired"),
            followers: added(add, "event_clients", "Clients that follow the events"),
            followers_cut: added(add, "event_clients_cut", "Clients that were too slow"),
            delivered: added(add, "deliveries", "Effects that a sink took"),
            delivery_failures: added(add, "delivery_failures", "Deliveries that failed"),
            given_up: added(add, "deliveries_given_up", "Effects that were given up"),
            dropped: added(add, "deliveries_dropped", "Effects that were dropped: too many waited"),
            journal: JournalMetrics::new(add),
            runs_active: added(add, "runs_active", "Runs that can still step"),
            effects_pending: added(add, "effects_pending", "Effects that wait"),
            effects_claimed: added(add, "effects_claimed", "Effects that somebody performs"),
            queue_age: added(add, "queue_age_seconds", "How long the first effect has been due"),
            store_bytes: added(add, "store_size_bytes", "How long the database is"),
            turns_stuck: added(add, "turns_stuck", "Turns that should have ended"),
            store_writable: added(add, "store_writable", "Whether the store can be written"),
            registry,
            requests,
            decisions,
            sink_pending,
        }
    }

    /// Counts an answer to a request for a route.
    pub(super) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let class = format!("{}xx", status / 100);
        let labels =
            [("method", method.to_owned()), ("route", route.to_owned()), ("status", class)];
        self.requests.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts what became of something for a sink.
    pub(super) fn reported(&self, report: SinkReport<'_>) {
        match report {
            SinkReport::Delivered => drop(self.delivered.inc()),
            SinkReport::Failed => drop(self.delivery_failures.inc()),
            SinkReport::GivenUp(..) => drop(self.given_up.inc()),
            SinkReport::Dropped(_, count) => drop(self.dropped.inc_by(count as u64)),
        }
    }

    /// Returns how many effects will never reach their sink.
    pub(super) fn lost(&self) -> u64 {
        self.given_up.get() + self.dropped.get()
    }

    /// Renders everything.
    pub(super) fn render(&self, readings: &Readings) -> Result<String, fmt::Error> {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for (machine, count) in &readings.runs_active {
            let label = [("machine", (*machine).to_owned())];
            self.runs_active.get_or_create(&label).set(number(*count));
        }
        self.journal.age(readings.now);
        self.store_bytes.set(number(readings.store_bytes));
        self.turns_stuck.set(number(readings.turns_stuck as u64));
        self.store_writable.set(readings.store_writable.into());
        for family in [&self.effects_pending, &self.effects_claimed, &self.queue_age] {
            family.clear();
        }
        for QueueReading { kind, pending, claimed, age } in &readings.queues {
            let label = [("kind", kind.clone())];
            self.effects_pending.get_or_create(&label).set(number(*pending));
            self.effects_claimed.get_or_create(&label).set(number(*claimed));
            self.queue_age.get_or_create(&label).set(number(age.as_secs()));
        }
        self.sink_pending.clear();
        for (sink, count) in &readings.sinks {
            self.sink_pending.get_or_create(&[("sink", sink.clone())]).inc_by(number(*count));
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl JournalMetrics {
    fn new(add: &mut Registry) -> Self {
        let hooks = Histogram::new(SECONDS);
        let about = "Time that hooks took until a stop could be decided";
        add.register("hook_seconds", about, hooks.clone());
        Self {
            hooks,
            runs_ended: added(add, "runs_ended", "Runs that ended, of everybody"),
            signals: added(add, "signals", "Signals that decisions rest on"),
            near_misses: added(add, "near_misses", "What looked like a signal and was none"),
            stops: added(add, "stops", "Stops of agents that a hook decided about"),
            checks: added(add, "checks", "Checks that ended"),
            leases_lost: added(add, "lease_lost", "Runs whose coordinator was lost and replaced"),
            cost_dollars: added(add, "cost_dollars", "What agents cost, by their hosts' figures"),
            tokens: added(add, "tokens", "Tokens of agents, by their hosts' figures"),
            questions_open: added(add, "questions_open", "Questions that wait for a person"),
            oldest_question: Arc::default(),
            oldest_question_seconds: added(
                add,
                "oldest_question_seconds",
                "How long the oldest question has waited",
            ),
        }
    }

    pub(super) fn ended(&self, machine: &str, ending: &str) {
        let labels = [("machine", machine.to_owned()), ("ending", ending.to_owned())];
        self.runs_ended.get_or_create(&labels).inc();
    }

    pub(super) fn signal(&self, via: &str, outcome: &str) {
        let labels = [("via", via.to_owned()), ("outcome", outcome.to_owned())];
        self.signals.get_or_create(&labels).inc();
    }

    pub(super) fn near_miss(&self, reason: &str) {
        self.near_misses.get_or_create(&[("reason", reason.to_owned())]).inc();
    }

    pub(super) fn stop(&self, rule: &str) {
        self.stops.get_or_create(&[("rule", rule.to_owned())]).inc();
    }

    pub(super) fn hook(&self, took: Duration) {
        self.hooks.observe(took.as_secs_f64());
    }

    pub(super) fn check(&self, result: &str) {
        self.checks.get_or_create(&[("result", result.to_owned())]).inc();
    }

    pub(super) fn lease_lost(&self) {
        self.leases_lost.inc();
    }

    pub(super) fn spent(&self, tokens: u64, micro_dollars: u64) {
        self.tokens.inc_by(tokens);
        self.cost_dollars.inc_by(micro_dollars as f64 / 1e6);
    }

    /// How many questions are open, and when the first was asked.
    pub(super) fn questions(&self, count: usize, oldest: Option<Timestamp>) {
        self.questions_open.set(i64::try_from(count).unwrap_or(i64::MAX));
        *self.oldest_question.lock().unwrap_or_else(PoisonError::into_inner) = oldest;
    }

    fn age(&self, now: Timestamp) {
        let oldest = *self.oldest_question.lock().unwrap_or_else(PoisonError::into_inner);
        let age = oldest.map_or(0, |asked| now.since(asked).as_secs());
        self.oldest_question_seconds.set(i64::try_from(age).unwrap_or(i64::MAX));
    }
}

impl Decisions {
    /// Counts what one step decided.
    pub(super) fn made(&self, machine: &str, count: usize) {
        if count > 0 {
            self.0.get_or_create(&[("machine", machine.to_owned())]).inc_by(count as u64);
        }
    }
}

fn added<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, about: &str) -> M {
    let metric = M::default();
    registry.register(name, about, metric.clone());
    metric
}

/// The upper bounds of the histogram's buckets, in seconds.
const SECONDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0];

#[cfg(test)]
mod tests {
    //! What is exported is what the documents, the dashboard and the alerts name.

    use std::collections::BTreeSet;

    use regex::Regex;

    use super::*;

    /// Every metric with a value.
    fn exported() -> BTreeSet<String> {
        let metrics = Metrics::new();
        metrics.answered("GET", "/", 200, Duration::from_millis(3));
        metrics.decisions.made("turns", 1);
        let journal = &metrics.journal;
        journal.ended("run", "done");
        journal.signal("said", "counted");
        journal.near_miss("introduced");
        journal.stop("phases/blocked");
        journal.hook(Duration::from_millis(4));
        journal.check("passed");
        journal.spent(100, 2_500_000);
        journal.questions(1, Some(Timestamp::from_millis(1_000)));
        let queue =
            QueueReading { kind: "dispatch".to_owned(), pending: 3, ..QueueReading::default() };
        let readings = Readings {
            now: Timestamp::from_millis(61_000),
            runs_active: vec![("run", 2)],
            queues: vec![queue],
            sinks: vec![("team".to_owned(), 1)],
            store_bytes: 9,
            turns_stuck: 0,
            store_writable: true,
        };
        let text = metrics.render(&readings).unwrap();
        for line in [
            "aldis_cost_dollars_total 2.5",
            "aldis_tokens_total 100",
            "aldis_oldest_question_seconds 60",
            "aldis_runs_ended_total{machine=\"run\",ending=\"done\"} 1",
            "aldis_effects_pending{kind=\"dispatch\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let name = |line: &str| line.split(['{', ' ']).next().unwrap_or_default().to_owned();
        samples.map(name).collect()
    }

    fn named(file: &str) -> BTreeSet<String> {
        let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let name = Regex::new("aldis_[a-z_]+").unwrap();
        name.find_iter(&text).map(|found| found.as_str().to_owned()).collect()
    }

    /// Of a histogram people name the whole.
    fn whole(names: BTreeSet<String>) -> BTreeSet<String> {
        let whole = |name: String| {
            let suffix = ["_bucket", "_count", "_sum"].iter().find_map(|it| name.strip_suffix(it));
            suffix.map(str::to_owned).unwrap_or(name)
        };
        names.into_iter().map(whole).collect()
    }

    #[test]
    fn dashboards_and_alerts_name_what_is_exported() {
        let exported = exported();
        for file in ["grafana.json", "alerts.yaml"] {
            let named = named(&format!("packaging/observability/{file}"));
            assert!(named.len() > 5, "{file}");
            let unknown: Vec<_> = named.difference(&exported).collect();
            assert_eq!(unknown, [""; 0], "{file}");
        }
    }

    #[test]
    fn the_page_lists_all_of_them() {
        assert_eq!(named("docs/serve.md"), whole(exported()));
    }
}
