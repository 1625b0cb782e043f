//! An open run: what a driver holds between two steps.

mod settle;
mod step;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aldis_machine::{Machine, Outcome, Urgency};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, EffectFilter, Loaded, NewEvent, PartChange, Revision, RunId};
use serde::de::DeserializeOwned;

use crate::effects::{DISPATCH, NOTICE, RECEIPT, SINK};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::record;
pub(crate) use settle::{Taken, append};
use step::ANSWER;
pub(crate) use step::answer_key;
pub use step::note;

/// How often a step is computed again because somebody else was first.
pub(crate) const TRIES_MAX: usize = 32;
/// How many events wait for the next step. Then they are a step of their own.
const PENDING_MAX: usize = 256;
/// The only timer of a run.
pub(crate) const WAKE: &str = "wake";
/// The note that says how agents are started.
const LAUNCH: &str = "launch";

/// An open run whose machine is known by type.
///
/// Whatever happens at the store, a driver only goes on: what could not be written is taken again from
/// what is stored and written with the next step, and a step that was written although the store said
/// otherwise is recognised. Dropping a handle loses quiet events that were not [flushed](Self::flush),
/// and nothing else.
#[derive(Clone, Debug)]
pub struct Handle<M: Machine> {
    id: RunId,
    project: String,
    driver: Driver,
    revision: Revision,
    /// The number of the last event of that revision.
    last_event: u64,
    created: Timestamp,
    updated: Timestamp,
    /// The fencing number under which steps are written, if any.
    fence: Option<u64>,
    state: M,
    /// Parts that are the driver's and not the machine's, as JSON, by key.
    notes: BTreeMap<String, String>,
    /// Events since the last step. Quiet ones are written with the next decision, so that a journal
    /// can be replayed and an agent that works hard does not write all the time.
    pending: Vec<(Timestamp, M::Event)>,
    /// Whether the state may not be the stored one with the pending events: a step was not written.
    /// Then they are taken again, from what is stored, before anything else is written.
    stale: bool,
    /// A step of which only the store knows whether it was written.
    unsure: Option<Attempt<M::Effect>>,
    /// What came of steps that were written while nobody was told: after all, or with notes.
    untold: Outcome<M::Effect>,
    /// Effects that were performed and not yet recorded as such.
    performed: Vec<String>,
    /// Effects that somebody is performing.
    handed_out: BTreeSet<String>,
    /// Effects that are not performed yet, in order; `None` when the store knows better.
    outbox: Option<VecDeque<Performable<M::Effect>>>,
}

/// A step that the store may have written before it failed.
#[derive(Clone, Debug)]
struct Attempt<E> {
    /// The revision it leads to.
    revision: Revision,
    /// The first pending events, as they were to be written.
    events: Vec<NewEvent>,
    /// What came of them.
    outcome: Outcome<E>,
}

/// An effect to be performed, and the key under which it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performable<E> {
    /// Unique in the store; the same when it is performed again after a crash.
    pub key: String,
    /// What to do.
    pub effect: E,
}

/// What an event led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped<E> {
    /// Whether a step was written, now or since the driver was last told. Quiet events wait for the
    /// next one.
    pub written: bool,
    /// What must now be done, and why.
    pub outcome: Outcome<E>,
}

impl<M: Machine> Handle<M> {
    /// A run that no store has yet.
    pub(crate) fn new(id: RunId, project: &str, driver: Driver, now: Timestamp, state: M) -> Self {
        Self {
            id,
            project: project.to_owned(),
            driver,
            revision: Revision(0),
            last_event: 0,
            created: now,
            updated: now,
            fence: None,
            state,
            notes: BTreeMap::new(),
            pending: Vec::new(),
            stale: false,
            unsure: None,
            untold: Outcome::nothing(),
            performed: Vec::new(),
            handed_out: BTreeSet::new(),
            outbox: Some(VecDeque::new()),
        }
    }

    /// Opens a run that was read already.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unreadable`] for runs of another machine or of an unknown form.
    pub fn from_stored(loaded: Loaded) -> Result<Self, EngineError> {
        let Loaded { run, parts } = loaded;
        let state: M = record::read_state(&run.id, &run.record, &parts)?;
        let aldis_store::RunRecord { project, driver, .. } = run.record;
        Ok(Self {
            revision: run.revision,
            last_event: run.last_event,
            updated: run.updated,
            notes: parts.into_iter().map(|part| (part.key, part.body)).collect(),
            outbox: None,
            ..Self::new(run.id, &project, driver, run.created, state)
        })
    }

