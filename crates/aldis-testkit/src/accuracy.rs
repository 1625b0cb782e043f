//! How often a matcher stops an agent that has not finished, and how often it misses one that has.
//!
//! One definition for the report, the tests and the tables in the documentation: a *false stop* is
//! a message in which a signal is accepted that was not said, a *miss* is a message in which one
//! that was said is not accepted. Both are counted per message, and only the message's own dialect
//! is read.

pub mod labelled;
mod report;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use aldis::app::reference;
use aldis_signal::dialect::builtins;
use aldis_signal::{Dialect, Finding, Origin, Reason, Role, Rules, Signal, scan};

pub use self::report::Report;
use crate::corpus::{Expected, Sample};

/// The matcher under measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// The default.
    Careful,
    /// The seeds' literal regexes.
    Reference,
}

impl Matching {
    /// Both, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Reference, Self::Careful];
}

/// One dialect, as both matchers take it.
#[derive(Debug)]
struct Alone {
    rules: Rules,
    dialects: [Arc<Dialect>; 1],
}

/// Returns the signals that the matcher accepts in one dialect; none for a dialect that is not
/// built in.
pub fn accepted(matching: Matching, dialect: &str, text: &[u8], role: Role) -> Vec<Signal> {
    static ALONE: LazyLock<BTreeMap<&'static str, Alone>> = LazyLock::new(|| {
        let all = builtins().iter().map(|dialect| {
            let rules = Rules::new([Arc::clone(dialect)]);
            (&*dialect.name, Alone { rules, dialects: [Arc::clone(dialect)] })
        });
        all.collect()
    });
    let Some(Alone { rules, dialects }) = ALONE.get(dialect) else { return Vec::new() };
    let origin = Origin::new(role);
    match matching {
        Matching::Reference => reference::scan(dialects, &String::from_utf8_lossy(text), &origin),
        Matching::Careful => {
            let findings = scan(rules, text, &origin).into_iter();
            let signals = findings.filter_map(|finding| match finding {
                Finding::Signal(signal) => Some(*signal),
                Finding::NearMiss(_) => None,
            });
            signals.collect()
        }
    }
}

/// Returns why careful matching refuses what it refuses in a message: name and reason.
pub fn refused(dialect: &str, text: &[u8], role: Role) -> Vec<(String, Reason)> {
    let Some(dialect) = Dialect::builtin(dialect) else { return Vec::new() };
    let findings = scan(&Rules::new([Arc::clone(dialect)]), text, &Origin::new(role)).into_iter();
    let misses = findings.filter_map(|finding| match finding {
        Finding::Signal(_) => None,
        Finding::NearMiss(miss) => Some((miss.name.to_string(), miss.reason)),
    });
    misses.collect()
}

/// What one message came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Something was accepted that was not said.
    pub false_stop: bool,
    /// Something that was said was not accepted.
    pub miss: bool,
}

impl Score {
    /// Compares what was found with what was said, each as often as it was said.
    pub fn of<T: Ord>(mut said: Vec<T>, mut found: Vec<T>) -> Self {
        said.sort_unstable();
        found.sort_unstable();
        let mut verdict = Self::default();
        let (mut said, mut found) = (said.into_iter().peekable(), found.into_iter().peekable());
        loop {
            match (said.peek(), found.peek()) {
                (None, None) => return verdict,
                (Some(left), Some(right)) if left == right => {
                    said.next();
                    found.next();
                }
                (Some(left), right) if right.is_none_or(|right| left < right) => {
                    verdict.miss = true;
                    said.next();
                }
                _ => {
                    verdict.false_stop = true;
                    found.next();
                }
            }
        }
    }

    /// Returns whether the matcher was right.
    pub fn is_right(self) -> bool {
        self == Self::default()
    }
}

/// Judges one generated message.
pub fn judge(matching: Matching, sample: &Sample) -> Score {
    let signals = accepted(matching, sample.dialect, sample.text.as_bytes(), sample.role);
    let found = signals
        .into_iter()
        .map(|signal| Expected { name: signal.name.to_string(), subject: signal.subject });
    Score::of(sample.genuine.clone(), found.collect())
}

/// Sums of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many messages.
    pub messages: usize,
    /// How many of them hold a signal.
    pub genuine: usize,
    /// Messages with a false stop.
    pub false_stops: usize,
    /// Messages with a miss.
    pub misses: usize,
}

impl Tally {
    /// Counts one message.
    pub fn add(&mut self, genuine: bool, verdict: Score) {
        self.messages += 1;
        self.genuine += usize::from(genuine);
        self.false_stops += usize::from(verdict.false_stop);
        self.misses += usize::from(verdict.miss);
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.genuine += other.genuine;
        self.false_stops += other.false_stops;
        self.misses += other.misses;
    }

    /// Returns the number of errors; a message with both kinds counts twice.
    pub fn errors(&self) -> usize {
        self.false_stops + self.misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_count_each_signal() {
        for (said, found, false_stop, miss) in [
            (vec![], vec![], false, false),
            (vec![1], vec![1], false, false),
            (vec![1], vec![], false, true),
            (vec![], vec![1], true, false),
            (vec![1], vec![2], true, true),
            (vec![2], vec![1], true, true),
            (vec![1, 1], vec![1], false, true),
            (vec![1, 2], vec![2, 1], false, false),
        ] {
            let verdict = Score::of(said.clone(), found.clone());
            assert_eq!(verdict, Score { false_stop, miss }, "{said:?} {found:?}");
        }
    }
}
