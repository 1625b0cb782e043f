//! Progress and cost over time, and what was said in a channel: read from the events of a run, which
//! are folded one after the other.

use std::collections::VecDeque;

use aldis_machine::delivery;
use aldis_machine::run::Usage;
use aldis_machine::{run, turns};
use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::card::{clean, clean_lines};

/// How many points of a curve are kept: of more, every other one is dropped.
const POINTS_MAX: usize = 1_000;
/// How many messages of a channel are kept.
const MESSAGES_MAX: usize = 200;

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Point {
    /// When.
    #[schemars(with = "String")]
    pub(crate) at: Timestamp,
    /// How much.
    pub(crate) value: u64,
}

/// A message in a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChannelMessage {
    /// When.
    #[schemars(with = "String")]
    pub(crate) at: Timestamp,
    /// Who: an agent, or what is known of a human.
    pub(crate) who: String,
    /// Whether it was a human.
    pub(crate) human: bool,
    /// What.
    pub(crate) text: String,
}

/// What the events of a run tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// The percentage that was reported.
    pub(crate) progress: Vec<Point>,
    /// Millionths of a dollar.
    pub(crate) cost: Vec<Point>,
    /// Tokens.
    pub(crate) tokens: Vec<Point>,
    /// What was said, the oldest first.
    pub(crate) messages: VecDeque<ChannelMessage>,
    /// What earlier iterations cost, and what this one did so far.
    before: Usage,
    now: Usage,
}

impl Series {
    /// Takes the next event of a run of this machine. One that cannot be read tells nothing.
    pub(crate) fn add(&mut self, machine: &str, kind: &str, at: Timestamp, body: &str) {
        match (machine, kind) {
            ("run", "reported" | "heard" | "progress" | "spent" | "launched" | "exited") => {
                let event = serde_json::from_str::<run::Event>(body);
                event.into_iter().for_each(|event| self.of_run(at, &event));
            }
            ("delivery", "spent") => {
                if let Ok(delivery::Event::Spent { usage, .. }) = serde_json::from_str(body) {
                    self.now = sum(self.now, usage);
                    self.spent(at);
                }
            }
            ("turns", "message" | "said" | "human") => {
                let event = serde_json::from_str::<turns::Event>(body);
                event.into_iter().for_each(|event| self.of_channel(at, event));
            }
            _ => {}
        }
    }

    fn of_run(&mut self, at: Timestamp, event: &run::Event) {
        match event {
            run::Event::Reported { signals } => {
                let percent = signals.iter().rev().find_map(|it| it.progress.or(it.phase_progress));
                self.reached(at, percent);
            }
            run::Event::Progress(batch) => {
                self.reached(at, batch.latest.progress.or(batch.latest.phase_progress));
            }
            run::Event::Spent(usage) => {
                self.now = *usage;
                self.spent(at);
            }
            // The next one begins at nothing.
            run::Event::Launched { .. } | run::Event::Exited(_) => {
                self.before = sum(self.before, std::mem::take(&mut self.now));
            }
            _ => {}
        }
    }

    fn of_channel(&mut self, at: Timestamp, event: turns::Event) {
        match event {
            turns::Event::Message { agent, messages, .. } => {
                for message in messages {
                    self.said(at, &agent, false, &message.display);
                }
            }
            turns::Event::Human { text, from, .. } => {
                self.said(at, from.as_deref().unwrap_or("a human"), true, &text);
            }
            _ => {}
        }
    }

    fn said(&mut self, at: Timestamp, who: &str, human: bool, text: &str) {
        if self.messages.len() == MESSAGES_MAX {
            self.messages.pop_front();
        }
        let (who, text) = (clean(who), clean_lines(text));
        self.messages.push_back(ChannelMessage { at, who, human, text });
    }

    fn reached(&mut self, at: Timestamp, percent: Option<u8>) {
        if let Some(percent) = percent {
            push(&mut self.progress, at, percent.into());
        }
    }

    fn spent(&mut self, at: Timestamp) {
        let Usage { tokens, micro_dollars } = sum(self.before, self.now);
        push(&mut self.tokens, at, tokens);
        push(&mut self.cost, at, micro_dollars);
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        tokens: one.tokens.saturating_add(other.tokens),
        micro_dollars: one.micro_dollars.saturating_add(other.micro_dollars),
    }
}

/// Adds a point. What does not change is one line.
fn push(points: &mut Vec<Point>, at: Timestamp, value: u64) {
    if let [.., before, last] = &mut points[..]
        && last.value == value
        && before.value == value
    {
        last.at = at;
        return;
    }
    points.push(Point { at, value });
    if points.len() > POINTS_MAX {
        let last = points.len() - 1;
        let mut place = 0..;
        points.retain(|_| place.next().is_some_and(|place| place % 2 == 0 || place == last));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn of(machine: &str, events: &[Value]) -> Series {
        let mut series = Series::default();
        for (seconds, event) in (0..).zip(events) {
            let kind = event["event"].as_str().unwrap();
            series.add(machine, kind, at(seconds), &event.to_string());
        }
        series
    }

    fn values(points: &[Point]) -> Vec<u64> {
        points.iter().map(|point| point.value).collect()
    }

    #[test]
    fn what_iterations_cost_is_added() {
        let series = of(
            "run",
            &[
                json!({ "event": "launched", "agent": "1" }),
                json!({ "event": "spent", "tokens": 10, "micro_dollars": 5 }),
                json!({ "event": "spent", "tokens": 30, "micro_dollars": 9 }),
                json!({ "event": "exited", "code": 0, "signal": null }),
                json!({ "event": "launched", "agent": "2" }),
                json!({ "event": "spent", "tokens": 1, "micro_dollars": 1 }),
            ],
        );
        assert_eq!(
            (values(&series.tokens), values(&series.cost)),
            (vec![10, 30, 31], vec![5, 9, 10])
        );
        let spent = |agent: u64| json!({ "event": "spent", "agent": agent, "tokens": 4 });
        assert_eq!(values(&of("delivery", &[spent(1), spent(2)]).tokens), [4, 8]);
    }

    #[test]
    fn progress_is_what_was_reported() {
        let signal =
            |percent: u8| json!({ "name": "PROGRESS", "meaning": "progress", "progress": percent });
        let series = of(
            "run",
            &[
                json!({ "event": "reported", "signals": [signal(10)] }),
                json!({ "event": "progress", "latest": signal(40) }),
                json!({ "event": "tick" }),
            ],
        );
        assert_eq!(values(&series.progress), [10, 40]);
    }

    #[test]
    fn curves_are_bounded_and_keep_their_ends() {
        let mut points = Vec::new();
        for number in 0..100_000 {
            push(&mut points, at(number), u64::try_from(number).unwrap());
        }
        assert!(points.len() <= POINTS_MAX);
        assert_eq!((points[0].value, points[points.len() - 1].value), (0, 99_999));
        let mut flat = Vec::new();
        (0..1_000).for_each(|number| push(&mut flat, at(number), 7));
        assert_eq!(flat, [Point { at: at(0), value: 7 }, Point { at: at(999), value: 7 }]);
    }
}
