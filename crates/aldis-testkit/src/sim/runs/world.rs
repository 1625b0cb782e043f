//! One world: a supervisor, its agent, a human elsewhere, clocks, and everything that goes wrong.

mod human;
mod supervisor;

use std::collections::VecDeque;
use std::time::Duration;

use aldis_machine::run::{Config, Ending, Event, Start, State, Status};
use aldis_machine::stagnation;
use aldis_signal::time::Timestamp;

use super::super::oracle::{Broken, Check};
use super::super::world::Tally;
use super::agent::Job;
use super::engine::{Engine, Failure};
use super::oracle::{Books, judge_journal};
use crate::corpus::rng::Rng;

/// How many of the last events a trace keeps.
const TRACE_MAX: usize = 40;
/// Where clocks begin: 2026-03-02T10:00:00Z.
const BEGINNING: i64 = 1_772_445_600_000;
/// Without faults every run ends within so many moments.
const CALM_MAX: u32 = 20_000;

/// Why the supervisor does not go on.
enum Halt {
    /// It died.
    Death,
    /// An invariant is broken.
    Broken(Broken),
}

impl From<Broken> for Halt {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

type Go<T = ()> = Result<T, Halt>;

/// A supervisor that lives.
struct Life {
    /// What its clock said when it began, and when that was.
    clock: Timestamp,
    boot: u64,
    job: Option<Job>,
    deadline: Option<u64>,
    /// An event that is on its way for too long.
    late: Option<Event>,
}

/// How a world is made.
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) engine: Box<dyn Engine>,
    pub(super) faulty: bool,
    pub(super) replays: bool,
    pub(super) traced: bool,
}

