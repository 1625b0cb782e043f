//! The phases machine as a filter.

use aldis_core::machine::phases::{
    self, Config, Event, Pipeline, Said, Start, State, Utterance, hear,
};
use aldis_core::time::Timestamp;
use aldis_core::{Origin, Role, Rules};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{members, text_of};
use crate::catalog::Catalog;
use crate::wire::run::StepForm;

/// The first line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    at: Timestamp,
    #[serde(rename = "event")]
    _event: String,
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

pub(super) fn begin(line: &str) -> Result<((State, Rules), StepForm), String> {
    let begin: Begin = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let pipeline = begin.pipeline.unwrap_or_else(Pipeline::caw);
    let dialect = &Catalog::builtin();
    let dialect = dialect.get(&pipeline.dialect).map_err(|error| error.to_string())?;
    pipeline.check(&dialect.dialect).map_err(|error| error.to_string())?;
    let phase = begin.phase.unwrap_or_else(|| pipeline.first(&begin.config.skip).to_owned());
    let rules = Rules::new([dialect.dialect.clone()]);
    let start = Start {
        task: begin.task,
        pipeline,
        config: begin.config,
        phase,
        max_iterations: phases::clamp_iterations(begin.max_iterations),
        session: begin.session,
        token: begin.token,
    };
    let state = State::start(begin.at, start);
    let form = StepForm::new(begin.at, &[], None, &state);
    Ok(((state, rules), form))
}

pub(super) fn take((state, rules): &mut (State, Rules), line: &str) -> Result<StepForm, String> {
    let (at, mut members) = members(line)?;
    if let Some(text) = text_of(&mut members)? {
        let text = &*text;
        let subagent = members.get("event").is_some_and(|event| event == "subagent_stop");
        let said = scanned(state, rules, text, subagent, &members);
        members.insert("said".to_owned(), serde_json::to_value(said).unwrap_or_default());
        if !subagent {
            members.entry("closing_words").or_insert_with(|| {
                Value::String(phases::closing_words(text, &state.expected_token()))
            });
        }
    }
    let event: Event =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    let outcome = state.on_event(at, &event);
    Ok(StepForm::new(at, &outcome.effects, outcome.decision.as_ref(), state))
}

fn scanned(
    state: &State,
    rules: &Rules,
    text: &str,
    subagent: bool,
    members: &Map<String, Value>,
) -> Vec<Said> {
    let mut origin = Origin::assistant();
    if subagent {
        origin = Origin::new(Role::Subagent);
        if let Some(agent) = members.get("agent").and_then(Value::as_str) {
            origin = origin.with_agent(agent);
        }
    }
    hear(rules, &state.expected_token(), &[Utterance { text, origin, at: None, last: true }])
}
