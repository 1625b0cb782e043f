//! Deliveries that coordinate, and workers that run their agents.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aldis_engine::{Engine, EngineError, Handle, NewRun};
use aldis_machine::delivery::{
    AgentReply, Config, Dispatch, Effect, Event, Plan, Role, Start, State, Status, TaskSpec,
};
use aldis_machine::run::Usage;
use aldis_signal::{Dialect, Rules, Token};
use aldis_store::{Driver, RunId};

use super::{Job, Statement, World};

/// Tasks of a delivery, and agents that it has at work at once.
const TASKS: usize = 20;
const SLOTS: usize = 5;
/// How often claims and leases are kept, in seconds.
const KEEP: f64 = 10.0;
/// A critic or an auditor takes so much less time than a developer.
const REVIEW: f64 = 0.3;

pub(super) struct Fleet {
    deliveries: Vec<Handle<State>>,
    rules: Rules,
    /// Agents that wait for a worker.
    waiting: VecDeque<(usize, Dispatch)>,
    at_work: BTreeSet<(usize, u64)>,
    /// What each agent at work will say.
    replies: BTreeMap<(usize, u64), String>,
    free: usize,
    /// Agents that were started.
    pub(super) agents: u64,
    /// Seconds that workers waited for answers.
    pub(super) idle: f64,
    complete: u64,
}

impl Fleet {
    /// Begins as many deliveries as keep all workers busy.
    pub(super) fn start(engine: &Engine, world: &mut World) -> Result<Self, EngineError> {
        let mut fleet = Self {
            deliveries: Vec::new(),
            rules: Rules::new(Dialect::builtin("delivery").cloned()),
            waiting: VecDeque::new(),
            at_work: BTreeSet::new(),
            replies: BTreeMap::new(),
            free: world.options.workers,
            agents: 0,
            idle: 0.0,
            complete: 0,
        };
        for delivery in 0..world.options.workers.div_ceil(SLOTS) {
            fleet.begin(engine, world, delivery)?;
        }
        fleet.assign(world);
        Ok(fleet)
    }

    pub(super) fn tasks(&self) -> u64 {
        let complete = |run: &Handle<State>| {
            run.state().tally().get(&Status::Complete).copied().unwrap_or_default() as u64
        };
        self.complete + self.deliveries.iter().map(complete).sum::<u64>()
    }

    pub(super) fn runs(&self) -> Vec<RunId> {
        self.deliveries.iter().map(|run| run.id().clone()).collect()
    }

    /// Begins a delivery, in the place of one that is over.
    fn begin(
        &mut self,
        engine: &Engine,
        world: &mut World,
        delivery: usize,
    ) -> Result<(), EngineError> {
        let config = Config { slots: SLOTS as u32, ..Config::default() };
        let start = Start { plan: plan(), config, token: None };
        let new = NewRun::of(format!("project-{delivery}"), Driver::Process);
        let (run, _) = engine.begin(world.at(), &new, start)?;
        world.ask(delivery, Statement::Step);
        match self.deliveries.get_mut(delivery) {
            Some(over) => *over = run,
            None => self.deliveries.push(run),
        }
        self.advance(engine, world, delivery, Event::Begin)?;
        world.after(KEEP, Job::Renew { delivery });
        Ok(())
    }

    /// Takes what happens.
    pub(super) fn take(
        &mut self,
        engine: &Engine,
        world: &mut World,
        job: Job,
    ) -> Result<(), EngineError> {
        match job {
            Job::Renew { delivery } => {
                world.ask(delivery, Statement::Renewal);
                if self.deliveries[delivery].state().ending().is_none() {
                    world.after(KEEP, job);
                } else {
                    self.complete += TASKS as u64;
                    self.begin(engine, world, delivery)?;
                }
            }
            Job::Keep { delivery, agent } if self.at_work.contains(&(delivery, agent)) => {
                world.ask(delivery, Statement::Renewal);
                world.after(KEEP, job);
            }
            Job::Report { delivery, agent } if self.at_work.contains(&(delivery, agent)) => {
                let usage = Usage { tokens: 1_000, micro_dollars: 9_000 };
                self.advance(engine, world, delivery, Event::Worked { agent })?;
                self.advance(engine, world, delivery, Event::Spent { agent, usage })?;
                world.after(self.interval(delivery), job);
            }
            Job::Finished { delivery, agent } => {
                self.at_work.remove(&(delivery, agent));
                let text = self.replies.remove(&(delivery, agent)).unwrap_or_default();
                let reply = AgentReply::read(&self.rules, &Token::Off, &text);
                let event = Event::Finished { agent, exit: None, reply };
                let wait = self.advance(engine, world, delivery, event)?;
                // The claim is closed with that, and the worker asks for the next agent.
                self.idle += wait + world.ask(delivery, Statement::Claim);
                self.free += 1;
            }
            _ => {}
        }
        self.assign(world);
        Ok(())
    }

    fn interval(&self, delivery: usize) -> f64 {
        self.deliveries[delivery].state().run().config.report_interval().as_secs_f64()
    }

    /// Takes a step, and counts what reaches the database. Returns how long that took.
    fn advance(
        &mut self,
        engine: &Engine,
        world: &mut World,
        delivery: usize,
        event: Event,
    ) -> Result<f64, EngineError> {
        let run = &mut self.deliveries[delivery];
        let before = run.revision();
        let outcome = run.advance(engine, world.at(), event)?.outcome;
        run.flush(engine, world.at())?;
        let steps = run.revision().0 - before.0;
        let wait: f64 = (0..steps).map(|_| world.ask(delivery, Statement::Step)).sum();
        for effect in outcome.effects {
            if let Effect::Dispatch(dispatch) = effect {
                self.waiting.push_back((delivery, dispatch));
            }
        }
        Ok(wait)
    }

    /// Gives waiting agents to free workers.
    fn assign(&mut self, world: &mut World) {
        while self.free > 0
            && let Some((delivery, dispatch)) = self.waiting.pop_front()
        {
            self.free -= 1;
            self.agents += 1;
            let agent = dispatch.agent;
            // The claim, and that the agent was started: stored before it is.
            let claim = world.ask(delivery, Statement::Claim);
            let started = claim + world.ask(delivery, Statement::Step);
            self.idle += started;
            let share = if dispatch.role == Role::Developer { 1.0 } else { REVIEW };
            let works = world.draw(world.options.agent) * share;
            self.at_work.insert((delivery, agent));
            self.replies.insert((delivery, agent), reply(&dispatch));
            world.after(started + works, Job::Finished { delivery, agent });
            world.after(started + KEEP, Job::Keep { delivery, agent });
            world.after(started + self.interval(delivery), Job::Report { delivery, agent });
        }
    }
}

/// What an agent says that finds nothing to object to.
pub fn reply(dispatch: &Dispatch) -> String {
    let task = dispatch.task.as_deref().unwrap_or_default();
    match dispatch.role {
        Role::Developer => format!("READY_FOR_REVIEW: {task}\nSummary: done"),
        Role::Critic => format!("REVIEW_PASSED: {task}"),
        _ => format!("AUDIT_PASSED: {task}"),
    }
}

fn plan() -> Plan {
    let task = |no: usize| TaskSpec {
        id: format!("t{no}"),
        title: format!("Task {no}"),
        acceptance: vec!["it works".to_owned()],
        ..TaskSpec::default()
    };
    Plan { title: "Many".to_owned(), tasks: (0..TASKS).map(task).collect() }
}
