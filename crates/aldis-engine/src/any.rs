//! Runs whose machine is known by name: what a server and the commands of people work with.

use aldis_machine::{HumanCommand, Machine, NotPossible, delivery, phases, run, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{Committed, Driver, Loaded, Revision, RunId, Source, Step};
use serde_json::Value;

use crate::engine::{Engine, RequestOutcome};
use crate::error::EngineError;
use crate::handle::{Handle, Taken};
use crate::json::{Dialects, JsonEdge, Members};

/// Every machine, by name.
pub const MACHINES: [&str; 4] = [
    <delivery::State as Machine>::NAME,
    <phases::State as Machine>::NAME,
    <run::State as Machine>::NAME,
    <turns::State as Machine>::NAME,
];

/// An open run of any machine. Exhaustive: each is shown in its own way.
#[derive(Clone, Debug)]
pub enum AnyHandle {
    /// A plan that is delivered.
    Delivery(Handle<delivery::State>),
    /// Phases under a Stop hook.
    Phases(Handle<phases::State>),
    /// A supervised agent.
    Run(Handle<run::State>),
    /// A channel in which agents take turns.
    Turns(Handle<turns::State>),
}

/// Does the same with the handle of whatever machine.
macro_rules! each {
    ($any:expr, $handle:ident => $act:expr) => {
        match $any {
            AnyHandle::Delivery($handle) => $act,
            AnyHandle::Phases($handle) => $act,
            AnyHandle::Run($handle) => $act,
            AnyHandle::Turns($handle) => $act,
        }
    };
}

/// Does the same with the machine of that name, whichever it is.
macro_rules! with_machine {
    ($name:expr, $machine:ident => $act:expr) => {
        match $name {
            <aldis_machine::delivery::State as aldis_machine::Machine>::NAME => {
                type $machine = aldis_machine::delivery::State;
                $act
            }
            <aldis_machine::phases::State as aldis_machine::Machine>::NAME => {
                type $machine = aldis_machine::phases::State;
                $act
            }
            <aldis_machine::run::State as aldis_machine::Machine>::NAME => {
                type $machine = aldis_machine::run::State;
                $act
            }
            <aldis_machine::turns::State as aldis_machine::Machine>::NAME => {
                type $machine = aldis_machine::turns::State;
                $act
            }
            other => Err($crate::EngineError::NoSuchMachine(other.to_owned())),
        }
    };
}

pub(crate) use {each, with_machine};

macro_rules! from_handle {
    ($($variant:ident($machine:ident)),*) => {
        $(impl From<Handle<$machine::State>> for AnyHandle {
            fn from(handle: Handle<$machine::State>) -> Self {
                Self::$variant(handle)
            }
        })*
    };
}

from_handle!(Delivery(delivery), Phases(phases), Run(run), Turns(turns));

/// A step that was computed and is not written yet, for whoever cannot wait for the store.
#[derive(Debug)]
pub struct Prepared {
    run: AnyHandle,
    effects: Vec<Value>,
    decisions: Vec<aldis_machine::Decision>,
}

/// What became of an event before anything was written.
#[derive(Debug)]
pub enum Preparation {
    /// There is nothing to write.
    Nothing(Box<RequestOutcome>),
    /// The step must be committed; then [`Prepared::settled`] gives the answer.
    Step(Box<Step>, Box<Prepared>),
}

impl Prepared {
    /// Returns the answer once the step is durable.
    pub fn settled(mut self, step: &Step, committed: Committed) -> RequestOutcome {
        each!(&mut self.run, handle => handle.committed(step, committed));
        let Self { run, effects, decisions } = self;
        RequestOutcome { run, effects, decisions, repeated: false }
    }
}

impl AnyHandle {
    /// Reads a stored run.
    pub(crate) fn from_stored(loaded: Loaded) -> Result<Self, EngineError> {
        let machine = loaded.run.record.machine.clone();
        with_machine!(&*machine, M => Ok(Handle::<M>::from_stored(loaded)?.into()))
    }

    /// Returns the run's name.
    pub fn id(&self) -> &RunId {
        each!(self, handle => handle.id())
    }

    /// Returns the project that it belongs to; empty if to none.
    pub fn project(&self) -> &str {
        each!(self, handle => handle.project())
    }

    /// Returns who takes its steps.
    pub fn driver(&self) -> Driver {
        each!(self, handle => handle.driver())
    }

    /// Returns how many steps it has taken.
    pub fn revision(&self) -> Revision {
        each!(self, handle => handle.revision())
    }

    /// Returns the name of its machine.
    pub fn machine(&self) -> &'static str {
        fn name<M: Machine>(_: &Handle<M>) -> &'static str {
            M::NAME
        }
        each!(self, handle => name(handle))
    }

    /// Returns whether it can still take steps.
    pub fn is_active(&self) -> bool {
        each!(self, handle => handle.state().summary().active)
    }

    /// Returns when its machine must be woken.
    pub fn next_wake(&self) -> Option<Timestamp> {
        each!(self, handle => handle.state().next_wake())
    }

    /// Lets the run take an event in JSON. Returns nothing if somebody else was first.
    pub(crate) fn step_json(
        self,
        engine: &Engine,
        now: Timestamp,
        event: Members,
        source: Option<&Source>,
        dialects: &dyn Dialects,
    ) -> Result<Option<RequestOutcome>, EngineError> {
        each!(self, handle => {
            let event = handle.state().event_from_json(event, dialects);
            step(engine, now, handle, event.map_err(EngineError::Invalid)?, source)
        })
    }

    /// Computes the step that an event in JSON leads to, without writing it.
    ///
    /// # Errors
    ///
    /// [`EngineError::Invalid`] if the event cannot be meant, [`EngineError::DrivenElsewhere`] if
    /// the run takes its steps from somebody else.
    pub fn prepare_json(
        self,
        engine: &Engine,
        now: Timestamp,
        event: Members,
        source: Option<&Source>,
        dialects: &dyn Dialects,
    ) -> Result<Preparation, EngineError> {
        if self.driver() != Driver::Server {
            return Err(EngineError::driven_elsewhere(self.id(), self.driver()));
        }
        each!(self, handle => {
            let event = handle.state().event_from_json(event, dialects);
            prepare(engine, now, handle, event.map_err(EngineError::Invalid)?, source)
        })
    }

    /// Computes the step that waking the machine leads to, without writing it.
    ///
    /// # Errors
    ///
    /// [`EngineError::NotPossible`] if nothing wakes the machine.
    pub fn prepare_wake(
        self,
        engine: &Engine,
        now: Timestamp,
        missed: bool,
    ) -> Result<Preparation, EngineError> {
        each!(self, handle => {
            let event = handle.state().wake_event(missed).ok_or(NO_TIMERS)?;
            prepare(engine, now, handle, event, None)
        })
    }

    /// Does what a human wants. Returns nothing if somebody else was first.
    pub(crate) fn command(
        self,
        engine: &Engine,
        now: Timestamp,
        command: &HumanCommand,
        by: &str,
        source: Option<&Source>,
    ) -> Result<Option<RequestOutcome>, EngineError> {
        each!(self, handle => {
            let event = handle.state().command(command, by)?;
            step(engine, now, handle, event, source)
        })
    }

    /// Wakes the machine, and sets its timer anew whatever comes of that: one that is still due would
    /// be due for ever. Returns nothing if somebody else was first.
    pub(crate) fn fire(
        self,
        engine: &Engine,
        now: Timestamp,
        missed: bool,
    ) -> Result<Option<RequestOutcome>, EngineError> {
        each!(self, handle => {
            let mut handle = handle;
            let event = handle.state().wake_event(missed).ok_or(NO_TIMERS)?;
            let outcome = handle.take(now, event);
            if !handle.try_write(engine, now, &outcome, &[], None)? {
                return Ok(None);
            }
            if handle.state().next_wake().is_some_and(|due| due <= now) {
                return Err(NO_TIMERS.into());
            }
            RequestOutcome::new(handle, outcome).map(Some)
        })
    }
}

