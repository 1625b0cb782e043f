//! A supervised run, for programs that do the supervising themselves.

use aldis_core::machine::run::{Event, Outcome, Start, State, Status};
use aldis_core::time::Timestamp;
use serde_json::{Value, json};

use super::{Machine, Members, Refused, Stepped, Wish, read, restore, store, values};

#[derive(Debug)]
pub(super) struct Supervised;

impl Machine for Supervised {
    fn name(&self) -> &'static str {
        "run"
    }

    fn begin(&self, now: Timestamp, start: Members) -> Result<Stepped, Refused> {
        let start: Start = read(start)?;
        let event = json!({ "event": "start", "start": start });
        // Nothing begins before whoever supervises it says so.
        let outcome = Outcome { effects: Vec::new(), decision: None };
        stepped(&State::start(now, start), event, outcome)
    }

    fn step(&self, now: Timestamp, stored: &str, event: Members) -> Result<Stepped, Refused> {
        let mut state: State = restore(stored)?;
        let event: Event = read(event)?;
        let outcome = state.on_event(now, &event);
        stepped(&state, serde_json::to_value(&event)?, outcome)
    }

    fn listens(&self) -> bool {
        true
    }

    fn wish(&self, wish: &Wish) -> Option<Value> {
        Some(match wish {
            Wish::Abort => json!({ "event": "abort", "by": "a human" }),
            Wish::Answer { id, text } => json!({ "event": "answer", "id": id, "text": text }),
            Wish::Pause => json!({ "event": "pause" }),
            Wish::Resume => json!({ "event": "resume" }),
        })
    }
}

fn stepped(state: &State, event: Value, outcome: Outcome) -> Result<Stepped, Refused> {
    Ok(Stepped {
        title: state.task.clone(),
        active: !matches!(state.status, Status::Ended { .. }),
        session: None,
        state: store(state)?,
        event,
        decision: outcome.decision,
        effects: values(&outcome.effects),
        replies: Vec::new(),
        warnings: Vec::new(),
        wake: None,
    })
}
