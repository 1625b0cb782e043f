//! The machine of a supervised agent as a filter.

use aldis_machine::run::State;
use aldis_signal::Rules;

use super::members;
use crate::engine::machines::run;
use crate::view::wire::run_step::RunStepForm;

pub(super) fn begin(line: &str) -> Result<((State, Rules), RunStepForm), String> {
    let (at, mut members) = members(line)?;
    members.remove("event").ok_or("it has no `event`")?;
    let start = run::begin(members)?;
    let rules = run::rules(&start.dialect)?;
    let state = State::start(at, start);
    let form = RunStepForm::new(at, &[], None, &state);
    Ok(((state, rules), form))
}

pub(super) fn take((state, rules): &mut (State, Rules), line: &str) -> Result<RunStepForm, String> {
    let (at, members) = members(line)?;
    let event = run::event(state, |_| Ok(rules), members)?;
    let outcome = state.on_event(at, &event);
    Ok(RunStepForm::new(at, &outcome.effects, outcome.decision(), state))
}
