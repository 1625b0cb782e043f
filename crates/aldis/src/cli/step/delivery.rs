//! The delivery machine as a filter.

use std::collections::BTreeSet;

use aldis_machine::delivery::{Outcome, State};

use super::members;
use crate::engine::machines::delivery;
use crate::view::wire::delivery::DeliveryStepForm;

pub(super) fn begin(line: &str) -> Result<(State, DeliveryStepForm), String> {
    let (at, mut members) = members(line)?;
    members.remove("event").ok_or("it has no `event`")?;
    let mut state = State::start(at, delivery::begin(members)?);
    state.take_changed();
    let form = DeliveryStepForm::new(at, &Outcome::nothing(), &BTreeSet::new(), &state);
    Ok((state, form))
}

pub(super) fn take(state: &mut State, line: &str) -> Result<DeliveryStepForm, String> {
    let (at, members) = members(line)?;
    let event = delivery::event(state, members)?;
    let outcome = state.on_event(at, &event);
    let changed = state.take_changed();
    Ok(DeliveryStepForm::new(at, &outcome, &changed, state))
}
