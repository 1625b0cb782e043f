//! Makes a step of what happened and what came of it, and takes note of one that is durable.

use aldis_machine::{Machine, Outcome};
use aldis_signal::time::Timestamp;
use aldis_store::{
    Committed, Driver, NewEffect, PartChange, Revision, RunId, Source, Step, TimerChange,
};
use serde::Serialize;
use serde_json::Value;

use super::{Handle, LAUNCH, Performable, WAKE};
use crate::effects::{NOTIFY, OutboundEffect, RoutedRun, is_dispatch};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::record;

/// The kind of effects that are kept for whoever asks again, and performed by nobody.
pub(super) const ANSWER: &str = "answer";

impl<M: Machine> Handle<M> {
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
        let effects = self.effect_values(outcome)?;
        self.send(engine, now, &effects, outcome, &mut step);
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
        let told = shown && !outcome.decisions.is_empty();
        if source.is_some() && !effects.is_empty() && !told {
            self.keep_answer(now, effects, &mut step);
        }
        if self.driver == Driver::Server {
            let key = WAKE.to_owned();
            step.timers.push(match self.state.next_wake() {
                Some(due) => TimerChange::Set { key, due },
                None => TimerChange::Clear { key },
            });
        }
        Ok(step)
    }

    /// Returns effects as JSON, as they are stored and told.
    pub(crate) fn effect_values(
        &self,
        outcome: &Outcome<M::Effect>,
    ) -> Result<Vec<Value>, EngineError> {
        let mut values = Vec::with_capacity(outcome.effects.len());
        for effect in &outcome.effects {
            let mut value = record::value(&self.id, effect)?;
            if let (true, Value::Object(members)) = (is_dispatch(&value), &mut value)
                && let Some(launch) = self.note::<Value>(LAUNCH)?
            {
                members.insert(LAUNCH.to_owned(), launch);
            }
            values.push(value);
        }
        Ok(values)
    }

    /// Adds the effects to a step under their keys, for whoever performs them.
    fn send(
        &self,
        engine: &Engine,
        now: Timestamp,
        effects: &[Value],
        outcome: &Outcome<M::Effect>,
        step: &mut Step,
    ) {
        // These are answers to whoever asked.
        if !M::HAS_QUIET_EVENTS && outcome.decisions.is_empty() {
            return;
        }
        let prefix = effects_prefix(&self.id, Revision(self.revision.0 + 1));
        let summary = self.state.summary();
        let run = RoutedRun {
            id: &self.id,
            driver: self.driver,
            machine: M::NAME,
            project: &self.project,
            title: summary.title,
            active: summary.active,
            decision: outcome.decisions.last(),
            at: now,
            notify: self.notes.get(NOTIFY).map(String::as_str),
        };
        let mut enqueue = |key: String, outbound: OutboundEffect| {
            step.effects.push(NewEffect {
                key,
                kind: outbound.kind.to_owned(),
                lane: outbound.lane,
                requires: outbound.requires,
                body: outbound.body.to_string(),
                due: now,
            });
        };
        for (number, effect) in effects.iter().enumerate() {
            let routed = engine.route().route(&run, effect);
            for (way, outbound) in routed.into_iter().enumerate() {
                let key = format!("{prefix}{number}");
                enqueue(if way == 0 { key } else { format!("{key}/{way}") }, outbound);
            }
        }
        let following = engine.route().follow(&run, &outcome.decisions);
        for (number, outbound) in following.into_iter().enumerate() {
            enqueue(format!("{prefix}{}/{number}", outbound.kind), outbound);
        }
    }

    /// Keeps what whoever asked is told, for when the same request comes again: as an effect that is
    /// performed already.
    fn keep_answer(&self, now: Timestamp, effects: Vec<Value>, step: &mut Step) {
        let key = answer_key(&self.id, Revision(self.revision.0 + 1));
        step.done.push(key.clone());
        step.effects.push(NewEffect {
            key,
            kind: ANSWER.to_owned(),
            lane: String::new(),
            requires: Vec::new(),
            body: Value::Array(effects).to_string(),
            due: now,
        });
    }

    /// Takes note of a step that is durable now.
    pub(crate) fn committed(&mut self, step: &Step, committed: Committed) {
        tracing::debug!(
            run = %self.id,
            revision = %committed.revision,
            events = step.events.len(),
            decisions = step.decisions.len(),
            effects = step.effects.len(),
            "step committed"
        );
        self.performed.drain(..step.done.len().min(self.performed.len()));
        self.revision = committed.revision;
        self.updated = step.at;
        self.last_event = committed.last_event;
        self.pending.clear();
        self.stale = false;
        self.unsure = None;
    }

    /// Remembers the effects of a step that is durable now, for whoever performs them.
    pub(crate) fn enqueue(&mut self, step: &Step, outcome: &Outcome<M::Effect>) {
        let Some(mut outbox) = self.outbox.take() else { return };
        let prefix = effects_prefix(&self.id, self.revision);
        for sent in step.effects.iter().filter(|sent| !self.is_elsewhere(&sent.kind)) {
            let number = sent.key.strip_prefix(&prefix).and_then(|it| it.split('/').next());
            let number: Option<usize> = number.and_then(|number| number.parse().ok());
            let effect = number.and_then(|number| outcome.effects.get(number)).cloned();
            outbox.extend(effect.map(|effect| Performable { key: sent.key.clone(), effect }));
        }
        self.outbox = Some(outbox);
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
}

/// Makes a note of a driver's, for [`NewRun::notes`](crate::NewRun::notes) and
/// [`Handle::set_notes`].
///
/// # Errors
///
/// [`EngineError::Invalid`] if the value cannot be written as JSON.
pub fn note(key: &str, value: &impl Serialize) -> Result<PartChange, EngineError> {
    let unwritable =
        |error: serde_json::Error| EngineError::Invalid(format!("the note `{key}`: {error}"));
    let body = serde_json::to_string(value).map_err(unwritable)?;
    Ok(PartChange::Set { key: key.to_owned(), body })
}

/// What the keys of the effects of a step begin with.
fn effects_prefix(run: &RunId, revision: Revision) -> String {
    format!("{run}/{revision}/")
}

/// The key under which the answer to a request is kept.
pub(crate) fn answer_key(run: &RunId, revision: Revision) -> String {
    format!("{run}/{revision}/{ANSWER}")
}
