//! One world: a plan, its agents, humans, a clock, a coordinator, and everything that goes wrong.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use aldis_machine::delivery::{Config, Dispatch, Event, Plan, Priority, Start, State, TaskSpec};
use aldis_machine::run::Exit;
use aldis_signal::time::Timestamp;

use super::super::oracle::{Broken, Check, hold};
use super::super::world::Tally;
use super::agents::{self, End};
use super::keeper::{Keeper, Written, replayed};
use super::oracle::Books;
use super::planted::Bug;
use crate::corpus::rng::Rng;

/// How many of the last events a trace keeps.
const TRACE_MAX: usize = 20;
/// Where clocks begin: 2026-03-02T10:00:00Z.
const BEGINNING: i64 = 1_772_445_600_000;
/// Within so many events a world that is calm must end.
const CALM_MAX: u64 = 3_000;

/// An agent's process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) dispatch: Dispatch,
    /// Whether it will not end by itself.
    pub(super) silent: bool,
}

/// How a world is made.
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) keeper: Box<dyn Keeper>,
    pub(super) bug: Option<Bug>,
    pub(super) faulty: bool,
    pub(super) replays: bool,
    pub(super) traced: bool,
}

/// A world and everything in it.
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) rng: Rng,
    pub(super) now: Timestamp,
    start: Start,
    pub(super) keeper: Box<dyn Keeper>,
    pub(super) bug: Option<Bug>,
    /// What the coordinator has in memory.
    pub(super) state: State,
    pub(super) books: Books,
    /// Processes by the number of their agent.
    pub(super) processes: BTreeMap<u64, Process>,
    /// Words that are on their way for too long.
    pub(super) limbo: Vec<Event>,
    pub(super) merges: Vec<String>,
    pub(super) checks: Vec<String>,
    pub(super) wake: Option<Timestamp>,
    pub(super) faulty: bool,
    pub(super) calm: bool,
    replays: bool,
    pub(super) texts: u64,
    pub(super) tally: Tally,
    hash: u64,
    trace: Option<VecDeque<String>>,
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { seed, keeper, bug, faulty, replays, traced } = setup;
        // Neighbouring seeds must not give neighbouring worlds.
        let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491);
        let start = start(&mut rng);
        let now = Timestamp::from_millis(BEGINNING);
        let state = State::start(now, start.clone());
        Self {
            seed,
            rng,
            now,
            start,
            keeper,
            bug,
            books: Books::open(&state),
            state,
            processes: BTreeMap::new(),
            limbo: Vec::new(),
            merges: Vec::new(),
            checks: Vec::new(),
            wake: None,
            faulty,
            calm: false,
            replays,
            // A world is too short to count to the next sample: its number says where it begins.
            texts: seed % super::performing::SCANNED_EVERY,
            tally: Tally { runs: 1, ..Tally::default() },
            hash: 0xcbf2_9ce4_8422_2325,
            trace: traced.then(VecDeque::new),
        }
    }

    /// Lets this many events happen, then calms down and looks at what is left.
    pub(super) fn run(&mut self, events: u64) -> Check {
        let outcome = Default::default();
        let first = Written { at: self.now, event: None, state: &self.state, outcome: &outcome };
        if self.keeper.commit(&first).is_err() {
            return Err(Broken { invariant: "the_store_opens", detail: String::new() });
        }
        self.deliver(Event::Begin)?;
        while self.tally.events < events && self.state.ending().is_none() {
            self.act()?;
        }
        self.calm = true;
        let faulty = std::mem::replace(&mut self.faulty, false);
        self.limbo.clear();
        let most = self.tally.events + CALM_MAX;
        while self.state.ending().is_none() {
            hold(self.tally.events < most, "a_calm_world_ends", || {
                format!("{:?}\n{:?}", self.state.run(), self.state.tally())
            })?;
            self.act()?;
        }
        self.faulty = faulty;
        self.tally.ends += 1;
        let complete = self.state.ending().is_some_and(|ending| ending.exit_code() == 0);
        self.tally.successes += u64::from(complete);
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
    pub(super) fn strikes(&mut self, permille: usize) -> bool {
        let strikes = self.faulty && self.rng.below(1000) < permille;
        self.tally.faults += u64::from(strikes);
        strikes
    }

    /// One thing happens.
    fn act(&mut self) -> Check {
        let millis = 500 + self.rng.below(120_000);
        self.pass(millis);
        if self.strikes(4) {
            self.note("the coordinator dies");
            return self.restart();
        }
        if self.wake.is_some_and(|wake| wake <= self.now) {
            self.wake = None;
            return self.deliver(Event::Tick);
        }
        match self.rng.below(100) {
            0..8 if !self.limbo.is_empty() => {
                let late = self.limbo.swap_remove(self.rng.below(self.limbo.len()));
                self.deliver(late)
            }
            8..20 if !self.merges.is_empty() => {
                let task = self.merges.swap_remove(0);
                let ok = self.calm || self.rng.chance(85);
                self.deliver(Event::Merged { task, ok, detail: "both changed".to_owned() })
            }
            20..28 if !self.checks.is_empty() => {
                let name = self.checks.swap_remove(0);
                let present = self.rng.chance(80);
                self.deliver(Event::ExpertChecked { name, present })
            }
            28..40 => self.human(),
            40..46 => self.sign_of_life(),
            46..48 => self.deliver(Event::Tick),
            _ if !self.processes.is_empty() => self.process_ends(),
            _ => self.idle(),
        }
    }

    /// Nobody is at work: humans, or time, must do something.
    fn idle(&mut self) -> Check {
        if self.state.run().questions.is_empty() && !self.state.run().paused {
            self.pass(600_000);
        }
        self.human()
    }

    fn human(&mut self) -> Check {
        let run = self.state.run();
        if run.paused {
            return self.deliver(Event::Resume);
        }
        if let Some((id, question)) = run.questions.first_key_value() {
            let id = id.clone();
            let mut words = vec!["go on", "do it the other way", "retry", "override"];
            words.extend(question.options.iter().filter(|it| *it != "halt").map(String::as_str));
            let text = if self.calm { "go on" } else { self.rng.pick(&words) }.to_owned();
            if self.strikes(20) {
                // Given twice.
                self.limbo.push(Event::Answer { id: id.clone(), text: text.clone() });
            }
            return self.deliver(Event::Answer { id, text });
        }
        match self.rng.below(1000) {
            0..4 if !self.calm => self.deliver(Event::Pause),
            4 if !self.calm => self.deliver(Event::Abort { by: "a human".to_owned() }),
            _ => Ok(()),
        }
    }

    fn sign_of_life(&mut self) -> Check {
        let Some(agent) = self.somebody() else { return Ok(()) };
        match self.processes.get(&agent) {
            Some(process) if self.rng.chance(30) => {
                let said = agents::checkpoint(&process.dispatch);
                self.deliver(Event::Heard { agent, said })
            }
            _ => self.deliver(Event::Active { agent }),
        }
    }

    fn somebody(&mut self) -> Option<u64> {
        let which = self.rng.below(self.processes.len());
        self.processes.keys().nth(which).copied()
    }

    /// An agent says its last word.
    fn process_ends(&mut self) -> Check {
        let Some(agent) = self.somebody() else { return Ok(()) };
        let Some(process) = self.processes.get(&agent) else { return Ok(()) };
        if process.silent && !self.calm {
            return self.idle_tick();
        }
        let request = self.request(agent);
        let reply = agents::reply(&mut self.rng, &process.dispatch, self.calm, &request);
        if reply.end == End::Never {
            if let Some(process) = self.processes.get_mut(&agent) {
                process.silent = true;
            }
            return Ok(());
        }
        let code = i32::from(reply.end == End::Crash);
        let exit = Some(Exit { code: Some(code), signal: None });
        let event = Event::Finished { agent, exit, said: reply.said };
        if self.strikes(20) {
            self.limbo.push(event.clone());
        }
        let process = self.processes.remove(&agent);
        self.deliver(event)?;
        // An agent that can be asked is still there until it is dismissed.
        let kept = process.filter(|_| self.state.agent(agent).is_some());
        self.processes.extend(kept.map(|process| (agent, process)));
        Ok(())
    }

    /// The request that an expert answers.
    fn request(&self, agent: u64) -> String {
        use aldis_machine::delivery::Work;
        match self.state.agent(agent).map(|agent| &agent.work) {
            Some(Work::Request { request }) => request.clone(),
            _ => "req-0".to_owned(),
        }
    }

    fn idle_tick(&mut self) -> Check {
        self.pass(60_000);
        self.deliver(Event::Tick)
    }

    pub(super) fn pass(&mut self, millis: usize) {
        self.tally.millis += millis as u64;
        self.now =
            Timestamp::from_millis(self.now.as_millis() + i64::try_from(millis).unwrap_or(0));
    }

    pub(super) fn note(&mut self, line: &str) {
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_MAX {
                trace.pop_front();
            }
            trace.push_back(format!("{} {line}", self.now));
        }
    }

    /// Enters a step into the trace's hash.
    pub(super) fn mix(&mut self) {
        let run = self.state.run();
        let statuses = self.state.tasks().iter().fold(0_u64, |sum, task| {
            sum.wrapping_mul(131) + task.status() as u64 * 16 + task.role as u64
        });
        let values = [
            self.now.as_millis().unsigned_abs(),
            self.keeper.revision(),
            run.agents_ever << 20 | run.questions_ever << 8 | run.agents.len() as u64,
            statuses,
        ];
        for value in values {
            self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
    }

    /// Looks at what is stored when all is over.
    fn audit(&mut self) -> Check {
        let stored = self.keeper.load().map_err(|detail| Broken { invariant: "stored", detail })?;
        hold(stored == self.state, "stored_is_what_was_decided", || format!("seed {}", self.seed))?;
        if self.replays {
            self.tally.replayed += 1;
            let began = Timestamp::from_millis(BEGINNING);
            let again = replayed(began, &self.start, &self.keeper.journal());
            hold(again == self.state, "state_is_replay", || {
                format!("{:?}\nis stored as {:?}", again.run(), self.state.run())
            })?;
        }
        Ok(())
    }

    /// The event as it is journaled.
    pub(super) fn shared(event: Event) -> Rc<Event> {
        Rc::new(event)
    }
}

