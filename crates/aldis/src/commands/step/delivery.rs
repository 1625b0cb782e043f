//! The delivery machine as a filter.

use aldis_core::Rules;
use aldis_core::machine::delivery::{Event, Plan, Problem, Said, Start, State};
use aldis_core::time::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{members, text_of};
use crate::wire::delivery::DeliveryStepForm;

/// The first line.
#[derive(Debug, Deserialize)]
struct Begin {
    at: Timestamp,
    #[serde(rename = "event")]
    _event: String,
    #[serde(flatten)]
    start: Start,
}

pub(super) fn begin(line: &str) -> Result<(State, DeliveryStepForm), String> {
    let Begin { at, start, .. } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    check(&start.plan)?;
    start.config.check().map_err(|error| error.to_string())?;
    let state = State::start(at, start);
    let form = DeliveryStepForm::new(at, &Default::default(), &state);
    Ok((state, form))
}

pub(super) fn take(state: &mut State, line: &str) -> Result<DeliveryStepForm, String> {
    let (at, mut members) = members(line)?;
    if let Some(text) = text_of(&mut members)? {
        members.append(&mut scanned(state, &text, &members)?);
    }
    let event: Event =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    if let Event::Reopen { config } = &event {
        config.check().map_err(|error| error.to_string())?;
    }
    let outcome = state.on_event(at, &event);
    Ok(DeliveryStepForm::new(at, &outcome, state))
}

/// What an agent said, as members of the event.
fn scanned(
    state: &State,
    text: &str,
    members: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let agent = members.get("agent").and_then(Value::as_u64).ok_or("`text` needs an `agent`")?;
    let said = Said::read(Rules::builtin(), &state.expected_token(agent), text);
    match serde_json::to_value(said) {
        Ok(Value::Object(said)) => Ok(said),
        _ => Err("`text` cannot be read".to_owned()),
    }
}

fn check(plan: &Plan) -> Result<(), String> {
    let problem = |problem: &Problem| format!("{problem}; {}", problem.help);
    let problems = plan.check();
    problems.iter().find(|problem| problem.fatal).map(problem).map_or(Ok(()), Err)
}
