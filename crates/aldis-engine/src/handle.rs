//! An open run: what a driver holds between two steps.

use std::collections::{BTreeMap, VecDeque};

use aldis_machine::{Machine, Outcome, Urgency};
use aldis_signal::time::Timestamp;
use aldis_store::{
    CommitError, Committed, Driver, EffectFilter, Loaded, NewEffect, PartChange, Revision, RunId,
    Source, Step, TimerChange,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::effects::is_dispatch;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::record;

/// How often a step is computed again because somebody else was first.
pub(crate) const TRIES_MAX: usize = 32;
/// How many events wait for the next step. Then they are a step of their own.
const PENDING_MAX: usize = 256;
/// The only timer of a run.
pub(crate) const WAKE: &str = "wake";
/// The note that says how agents are started.
pub(crate) const LAUNCH: &str = "launch";

/// An open run whose machine is known by type.
#[derive(Clone, Debug)]
pub struct Handle<M: Machine> {
    id: RunId,
    project: String,
    driver: Driver,
    revision: Revision,
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
    /// Effects that were performed and not yet recorded as such.
    performed: Vec<String>,
    /// Effects that are not performed yet, in order; `None` when the store knows better.
    outbox: Option<VecDeque<Performable<M::Effect>>>,
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
    /// Whether a step was written. Quiet events wait for the next one.
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
            created: now,
            updated: now,
            fence: None,
            state,
            notes: BTreeMap::new(),
            pending: Vec::new(),
            performed: Vec::new(),
            outbox: Some(VecDeque::new()),
        }
    }

    /// Reads a stored run.
    pub(crate) fn from_stored(loaded: Loaded) -> Result<Self, EngineError> {
        let Loaded { run, parts } = loaded;
        let state: M = record::read_state(&run.id, &run.record.state, &parts)?;
        Ok(Self {
            id: run.id,
            project: run.record.project,
            driver: run.record.driver,
            revision: run.revision,
            created: run.created,
            updated: run.updated,
            fence: None,
            state,
            notes: parts.into_iter().map(|part| (part.key, part.body)).collect(),
            pending: Vec::new(),
            performed: Vec::new(),
            outbox: None,
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
    /// next step.
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
        let outcome = self.take(now, event);
        if outcome.is_nothing() && self.pending.len() < PENDING_MAX {
            return Ok(Stepped { written: false, outcome });
        }
        self.write(engine, now, outcome, &[], None)
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
        if self.pending.iter().all(|(_, event)| M::urgency(event) == Urgency::Never) {
            self.record_performed(engine)?;
            return Ok(Stepped { written: false, outcome: Outcome::nothing() });
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
        if stored.is_none_or(|run| run.revision == self.revision) {
            return Ok(None);
        }
        let outcome = self.catch_up(engine)?;
        if outcome.is_nothing() {
            return Ok(Some(Stepped { written: false, outcome }));
        }
        self.write(engine, now, outcome, &[], None).map(Some)
    }

    /// Writes what an earlier attempt could not write because the store failed: the events since the
    /// last step are taken again from what is stored.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn recover(
        &mut self,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<Stepped<M::Effect>, EngineError> {
        let outcome = self.catch_up(engine)?;
        self.write(engine, now, outcome, &[], None)
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
    /// machine's.
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
        self.write(engine, now, Outcome::nothing(), &notes, None)?;
        self.keep_notes(&notes);
        Ok(())
    }

    /// Returns the next effect that is not performed yet, by us or by others decided, in order.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn next_effect(
        &mut self,
        engine: &Engine,
    ) -> Result<Option<Performable<M::Effect>>, EngineError> {
        if self.outbox.is_none() {
            self.outbox = Some(self.stored_effects(engine)?);
        }
        Ok(self.outbox.as_mut().and_then(VecDeque::pop_front))
    }

    /// Remembers that an effect was performed; the next step or flush records it.
    pub fn performed(&mut self, key: String) {
        self.performed.push(key);
    }

    /// Lets the machine take an event without writing anything.
    pub(crate) fn take(&mut self, now: Timestamp, event: M::Event) -> Outcome<M::Effect> {
        let outcome = self.state.on_event(now, &event);
        // Many of the same kind say no more than their first and their last.
        let same = |(at, (_, earlier)): (usize, &(Timestamp, M::Event))| {
            M::supersedes(&event, earlier).then_some(at)
        };
        let mut same = self.pending.iter().enumerate().rev().filter_map(same);
        if let (Some(last), Some(_)) = (same.next(), same.next()) {
            self.pending.remove(last);
        }
        self.pending.push((now, event));
        outcome
    }

    /// Writes the events since the last step and what came of them, whoever else writes.
    pub(crate) fn write(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        mut outcome: Outcome<M::Effect>,
        notes: &[PartChange],
        source: Option<&Source>,
    ) -> Result<Stepped<M::Effect>, EngineError> {
        for _ in 0..TRIES_MAX {
            let mut step = self.step(engine, now, &outcome, source)?;
            step.parts.extend_from_slice(notes);
            match engine.store().commit(&step) {
                Ok(committed) => {
                    self.committed(&step, committed);
                    self.enqueue(&step, &outcome);
                    return Ok(Stepped { written: true, outcome });
                }
                Err(CommitError::Conflict { .. }) => outcome = self.catch_up(engine)?,
                Err(error) => return Err(EngineError::from_commit(&self.id, error)),
            }
        }
        Err(EngineError::Contended(self.id.clone()))
    }

    /// Makes a step of the events since the last one and what came of them. The machine's parts are
    /// counted as written: a step that is not committed is computed again from what is stored.
    pub(crate) fn step(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        outcome: &Outcome<M::Effect>,
        source: Option<&Source>,
    ) -> Result<Step, EngineError> {
        let id = &self.id;
        let record = record::run_record(id, &self.project, self.driver, &self.state)?;
        let mut step = Step::new(id.clone(), self.revision, record, now);
        step.fence = self.fence;
        for (at, event) in &self.pending {
            step.events.push(record::event(id, event, None, *at)?);
        }
        if let (Some(last), Some(source)) = (step.events.last_mut(), source) {
            last.source = Some(source.clone());
        }
        let effects = self.outbound(engine, now, outcome, &mut step)?;
        let shown = self.driver == Driver::Server;
        let mut left = outcome.decisions.len();
        for decision in &outcome.decisions {
            left -= 1;
            // Whoever follows a server's decisions performs its effects.
            let effects: &[Value] = if shown && left == 0 { &effects } else { &[] };
            step.decisions.push(record::decision(id, decision, effects, now)?);
        }
        let unwritable = |error| EngineError::Unwritable { run: self.id.clone(), error };
        let parts = self.state.take_changed_parts().map_err(unwritable)?;
        step.parts.extend(parts.into_iter().map(|(key, body)| PartChange::Set { key, body }));
        step.done.clone_from(&self.performed);
        if self.driver == Driver::Server {
            let key = WAKE.to_owned();
            step.timers.push(match self.state.next_wake() {
                Some(due) => TimerChange::Set { key, due },
                None => TimerChange::Clear { key },
            });
        }
        Ok(step)
    }

    /// Adds the effects to a step under their keys. Returns them as JSON.
    fn outbound(
        &self,
        engine: &Engine,
        now: Timestamp,
        outcome: &Outcome<M::Effect>,
        step: &mut Step,
    ) -> Result<Vec<Value>, EngineError> {
        let mut values = Vec::with_capacity(outcome.effects.len());
        let next = Revision(self.revision.0 + 1);
        for (number, effect) in outcome.effects.iter().enumerate() {
            let mut value = record::value(&self.id, effect)?;
            if let (true, Value::Object(members)) = (is_dispatch(&value), &mut value)
                && let Some(launch) = self.note::<Value>(LAUNCH)?
            {
                members.insert(LAUNCH.to_owned(), launch);
            }
            let routed = engine.route().route(&self.id, self.driver, &value);
            for (way, outbound) in routed.into_iter().enumerate() {
                let key = effect_key(&self.id, next, number);
                step.effects.push(NewEffect {
                    key: if way == 0 { key } else { format!("{key}/{way}") },
                    kind: outbound.kind.to_owned(),
                    lane: outbound.lane,
                    requires: outbound.requires,
                    body: outbound.body.to_string(),
                    due: now,
                });
            }
            values.push(value);
        }
        Ok(values)
    }

    /// Takes note of a step that is durable now.
    pub(crate) fn committed(&mut self, step: &Step, committed: Committed) {
        self.performed.drain(..step.done.len().min(self.performed.len()));
        self.revision = committed.revision;
        self.updated = step.at;
        self.pending.clear();
    }

    /// Remembers the effects of a step that is durable now, for whoever performs them.
    pub(crate) fn enqueue(&mut self, step: &Step, outcome: &Outcome<M::Effect>) {
        let Some(outbox) = &mut self.outbox else { return };
        for (number, effect) in outcome.effects.iter().enumerate() {
            let key = effect_key(&self.id, self.revision, number);
            if step.effects.iter().any(|kept| kept.key == key) {
                outbox.push_back(Performable { key, effect: effect.clone() });
            }
        }
    }

    /// Keeps notes of a run that no store has yet.
    pub(crate) fn keep_notes(&mut self, notes: &[PartChange]) {
        for note in notes {
            match note.clone() {
                PartChange::Set { key, body } => drop(self.notes.insert(key, body)),
                PartChange::Clear { key } => drop(self.notes.remove(&key)),
            }
        }
    }

    /// Forgets events that led to nothing.
    pub(crate) fn forget_pending(&mut self) {
        self.pending.clear();
    }

    /// Takes over what others decided meanwhile, and takes the events since the last step again.
    /// Returns what comes of those.
    fn catch_up(&mut self, engine: &Engine) -> Result<Outcome<M::Effect>, EngineError> {
        let gone = || EngineError::NoSuchRun(self.id.clone());
        let loaded = engine.store().load(&self.id)?.ok_or_else(gone)?;
        let fence = self.fence;
        let (pending, performed) =
            (std::mem::take(&mut self.pending), std::mem::take(&mut self.performed));
        *self = Self { fence, pending, performed, ..Self::from_stored(loaded)? };
        let mut outcome = Outcome::nothing();
        for (at, event) in &self.pending {
            let more = self.state.on_event(*at, event);
            outcome.effects.extend(more.effects);
            outcome.decisions.extend(more.decisions);
        }
        Ok(outcome)
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
            if self.performed.contains(&effect.key) {
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

    /// Records what was performed without a step.
    fn record_performed(&mut self, engine: &Engine) -> Result<(), EngineError> {
        if self.performed.is_empty() {
            return Ok(());
        }
        let keys = std::mem::take(&mut self.performed);
        let done = engine.store().effects_done(&self.id, self.fence, &keys);
        done.map(drop).map_err(|error| EngineError::from_commit(&self.id, error))
    }
}

/// The note that keeps a value under a key.
///
/// # Errors
///
/// Fails if the value cannot be written as JSON.
pub(crate) fn note(
    run: &RunId,
    key: &str,
    value: &impl Serialize,
) -> Result<PartChange, EngineError> {
    let body = record::value(run, value)?.to_string();
    Ok(PartChange::Set { key: key.to_owned(), body })
}

fn effect_key(run: &RunId, revision: Revision, number: usize) -> String {
    format!("{run}/{revision}/{number}")
}
