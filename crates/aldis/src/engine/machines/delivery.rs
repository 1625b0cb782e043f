//! A delivery, for programs that have agents of their own: how it begins, and what happens in it.

use aldis_machine::delivery::{AgentReply, Event, PlanProblem as Problem, Start, State};
use aldis_signal::Rules;
use serde_json::Value;

use super::Members;

/// Reads how a delivery begins, and checks it.
pub(crate) fn begin(mut members: Members) -> Result<Start, String> {
    let config = members.entry("config").or_insert_with(|| Members::new().into());
    // Agents that are driven from outside can be asked something, unless it is said that they cannot.
    if let Value::Object(config) = config {
        config.entry("requests").or_insert(Value::Bool(true));
    }
    let start: Start =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    let fatal = |problem: &Problem| problem.fatal.then(|| format!("{problem}; {}", problem.help));
    if let Some(problem) = start.plan.check().iter().find_map(fatal) {
        return Err(problem);
    }
    start.config.check().map_err(|error| error.to_string())?;
    Ok(start)
}

/// Reads an event; an agent's message in `text` is scanned first.
pub(crate) fn event(state: &State, mut members: Members) -> Result<Event, String> {
    // A human's answer or message is a text too, and is not scanned.
    let event = members.get("event").and_then(Value::as_str);
    let human = matches!(event, Some("answer" | "tell" | "told"));
    let text = if human { None } else { members.remove("text") };
    if let Some(text) = text {
        let text = text.as_str().ok_or("`text` is not a text")?;
        members.append(&mut scanned(state, text, &members)?);
    }
    let event =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    if let Event::Reopen { config } = &event {
        config.check().map_err(|error| error.to_string())?;
    }
    Ok(event)
}

/// What an agent said, as members of the event.
fn scanned(state: &State, text: &str, members: &Members) -> Result<Members, String> {
    let agent = members.get("agent").and_then(Value::as_u64).ok_or("`text` needs an `agent`")?;
    let said = AgentReply::read(Rules::builtin(), &state.expected_token(agent), text);
    match serde_json::to_value(said) {
        Ok(Value::Object(said)) => Ok(said),
        _ => Err("`text` cannot be read".to_owned()),
    }
}
