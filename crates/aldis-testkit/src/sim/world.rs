//! One world: projects, sessions, agents, humans, a clock, and everything that goes wrong.

mod acts;
mod calm;
mod delivery;

use std::collections::VecDeque;
use std::rc::Rc;

use aldis_machine::phases::State;
use aldis_signal::time::Timestamp;

use super::engine::{Delivery, Engine, Held};
use super::file::File;
use super::host::Session;
use super::machine::Machine;
use super::oracle::{Books, Broken, Check, hold};
use crate::corpus::rng::Rng;

/// How many of the last events a trace keeps.
const TRACE_MAX: usize = 20;
/// One committed step in so many is also checked in its written forms.
const WRITTEN_EVERY: u64 = 64;
/// One text in so many that an agent is told is scanned.
const SCANNED_EVERY: u64 = 256;
/// Where clocks begin: 2026-03-02T10:00:00Z.
const BEGINNING: i64 = 1_772_445_600_000;

/// What happened in a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that were delivered.
    pub events: u64,
    /// Steps that were committed.
    pub steps: u64,
    /// Runs that began.
    pub runs: u64,
    /// Runs that reached an end, each end of a resumed run included.
    pub ends: u64,
    /// Of these, those that were complete.
    pub successes: u64,
    /// Stops that were refused.
    pub refusals: u64,
    /// Faults that were injected: crashes, failing writes, races, duplicates, delays, lost views.
    pub faults: u64,
    /// Steps whose view and stored form were written out and read back.
    pub written: u64,
    /// Texts for agents that were scanned.
    pub scanned: u64,
    /// Runs that were replayed from their journal.
    pub replayed: u64,
    /// Milliseconds that passed in the world.
    pub millis: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.steps += other.steps;
        self.runs += other.runs;
        self.ends += other.ends;
        self.successes += other.successes;
        self.refusals += other.refusals;
        self.faults += other.faults;
        self.written += other.written;
        self.scanned += other.scanned;
        self.replayed += other.replayed;
        self.millis += other.millis;
    }
}

/// An event that is on its way for too long.
#[derive(Debug)]
struct Late {
    session: usize,
    delivery: Delivery,
}

/// A world and everything in it.
pub(super) struct World {
    seed: u64,
    rng: Rng,
    now: Timestamp,
    /// The latest moment any clock has shown.
    latest: Timestamp,
    engine: Box<dyn Engine>,
    machine: Machine,
    books: Vec<Option<Books>>,
    files: Vec<File>,
    sessions: Vec<Session>,
    limbo: Vec<Late>,
    /// Whether things go wrong.
    faulty: bool,
    /// Whether every run is replayed, or none.
    replays: bool,
    codes: u64,
    texts: u64,
    pub(super) tally: Tally,
    hash: u64,
    trace: Option<VecDeque<String>>,
}

/// How a world is made.
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) engine: Box<dyn Engine>,
    pub(super) machine: Machine,
    pub(super) faulty: bool,
    pub(super) replays: bool,
    pub(super) traced: bool,
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { seed, engine, machine, faulty, replays, traced } = setup;
        // Neighbouring seeds must not give neighbouring worlds.
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995);
        let projects = rng.between(1, 4);
        let session = |number: usize, rng: &mut Rng| {
            let id = Rc::from(format!("w{seed}s{number}"));
            Session::new(rng, id, number % projects)
        };
        let sessions = (0..projects * 2 + 1).map(|number| session(number, &mut rng)).collect();
        let now = Timestamp::from_millis(BEGINNING);
        Self {
            seed,
            rng,
            now,
            latest: now,
            engine,
            machine,
            books: Vec::new(),
            files: (0..projects).map(|_| File::new(seed)).collect(),
            sessions,
            limbo: Vec::new(),
            faulty,
            replays,
            codes: 0,
            // A world is too short to count to the next sample: its number says where it begins.
            texts: seed % SCANNED_EVERY,
            tally: Tally::default(),
            hash: 0xcbf2_9ce4_8422_2325,
            trace: traced.then(VecDeque::new),
        }
    }

    /// Lets this many events happen, then calms down and looks at what is left.
    pub(super) fn run(&mut self, events: u64) -> Check {
        while self.tally.events < events {
            self.tick();
            self.act()?;
        }
        self.calm()?;
        self.audit()
    }

    /// What the world did, as one number.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// The last events, where they were kept.
    pub(super) fn trace(&mut self) -> Vec<String> {
        self.trace.take().map(Vec::from).unwrap_or_default()
    }

    /// Whether something goes wrong that does so this often in a thousand.
    fn strikes(&mut self, permille: usize) -> bool {
        let strikes = self.faulty && self.rng.below(1000) < permille;
        self.tally.faults += u64::from(strikes);
        strikes
    }

    fn tick(&mut self) {
        let usual = self.rng.between(200, 180_000);
        let (forth, back) = match self.rng.below(1000) {
            0..3 => (self.rng.between(7_000_000, 20_000_000), 0),
            3..6 if self.faulty => (0, self.rng.below(7_200_000)),
            _ => (usual, 0),
        };
        self.pass(forth);
        let back = i64::try_from(back).unwrap_or(0);
        self.now = Timestamp::from_millis(self.now.as_millis() - back);
    }

    fn pass(&mut self, millis: usize) {
        self.tally.millis += millis as u64;
        let millis = i64::try_from(millis).unwrap_or(0);
        self.now = Timestamp::from_millis(self.now.as_millis() + millis);
        self.latest = self.latest.max(self.now);
    }

    /// A code that was never used before.
    fn code(&mut self) -> String {
        self.codes += 1;
        format!("k{:07}", self.codes)
    }

    fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.is_none() {
            return;
        }
        let line = format!("{} {}", self.now, line(self));
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_MAX {
                trace.pop_front();
            }
            trace.push_back(line);
        }
    }

    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    /// Enters a step into the trace's hash.
    fn mix_step(&mut self, held: &Held, answer: u64) {
        let State { phase, iteration, active, governor, detected, .. } = &*held.state;
        let phase = phase.bytes().fold(0, |sum: u64, byte| sum * 31 + u64::from(byte));
        self.mix(self.now.as_millis().unsigned_abs());
        self.mix(held.run as u64 ^ held.revision << 20);
        self.mix(phase ^ answer << 56);
        self.mix(
            u64::from(*iteration) << 32 | u64::from(governor.blocks) << 8 | u64::from(*active),
        );
        self.mix(detected.len() as u64);
    }

    /// Looks at every run when all is over.
    fn audit(&mut self) -> Check {
        for run in 0..self.books.len() {
            let Some(books) = &self.books[run] else { continue };
            let held = self.engine.held(run);
            let held = held.ok_or_else(|| lost(run))?;
            hold(held.revision == books.revision, "revision_grows_by_one", || {
                format!("run {run}: {} instead of {}", held.revision, books.revision)
            })?;
            let journal = self.engine.journal(run);
            books.compare(&journal)?;
            if self.replays {
                self.tally.replayed += 1;
                let replayed = super::replay::last(self.machine, &journal);
                hold(replayed.as_ref() == Some(&*held.state), "state_is_replay", || {
                    format!(
                        "run {run} of seed {}: {replayed:?}\nis stored as {:?}",
                        self.seed, held.state
                    )
                })?;
            }
        }
        Ok(())
    }
}

fn lost(run: usize) -> Broken {
    Broken { invariant: "acknowledged_once", detail: format!("run {run} is gone") }
}
