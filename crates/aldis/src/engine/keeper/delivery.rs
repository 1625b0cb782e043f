//! Deliveries whose agents are others' business: kept in parts like all deliveries, stepped from
//! outside.

use aldis_machine::delivery::{Event, Outcome, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, NewDecision, Run, RunId, Step, TimerChange};
use serde_json::{Value, json};

use super::{ALARM, Answer, Attempt, Keeper, KeeperError, News, SERVED, after, not_kept, refused};
use crate::engine::book::{self, Book, Taken};
use crate::engine::machines::delivery;
use crate::engine::machines::{Members, Wish};

/// Returns whether a run is a delivery.
pub(super) fn is_one(run: &Run) -> bool {
    run.record.machine == book::NAME
}

/// The event by which a human's wish reaches a delivery.
pub(super) fn wished(wish: &Wish) -> Members {
    let event = match wish {
        Wish::Abort => json!({ "event": "abort", "by": "a human" }),
        Wish::Answer { id, text } => json!({ "event": "answer", "id": id, "text": text }),
        Wish::Pause => json!({ "event": "pause" }),
        Wish::Resume => json!({ "event": "resume" }),
    };
    event.as_object().cloned().unwrap_or_default()
}

/// The event of its alarm.
pub(super) fn alarm() -> Members {
    Members::from_iter([("event".to_owned(), json!("tick"))])
}

impl Keeper {
    /// Begins a delivery.
    pub(super) fn begin_delivery(
        &self,
        now: Timestamp,
        id: &RunId,
        start: Members,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        let start = delivery::begin(start).map_err(KeeperError::Bad)?;
        let book = Book::new(id.clone(), SERVED, State::start(now, start.clone()), String::new());
        let step = book.first_step(now, &start, source);
        match self.store.commit(&step) {
            Ok(committed) => Ok(answer(after(step, committed, now, 0), &Outcome::default())),
            Err(error) => Err(refused(error, id)),
        }
    }

    /// Lets a delivery take an event. One that a process drives is told by other means.
    pub(super) fn attempt_delivery(
        &self,
        now: Timestamp,
        run: Run,
        event: Members,
        source: Option<&str>,
    ) -> Result<Attempt, KeeperError> {
        if run.record.driver != Driver::Server {
            let what = format!("a process of its own drives the delivery `{}`", run.id);
            return Err(KeeperError::Conflict(what));
        }
        let failed =
            |error: crate::engine::driver::DriverError| KeeperError::Failed(error.to_string());
        let mut book = Book::load(&*self.store, &run.id).map_err(failed)?;
        let event = delivery::event(&book.state, event).map_err(KeeperError::Bad)?;
        let Taken { outcome, mut step, changes } = book.take(now, &event, source);
        if !changes && event != Event::Tick {
            return Ok(Attempt::Idle(answer(run, &outcome)));
        }
        self.complete_step(&mut step, &run.id, &outcome, source);
        step.timers.push(wake(&book.state, now));
        match self.store.commit(&step) {
            Ok(committed) => {
                let effects = !outcome.effects.is_empty();
                (self.nudge)(News { effects, wake: book.state.run().wake });
                let run = after(step, committed, run.created, run.fence);
                Ok(Attempt::Kept(answer(run, &outcome)))
            }
            Err(error) => not_kept(error, &run.id),
        }
    }

    /// Adds what the first decision led to, for whoever follows and for a second delivery of the same
    /// request, and where effects go.
    fn complete_step(&self, step: &mut Step, id: &RunId, outcome: &Outcome, source: Option<&str>) {
        let effects = shown(outcome);
        if let Some(NewDecision { body, .. }) = step.decisions.first_mut()
            && let Ok(Value::Object(mut members)) = serde_json::from_str(body)
        {
            members.insert("effects".to_owned(), json!(effects));
            members.insert("source".to_owned(), json!(source));
            *body = Value::Object(members).to_string();
        }
        let revision = step.expected.0 + 1;
        step.effects = self.parcels(id, revision, &effects, step.at);
    }
}

/// The alarm of a delivery after a step.
fn wake(state: &State, now: Timestamp) -> TimerChange {
    let key = ALARM.to_owned();
    match state.run().wake.filter(|wake| *wake > now) {
        Some(due) => TimerChange::Set { key, due },
        None => TimerChange::Clear { key },
    }
}

/// The effects that are not our own to carry out.
fn shown(outcome: &Outcome) -> Vec<Value> {
    outcome.effects.iter().map(|effect| serde_json::to_value(effect).unwrap_or_default()).collect()
}

fn answer(run: Run, outcome: &Outcome) -> Answer {
    let decision = outcome.decisions.first();
    Answer {
        run,
        effects: shown(outcome),
        replies: Vec::new(),
        warnings: Vec::new(),
        decision: serde_json::to_value(decision).unwrap_or_default(),
        repeated: false,
    }
}
