//! How long an agent waited for people and limits.

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

    /// Returns the spans in order, those that overlap as one.
    pub(super) fn merged(mut self) -> Vec<(Timestamp, Timestamp)> {
        self.spans.sort_unstable();
        let mut merged: Vec<(Timestamp, Timestamp)> = Vec::new();
        for (from, to) in self.spans {
            match merged.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => merged.push((from, to)),
            }
        }
        merged
    }
}

/// A session of a year has fewer prompts.
const SPANS_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let merged = waits.merged();
        assert_eq!(merged, [(0, 5), (10, 30), (60, 100)].map(|(from, to)| (at(from), at(to))));
        let total: Duration = merged.iter().map(|(from, to)| to.since(*from)).sum();
        assert_eq!(total, Duration::from_secs(5 + 20 + 40));
    }
}
