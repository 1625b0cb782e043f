//! Copilot CLI: payloads in two spellings, one of which does not name its event.

use aldis_transcript::Format;
use serde_json::Value;

use super::adapter::{Adapter, EVENT_NAMES, named_event, prompt};
use super::hook::call::Remark;
use super::hook::fields::Fields;
use super::{BlockCap, CutShort, Env, Event};

/// Copilot's way.
#[derive(Debug)]
pub(super) struct Copilot;

impl Adapter for Copilot {
    fn event(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
        if let Some(name) = fields.text(EVENT_NAMES, remarks) {
            return named_event(name, fields, remarks);
        }
        let has = |names: &[&str]| fields.has_any(names);
        match () {
            () if has(&["agentId", "agentName", "agent_id"]) && has(STOP_REASONS) => {
                Event::SubagentStop
            }
            () if has(STOP_REASONS) || has(&["stop_hook_active"]) => Event::Stop,
            () if has(&["prompt"]) => prompt(fields, remarks),
            () if has(&["source", "initialPrompt"]) => {
                Event::SessionStart { source: fields.word(&["source"], remarks) }
            }
            () if has(&["reason"]) => {
                Event::SessionEnd { reason: fields.word(&["reason"], remarks) }
            }
            () => Event::Other(String::new()),
        }
    }

    fn cut_short(&self, fields: &Fields<'_>) -> Option<CutShort> {
        let reason = fields.quiet_text(STOP_REASONS)?;
        match &*reason {
            "end_turn" | "" => None,
            "aborted" | "cancelled" | "canceled" | "interrupted" => Some(CutShort::Aborted),
            "error" => Some(CutShort::Failed("error".to_owned())),
            other => Some(CutShort::Other(other.to_owned())),
        }
    }

    fn context(&self, _: &Event, _: &str) -> Option<Value> {
        None
    }

    fn block_cap(&self, _: &Env) -> BlockCap {
        BlockCap::strict(8)
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".copilot")
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::Copilot]
    }
}

const STOP_REASONS: &[&str] = &["stopReason", "stop_reason"];
