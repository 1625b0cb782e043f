//! OpenCode has no command hooks: a plugin hands us the events of its bus and sends our reason as the
//! next prompt.

use std::borrow::Cow;

use aldis_transcript::Format;
use serde_json::{Value, json};

use super::Event;
use super::adapter::Adapter;
use super::hook::call::Remark;
use super::hook::fields::Fields;

/// The way of our plugin for OpenCode.
#[derive(Debug)]
pub(super) struct OpenCode;

impl Adapter for OpenCode {
    fn event(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
        let name = fields.text(&["type"], remarks).unwrap_or_default();
        let properties = fields.inside("properties");
        match &*name {
            "session.idle" => Event::Stop,
            "session.status" if text(&properties.inside("status"), "type") == "idle" => Event::Stop,
            "session.error" => match text(&properties.inside("error"), "name") {
                error if error == "MessageAbortedError" => Event::Interrupt,
                error => Event::StopFailure { error: error.into_owned() },
            },
            _ => Event::Other(name),
        }
    }

    fn session(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        let properties = fields.inside("properties");
        let own = properties.text(&["sessionID"], remarks);
        own.or_else(|| properties.inside("part").text(&["sessionID"], remarks))
    }

    fn block(&self, event: &Event, reason: &str) -> Option<Value> {
        (*event == Event::Stop).then(|| json!({"decision": "block", "reason": reason}))
    }

    fn context(&self, _: &Event, _: &str) -> Option<Value> {
        None
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        None
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::OpenCode]
    }
}

fn text<'a>(fields: &Fields<'a>, name: &'static str) -> Cow<'a, str> {
    fields.quiet_text(&[name]).unwrap_or_default()
}
