//! One loop for whoever coordinates agents: hold the lease, perform what was decided, report what
//! happens, until the run ends.
//!
//! The machine decides and the engine keeps; [`Conduct`] says what an effect means in the world and
//! what a happening means to the machine. Other processes may decide about the same run (`aldis
//! pause`, the dashboard): their steps are noticed in the store, and their effects are performed
//! here like our own.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use aldis_engine::{CallRecord, Engine, EngineError, Handle, Performable, Stepped};
use aldis_machine::{HumanCommand, Machine, NotPossible, Outcome, Urgency};
use aldis_signal::time::Timestamp;
use aldis_store::{LeaseError, PartChange, RunId, StoreError};

use super::conduct::{Awaited, Conduct, CoreOf, Performed};
use super::hold::{Hold, Renewal, patiently};
use super::lease;
use super::world::{Control, Happening, JobId, Leftover, RepositoryRequest, Ticket, World};
use crate::error::CommandError;
use crate::hosts::spool;
use crate::receipts;
use crate::settings::project::Place;
use crate::telemetry::Tracing;

/// How often the lease is renewed.
const RENEW: Duration = Duration::from_secs(10);
/// How long quiet events wait for the next step.
const FLUSH: Duration = Duration::from_secs(10);
/// How long those wait that must not be lost, as what an agent has cost.
const FLUSH_SOON: Duration = Duration::from_millis(500);
/// How long effects may still take once the run is over, unless a human is in a hurry: git may hang.
const LAST_CALL: Duration = Duration::from_secs(5);
/// How long it takes at least until the machine is woken again.
const WAKE_PAUSE: Duration = Duration::from_millis(100);
/// How often what is shown is drawn anew.
const DRAW: Duration = Duration::from_millis(500);

/// The run, its engine and the world.
pub(crate) struct Core<'w, M: Machine> {
    engine: Engine,
    run: Handle<M>,
    hold: Hold,
    world: &'w mut dyn World,
    last_ticket: Ticket,
    last_job: JobId,
    /// Which spans those of agents and checks hang below, where traces are exported.
    pub(super) tracing: Option<Tracing>,
    /// When quiet events must be written.
    flush_at: Option<Timestamp>,
}

impl<'w, M: Machine> Core<'w, M> {
    /// Takes a run over, with what a dead coordinator left of its effects and agents.
    ///
    /// # Errors
    ///
    /// Fails if a living process coordinates it.
    pub(crate) fn take_over(
        engine: Engine,
        mut run: Handle<M>,
        world: &'w mut dyn World,
        is_stale: impl Fn(&M::Effect) -> bool,
        agents: impl IntoIterator<Item = String>,
    ) -> Result<Self, CommandError> {
        let id = run.id().clone();
        let acquire = |now| match lease::acquire(engine.store(), &id, now) {
            Err(LeaseError::Store(error)) => Err(error.into()),
            acquired => Ok(acquired),
        };
        let lease = patiently(world, (&id, None), acquire)??;
        run.set_fence(lease.fence);
        for identity in agents {
            world.end_leftover(&Leftover::Identity(identity));
        }
        world.end_leftover(&Leftover::Unknown(id.clone()));
        patiently(world, (&id, None), |_| run.give_up_effects(&engine, &is_stale))?;
        world.keep_receipts(&id);
        let traced = world.is_traced().then_some(engine.store());
        let tracing = patiently(world, (&id, None), |_| Tracing::resume(traced, &run))?;
        Ok(Self::holding(engine, run, (Hold::Run(lease), tracing), world))
    }

    /// Works on a run under this right.
    pub(crate) fn holding(
        engine: Engine,
        run: Handle<M>,
        (hold, tracing): (Hold, Option<Tracing>),
        world: &'w mut dyn World,
    ) -> Self {
        Self { engine, run, hold, world, last_ticket: 0, last_job: 0, tracing, flush_at: None }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.now()
    }

    pub(crate) fn id(&self) -> &RunId {
        self.run.id()
    }

    pub(crate) fn state(&self) -> &M {
        self.run.state()
    }

    pub(crate) fn run(&self) -> &Handle<M> {
        &self.run
    }

    pub(crate) fn world(&mut self) -> &mut dyn World {
        self.world
    }

    /// Returns a name for the next process.
    pub(crate) fn new_job(&mut self) -> JobId {
        self.last_job += 1;
        self.last_job
    }