const NO_TIMERS: NotPossible = NotPossible::Never("this machine has no timers");

fn step<M: Machine>(
    engine: &Engine,
    now: Timestamp,
    mut handle: Handle<M>,
    event: M::Event,
    source: Option<&Source>,
) -> Result<Option<RequestOutcome>, EngineError>
where
    AnyHandle: From<Handle<M>>,
{
    let outcome = match handle.take_if_meant(now, event, source) {
        Taken::Refused(outcome) => return RequestOutcome::new(handle, outcome).map(Some),
        Taken::Meant(outcome) => outcome,
    };
    let written = handle.try_write(engine, now, &outcome, &[], source)?;
    written.then(|| RequestOutcome::new(handle, outcome)).transpose()
}

fn prepare<M: Machine>(
    engine: &Engine,
    now: Timestamp,
    mut handle: Handle<M>,
    event: M::Event,
    source: Option<&Source>,
) -> Result<Preparation, EngineError>
where
    AnyHandle: From<Handle<M>>,
{
    let outcome = match handle.take_if_meant(now, event, source) {
        Taken::Refused(outcome) => {
            let answer = RequestOutcome::new(handle, outcome)?;
            return Ok(Preparation::Nothing(Box::new(answer)));
        }
        Taken::Meant(outcome) => outcome,
    };
    let step = handle.step(engine, now, &outcome, source)?;
    let effects = handle.effect_values(&outcome)?;
    let prepared = Prepared { run: handle.into(), effects, decisions: outcome.decisions };
    Ok(Preparation::Step(Box::new(step), Box::new(prepared)))
}
