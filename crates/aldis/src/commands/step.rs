//! `aldis step`: a machine as a filter, for programs that drive agents of their own.

use std::io::{BufRead as _, BufReader, Write as _};

use aldis_core::machine::phases::{
    self, Config, Event, Pipeline, Said, Start, State, Utterance, hear,
};
use aldis_core::time::Timestamp;
use aldis_core::{Origin, Role, Rules};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Outcome;
use crate::catalog::Catalog;
use crate::error::CommandError;
use crate::io::Io;
use crate::json;
use crate::wire::run::StepForm;

/// Run a machine as a filter: events in, effects out
///
/// Reads one JSON object a line and prints one for each: what must be done, why, and the state. Time
/// comes only from each event's `at`. The first event starts the run. Instead of `said`, an event may
/// have `text`, the agent's message, which is scanned.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  aldis step phases <<'END'
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"start\",\"task\":\"Add CSV export\"}
  {\"at\":\"2026-03-02T10:05:00Z\",\"event\":\"stop\",\"session\":\"S1\",\"text\":\"Half done.\"}
  END")]
pub(super) struct StepArgs {
    /// The machine
    #[arg(value_enum)]
    machine: Machine,
}

/// The machines that can be driven.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Machine {
    /// Phases under a Stop hook
    Phases,
}

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

pub(super) fn run(io: &mut Io, args: &StepArgs) -> Result<Outcome, CommandError> {
    let Machine::Phases = args.machine;
    let mut run: Option<(State, Rules)> = None;
    let input = std::mem::replace(&mut io.stdin, Box::new(std::io::empty()));
    for (number, line) in (1..).zip(BufReader::new(input).lines()) {
        let line = line.map_err(|error| CommandError::new(format!("standard input: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |what: String| CommandError::new(format!("line {number}: {what}"));
        let form = match &mut run {
            None => {
                let (at, state, rules) = begin(&line).map_err(wrong)?;
                let form = StepForm::new(at, &[], None, &state);
                run = Some((state, rules));
                form
            }
            Some((state, rules)) => take(state, rules, &line).map_err(wrong)?,
        };
        json::write_line(&mut io.stdout, &form)?;
        io.stdout.flush()?;
    }
    Ok(Outcome::Yes)
}

fn begin(line: &str) -> Result<(Timestamp, State, Rules), String> {
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
    Ok((begin.at, State::start(begin.at, start), rules))
}

fn take(state: &mut State, rules: &Rules, line: &str) -> Result<StepForm, String> {
    let mut members: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    let at = members.remove("at").ok_or("it has no `at`")?;
    let at: Timestamp = serde_json::from_value(at).map_err(|error| format!("`at`: {error}"))?;
    if let Some(text) = members.remove("text") {
        let text = text.as_str().ok_or("`text` is not a text")?;
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
