//! Phases under a Stop hook, for programs that have no hooks.

use aldis_machine::phases::{
    self, AgentMessage, Config, Event, Outcome, PhaseFinding, Pipeline, Start, State, scan_messages,
};
use aldis_signal::time::Timestamp;
use aldis_signal::{Origin, Role, Rules};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Machine, Members, Refused, Stepped, Wish, read, restore, store, values};
use crate::engine::driver;
use crate::engine::stored;
use crate::settings::catalog::Catalog;

/// How the store names this machine.
pub(crate) const PHASES: &str = <State as stored::Machine>::NAME;

#[derive(Debug)]
pub(super) struct Phases;

/// How a run begins, as programs say it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begin {
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

impl Machine for Phases {
    fn name(&self) -> &'static str {
        PHASES
    }

    fn begin(&self, now: Timestamp, start: Members) -> Result<Stepped, Refused> {
        let start = begin(read(start)?).map_err(Refused::Bad)?;
        let origin = driver::Origin::Start(Box::new(start));
        let event = serde_json::to_value(&origin)?;
        let state = origin.state(now);
        let outcome = Outcome::decided([], driver::begun(&state));
        stepped(&state, event, outcome)
    }

    fn step(&self, now: Timestamp, stored: &str, event: Members) -> Result<Stepped, Refused> {
        let mut state: State = restore(stored)?;
        let rules = rules(&state.pipeline).map_err(Refused::Bad)?;
        let event = heard(&state, &rules, event).map_err(Refused::Bad)?;
        let outcome = state.on_event(now, &event);
        stepped(&state, serde_json::to_value(&event)?, outcome)
    }

    fn wish(&self, wish: &Wish) -> Option<Value> {
        match wish {
            Wish::Abort => Some(json!({ "event": "cancel", "by": "a human" })),
            Wish::Resume => Some(json!({ "event": "resume" })),
            Wish::Answer { .. } | Wish::Pause => None,
        }
    }
}

fn stepped(state: &State, event: Value, mut outcome: Outcome) -> Result<Stepped, Refused> {
    Ok(Stepped {
        title: state.task.clone(),
        active: state.active,
        session: state.session.clone(),
        state: store(state)?,
        event,
        decision: outcome.decisions.pop(),
        effects: values(&outcome.effects),
        replies: Vec::new(),
        warnings: Vec::new(),
        wake: None,
    })
}

/// Checks how a run is to begin.
pub(crate) fn begin(begin: Begin) -> Result<Start, String> {
    let pipeline = begin.pipeline.unwrap_or_else(Pipeline::caw);
    let catalog = Catalog::builtin();
    let dialect = catalog.get(&pipeline.dialect).map_err(|error| error.to_string())?;
    pipeline.check(&dialect.dialect).map_err(|error| error.to_string())?;
    let phase = begin.phase.unwrap_or_else(|| pipeline.first(&begin.config.skip).to_owned());
    Ok(Start {
        task: begin.task,
        pipeline,
        config: begin.config,
        phase,
        max_iterations: phases::clamp_iterations(begin.max_iterations),
        session: begin.session,
        token: begin.token,
    })
}

/// Returns the rules by which the agents of a pipeline are heard.
pub(crate) fn rules(pipeline: &Pipeline) -> Result<Rules, String> {
    let catalog = Catalog::builtin();
    let dialect = catalog.get(&pipeline.dialect).map_err(|error| error.to_string())?;
    Ok(Rules::new([dialect.dialect.clone()]))
}

/// Reads an event; an agent's message in `text` is scanned first.
pub(crate) fn heard(state: &State, rules: &Rules, mut members: Members) -> Result<Event, String> {
    if let Some(text) = members.remove("text") {
        let text = text.as_str().ok_or("`text` is not a text")?;
        let subagent = members.get("event").is_some_and(|event| event == "subagent_stop");
        let findings = scanned(state, rules, text, subagent, &members);
        members.insert("findings".to_owned(), serde_json::to_value(findings).unwrap_or_default());
        if !subagent {
            members.entry("closing_text").or_insert_with(|| {
                Value::String(phases::closing_text(text, &state.expected_token()))
            });
        }
    }
    serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())
}

fn scanned(
    state: &State,
    rules: &Rules,
    text: &str,
    subagent: bool,
    members: &Members,
) -> Vec<PhaseFinding> {
    let mut origin = Origin::assistant();
    if subagent {
        origin = Origin::new(Role::Subagent);
        if let Some(agent) = members.get("agent").and_then(Value::as_str) {
            origin = origin.with_agent(agent);
        }
    }
    let message = AgentMessage { text, origin, at: None, new_by_position: false, is_final: true };
    scan_messages(rules, &state.expected_token(), &[message])
}
