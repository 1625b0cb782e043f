//! Channels as a filter.

use std::collections::BTreeMap;

use aldis_machine::turns::{Config, Event, MessageReader, Outcome, Start, State};
use aldis_signal::time::Timestamp;
use serde_json::Value;

use super::members as timed;
use crate::app::formats::turn_state::ChannelSet;
use crate::engine::machines::Members;
use crate::view::wire::turns::{ChannelStepForm, said};

/// All channels that were started, and how each hears.
#[derive(Debug, Default)]
pub(super) struct Channels {
    board: ChannelSet,
    ears: BTreeMap<String, (Config, MessageReader)>,
}

/// Takes the first line, which any channel may start with.
pub(super) fn begin(line: &str) -> Result<(Channels, ChannelStepForm), String> {
    let mut channels = Channels::default();
    let form = channels.take(line)?;
    Ok((channels, form))
}

impl Channels {
    /// Takes one line: `start` opens a channel, `import` reads a state file, `export` writes one,
    /// everything else happens in the channel it names.
    pub(super) fn take(&mut self, line: &str) -> Result<ChannelStepForm, String> {
        let (at, members) = timed(line)?;
        let event = members.get("event").and_then(Value::as_str).unwrap_or_default();
        match event {
            "start" => self.start(at, members),
            "import" => self.import(at, &members),
            "export" => {
                let mut form = ChannelStepForm::new(at, &Outcome::default(), None);
                form.exported = Some(self.board.export(at));
                Ok(form)
            }
            _ => self.step(at, members),
        }
    }

    fn start(&mut self, at: Timestamp, mut members: Members) -> Result<ChannelStepForm, String> {
        members.remove("event");
        let start: Start =
            serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
        if self.board.channels.contains_key(&start.channel) {
            return Err(format!("channel `{}` was started before", start.channel));
        }
        let (state, outcome) = State::start(at, start).map_err(|error| error.to_string())?;
        let form = ChannelStepForm::new(at, &outcome, Some(&state));
        self.board.channels.insert(state.channel.clone(), state);
        Ok(form)
    }

    fn import(&mut self, at: Timestamp, members: &Members) -> Result<ChannelStepForm, String> {
        let part = |name: &str| members.get(name).cloned();
        let text = part("state").ok_or("it has no `state`")?.to_string();
        let config = part("config").map(serde_json::from_value).transpose();
        let config: Config =
            config.map_err(|error| format!("`config`: {error}"))?.unwrap_or_default();
        config.check().map_err(|error| format!("`config`: {error}"))?;
        let personas = part("personas").map(serde_json::from_value).transpose();
        let personas =
            personas.map_err(|error| format!("`personas`: {error}"))?.unwrap_or_default();
        let imported =
            ChannelSet::import(&text, &config, &personas, at).map_err(|error| error.to_string())?;
        self.board.channels.extend(imported.channels);
        Ok(ChannelStepForm::new(at, &Outcome::default(), None))
    }

    fn step(&mut self, at: Timestamp, mut members: Members) -> Result<ChannelStepForm, String> {
        let channel = members.remove("channel").ok_or("it has no `channel`")?;
        let channel = channel.as_str().ok_or("`channel` is not a text")?;
        let event = self.event(channel, members)?;
        let outcome = self.board.on_event(at, channel, &event);
        Ok(ChannelStepForm::new(at, &outcome, self.board.channels.get(channel)))
    }

    /// Reads an event; what was said as text is heard first.
    fn event(&mut self, channel: &str, mut members: Members) -> Result<Event, String> {
        let config = self.board.channels.get(channel).map(|state| state.config.clone());
        let config = config.unwrap_or_default();
        if self.ears.get(channel).is_none_or(|(known, _)| *known != config) {
            let ear = MessageReader::new(&config);
            self.ears.insert(channel.to_owned(), (config, ear));
        }
        if let Some((_, ear)) = self.ears.get(channel) {
            said(&mut members, ear)?;
        }
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())
    }
}