/// A world and everything in it.
pub(super) struct World {
    rng: Rng,
    engine: Box<dyn Engine>,
    /// Milliseconds since the world began, which nobody sets.
    boot: u64,
    /// How far the wall clock is off.
    offset: i64,
    life: Option<Life>,
    books: Books,
    dirty: bool,
    tree: u64,
    agents: u64,
    faulty: bool,
    /// Whether nothing happens by itself any more.
    calm: bool,
    replays: bool,
    pub(super) tally: Tally,
    hash: u64,
    trace: Option<VecDeque<String>>,
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { seed, engine, faulty, replays, traced } = setup;
        // Neighbouring seeds must not give neighbouring worlds.
        let rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491);
        Self {
            rng,
            engine,
            boot: 0,
            offset: 0,
            life: None,
            books: Books::new(),
            dirty: false,
            tree: 0,
            agents: 0,
            faulty,
            calm: false,
            replays,
            tally: Tally::default(),
            hash: seed,
            trace: traced.then(VecDeque::new),
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.trace.iter().flatten().cloned().collect()
    }

    /// Plays so many events, then lets everything come to its end.
    pub(super) fn run(&mut self, events: u64) -> Check {
        self.begin()?;
        while self.tally.events < events {
            self.moment()?;
        }
        self.come_to_an_end()
    }

    fn begin(&mut self) -> Check {
        let config = self.config();
        let start = Start {
            task: "Add CSV export".to_owned(),
            dialect: "chorus".to_owned(),
            instructions: "Report with a tag.".to_owned(),
            launch: String::new(),
            config,
        };
        self.books = Books::new();
        self.tally.runs += 1;
        let now = self.wall();
        self.engine.create(now, start).map_err(broken)?;
        self.live(Event::Begin)
    }

    /// A supervisor begins, with this.
    fn live(&mut self, first: Event) -> Check {
        let (clock, boot) = (self.wall(), self.boot);
        self.life = Some(Life { clock, boot, job: None, deadline: None, late: None });
        self.engine.take_over().map_err(broken)?;
        let lived = self.dies_here(1);
        let lived = lived.and_then(|()| self.deliver(first)).and_then(|()| self.perform());
        self.survived(lived)
    }

    fn config(&mut self) -> Config {
        let rng = &mut self.rng;
        let repeats = rng.pick(&[3, 2, 4]);
        Config {
            max_iterations: rng.pick(&[1, 2, 3, 6, 50]),
            iteration_timeout: rng.pick(&[60, 600, 1_800]),
            timeout: rng.pick(&[300, 3_600, 20_000]),
            max_tokens: rng.chance(40).then(|| rng.pick(&[40, 200, 2_000])),
            max_micro_dollars: rng.chance(20).then_some(100),
            verify: rng.chance(50),
            require_clean: rng.chance(20),
            no_wait: rng.chance(10),
            limit_wait: 60,
            max_limit_waits: rng.pick(&[1, 3, 40]),
            stagnation: stagnation::Config {
                warn_repeats: repeats,
                pause_repeats: repeats + 2,
                abort_repeats: repeats + 4,
                abort_timeout: rng.pick(&[0, 0, 5_000]),
                abort_at_iteration: rng.pick(&[0, 0, 5]),
                ..stagnation::Config::supervised()
            },
            ..Config::default()
        }
    }

    fn wall(&self) -> Timestamp {
        let boot = i64::try_from(self.boot).unwrap_or(i64::MAX);
        Timestamp::from_millis(BEGINNING.saturating_add(boot).saturating_add(self.offset))
    }

    /// What the supervisor's clock says: nobody sets it while it lives.
    fn now(&self) -> Timestamp {
        match &self.life {
            Some(life) => {
                life.clock.after(Duration::from_millis(self.boot.saturating_sub(life.boot)))
            }
            None => self.wall(),
        }
    }

    /// The next thing that happens anywhere.
    fn moment(&mut self) -> Check {
        self.pass()?;
        if self.rng.chance(6) {
            self.human()?;
        }
        if self.faulty && self.rng.chance(1) {
            self.tally.faults += 1;
            self.offset += i64::try_from(self.rng.below(7_200_000)).unwrap_or(0) - 3_600_000;
            self.books.stepped = true;
        }
        if self.life.is_none() {
            return self.revive();
        }
        let lived = self.supervise();
        self.survived(lived)
    }

    /// Whoever died is gone, with everything that was started.
    fn survived(&mut self, lived: Go) -> Check {
        match lived {
            Ok(()) => Ok(()),
            Err(Halt::Broken(broken)) => Err(broken),
            Err(Halt::Death) => {
                self.note("the supervisor died", None);
                self.tally.faults += 1;
                self.life = None;
                self.engine.fail_next(None);
                self.engine.lose();
                Ok(())
            }
        }
    }

    fn pass(&mut self) -> Check {
        let millis = match self.rng.below(40) {
            0 => 3_600_000,
            1..4 => 300_000,
            4..20 => 1_000 * (1 + self.rng.below(60) as u64),
            _ => self.rng.below(1_000) as u64,
        };
        let millis = if self.calm { 20_000 } else { millis };
        let status = self.engine.stored().status;
        let waits = matches!(
            status,
            Status::Asking | Status::Limited { .. } | Status::Paused { .. } | Status::Ended { .. }
        );
        self.books.pass(millis, self.life.is_some() && !waits);
        self.boot += millis;
        self.tally.millis += millis;
        Ok(())
    }

    /// A supervisor is started: for a run that is not over, for one that is to go on, or for the next.
    fn revive(&mut self) -> Check {
        let stored = self.engine.stored();
        let first = match stored.ending() {
            Some(Ending::Done) => return self.next_run(),
            Some(_) if self.rng.chance(50) || self.calm => return self.next_run(),
            Some(_) => {
                let config = Config { max_iterations: 60, ..self.config() };
                Event::Reopen { config: Box::new(config) }
            }
            None => Event::Recovered,
        };
        self.live(first)
    }

    fn next_run(&mut self) -> Check {
        let stored = self.engine.stored();
        self.tally.ends += 1;
        self.tally.successes += u64::from(stored.ending() == Some(Ending::Done));
        self.replay(&stored)?;
        if self.calm { Ok(()) } else { self.begin() }
    }

    fn replay(&mut self, stored: &State) -> Check {
        if !self.replays {
            return Ok(());
        }
        self.tally.replayed += 1;
        let journal = self
            .engine
            .journal()
            .ok_or_else(|| Broken { invariant: "journals_can_be_read", detail: String::new() })?;
        judge_journal(journal, stored)
    }

    /// A supervisor dies anywhere.
    fn dies_here(&mut self, percent: usize) -> Go {
        let dies = self.faulty && !self.calm && self.rng.chance(percent) && self.rng.chance(50);
        if dies { Err(Halt::Death) } else { Ok(()) }
    }

    /// Nothing goes wrong any more, the agent says nothing, humans answer: every run ends.
    fn come_to_an_end(&mut self) -> Check {
        self.calm = true;
        for _ in 0..CALM_MAX {
            let stored = self.engine.stored();
            if stored.ending().is_some() && self.life.is_none() {
                return self.next_run();
            }
            let waits = matches!(stored.status, Status::Asking | Status::Paused { .. });
            self.pass()?;
            if waits {
                self.human()?;
            }
            if self.life.is_none() {
                self.revive()?;
            } else {
                let lived = self.supervise();
                self.survived(lived)?;
            }
        }
        let stored = self.engine.stored();
        let detail = format!("{:?}, iteration {}", stored.status, stored.iteration);
        Err(Broken { invariant: "every_run_ends", detail })
    }

    /// Keeps what happened: in the trace for people, in the hash for comparisons.
    fn note(&mut self, what: &str, event: Option<&Event>) {
        let stored = &self.engine.stored();
        let status = stored.status.name();
        for byte in what.bytes().chain(status.bytes()).chain(self.boot.to_le_bytes()) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.hash = (self.hash ^ u64::from(stored.iteration)).wrapping_mul(0x0100_0000_01b3);
        let Some(trace) = &mut self.trace else { return };
        // A clock that ticks tells nothing by itself.
        if event == Some(&Event::Tick) && trace.back().is_some_and(|last| last.ends_with("Tick")) {
            trace.pop_back();
        }
        if trace.len() >= TRACE_MAX {
            trace.pop_front();
        }
        let now = Timestamp::from_millis(BEGINNING).after(Duration::from_millis(self.boot));
        let event = event.map(|event| format!(" {event:?}")).unwrap_or_default();
        trace.push_back(format!("{now} {status} {} {what}{event}", stored.iteration));
    }
}

fn broken(failure: Failure) -> Broken {
    Broken { invariant: "the_journal_works", detail: format!("{failure:?}") }
}
