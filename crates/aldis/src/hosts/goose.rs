//! Goose: a payload of three members, and an answer of `{}` is no decision, so nothing is said.

use aldis_transcript::Format;
use serde_json::{Value, json};

use super::adapter::{Adapter, named_event};
use super::hook::call::Remark;
use super::hook::fields::Fields;
use super::{BlockCap, Env, Event};

/// Goose's way.
#[derive(Debug)]
pub(super) struct Goose;

impl Adapter for Goose {
    fn event(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
        let name = fields.text(&["event", "hook_event_name"], remarks).unwrap_or_default();
        named_event(name, fields, remarks)
    }

    fn block(&self, event: &Event, reason: &str) -> Option<Value> {
        (*event == Event::Stop).then(|| json!({"decision": "block", "reason": reason}))
    }

    fn context(&self, _: &Event, _: &str) -> Option<Value> {
        None
    }

    /// The default is not documented, so only a limit that was set is known.
    fn block_cap(&self, env: &Env) -> BlockCap {
        BlockCap::from_variable(env.goose_block_cap.as_deref(), None)
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        None
    }

    fn formats(&self) -> &'static [Format] {
        &[]
    }
}