    /// Returns the run's name.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the project it works on.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Returns who takes its steps.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// Returns how many steps it has taken.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns when it began.
    pub fn created(&self) -> Timestamp {
        self.created
    }

    /// Returns when its last step was taken.
    pub fn updated(&self) -> Timestamp {
        self.updated
    }

    /// Returns what its machine knows.
    pub fn state(&self) -> &M {
        &self.state
    }

    /// Gives up the handle for what its machine knows.
    pub fn into_state(self) -> M {
        self.state
    }

    /// Writes further steps under this fencing number.
    pub fn set_fence(&mut self, fence: u64) {
        self.fence = Some(fence);
    }

    /// Lets the machine take an event, and writes what came of it. A quiet event is written with the
    /// next step; one that is none of the machine's business is not written at all.
    ///
    /// After an error the event is kept: [`recover`](Self::recover) and every later step take it
    /// again, from what is stored then, and write it once.
    ///
    /// # Errors
    ///
    /// [`EngineError::Fenced`] if another process has taken the run over,
    /// [`EngineError::Contended`] if others were always first, and what the store says.
    pub fn advance(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        event: M::Event,
    ) -> Result<Stepped<M::Effect>, EngineError> {
        let outcome = match self.take_if_meant(now, event, None) {
            Taken::Meant(outcome) => outcome,
            Taken::Refused(outcome) => return Ok(self.tell(false, outcome)),
        };
        if !self.stale && outcome.is_nothing() && self.pending.len() < PENDING_MAX {
            return Ok(self.tell(false, outcome));
        }
        self.write(engine, now, outcome, &[], None)
    }

