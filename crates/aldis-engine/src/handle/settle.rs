//! Takes events and writes what came of them, whoever else writes and whatever the store does.

use aldis_machine::{Machine, Outcome};
use aldis_signal::time::Timestamp;
use aldis_store::{CommitError, PartChange, Revision, Run, Source};

use super::{Attempt, Handle, Stepped, TRIES_MAX};
use crate::engine::Engine;
use crate::error::EngineError;

/// What a machine makes of an event.
pub(crate) enum Taken<E> {
    /// It is to be written, now or with a later one.
    Meant(Outcome<E>),
    /// It is none of the machine's business: there is only an answer for whoever asked.
    Refused(Outcome<E>),
}

impl<M: Machine> Handle<M> {
    /// Lets the machine take an event without writing anything.
    pub(crate) fn take(&mut self, now: Timestamp, event: M::Event) -> Outcome<M::Effect> {
        let outcome = self.state.on_event(now, &event);
        // Those that may be written already stay as they are.
        let kept = self.unsure.as_ref().map_or(0, |attempt| attempt.events.len());
        // Many of the same kind say no more than their first and their last, unless a clock went
        // back.
        let same = |(at, (then, earlier)): (usize, &(Timestamp, M::Event))| {
            (*then <= now && M::supersedes(&event, earlier)).then_some(at)
        };
        let together =
            |(_, (_, between)): &(usize, &(Timestamp, M::Event))| !M::separates(between, &event);
        let before = self.pending.iter().enumerate().skip(kept).rev();
        let mut same = before.take_while(together).filter_map(same);
        if let (Some(last), Some(_)) = (same.next(), same.next()) {
            self.pending.remove(last);
        }
        self.pending.push((now, event));
        outcome
    }

    /// As [`take`](Self::take), but leaves no trace of an event that is none of the machine's
    /// business. One that can be delivered again is written all the same, to be recognised.
    pub(crate) fn take_if_meant(
        &mut self,
        now: Timestamp,
        event: M::Event,
        source: Option<&Source>,
    ) -> Taken<M::Effect> {
        if M::HAS_QUIET_EVENTS || self.stale || source.is_some() {
            return Taken::Meant(self.take(now, event));
        }
        let before = self.state.clone();
        let outcome = self.take(now, event);
        if !outcome.decisions.is_empty() {
            return Taken::Meant(outcome);
        }
        self.pending.pop();
        self.state = before;
        Taken::Refused(outcome)
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
            if self.stale {
                outcome = self.catch_up(engine)?;
                if self.pending.is_empty() && notes.is_empty() {
                    self.record_performed(engine)?;
                    return Ok(self.tell(false, outcome));
                }
            }
            if self.try_write(engine, now, &outcome, notes, source)? {
                return Ok(self.tell(true, outcome));
            }
        }
        Err(EngineError::Contended(self.id.clone()))
    }

    /// Tells the driver what came of its event, after what it was not told yet.
    pub(crate) fn tell(
        &mut self,
        written: bool,
        outcome: Outcome<M::Effect>,
    ) -> Stepped<M::Effect> {
        let mut told = std::mem::take(&mut self.untold);
        let written = written || !told.is_nothing();
        append(&mut told, outcome);
        Stepped { written, outcome: told }
    }

    /// Writes the events since the last step and what came of them, unless somebody else was first.
    /// Returns whether it was written.
    pub(crate) fn try_write(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        outcome: &Outcome<M::Effect>,
        notes: &[PartChange],
        source: Option<&Source>,
    ) -> Result<bool, EngineError> {
        // Whatever goes wrong from here on: what was counted as written is not.
        self.stale = true;
        let mut step = self.step(engine, now, outcome, source)?;
        step.parts.extend_from_slice(notes);
        match engine.store().commit(&step) {
            Ok(committed) => {
                self.committed(&step, committed);
                self.enqueue(&step, outcome);
                Ok(true)
            }
            Err(CommitError::Conflict { .. }) => {
                tracing::debug!(run = %self.id, "somebody else was first; taking the events again");
                Ok(false)
            }
            Err(CommitError::Duplicate { digest, .. }) => {
                // An earlier delivery of the last event has been taken.
                self.pending.pop();
                match (digest, source) {
                    (Some(known), Some(source)) if known != source.digest => {
                        Err(EngineError::KeyReused)
                    }
                    _ => Err(EngineError::Repeated(self.id.clone())),
                }
            }
            Err(CommitError::Store(error)) => {
                tracing::debug!(run = %self.id, %error, "the step may not be written");
                let (revision, events) = (Revision(step.expected.0 + 1), step.events);
                self.unsure = Some(Attempt { revision, events, outcome: outcome.clone() });
                Err(error.into())
            }
            Err(error) => Err(EngineError::from_commit(&self.id, error)),
        }
    }

    /// Takes over what others decided meanwhile, and takes the events since the last step again.
    /// Returns what comes of those.
    pub(super) fn catch_up(&mut self, engine: &Engine) -> Result<Outcome<M::Effect>, EngineError> {
        let gone = || EngineError::NoSuchRun(self.id.clone());
        let loaded = engine.store().load(&self.id)?.ok_or_else(gone)?;
        let written = self.was_written(engine, &loaded.run)?;
        let stored = Self::from_stored(loaded)?;
        // Nothing fails from here on.
        if let Some(attempt) = self.unsure.take().filter(|_| written) {
            self.pending.drain(..attempt.events.len());
            append(&mut self.untold, attempt.outcome);
        }
        *self = Self {
            fence: self.fence,
            pending: std::mem::take(&mut self.pending),
            untold: std::mem::take(&mut self.untold),
            performed: std::mem::take(&mut self.performed),
            handed_out: std::mem::take(&mut self.handed_out),
            ..stored
        };
        let mut outcome = Outcome::nothing();
        for (at, event) in &self.pending {
            append(&mut outcome, self.state.on_event(*at, event));
        }
        Ok(outcome)
    }

    /// Returns whether the step that the store failed to write is there. Its events tell. Should
    /// somebody else have taken the very same ones in the same milliseconds, theirs count for both.
    fn was_written(&self, engine: &Engine, stored: &Run) -> Result<bool, EngineError> {
        let Some(attempt) = self.unsure.as_ref().filter(|it| stored.revision >= it.revision) else {
            return Ok(false);
        };
        let count = attempt.events.len();
        let found = engine.store().events(&self.id, self.last_event, count)?;
        let same = found.iter().zip(&attempt.events).all(|(found, ours)| {
            found.revision == Some(attempt.revision)
                && found.at == ours.at
                && found.body == ours.body
        });
        Ok(same && count > 0 && found.len() == count)
    }
}

/// Adds what more events led to.
pub(crate) fn append<E>(outcome: &mut Outcome<E>, more: Outcome<E>) {
    outcome.effects.extend(more.effects);
    outcome.decisions.extend(more.decisions);
}
