//! A supervised run for programs that do the supervising themselves.

use aldis_machine::run::{Config, Event, RunSignal, Start, State};
use aldis_signal::{Finding, Origin, prompt, scan};
use serde::Deserialize;

use super::{Dialects, JsonEdge, Members, read, take_text};

/// How a run begins, as programs say it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunBegin {
    task: String,
    #[serde(default = "default_dialect")]
    dialect: String,
    /// How to speak the dialect; its own instructions where there are none.
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    launch: String,
    #[serde(default)]
    config: Config,
}

fn default_dialect() -> String {
    "chorus".to_owned()
}

impl JsonEdge for State {
    fn start_from_json(members: Members, dialects: &dyn Dialects) -> Result<Start, String> {
        let RunBegin { task, dialect, instructions, launch, config } = read(members)?;
        let known = dialects.dialect(&dialect)?;
        let instructions = instructions.unwrap_or_else(|| prompt::instructions(&known));
        Ok(Start { task, dialect, instructions, launch, config })
    }

    fn event_from_json(
        &self,
        mut members: Members,
        dialects: &dyn Dialects,
    ) -> Result<Event, String> {
        if let Some(text) = take_text(&mut members, &["reported", "heard"])? {
            let rules = dialects.rules(&self.setup().dialect)?;
            let message = self.signals().last().map_or(0, |last| last.message) + 1;
            let findings = scan(&rules, text.as_bytes(), &Origin::assistant());
            let signals = findings.iter().filter_map(Finding::signal);
            let signals: Vec<RunSignal> =
                signals.map(|signal| RunSignal::new(signal, message)).collect();
            let signals = serde_json::to_value(signals).map_err(|error| error.to_string())?;
            members.insert("signals".to_owned(), signals);
        }
        let event: Event = read(members)?;
        if let Event::Reopen { config } = &event {
            config.check().map_err(|error| format!("`config`: {error}"))?;
        }
        Ok(event)
    }
}
