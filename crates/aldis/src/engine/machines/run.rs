//! A supervised run, for programs that do the supervising themselves.

use std::borrow::Borrow;

use aldis_machine::run::{Config, Event, Outcome, RunSignal, Start, State, Status};
use aldis_signal::time::Timestamp;
use aldis_signal::{Finding, Origin, Rules, prompt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Machine, Members, Refused, Stepped, Wish, restore, store, values};
use crate::settings::catalog::Catalog;

#[derive(Debug)]
pub(super) struct Supervised;

/// How a run begins, as programs say it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    task: String,
    #[serde(default = "chorus")]
    dialect: String,
    /// How to speak the dialect; its own instructions where nothing is said.
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    launch: String,
    #[serde(default)]
    config: Config,
}

fn chorus() -> String {
    "chorus".to_owned()
}

impl Machine for Supervised {
    fn name(&self) -> &'static str {
        "run"
    }

    fn begin(&self, now: Timestamp, start: Members) -> Result<Stepped, Refused> {
        let start = begin(start).map_err(Refused::Bad)?;
        let event = json!({ "event": "start", "start": start });
        // Nothing begins before whoever supervises it says so.
        let outcome = Outcome::nothing();
        stepped(&State::start(now, start), event, outcome)
    }

    fn step(&self, now: Timestamp, stored: &str, event: Members) -> Result<Stepped, Refused> {
        let mut state: State = restore(stored)?;
        let event = self::event(&state, rules, event).map_err(Refused::Bad)?;
        let outcome = state.on_event(now, &event);
        stepped(&state, serde_json::to_value(&event)?, outcome)
    }

    fn listens(&self) -> bool {
        true
    }

    fn wish(&self, wish: &Wish) -> Option<Value> {
        Some(match wish {
            Wish::Abort => json!({ "event": "abort", "by": "a human" }),
            Wish::Answer { id, text } => json!({ "event": "answer", "id": id, "text": text }),
            Wish::Pause => json!({ "event": "pause" }),
            Wish::Resume => json!({ "event": "resume" }),
        })
    }
}

fn stepped(state: &State, event: Value, mut outcome: Outcome) -> Result<Stepped, Refused> {
    Ok(Stepped {
        title: state.task.clone(),
        active: !matches!(state.status, Status::Ended { .. }),
        session: None,
        state: store(state)?,
        event,
        decision: outcome.decisions.pop(),
        effects: values(&outcome.effects),
        replies: Vec::new(),
        warnings: Vec::new(),
        wake: None,
    })
}

/// Reads how a run begins, and checks it.
pub(crate) fn begin(members: Members) -> Result<Start, String> {
    let Begin { task, dialect, instructions, launch, config } =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    config.check().map_err(|error| format!("`config`: {error}"))?;
    let catalog = Catalog::builtin();
    let known = catalog.get(&dialect).map_err(|error| error.to_string())?;
    let instructions = instructions.unwrap_or_else(|| prompt::instructions(&known.dialect));
    Ok(Start { task, dialect, instructions, launch, config })
}

/// Returns the rules by which an agent is heard that speaks this dialect.
pub(crate) fn rules(dialect: &str) -> Result<Rules, String> {
    let catalog = Catalog::builtin();
    let known = catalog.get(dialect).map_err(|error| error.to_string())?;
    Ok(Rules::new([known.dialect.clone()]))
}

/// Reads an event; the message in `text` of what was heard is scanned first.
pub(crate) fn event<R: Borrow<Rules>>(
    state: &State,
    rules: impl FnOnce(&str) -> Result<R, String>,
    mut members: Members,
) -> Result<Event, String> {
    // An answer has a text of its own. `heard` is what 0.1.0 called it.
    let event = members.get("event").and_then(Value::as_str);
    let is_report = matches!(event, Some("reported" | "heard"));
    let text = if is_report { members.remove("text") } else { None };
    if let Some(text) = text {
        let text = text.as_str().ok_or("`text` is not a text")?;
        let rules = rules(&state.dialect)?;
        let message = state.signals.last().map_or(0, |last| last.message) + 1;
        let findings = aldis_signal::scan(rules.borrow(), text.as_bytes(), &Origin::assistant());
        let signals = findings.iter().filter_map(Finding::signal);
        let signals: Vec<RunSignal> =
            signals.map(|signal| RunSignal::new(signal, message)).collect();
        members.insert("signals".to_owned(), serde_json::to_value(signals).unwrap_or_default());
    }
    let event =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    if let Event::Reopen { config } = &event {
        config.check().map_err(|error| format!("`config`: {error}"))?;
    }
    Ok(event)
}
