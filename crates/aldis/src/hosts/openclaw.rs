//! OpenClaw has no command hooks: a plugin hands us its events and returns our answer.

use std::path::PathBuf;

use aldis_transcript::Format;
use serde_json::{Value, json};

use super::adapter::Adapter;
use super::hook::call::Remark;
use super::hook::fields::Fields;
use super::{BlockCap, Env, Event};

/// The way of our plugin for OpenClaw.
#[derive(Debug)]
pub(super) struct OpenClaw;

/// How often its runner lets an answer be revised.
const REVISIONS: u32 = 3;

impl Adapter for OpenClaw {
    fn event(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
        if fields.has_any(&["stopHookActive", "lastAssistantMessage"]) {
            return Event::Stop;
        }
        if fields.has("success") && fields.has("messages") {
            return Event::Other("agent_end".to_owned());
        }
        let kind = fields.text(&["type"], remarks).unwrap_or_default();
        let action = fields.text(&["action"], remarks).unwrap_or_default();
        Event::Other(if action.is_empty() { kind } else { format!("{kind}:{action}") })
    }

    fn session(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        fields.text(&["sessionId", "sessionKey"], remarks)
    }

    fn cwd(&self, fields: &Fields<'_>, _: &Env) -> Option<PathBuf> {
        let cwd = fields.quiet_text(&["cwd", "workspaceDir"]);
        cwd.filter(|cwd| !cwd.is_empty()).map(|cwd| cwd.into_owned().into())
    }

    fn allow(&self, event: &Event) -> Option<Value> {
        (*event == Event::Stop).then(|| json!({"action": "continue"}))
    }

    fn block(&self, event: &Event, reason: &str) -> Option<Value> {
        let retry = json!({
            "instruction": reason,
            "idempotencyKey": "aldis:gate",
            "maxAttempts": REVISIONS,
        });
        (*event == Event::Stop)
            .then(|| json!({"action": "revise", "reason": reason, "retry": retry}))
    }

    fn context(&self, _: &Event, _: &str) -> Option<Value> {
        None
    }

    fn block_cap(&self, _: &Env) -> BlockCap {
        BlockCap::strict(REVISIONS)
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".openclaw")
    }

    fn formats(&self) -> &'static [Format] {
        // Its sessions have Droid's envelope.
        &[Format::Droid]
    }
}
