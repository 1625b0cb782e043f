//! The delivery machine as a filter.

use aldis_machine::delivery::State;

use super::members;
use crate::engine::machines::delivery;
use crate::view::wire::delivery::DeliveryStepForm;

pub(super) fn begin(line: &str) -> Result<(State, DeliveryStepForm), String> {
    let (at, mut members) = members(line)?;
    members.remove("event").ok_or("it has no `event`")?;
    let state = State::start(at, delivery::begin(members)?);
    let form = DeliveryStepForm::new(at, &Default::default(), &state);
    Ok((state, form))
}

pub(super) fn take(state: &mut State, line: &str) -> Result<DeliveryStepForm, String> {
    let (at, members) = members(line)?;
    let event = delivery::event(state, members)?;
    let outcome = state.on_event(at, &event);
    Ok(DeliveryStepForm::new(at, &outcome, state))
}
