//! Turns in a channel.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use aldis_machine::Begun;
use aldis_machine::turns::{Config, Effect, Event, MessageReader, Outcome, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::Run;
use serde_json::{Value, json};

use super::{Machine, Members, Refused, Stepped, Wish, read, restore, store, values};
use crate::view::wire::turns::said;

/// How the store names this machine.
pub(crate) const TURNS: &str = "turns";
/// The member that holds a whole channel.
const ADOPTED: &str = "adopted";
/// How many ways of hearing are kept: as many as channels are usually run differently.
const EARS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Turns;

impl Machine for Turns {
    fn name(&self) -> &'static str {
        TURNS
    }

    fn begin(&self, now: Timestamp, mut start: Members) -> Result<Stepped, Refused> {
        if let Some(state) = start.remove(ADOPTED) {
            return adopt(now, state);
        }
        let start: Start = read(start)?;
        let event = json!({ "event": "start", "start": start });
        let (state, outcome) =
            State::start(now, start).map_err(|error| Refused::Bad(error.to_string()))?;
        stepped(&state, event, outcome)
    }

    fn begin_again(&self, now: Timestamp, event: &Value) -> Result<Stepped, Refused> {
        match (event.get("start"), event.get("state")) {
            (Some(Value::Object(start)), _) => self.begin(now, start.clone()),
            (_, Some(state)) => adopt(now, state.clone()),
            _ => Err(Refused::Bad("the journal has no start".to_owned())),
        }
    }

    fn step(&self, now: Timestamp, stored: &str, mut event: Members) -> Result<Stepped, Refused> {
        let mut state: State = restore(stored)?;
        said(&mut event, &ear(&state.config)).map_err(Refused::Bad)?;
        let event: Event = read(event)?;
        let outcome = state.on_event(now, &event);
        stepped(&state, serde_json::to_value(&event)?, outcome)
    }

    fn wish(&self, wish: &Wish) -> Option<Value> {
        let by = "a human";
        match wish {
            Wish::Abort => Some(json!({ "event": "close", "by": by })),
            Wish::Answer { .. } => None,
            Wish::Pause => Some(json!({ "event": "pause", "by": by })),
            Wish::Resume => Some(json!({ "event": "resume", "by": by })),
        }
    }

    fn alarm(&self, missed: bool) -> Option<Value> {
        Some(json!({ "event": if missed { "recovered" } else { "wake" } }))
    }

    fn trouble(&self, run: &Run, now: Timestamp) -> Option<String> {
        let state: State = restore(&run.record.state).ok()?;
        let stuck = state.stuck(now)?;
        Some(format!("the turn of {} should have ended at {}", stuck.agent, stuck.deadline))
    }
}

/// Returns how a channel begins that was imported.
pub(crate) fn adopting(state: &State) -> Result<Members, Refused> {
    Ok(Members::from_iter([(ADOPTED.to_owned(), serde_json::to_value(state)?)]))
}

/// Goes on with a channel as its state file left it. What was due meanwhile is due now.
fn adopt(now: Timestamp, state: Value) -> Result<Stepped, Refused> {
    let event = json!({ "event": "adopt", "state": state });
    let state: State = serde_json::from_value(state)?;
    let begun = <State as aldis_machine::Machine>::adopt(now, state);
    let Begun { state, outcome } = begun.map_err(|error| Refused::Bad(error.to_string()))?;
    stepped(&state, event, outcome)
}

fn stepped(state: &State, event: Value, outcome: Outcome) -> Result<Stepped, Refused> {
    let replies = values(&outcome.replies());
    let warnings = outcome.warnings().into_iter().map(str::to_owned).collect();
    let Outcome { mut effects, mut decisions } = outcome;
    effects.retain(|effect| !matches!(effect, Effect::Reply(_) | Effect::Warning { .. }));
    Ok(Stepped {
        title: state.channel.clone(),
        active: !state.closed,
        session: None,
        state: store(state)?,
        event,
        decision: decisions.pop(),
        effects: values(&effects),
        replies,
        warnings,
        wake: Some(state.next_wake()),
    })
}

/// Returns an ear for this configuration. Making one costs more than hearing a message.
fn ear(config: &Config) -> Arc<MessageReader> {
    static EARS: Mutex<VecDeque<(Config, Arc<MessageReader>)>> = Mutex::new(VecDeque::new());
    let mut ears = EARS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, ear)) = ears.iter().find(|(known, _)| known == config) {
        return ear.clone();
    }
    let ear = Arc::new(MessageReader::new(config));
    ears.push_back((config.clone(), ear.clone()));
    if ears.len() > EARS_MAX {
        ears.pop_front();
    }
    ear
}