/// A plan and limits, both at random.
fn start(rng: &mut Rng) -> Start {
    let count = rng.between(1, 10);
    let mut tasks = Vec::new();
    for no in 1..=count {
        let mut needs = Vec::new();
        for earlier in 1..no {
            if rng.chance(20) {
                needs.push(format!("task-{earlier}"));
            }
        }
        let files = ["src/a.rs", "src/b.rs", "src/c.rs"];
        let files = files.iter().filter(|_| rng.chance(25)).map(|&file| file.to_owned()).collect();
        tasks.push(TaskSpec {
            id: format!("task-{no}"),
            title: "A task".to_owned(),
            description: "Words.".to_owned(),
            acceptance: if rng.chance(80) { vec!["it works".to_owned()] } else { Vec::new() },
            needs,
            priority: rng.pick(&[Priority::High, Priority::Medium, Priority::Low]),
            files,
            done: false,
        });
    }
    let mut config = Config {
        slots: u32::try_from(rng.between(1, 6)).unwrap_or(1),
        business_analyst: rng.chance(30),
        planner: rng.chance(20),
        worktrees: rng.chance(30),
        requests: rng.chance(20),
        ..Config::default()
    };
    if rng.chance(50) {
        config.experts.insert("crypto".to_owned(), "keys".to_owned());
    }
    Start { plan: Plan { title: "A plan".to_owned(), tasks }, config, token: None }
}
