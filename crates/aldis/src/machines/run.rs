//! A supervised run, for programs that do the supervising themselves.

use aldis_core::machine::run::{Event, Outcome, Start, State, Status};
use aldis_core::time::Timestamp;
use aldis_store::Run;
use serde_json::{Value, json};

use super::{Machine, Members, Question, Refused, Stepped, Wish, read, restore, store, values};

#[derive(Debug)]
pub(super) struct Supervised;

impl Machine for Supervised {
    fn name(&self) -> &'static str {
        "run"
    }

    fn begin(&self, now: Timestamp, start: Members) -> Result<Stepped, Refused> {
        let start: Start = read(start)?;
        let event = json!({ "event": "start", "start": start });
        let mut state = State::start(now, start);
        let outcome = state.on_event(now, &Event::Begin);
        stepped(&state, event, outcome)
    }

    fn step(&self, now: Timestamp, stored: &str, event: Members) -> Result<Stepped, Refused> {
        let mut state: State = restore(stored)?;
        let event: Event = read(event)?;
        let outcome = state.on_event(now, &event);
        stepped(&state, serde_json::to_value(&event)?, outcome)
    }

    fn show(&self, run: &Run) -> Result<Value, Refused> {
        let state: State = restore(&run.record.state)?;
        Ok(json!({
            "v": 1,
            "kind": "run",
            "run": run.id.as_str(),
            "machine": self.name(),
            "active": run.record.active,
            "task": state.task,
            "iteration": state.iteration,
            "max_iterations": state.config.max_iterations,
            "phase": state.phase,
            "progress": state.progress,
            "standing": state.status,
            "level": state.monitor.level(),
        }))
    }

    fn wish(&self, wish: &Wish) -> Option<Value> {
        Some(match wish {
            Wish::Abort => json!({ "event": "abort", "by": "a human" }),
            Wish::Answer { id, text } => json!({ "event": "answer", "id": id, "text": text }),
            Wish::Pause => json!({ "event": "pause" }),
            Wish::Resume => json!({ "event": "resume" }),
        })
    }

    fn questions(&self, run: &Run) -> Vec<Question> {
        let state: Result<State, Refused> = restore(&run.record.state);
        let question = state.ok().and_then(|state| state.question);
        let open = |question: aldis_core::machine::run::Question| Question {
            id: question.id,
            text: question.text,
            asked_at: question.asked_at,
        };
        question.map(open).into_iter().collect()
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