    /// Asks the repository something.
    pub(crate) fn ask(&mut self, request: RepositoryRequest) -> Ticket {
        self.last_ticket += 1;
        self.world.ask(self.last_ticket, request);
        self.last_ticket
    }

    /// Keeps or forgets notes of ours.
    pub(crate) fn set_notes(&mut self, notes: &[PartChange]) -> Result<(), CommandError> {
        self.patiently(|run, engine, now| run.set_notes(engine, now, notes.to_vec()))
    }

    /// Moves reports that wait in a work tree into the store.
    pub(crate) fn collect_spool(
        &mut self,
        directory: &Path,
        session: Option<&str>,
    ) -> Result<(), CommandError> {
        let root = Place::of(directory, None).root().to_owned();
        self.patiently(|run, engine, now| spool::collect(engine, now, &root, (run.id(), session)))
            .map(drop)
    }

    /// Keeps a report that the output of an agent brought.
    pub(super) fn record_call(&mut self, record: &CallRecord) -> Result<(), CommandError> {
        self.patiently(|run, engine, now| engine.record_call(now, run.id(), record)).map(drop)
    }

    /// Takes over what somebody else decided. Returns what our own events mean then.
    fn refresh(&mut self) -> Result<Outcome<M::Effect>, CommandError> {
        let stepped = self.patiently(|run, engine, now| run.refresh(engine, now))?;
        Ok(self.with_receipts(stepped.map(|stepped| stepped.outcome).unwrap_or_default()))
    }

    /// Writes what waits for the next step.
    fn flush(&mut self) -> Result<(), CommandError> {
        self.patiently(|run, engine, now| run.flush(engine, now)).map(drop)
    }

    /// Does something with the run that can be done again where the store fails for a moment.
    fn patiently<T>(
        &mut self,
        mut act: impl FnMut(&mut Handle<M>, &Engine, Timestamp) -> Result<T, EngineError>,
    ) -> Result<T, CommandError> {
        let Self { engine, run, hold, world, .. } = self;
        let id = run.id().clone();
        patiently(*world, (&id, hold.deadline()), |now| act(run, engine, now))
    }

    /// Records what was performed, and gives the lease back.
    fn leave(&mut self) -> Result<(), CommandError> {
        self.flush()?;
        self.hold.release(self.engine.store());
        Ok(())
    }

    /// Lets the machine take an event.
    pub(super) fn take(&mut self, event: M::Event) -> Result<Outcome<M::Effect>, CommandError> {
        let (now, urgency) = (self.now(), M::urgency(&event));
        let stepped = match self.run.advance(&self.engine, now, event) {
            Err(EngineError::Store(error)) => self.wait_for_store(error)?,
            stepped => stepped?,
        };
        let within = match urgency {
            _ if stepped.written => {
                self.flush_at = None;
                None
            }
            Urgency::Never => None,
            Urgency::Eventually => Some(FLUSH),
            Urgency::Soon => Some(FLUSH_SOON),
        };
        let due = within.map(|within| now.after(within));
        self.flush_at = [self.flush_at, due].into_iter().flatten().min();
        Ok(self.with_receipts(stepped.outcome))
    }

    /// Lets the machine take events that belong together, and keeps notes of ours with them.
    fn take_together(
        &mut self,
        events: Vec<M::Event>,
        notes: &[PartChange],
    ) -> Result<Outcome<M::Effect>, CommandError> {
        let now = self.now();
        let stepped = match self.run.advance_together(&self.engine, now, events, notes) {
            Err(EngineError::Store(error)) => {
                let stepped = self.wait_for_store(error)?;
                self.set_notes(notes)?;
                stepped
            }
            stepped => stepped?,
        };
        self.flush_at = None;
        Ok(self.with_receipts(stepped.outcome))
    }

    /// Writes the receipts of what is done, before it is shown.
    fn with_receipts<E>(&mut self, outcome: Outcome<E>) -> Outcome<E> {
        if outcome.decisions.iter().any(|it| receipts::is_done(&it.rule)) {
            self.world.keep_receipts(self.run.id());
        }
        outcome
    }

    /// Writes what the store did not, as soon as it does.
    fn wait_for_store(&mut self, error: StoreError) -> Result<Stepped<M::Effect>, CommandError> {
        if !error.may_pass() {
            return Err(error.into());
        }
        self.patiently(|run, engine, now| run.recover(engine, now))
    }
}

