//! Phases for programs that have no hooks.

use aldis_machine::phases::{
    self, AgentMessage, Config, Event, Pipeline, Start, State, closing_text, scan_messages,
};
use aldis_machine::proof::Proof;
use aldis_signal::{Origin, Role};
use serde::Deserialize;
use serde_json::Value;

use super::{Dialects, JsonEdge, Members, read, take_text};

/// How a run begins, as programs say it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhasesBegin {
    task: String,
    #[serde(default)]
    pipeline: Option<Pipeline>,
    #[serde(default)]
    config: Config,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    max_iterations: Option<u64>,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    token: Option<String>,
}

impl JsonEdge for State {
    fn start_from_json(members: Members, dialects: &dyn Dialects) -> Result<Start, String> {
        let PhasesBegin { task, pipeline, config, phase, max_iterations, session, token } =
            read(members)?;
        let pipeline = pipeline.unwrap_or_else(Pipeline::caw);
        let dialect = dialects.dialect(&pipeline.dialect)?;
        pipeline.check(&dialect).map_err(|error| error.to_string())?;
        let phase = phase.unwrap_or_else(|| pipeline.first(&config.skip).to_owned());
        let max_iterations = phases::clamp_iterations(max_iterations);
        let proof = Proof::default();
        Ok(Start { task, pipeline, config, phase, max_iterations, session, token, proof })
    }

    fn event_from_json(
        &self,
        mut members: Members,
        dialects: &dyn Dialects,
    ) -> Result<Event, String> {
        let subagent = members.get("event").is_some_and(|event| event == "subagent_stop");
        let events = ["stop", "subagent_stop", "responded"];
        if let Some(text) = take_text(&mut members, &events)? {
            let mut origin = Origin::assistant();
            if subagent {
                origin = Origin::new(Role::Subagent);
                if let Some(agent) = members.get("agent").and_then(Value::as_str) {
                    origin = origin.with_agent(agent);
                }
            }
            let (rules, token) = (dialects.rules(&self.pipeline().dialect)?, self.expected_token());
            let (at, new_by_position, is_final) = (None, false, true);
            let message = AgentMessage { text: &text, origin, at, new_by_position, is_final };
            let findings = serde_json::to_value(scan_messages(&rules, &token, &[message]));
            members.insert("findings".to_owned(), findings.map_err(|error| error.to_string())?);
            if !subagent {
                let closing = || Value::String(closing_text(&text, &token));
                members.entry("closing_text").or_insert_with(closing);
            }
        }
        read(members)
    }
}