    /// As [`advance`](Self::advance), for events that belong together, with notes of the driver's: all
    /// in one step. After an error the events are kept, the notes are not.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn advance_together(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        events: Vec<M::Event>,
        notes: &[PartChange],
    ) -> Result<Stepped<M::Effect>, EngineError> {
        let mut outcome = Outcome::nothing();
        for event in events {
            append(&mut outcome, self.take(now, event));
        }
        let stepped = self.write(engine, now, outcome, notes, None)?;
        self.keep_notes(notes);
        Ok(stepped)
    }

    /// Writes the events since the last step, unless only time has passed: others, too, want to know
    /// that the work moves, and what was spent must not be lost.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn flush(
        &mut self,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<Stepped<M::Effect>, EngineError> {
        let waits = |(_, event): &(Timestamp, M::Event)| M::urgency(event) == Urgency::Never;
        if !self.stale && self.pending.iter().all(waits) {
            self.record_performed(engine)?;
            return Ok(self.tell(false, Outcome::nothing()));
        }
        self.write(engine, now, Outcome::nothing(), &[], None)
    }

    /// Takes over what somebody else decided meanwhile, if anybody did. What the events since the
    /// last step mean now is written at once.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn refresh(
        &mut self,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<Option<Stepped<M::Effect>>, EngineError> {
        let stored = engine.store().run(&self.id)?;
        if !self.stale && stored.is_none_or(|run| run.revision == self.revision) {
            return Ok(None);
        }
        let outcome = self.catch_up(engine)?;
        if outcome.is_nothing() {
            return Ok(Some(self.tell(false, outcome)));
        }
        self.write(engine, now, outcome, &[], None).map(Some)
    }

    /// Writes what an earlier attempt could not write because the store failed: the events since the
    /// last step are taken again from what is stored. If the attempt was written after all, that is
    /// found out, and what came of it is returned.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn recover(
        &mut self,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<Stepped<M::Effect>, EngineError> {
        self.stale = true;
        self.write(engine, now, Outcome::nothing(), &[], None)
    }

    /// Returns a note of the driver's.
    ///
    /// # Errors
    ///
    /// Fails if this version does not know its form.
    pub fn note<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, EngineError> {
        let unreadable = |error: serde_json::Error| EngineError::Unreadable {
            run: self.id.clone(),
            detail: format!("`{key}`: {error}"),
        };
        let note = self.notes.get(key).map(|body| serde_json::from_str(body).map_err(unreadable));
        note.transpose()
    }

    /// Returns the keys of the driver's notes that begin like this, in order.
    pub fn notes_under<'h>(&'h self, prefix: &'h str) -> impl Iterator<Item = &'h str> {
        let keys = self.notes.range(prefix.to_owned()..).map(|(key, _)| &**key);
        keys.take_while(move |key| key.starts_with(prefix))
    }

    /// Keeps or forgets notes of the driver's: what must survive a crash and is no business of the
    /// machine's. What comes of events that are written along is returned by the next step.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn set_notes(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        notes: Vec<PartChange>,
    ) -> Result<(), EngineError> {
        let stepped = self.write(engine, now, Outcome::nothing(), &notes, None)?;
        self.untold = stepped.outcome;
        self.keep_notes(&notes);
        Ok(())
    }

    /// Returns the next effect that is not performed yet, whoever decided it, in order. Each is
    /// returned once; after a crash, whoever opens the run again gets those that were not
    /// [performed](Self::performed).
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn next_effect(
        &mut self,
        engine: &Engine,
    ) -> Result<Option<Performable<M::Effect>>, EngineError> {
        self.fill_outbox(engine)?;
        let next = self.outbox.as_mut().and_then(VecDeque::pop_front);
        self.handed_out.extend(next.as_ref().map(|next| next.key.clone()));
        Ok(next)
    }

    /// Remembers that an effect was performed; the next step or flush records it.
    pub fn performed(&mut self, key: String) {
        self.handed_out.remove(&key);
        self.performed.push(key);
    }

    /// Gives up effects that must not be performed any more. Returns how many.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn give_up_effects(
        &mut self,
        engine: &Engine,
        is_stale: impl Fn(&M::Effect) -> bool,
    ) -> Result<usize, EngineError> {
        self.fill_outbox(engine)?;
        let outbox = self.outbox.take().unwrap_or_default();
        let (stale, kept): (VecDeque<_>, VecDeque<_>) =
            outbox.into_iter().partition(|waiting| is_stale(&waiting.effect));
        self.outbox = Some(kept);
        let count = stale.len();
        self.performed.extend(stale.into_iter().map(|stale| stale.key));
        self.record_performed(engine)?;
        Ok(count)
    }

    fn fill_outbox(&mut self, engine: &Engine) -> Result<(), EngineError> {
        if self.outbox.is_none() {
            self.outbox = Some(self.stored_effects(engine)?);
        }
        Ok(())
    }

    /// Reads the effects that are not performed yet. One that cannot be understood is given up: it
    /// would be in the way of all others for ever.
    fn stored_effects(
        &mut self,
        engine: &Engine,
    ) -> Result<VecDeque<Performable<M::Effect>>, EngineError> {
        let mut found = VecDeque::new();
        let ever = Timestamp::from_millis(i64::MAX);
        let filter = EffectFilter { run: Some(self.id.clone()), ..EffectFilter::due_by(ever) };
        for effect in engine.store().pending_effects(&filter)? {
            let taken =
                self.performed.contains(&effect.key) || self.handed_out.contains(&effect.key);
            if taken || self.is_elsewhere(&effect.kind) {
                continue;
            }
            match serde_json::from_str(&effect.body) {
                Ok(understood) => {
                    found.push_back(Performable { key: effect.key, effect: understood });
                }
                Err(_) => self.performed.push(effect.key),
            }
        }
        Ok(found)
    }

    /// Whether effects of this kind are performed by others than the coordinator of the run.
    fn is_elsewhere(&self, kind: &str) -> bool {
        let by_workers = kind == DISPATCH && self.driver == Driver::Worker;
        by_workers || [ANSWER, NOTICE, RECEIPT, SINK].contains(&kind)
    }

    /// Records what was performed without a step.
    fn record_performed(&mut self, engine: &Engine) -> Result<(), EngineError> {
        if self.performed.is_empty() {
            return Ok(());
        }
        let done = engine.store().effects_done(&self.id, self.fence, &self.performed);
        done.map_err(|error| EngineError::from_commit(&self.id, error))?;
        self.performed.clear();
        Ok(())
    }
}
