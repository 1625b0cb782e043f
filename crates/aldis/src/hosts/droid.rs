//! Factory's Droid: Claude Code's way, but a sub-agent's stop carries a result and cannot be blocked.

use std::path::PathBuf;

use aldis_transcript::Format;
use serde_json::{Value, json};

use super::adapter::Adapter;
use super::hook::call::Remark;
use super::hook::fields::Fields;
use super::{CutShort, Env, Event};

/// Droid's way.
#[derive(Debug)]
pub(super) struct Droid;

impl Adapter for Droid {
    fn final_text(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        fields.text(&["last_assistant_message", "lastAssistantMessage", "task_result"], remarks)
    }

    fn project_dir(&self, env: &Env) -> Option<PathBuf> {
        env.claude_project_dir.clone()
    }

    fn cut_short(&self, fields: &Fields<'_>) -> Option<CutShort> {
        let error = fields.quiet_text(&["task_error"]).filter(|error| !error.is_empty());
        error.map(|error| CutShort::Failed(error.into_owned()))
    }

    fn block(&self, event: &Event, reason: &str) -> Option<Value> {
        (*event == Event::Stop).then(|| json!({"decision": "block", "reason": reason}))
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".factory")
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::Droid]
    }
}
