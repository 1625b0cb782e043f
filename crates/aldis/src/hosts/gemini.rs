//! Gemini CLI. Where standard output is empty it reads standard error, so it always gets an answer.

use std::path::PathBuf;

use aldis_transcript::Format;
use serde_json::{Value, json};

use super::adapter::{Adapter, EVENT_NAMES, additional_context, named_event, prompt};
use super::hook::call::Remark;
use super::hook::fields::Fields;
use super::{Env, Event};

/// Gemini's way.
#[derive(Debug)]
pub(super) struct Gemini;

impl Adapter for Gemini {
    fn event(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
        let name = fields.text(EVENT_NAMES, remarks).unwrap_or_default();
        match &*name {
            "AfterAgent" => Event::Stop,
            "BeforeAgent" => prompt(fields, remarks),
            _ => named_event(name, fields, remarks),
        }
    }

    fn final_text(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        let text = fields.text(&["prompt_response"], remarks);
        text.filter(|text| text.trim() != "[no response text]")
    }

    fn project_dir(&self, env: &Env) -> Option<PathBuf> {
        env.gemini_project_dir.clone().or_else(|| env.claude_project_dir.clone())
    }

    fn allow(&self, event: &Event) -> Option<Value> {
        Some(if *event == Event::Stop { json!({"decision": "allow"}) } else { json!({}) })
    }

    fn block(&self, event: &Event, reason: &str) -> Option<Value> {
        (*event == Event::Stop).then(|| json!({"decision": "deny", "reason": reason}))
    }

    fn context(&self, event: &Event, text: &str) -> Option<Value> {
        match event {
            Event::Prompt { .. } => Some(additional_context("BeforeAgent", text)),
            Event::SessionStart { .. } => Some(additional_context("SessionStart", text)),
            _ => None,
        }
    }

    fn config_dir_name(&self) -> Option<&'static str> {
        Some(".gemini")
    }

    fn formats(&self) -> &'static [Format] {
        &[Format::GeminiSession]
    }
}
