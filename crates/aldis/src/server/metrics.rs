//! Counters, in the form that Prometheus reads.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

use crate::notify::courier::Report;

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    accepted: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) timers: AtomicU64,
    pub(super) followers: AtomicU64,
    pub(super) followers_cut: AtomicU64,
    delivered: AtomicU64,
    delivery_failures: AtomicU64,
    given_up: AtomicU64,
    dropped: AtomicU64,
}

impl Metrics {
    /// Counts an answer.
    pub(super) fn answered(&self, status: StatusCode) {
        let counter = match status.as_u16() {
            0..400 => &self.accepted,
            400..500 => &self.refused,
            _ => &self.failed,
        };
        add(counter);
    }

    /// Counts what became of something for a sink.
    pub(super) fn reported(&self, report: Report<'_>) {
        match report {
            Report::Delivered => add(&self.delivered),
            Report::Failed => add(&self.delivery_failures),
            Report::GivenUp(..) => add(&self.given_up),
            Report::Dropped(_, count) => {
                self.dropped.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
    }

    /// Returns how many effects will never reach their sink.
    pub(super) fn lost(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed) + self.dropped.load(Ordering::Relaxed)
    }

    /// Renders all counters, and how many runs and effects there are.
    pub(super) fn render(&self, active_runs: u64, pending_effects: u64, stuck: usize) -> String {
        let mut text = String::new();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let rows = [
            (
                "aldis_connections_total",
                "counter",
                "Connections that were taken.",
                load(&self.connections),
            ),
            (
                "aldis_connections_refused_total",
                "counter",
                "Connections over the limit.",
                load(&self.connections_refused),
            ),
            ("aldis_alarms_total", "counter", "Timers that fired.", load(&self.timers)),
            (
                "aldis_event_clients",
                "gauge",
                "Clients that follow the events.",
                load(&self.followers),
            ),
            (
                "aldis_event_clients_cut_total",
                "counter",
                "Clients that were too slow.",
                load(&self.followers_cut),
            ),
            (
                "aldis_deliveries_total",
                "counter",
                "Effects that were carried out.",
                load(&self.delivered),
            ),
            (
                "aldis_delivery_failures_total",
                "counter",
                "Deliveries that failed.",
                load(&self.delivery_failures),
            ),
            (
                "aldis_deliveries_given_up_total",
                "counter",
                "Effects that were given up.",
                load(&self.given_up),
            ),
            (
                "aldis_deliveries_dropped_total",
                "counter",
                "Effects that were dropped because too many waited for their sink.",
                load(&self.dropped),
            ),
            ("aldis_runs_active", "gauge", "Runs that can still step.", active_runs),
            ("aldis_effects_pending", "gauge", "Effects that wait.", pending_effects),
            ("aldis_turns_stuck", "gauge", "Turns that should have ended.", stuck as u64),
        ];
        for (name, kind, help, value) in rows {
            // Writing into a string cannot fail.
            let _written =
                writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        let name = "aldis_requests_total";
        let _written = writeln!(text, "# HELP {name} Requests, by outcome.\n# TYPE {name} counter");
        for (outcome, counter) in
            [("accepted", &self.accepted), ("refused", &self.refused), ("failed", &self.failed)]
        {
            let value = load(counter);
            let _written = writeln!(text, "{name}{{outcome=\"{outcome}\"}} {value}");
        }
        text
    }
}

/// Counts one more.
pub(super) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