/// Lets the machine take an event, and shows what came of it.
///
/// # Errors
///
/// Fails if somebody else has taken the run over, or if what is stored cannot be understood.
pub(crate) fn advance<C: Conduct>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    event: <C::Machine as Machine>::Event,
) -> Result<(), CommandError> {
    let outcome = core.take(event)?;
    for decision in &outcome.decisions {
        tracing::info!(run = %core.id(), rule = decision.rule, task = decision.task, "decided");
    }
    conduct.decided(core, &outcome);
    Ok(())
}

/// As [`advance`], for events that belong together, with notes of ours: all in one step.
pub(crate) fn advance_together<C: Conduct>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    events: Vec<<C::Machine as Machine>::Event>,
    notes: &[PartChange],
) -> Result<(), CommandError> {
    let outcome = core.take_together(events, notes)?;
    conduct.decided(core, &outcome);
    Ok(())
}

/// Does what a human at this terminal wants. Returns why it means nothing, if it does.
pub(crate) fn command<C: Conduct>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    command: &HumanCommand,
    by: &str,
) -> Result<Option<NotPossible>, CommandError> {
    match core.state().command(command, by) {
        Ok(event) => conduct.advance(core, event).map(|()| None),
        Err(why) => Ok(Some(why)),
    }
}

/// Takes over what others decided meanwhile.
pub(crate) fn heed_others<C: Conduct>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
) -> Result<(), CommandError> {
    let outcome = core.refresh()?;
    conduct.decided(core, &outcome);
    Ok(())
}

/// Coordinates a run until it ends or this process leaves it.
///
/// # Errors
///
/// Fails if somebody else has taken the run over, or if the store fails for good.
pub(crate) fn coordinate<C: Conduct>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    first: <C::Machine as Machine>::Event,
) -> Result<C::End, CommandError> {
    let mut looped = Loop::new(core.now());
    conduct.advance(core, first)?;
    loop {
        looped.renew(core, conduct)?;
        looped.perform(core, conduct)?;
        if let Some(end) = conduct.end(core)
            && looped.may_leave(core, conduct)
        {
            return core.leave().map(|()| end);
        }
        let until = looped.next(core, conduct);
        for happening in core.world.wait(until) {
            looped.take(core, conduct, happening)?;
        }
        looped.on_time(core, conduct)?;
    }
}

/// What the loop itself remembers.
struct Loop {
    renewed: Timestamp,
    drawn: Timestamp,
    /// Effects that are done when something has happened, by key.
    waiting: BTreeMap<Awaited, String>,
    /// What the next effect waits for.
    in_the_way: Option<Awaited>,
    /// Until when effects may still take time, once the run is over.
    last_call: Option<Timestamp>,
    /// When the machine was last woken: one that wants it in the past must not keep a processor busy.
    woken: Option<Timestamp>,
}

impl Loop {
    fn new(now: Timestamp) -> Self {
        let (waiting, in_the_way, last_call) = (BTreeMap::new(), None, None);
        Self { renewed: now, drawn: now, waiting, in_the_way, last_call, woken: None }
    }

    /// Returns whether nothing is left to do in a run that is over, or takes too long.
    fn may_leave<C: Conduct>(&mut self, core: &CoreOf<'_, C>, conduct: &mut C) -> bool {
        let now = core.now();
        let last_call = *self.last_call.get_or_insert_with(|| now.after(LAST_CALL));
        // Processes end for certain, and what they have cost is told then.
        if self.waiting.keys().any(|awaited| matches!(awaited, Awaited::End(_))) {
            return false;
        }
        if now >= last_call && !self.waiting.is_empty() {
            conduct.problem(now, "git does not answer; uncommitted work may not have been saved");
        }
        self.waiting.is_empty() || now >= last_call
    }

    /// Somebody asks again to leave a run that is over: what still ends is killed.
    fn hurry<M: Machine>(&mut self, core: &mut Core<'_, M>) {
        self.last_call = Some(core.now());
        for awaited in self.waiting.keys() {
            if let Awaited::End(job) = *awaited {
                core.world.control(job, Control::End(Duration::ZERO));
            }
        }
    }

    /// Renews the right under which steps are taken.
    fn renew<C: Conduct>(
        &mut self,
        core: &mut CoreOf<'_, C>,
        conduct: &mut C,
    ) -> Result<(), CommandError> {
        let now = core.now();
        if now.since(self.renewed) >= RENEW {
            self.renewed = now;
            if core.hold.renew(core.engine.store(), now)? == Renewal::Lost {
                conduct.lost(core)?;
            }
        }
        Ok(())
    }

