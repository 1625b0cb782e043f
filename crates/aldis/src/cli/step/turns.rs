//! Channels as a filter.

use aldis_engine::{JsonEdge as _, Members};
use aldis_machine::turns::{Config, Effect, Outcome, Reply, ReplyReason, State};
use aldis_signal::time::Timestamp;
use serde_json::Value;

use super::members as timed;
use crate::app::formats::turn_state::ChannelSet;
use crate::settings::catalog::Catalog;
use crate::view::wire::turns::ChannelStepForm;

/// All channels that were started.
#[derive(Debug, Default)]
pub(super) struct Channels(ChannelSet);

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
                form.exported = Some(self.0.export(at));
                Ok(form)
            }
            _ => self.step(at, members),
        }
    }

    fn start(&mut self, at: Timestamp, mut members: Members) -> Result<ChannelStepForm, String> {
        members.remove("event");
        let start = State::start_from_json(members, &Catalog::builtin())?;
        if self.0.channels.contains_key(&start.channel) {
            return Err(format!("channel `{}` was started before", start.channel));
        }
        let (state, outcome) = State::start(at, start).map_err(|error| error.to_string())?;
        let form = ChannelStepForm::new(at, &outcome, Some(&state));
        self.0.channels.insert(state.channel().to_owned(), state);
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
        self.0.channels.extend(imported.channels);
        Ok(ChannelStepForm::new(at, &Outcome::default(), None))
    }

    fn step(&mut self, at: Timestamp, mut members: Members) -> Result<ChannelStepForm, String> {
        let channel = members.remove("channel").ok_or("it has no `channel`")?;
        let channel = channel.as_str().ok_or("`channel` is not a text")?;
        let Some(state) = self.0.channels.get_mut(channel) else {
            let texts = members.get("texts").and_then(Value::as_array);
            let reply = Effect::Reply(Reply::ignored(ReplyReason::UnknownChannel));
            let effects = vec![reply; texts.map_or(1, Vec::len)];
            return Ok(ChannelStepForm::new(at, &Outcome { effects, ..Outcome::default() }, None));
        };
        let event = state.event_from_json(members, &Catalog::builtin())?;
        let outcome = state.on_event(at, &event);
        Ok(ChannelStepForm::new(at, &outcome, Some(state)))
    }
}
