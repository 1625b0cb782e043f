//! What is common to everything in a simulated world: chance, time, bad luck, and the trace.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::Step;

use super::{Broken, Bug, SimTally};
use crate::corpus::rng::Rng;

/// How many of the last events are shown.
const SHOWN: usize = 20;

/// Unwinds a process that dies.
#[derive(Debug)]
pub(super) struct Died;

/// Unwinds a world in which something is wrong.
#[derive(Debug)]
pub(super) struct Stop;

/// Shared by the world and the store of one simulation.
#[derive(Clone)]
pub(super) struct SharedFate(Arc<Mutex<Fate>>);

pub(super) struct Fate {
    pub(super) rng: Rng,
    pub(super) now: Timestamp,
    /// Whether things go wrong.
    pub(super) faults: bool,
    pub(super) bug: Option<Bug>,
    /// How many more calls the process at work makes before it dies.
    pub(super) dies_in: Option<u32>,
    /// How many more writes fail: the disk is full.
    pub(super) full_for: u32,
    /// Since when the store fails, if it does.
    pub(super) failing_since: Option<Timestamp>,
    /// Whether somebody else wrote something that the process at work was not told of.
    pub(super) changed: bool,
    /// What was acknowledged to people, each with a text that nobody else uses.
    pub(super) acknowledged: BTreeSet<String>,
    pub(super) texts: u64,
    /// The notices of committed steps, by key, and whether people were told.
    pub(super) notices: BTreeMap<String, bool>,
    pub(super) tally: SimTally,
    pub(super) broken: Option<Broken>,
    hash: u64,
    last: VecDeque<String>,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    Done,
    FailsBefore,
    FailsAfter,
    DiesAfter,
}

impl SharedFate {
    pub(super) fn new(seed: u64, faults: bool, bug: Option<Bug>) -> Self {
        Self(Arc::new(Mutex::new(Fate {
            rng: Rng::new(seed),
            now: Timestamp::from_millis(1_800_000_000_000),
            faults,
            bug,
            dies_in: None,
            full_for: 0,
            failing_since: None,
            changed: false,
            acknowledged: BTreeSet::new(),
            texts: 0,
            notices: BTreeMap::new(),
            tally: SimTally::default(),
            broken: None,
            hash: 0xcbf2_9ce4_8422_2325,
            last: VecDeque::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Fate> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, what: fmt::Arguments<'_>) {
        self.lock().note(what);
    }

    /// Counts a call of the process at work, which may be its last.
    pub(super) fn call(&self) {
        let mut fate = self.lock();
        let Some(left) = &mut fate.dies_in else { return };
        *left = left.saturating_sub(1);
        if *left == 0 {
            fate.die();
            drop(fate);
            panic::resume_unwind(Box::new(Died));
        }
    }

    /// Does something in which the process may die. Returns nothing if it did.
    pub(super) fn guarded<T>(&self, act: impl FnOnce() -> T) -> Result<Option<T>, Broken> {
        let panicked = match panic::catch_unwind(AssertUnwindSafe(act)) {
            Ok(done) => return Ok(Some(done)),
            Err(panicked) => panicked,
        };
        if panicked.is::<Died>() {
            return Ok(None);
        }
        let broken = self.lock().broken.take();
        if let Some(broken) = broken.filter(|_| panicked.is::<Stop>()) {
            return Err(broken);
        }
        let text = panicked.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panicked.downcast_ref::<&str>().map(|&it| it.to_owned()));
        Err(Broken::new("nothing_panics", &text.unwrap_or_default()))
    }

    /// The next process may die after some calls.
    pub(super) fn next_process(&self, percent: usize, calls: usize) {
        let mut fate = self.lock();
        let mortal = fate.faults && fate.rng.chance(percent);
        let calls = fate.rng.between(1, calls);
        fate.dies_in = mortal.then(|| u32::try_from(calls).unwrap_or(1));
    }

    /// Lets time pass.
    pub(super) fn pass(&self, most: usize) {
        let mut fate = self.lock();
        let millis = fate.rng.below(most) as u64;
        fate.now = fate.now.after(Duration::from_millis(millis));
    }

    /// Ends the world: this must never be.
    pub(super) fn stop(&self, invariant: &'static str, detail: String) -> ! {
        self.lock().broken.get_or_insert(Broken { invariant, detail });
        panic::resume_unwind(Box::new(Stop))
    }
}

impl Fate {
    fn die(&mut self) {
        self.dies_in = None;
        self.tally.faults += 1;
        self.note(format_args!("the process dies"));
    }

    /// Adds an event to the trace.
    pub(super) fn note(&mut self, what: fmt::Arguments<'_>) {
        let mut line = if self.last.len() < SHOWN {
            String::new()
        } else {
            self.last.pop_front().unwrap_or_default()
        };
        line.clear();
        let _written = write!(line, "{} {what}", self.now.as_millis());
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.last.push_back(line);
    }

    /// Counts an event, and adds it to the trace.
    pub(super) fn event(&mut self, what: fmt::Arguments<'_>) {
        self.tally.events += 1;
        self.note(what);
    }

    /// Decides about a write.
    pub(super) fn write(&mut self) -> Write {
        if !self.faults {
            self.failing_since = None;
            return Write::Done;
        }
        let verdict = if self.full_for > 0 {
            self.full_for -= 1;
            Write::FailsBefore
        } else {
            match self.rng.below(400) {
                0 => {
                    self.full_for = u32::try_from(self.rng.below(8)).unwrap_or(0);
                    Write::FailsBefore
                }
                1..3 => Write::FailsBefore,
                3..6 => Write::FailsAfter,
                6 if self.dies_in.is_some() => Write::DiesAfter,
                _ => Write::Done,
            }
        };
        if verdict == Write::Done {
            self.failing_since = None;
        } else {
            self.failing_since = self.failing_since.or(Some(self.now));
            self.tally.faults += 1;
            self.note(format_args!("a write: {verdict:?}"));
        }
        verdict
    }

    /// Remembers what a durable step wants people to be told.
    pub(super) fn committed(&mut self, step: &Step) {
        self.tally.steps += 1;
        for effect in &step.effects {
            if effect.body.starts_with(r#"{"effect":"notice""#) {
                self.notices.entry(effect.key.clone()).or_insert(false);
            }
        }
    }

    /// A text that nobody else uses.
    pub(super) fn text(&mut self) -> String {
        self.texts += 1;
        format!("word {}", self.texts)
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.last.iter().cloned().collect()
    }
}
