//! `aldis step run`: the machine of a supervised agent as a filter.

use aldis_core::machine::run::{Config, Event, Heard, Outcome, Start, State};
use aldis_core::time::Timestamp;
use aldis_core::{Finding, Origin, Rules, prompt};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::catalog::Catalog;
use crate::wire::run_step::RunStepForm;

/// The first line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    at: Timestamp,
    #[serde(rename = "event")]
    _event: String,
    task: String,
    #[serde(default = "chorus")]
    dialect: String,
    #[serde(default)]
    config: Config,
}

fn chorus() -> String {
    "chorus".to_owned()
}

/// The run so far, once there is one.
#[derive(Debug, Default)]
pub(super) struct Supervised {
    run: Option<(State, Rules)>,
    messages: u64,
}

impl Supervised {
    /// Takes a line: the start of the run, then one event each.
    pub(super) fn take(&mut self, line: &str) -> Result<RunStepForm, String> {
        let Some((state, rules)) = &mut self.run else {
            let (at, state, rules) = begin(line)?;
            let form = RunStepForm::new(at, &[], None, &state);
            self.run = Some((state, rules));
            return Ok(form);
        };
        let mut members: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| error.to_string())?;
        let at = members.remove("at").ok_or("it has no `at`")?;
        let at: Timestamp = serde_json::from_value(at).map_err(|error| format!("`at`: {error}"))?;
        if is_heard(&members)
            && let Some(text) = members.remove("text")
        {
            let text = text.as_str().ok_or("`text` is not a text")?;
            self.messages += 1;
            let said = heard(rules, text, self.messages);
            members.insert("said".to_owned(), serde_json::to_value(said).unwrap_or_default());
        }
        let event: Event =
            serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
        let Outcome { effects, decision } = state.on_event(at, &event);
        Ok(RunStepForm::new(at, &effects, decision.as_ref(), state))
    }
}

fn begin(line: &str) -> Result<(Timestamp, State, Rules), String> {
    let Begin { at, task, dialect, config, .. } =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let catalog = Catalog::builtin();
    let known = &catalog.get(&dialect).map_err(|error| error.to_string())?.dialect;
    let instructions = prompt::instructions(known);
    let rules = Rules::new([known.clone()]);
    let start = Start { task, dialect, instructions, launch: String::new(), config };
    Ok((at, State::start(at, start), rules))
}

/// Whether `text` is what the agent said. An answer has a text of its own.
fn is_heard(members: &Map<String, Value>) -> bool {
    members.get("event").is_some_and(|event| event == "heard")
}

fn heard(rules: &Rules, text: &str, message: u64) -> Vec<Heard> {
    let findings = aldis_core::scan(rules, text.as_bytes(), &Origin::assistant());
    let signals = findings.iter().filter_map(Finding::signal);
    signals.map(|signal| Heard::new(signal, message)).collect()
}
