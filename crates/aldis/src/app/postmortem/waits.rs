//! How long an agent waited for people and limits.

use std::time::Duration;

use aldis_signal::time::Timestamp;

/// Spans of waiting, which may overlap: calls run side by side.
#[derive(Debug, Default)]
pub(super) struct Waits {
    spans: Vec<(Timestamp, Timestamp)>,
    /// The last sign of life.
    last: Option<Timestamp>,
}

impl Waits {
    pub(super) fn add(&mut self, from: Timestamp, to: Timestamp) {
        if self.spans.len() < SPANS_MAX && from < to {
            self.spans.push((from, to));
        }
    }

    pub(super) fn seen(&mut self, at: Option<Timestamp>) {
        self.last = self.last.max(at);
    }

    /// A person says something: until then the agent had nothing to do.
    pub(super) fn until_prompt(&mut self, at: Option<Timestamp>) {
        if let Some((from, to)) = self.last.zip(at) {
            self.add(from, to);
        }
    }

    /// Adds up the spans, what they share once.
    pub(super) fn total(mut self) -> Duration {
        self.spans.sort_unstable();
        let (mut total, mut end) = (Duration::ZERO, Timestamp::from_millis(i64::MIN));
        for (from, to) in self.spans {
            total += to.since(from.max(end));
            end = end.max(to);
        }
        total
    }
}

/// A session of a year has fewer prompts.
const SPANS_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spans_share_counts_once() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let mut waits = Waits::default();
        for (from, to) in [(10, 20), (0, 5), (15, 30), (16, 17), (40, 40), (50, 45)] {
            waits.add(at(from), at(to));
        }
        waits.seen(Some(at(60)));
        waits.seen(None);
        waits.until_prompt(Some(at(100)));
        assert_eq!(waits.total(), Duration::from_secs(5 + 20 + 40));
    }
}
