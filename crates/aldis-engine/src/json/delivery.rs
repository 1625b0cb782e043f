//! A delivery for programs that have agents of their own.

use aldis_machine::delivery::{AgentReply, Event, Start, State};
use aldis_signal::Rules;
use serde_json::Value;

use super::{Dialects, JsonEdge, Members, read, take_text};

impl JsonEdge for State {
    fn start_from_json(mut members: Members, _: &dyn Dialects) -> Result<Start, String> {
        let config = members.entry("config").or_insert_with(|| Members::new().into());
        // Agents that are driven from outside can be asked something, unless it is said that they
        // cannot.
        if let Value::Object(config) = config {
            config.entry("requests").or_insert(Value::Bool(true));
        }
        read(members)
    }

    fn event_from_json(&self, mut members: Members, _: &dyn Dialects) -> Result<Event, String> {
        if let Some(text) = take_text(&mut members, &["finished", "reported", "heard"])? {
            let agent = members.get("agent").and_then(Value::as_u64);
            let agent = agent.ok_or("`text` needs an `agent`")?;
            let reply = AgentReply::read(Rules::builtin(), &self.expected_token(agent), &text);
            match serde_json::to_value(reply) {
                Ok(Value::Object(mut reply)) => members.append(&mut reply),
                _ => return Err("`text` cannot be read".to_owned()),
            }
        }
        let event: Event = read(members)?;
        if let Event::Reopen { config } = &event {
            config.check().map_err(|error| error.to_string())?;
        }
        Ok(event)
    }
}
