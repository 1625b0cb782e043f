//! Near misses: the first of each kind one by one, the rest as a number.
//!
//! A message that holds a million of them (a log of another run, or an attack) is not worth a million
//! reports. Of each dialect and reason the first thousand are told in full. The next one stands for
//! all that follow, and says how many those are.

use crate::signal::{NearMiss, Reason};

/// How many near misses of one dialect and reason are told in full, per message.
pub(crate) const TOLD_MAX: u32 = 1_000;

/// How many near misses there were of each dialect and reason.
#[derive(Debug)]
pub(crate) struct Misses {
    /// How many are told in full.
    pub(super) told_max: u32,
    /// By dialect and reason; empty as long as there are none.
    tallies: Vec<Tally>,
    /// Those that stand for others.
    #[expect(clippy::vec_box, reason = "they are findings, which are boxed")]
    standing: Vec<Box<NearMiss>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    told: u32,
    /// Which of those that stand for others stands for more of these.
    standing: Option<usize>,
}

impl Default for Misses {
    fn default() -> Self {
        Self { told_max: TOLD_MAX, tallies: Vec::new(), standing: Vec::new() }
    }
}

impl Misses {
    /// Counts a near miss that another one stands for. Returns `false` if it must be told.
    pub(crate) fn counts(&mut self, dialect: usize, reason: Reason) -> bool {
        let tally = self.tallies.get(number(dialect, reason));
        let Some(standing) = tally.and_then(|tally| tally.standing) else { return false };
        self.standing[standing].more += 1;
        true
    }

    /// Takes note of a near miss; returns it if it is told now.
    pub(crate) fn tell(&mut self, dialect: usize, miss: Box<NearMiss>) -> Option<Box<NearMiss>> {
        if self.counts(dialect, miss.reason) {
            return None;
        }
        let number = number(dialect, miss.reason);
        if self.tallies.len() <= number {
            self.tallies.resize(number + 1, Tally::default());
        }
        let tally = &mut self.tallies[number];
        if tally.told < self.told_max {
            tally.told += 1;
            return Some(miss);
        }
        tally.standing = Some(self.standing.len());
        self.standing.push(miss);
        None
    }

    /// Returns those that stand for others, at the end of the message.
    #[expect(clippy::vec_box, reason = "they are findings, which are boxed")]
    pub(crate) fn end(&mut self) -> Vec<Box<NearMiss>> {
        self.tallies.clear();
        std::mem::take(&mut self.standing)
    }
}

fn number(dialect: usize, reason: Reason) -> usize {
    dialect * Reason::ALL.len() + reason as usize
}
