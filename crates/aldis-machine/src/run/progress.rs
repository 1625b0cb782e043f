//! Progress reports, joined: an agent can print a thousand of them in a second, and a journal that
//! kept each would grow without a limit.
//!
//! A driver passes every report through a [`ProgressCoalescer`] and sends the machine the events it
//! returns. At most one progress event per run in [`PROGRESS_INTERVAL`] results, with the count and
//! the latest value. Whatever else happens to the run is sent after [`ProgressCoalescer::flush`], so
//! that the order of events stays as it was.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::signal::RunSignal;
use aldis_signal::signal::Meaning;
use aldis_signal::time::Timestamp;

/// How often progress that only repeats or moves a number is recorded, at most.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Several progress reports as one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressBatch {
    /// The latest of them.
    pub latest: RunSignal,
    /// How many there were.
    #[serde(default = "one")]
    pub count: u64,
    /// How many of the last ones in a row reported the same state as the latest, itself included:
    /// identical states are what stagnation counts.
    #[serde(default = "one")]
    pub repeated: u64,
}

fn one() -> u64 {
    1
}

impl ProgressBatch {
    fn of(signal: RunSignal) -> Self {
        Self { latest: signal, count: 1, repeated: 1 }
    }

    fn add(&mut self, signal: RunSignal) {
        self.count = self.count.saturating_add(1);
        let same = state(&signal) == state(&self.latest);
        self.repeated = if same { self.repeated.saturating_add(1) } else { 1 };
        self.latest = signal;
    }
}

/// The state that a report carries, as stagnation compares it.
fn state(signal: &RunSignal) -> (Option<&str>, Option<u8>, Option<u32>) {
    (signal.phase.as_deref(), signal.progress, signal.iteration)
}

/// Joins progress reports between the scanner and the machine. It holds one report at most.
#[derive(Clone, Debug, Default)]
pub struct ProgressCoalescer {
    sent_at: Option<Timestamp>,
    /// The phase of the last report.
    phase: Option<String>,
    held: Option<ProgressBatch>,
}

impl ProgressCoalescer {
    /// Takes the signals of one piece of output. Returns the events to send now, in order.
    pub fn push(&mut self, now: Timestamp, signals: Vec<RunSignal>) -> Vec<Event> {
        let mut events = Vec::new();
        let mut others: Vec<RunSignal> = Vec::new();
        for signal in signals {
            if !self.only_moves_a_number(&signal) {
                self.phase = signal.phase.clone().or_else(|| self.phase.take());
                events.extend(self.flush());
                others.push(signal);
                continue;
            }
            if !others.is_empty() {
                events.push(Event::Reported { signals: std::mem::take(&mut others) });
            }
            match &mut self.held {
                Some(batch) => batch.add(signal),
                None => self.held = Some(ProgressBatch::of(signal)),
            }
        }
        if !others.is_empty() {
            events.push(Event::Reported { signals: others });
        }
        events.extend(self.tick(now));
        events
    }

    /// Returns when held progress must be sent.
    pub fn due(&self) -> Option<Timestamp> {
        let sent = self.held.as_ref().and(self.sent_at)?;
        Some(sent.after(PROGRESS_INTERVAL))
    }

    /// Returns held progress whose time has come.
    pub fn tick(&mut self, now: Timestamp) -> Option<Event> {
        let early = self.sent_at.is_some_and(|sent| now.since(sent) < PROGRESS_INTERVAL);
        if early {
            return None;
        }
        let event = self.flush()?;
        self.sent_at = Some(now);
        Some(event)
    }

    /// Returns held progress, due or not: call it before any other event is sent.
    pub fn flush(&mut self) -> Option<Event> {
        self.held.take().map(Event::Progress)
    }

    /// Whether nothing is lost if the next report takes its place: entering a phase is progress by
    /// itself.
    fn only_moves_a_number(&self, signal: &RunSignal) -> bool {
        signal.meaning == Meaning::Progress
            && (signal.phase.is_none() || signal.phase == self.phase)
    }
}