    /// Performs what was decided, by us or by others, in order.
    fn perform<C: Conduct>(
        &mut self,
        core: &mut CoreOf<'_, C>,
        conduct: &mut C,
    ) -> Result<(), CommandError> {
        loop {
            match self.in_the_way {
                // What the repository says means nothing any more to what comes after it.
                Some(answer @ Awaited::Answer(_)) if conduct.is_ending(core) => {
                    self.settle(core, answer);
                }
                Some(_) => return Ok(()),
                None => {}
            }
            // Whoever runs one agent performs nothing else.
            if matches!(core.hold, Hold::Agent { .. }) {
                return Ok(());
            }
            let next = core.patiently(|run, engine, _| run.next_effect(engine))?;
            let Some(Performable { key, effect }) = next else { return Ok(()) };
            tracing::debug!(run = %core.id(), key, "performing an effect");
            match conduct.perform(core, effect, &key)? {
                Performed::Done => core.run.performed(key),
                Performed::Until(awaited) => drop(self.waiting.insert(awaited, key)),
                Performed::After(awaited) => {
                    self.waiting.insert(awaited, key);
                    self.in_the_way = Some(awaited);
                }
            }
        }
    }

    /// Notes that something has happened that effects wait for.
    fn settle<M: Machine>(&mut self, core: &mut Core<'_, M>, awaited: Awaited) {
        if let Some(key) = self.waiting.remove(&awaited) {
            core.run.performed(key);
        }
        self.in_the_way.take_if(|in_the_way| *in_the_way == awaited);
    }

    /// Returns when time matters next.
    fn next<C: Conduct>(&self, core: &CoreOf<'_, C>, conduct: &C) -> Timestamp {
        let times = [self.next_wake(core), conduct.next_deadline(core), core.flush_at];
        let own = [self.renewed.after(RENEW), self.drawn.after(DRAW)];
        times.into_iter().flatten().chain(own).min().unwrap_or_else(|| core.now())
    }

    /// Returns when the machine is woken next.
    fn next_wake<M: Machine>(&self, core: &Core<'_, M>) -> Option<Timestamp> {
        // Whoever runs one agent leaves time to the coordinator.
        if matches!(core.hold, Hold::Agent { .. }) {
            return None;
        }
        let soonest = self.woken.map(|woken| woken.after(WAKE_PAUSE));
        core.state().next_wake().map(|due| soonest.map_or(due, |soonest| due.max(soonest)))
    }

    fn take<C: Conduct>(
        &mut self,
        core: &mut CoreOf<'_, C>,
        conduct: &mut C,
        happening: Happening,
    ) -> Result<(), CommandError> {
        match happening {
            Happening::Output { job, stream, bytes } => {
                conduct.on_output(core, job, stream, &bytes)
            }
            Happening::Stopped { job } => {
                conduct.on_stopped(core, job);
                Ok(())
            }
            Happening::Over { job, exit } => {
                self.settle(core, Awaited::End(job));
                conduct.on_over(core, job, exit)
            }
            Happening::Repository { ticket, answer } => {
                self.settle(core, Awaited::Answer(ticket));
                conduct.on_answer(core, ticket, answer)
            }
            Happening::StoreChanged => heed_others(core, conduct),
            Happening::Interrupted(by) => {
                if self.last_call.is_some() {
                    self.hurry(core);
                }
                conduct.on_interrupt(core, by)
            }
            Happening::Typed(line) => {
                let Some(wanted) = conduct.command_of(core, &line) else { return Ok(()) };
                if let Some(why) = command(core, conduct, &wanted, "the terminal")? {
                    conduct.problem(core.now(), &why.to_string());
                }
                Ok(())
            }
            Happening::Problem(what) => {
                conduct.problem(core.now(), &what);
                Ok(())
            }
        }
    }

    fn on_time<C: Conduct>(
        &mut self,
        core: &mut CoreOf<'_, C>,
        conduct: &mut C,
    ) -> Result<(), CommandError> {
        let now = core.now();
        if self.next_wake(core).is_some_and(|due| now >= due)
            && let Some(event) = core.state().wake_event(false)
        {
            self.woken = Some(now);
            conduct.advance(core, event)?;
        }
        conduct.on_time(core)?;
        if core.flush_at.take_if(|due| now >= *due).is_some() {
            core.flush()?;
        }
        if now.since(self.drawn) >= DRAW {
            self.drawn = now;
            let question = conduct.draw(core);
            core.world.prompt(question.as_deref());
        }
        Ok(())
    }
}
