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

use aldis_engine::{Engine, EngineError, Handle, Performable, Stepped};
use aldis_machine::{HumanCommand, Machine, NotPossible, Outcome, Urgency};
use aldis_signal::time::Timestamp;
use aldis_store::{Lease, LeaseError, PartChange, RunId, StoreError};

use super::conduct::{Awaited, Conduct, CoreOf, Performed};
use super::lease;
use super::world::{Happening, JobId, Leftover, RepositoryRequest, Ticket, World};
use crate::error::CommandError;
use crate::hosts::spool;
use crate::settings::project::Place;

/// How often the lease is renewed.
const RENEW: Duration = Duration::from_secs(10);
/// How long quiet events wait for the next step.
const FLUSH: Duration = Duration::from_secs(10);
/// How long those wait that must not be lost, as what an agent has cost.
const FLUSH_SOON: Duration = Duration::from_millis(500);
/// How long to wait before a store that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);
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
    lease: Lease,
    world: &'w mut dyn World,
    last_ticket: Ticket,
    last_job: JobId,
    /// When quiet events must be written.
    flush_at: Option<Timestamp>,
}

impl<'w, M: Machine> Core<'w, M> {
    /// Takes a run over: gives up effects of a dead coordinator that would be done twice, and ends
    /// what it left of its agents.
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
        let lease = patiently(world, &id, acquire)??;
        run.set_fence(lease.fence);
        for identity in agents {
            world.end_leftover(&Leftover::Identity(identity));
        }
        world.end_leftover(&Leftover::Unknown(id.clone()));
        patiently(world, &id, |_| run.give_up_effects(&engine, &is_stale))?;
        let (last_ticket, last_job, flush_at) = (0, 0, None);
        Ok(Self { engine, run, lease, world, last_ticket, last_job, flush_at })
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

    /// Takes over what somebody else decided. Returns what our own events mean then.
    fn refresh(&mut self) -> Result<Outcome<M::Effect>, CommandError> {
        let stepped = self.patiently(|run, engine, now| run.refresh(engine, now))?;
        Ok(stepped.map(|stepped| stepped.outcome).unwrap_or_default())
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
        let Self { engine, run, world, .. } = self;
        let id = run.id().clone();
        patiently(*world, &id, |now| act(run, engine, now))
    }

    /// Records what was performed, and gives the lease back: whoever comes next need not wait for it
    /// to run out.
    fn leave(&mut self) -> Result<(), CommandError> {
        self.flush()?;
        let _released = self.engine.store().release_lease(&self.lease);
        Ok(())
    }

    fn take(&mut self, event: M::Event) -> Result<Outcome<M::Effect>, CommandError> {
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
        Ok(stepped.outcome)
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
        Ok(stepped.outcome)
    }

    /// Writes what the store did not, as soon as it does.
    fn wait_for_store(&mut self, error: StoreError) -> Result<Stepped<M::Effect>, CommandError> {
        if !error.may_pass() {
            return Err(error.into());
        }
        self.patiently(|run, engine, now| run.recover(engine, now))
    }
}

/// Does something with the store until it works. A full disk, a store that is locked or gone for a
/// moment: the run waits, its agents wait when their pipes are full, and nothing is lost.
fn patiently<T>(
    world: &mut dyn World,
    run: &RunId,
    mut act: impl FnMut(Timestamp) -> Result<T, EngineError>,
) -> Result<T, CommandError> {
    let mut asked_before = None;
    loop {
        let error = match act(world.now()) {
            Err(EngineError::Store(error)) if error.may_pass() => error,
            done => return Ok(done?),
        };
        let now = world.now();
        let before = *asked_before.get_or_insert_with(|| {
            world.warn(&format!("run {run} waits: {error}"));
            world.pause(now)
        });
        // Output is left in its pipe: the agent waits.
        if world.pause(now.after(RETRY)) > before {
            return Err(error.into());
        }
    }
}

/// Lets the machine take an event, and shows what came of it.
///
/// # Errors
///
/// Fails if somebody else has taken the run over, or if what is stored cannot be understood. A store
/// that fails is waited for.
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
        Ok(event) => advance(core, conduct, event).map(|()| None),
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
/// Fails if somebody else has taken the run over, or if the store fails for good. The run can be
/// continued.
pub(crate) fn coordinate<C: Conduct>(
    core: &mut CoreOf<'_, C>,
    conduct: &mut C,
    first: <C::Machine as Machine>::Event,
) -> Result<C::End, CommandError> {
    let mut looped = Loop::new(core.now());
    advance(core, conduct, first)?;
    loop {
        looped.renew_lease(core)?;
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
    /// When the machine was last woken. One that wants to be woken in the past, and goes on to want
    /// it, must not keep the processor busy.
    woken: Option<Timestamp>,
}

impl Loop {
    fn new(now: Timestamp) -> Self {
        let (waiting, in_the_way, last_call) = (BTreeMap::new(), None, None);
        Self { renewed: now, drawn: now, waiting, in_the_way, last_call, woken: None }
    }

    /// Returns whether nothing is left to do in a run that is over, or takes too long. Whoever
    /// continues the run does what is left.
    fn may_leave<C: Conduct>(&mut self, core: &CoreOf<'_, C>, conduct: &mut C) -> bool {
        let now = core.now();
        let last_call = *self.last_call.get_or_insert_with(|| now.after(LAST_CALL));
        if now >= last_call && !self.waiting.is_empty() {
            conduct.problem(now, "git does not answer; uncommitted work may not have been saved");
        }
        self.waiting.is_empty() || now >= last_call
    }

    /// Renews the lease in time. Whoever was suspended for longer than it lasts may have been replaced:
    /// that is found out here, before anything is performed.
    fn renew_lease<M: Machine>(&mut self, core: &mut Core<'_, M>) -> Result<(), CommandError> {
        let now = core.now();
        if now.since(self.renewed) >= RENEW {
            self.renewed = now;
            match core.engine.store().renew_lease(&core.lease, now, lease::TTL) {
                Ok(lease) => core.lease = lease,
                // Until it has run out there is time to try again.
                Err(LeaseError::Store(error)) if error.may_pass() => {
                    tracing::warn!(run = %core.id(), %error, "cannot renew the lease yet");
                }
                Err(error) => return Err(error.into()),
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
                self.last_call = self.last_call.map(|_| core.now());
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
            advance(core, conduct, event)?;
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
