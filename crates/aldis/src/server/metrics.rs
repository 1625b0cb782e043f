//! What operators measure, in the OpenMetrics text format.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use crate::notify::courier::Report;

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
    runs_active: Gauge,
    effects_pending: Gauge,
    sink_pending: Family<Labels<1>, Gauge>,
    turns_stuck: Gauge,
    store_writable: Gauge,
}

/// Decisions, by the machine that made them.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions(Family<Labels<1>, Counter>);

/// What is looked up when somebody asks.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Runs that can still step.
    pub(super) runs_active: u64,
    /// Effects that wait, by sink; under an empty name those that wait for somebody else.
    pub(super) pending: Vec<(String, u64)>,
    /// Turns that should have ended.
    pub(super) turns_stuck: usize,
    /// Whether the store can be written.
    pub(super) store_writable: bool,
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
            runs_active: added(add, "runs_active", "Runs that can still step"),
            effects_pending: added(add, "effects_pending", "Effects that wait"),
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
    pub(super) fn reported(&self, report: Report<'_>) {
        match report {
            Report::Delivered => drop(self.delivered.inc()),
            Report::Failed => drop(self.delivery_failures.inc()),
            Report::GivenUp(..) => drop(self.given_up.inc()),
            Report::Dropped(_, count) => drop(self.dropped.inc_by(count as u64)),
        }
    }

    /// Returns how many effects will never reach their sink.
    pub(super) fn lost(&self) -> u64 {
        self.given_up.get() + self.dropped.get()
    }

    /// Renders everything.
    pub(super) fn render(&self, readings: &Readings) -> Result<String, fmt::Error> {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.runs_active.set(number(readings.runs_active));
        self.turns_stuck.set(number(readings.turns_stuck as u64));
        self.store_writable.set(readings.store_writable.into());
        self.effects_pending.set(number(readings.pending.iter().map(|(_, count)| count).sum()));
        self.sink_pending.clear();
        for (sink, count) in readings.pending.iter().filter(|(sink, _)| !sink.is_empty()) {
            self.sink_pending.get_or_create(&[("sink", sink.clone())]).inc_by(number(*count));
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
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
