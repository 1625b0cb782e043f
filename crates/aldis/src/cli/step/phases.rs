//! The phases machine as a filter.

use aldis_machine::phases::State;
use aldis_signal::Rules;
use serde_json::Value;

use super::members;
use crate::engine::machines::phases;
use crate::view::wire::run::StepForm;

pub(super) fn begin(line: &str) -> Result<((State, Rules), StepForm), String> {
    let (at, mut members) = members(line)?;
    members.remove("event").ok_or("it has no `event`")?;
    let begin =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    let start = phases::begin(begin)?;
    let rules = phases::rules(&start.pipeline)?;
    let state = State::start(at, start);
    let form = StepForm::new(at, &[], None, &state);
    Ok(((state, rules), form))
}

pub(super) fn take((state, rules): &mut (State, Rules), line: &str) -> Result<StepForm, String> {
    let (at, members) = members(line)?;
    let event = phases::heard(state, rules, members)?;
    let outcome = state.on_event(at, &event);
    Ok(StepForm::new(at, &outcome.effects, outcome.decision(), state))
}
