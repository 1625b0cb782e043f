//! How hosts talk to their hooks. Most copied Claude Code, so its way is the default, and a host's
//! file says only what is different there.

use std::path::PathBuf;

use aldis_transcript::Format;
use serde_json::{Value, json};

use super::hook::call::Remark;
use super::hook::fields::Fields;
use super::{BlockCap, CutShort, Env, Event};

/// One host's way.
pub(super) trait Adapter: Sync {
    /// Returns what happened.
    fn event(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
        let name = fields.text(EVENT_NAMES, remarks).unwrap_or_default();
        named_event(name, fields, remarks)
    }

    /// Returns the session.
    fn session(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        fields.text(&["session_id", "sessionId"], remarks)
    }

    /// Returns what the agent said last.
    fn final_text(&self, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Option<String> {
        fields.text(&["last_assistant_message", "lastAssistantMessage"], remarks)
    }

    /// Returns where the agent works.
    fn cwd(&self, fields: &Fields<'_>, _env: &Env) -> Option<PathBuf> {
        fields.quiet_text(&["cwd"]).filter(|cwd| !cwd.is_empty()).map(|cwd| cwd.into_owned().into())
    }

    /// Returns the project as the environment names it.
    fn project_dir(&self, _env: &Env) -> Option<PathBuf> {
        None
    }

    /// Returns why a turn did not end by itself.
    fn cut_short(&self, _fields: &Fields<'_>) -> Option<CutShort> {
        None
    }

    /// Returns the answer that lets things take their course; `None` is an empty answer.
    fn allow(&self, _event: &Event) -> Option<Value> {
        None
    }

    /// Returns the answer that makes the agent go on; `None` if there is none at this event.
    fn block(&self, event: &Event, reason: &str) -> Option<Value> {
        matches!(event, Event::Stop | Event::SubagentStop)
            .then(|| json!({"decision": "block", "reason": reason}))
    }

    /// Returns the answer that tells the agent something; `None` if there is none at this event.
    fn context(&self, event: &Event, text: &str) -> Option<Value> {
        let name = match event {
            Event::Prompt { .. } => "UserPromptSubmit",
            Event::SessionStart { .. } => "SessionStart",
            _ => return None,
        };
        Some(additional_context(name, text))
    }

    /// Returns how often the host lets its hooks go on.
    fn block_cap(&self, _env: &Env) -> BlockCap {
        BlockCap::NONE
    }

    /// Returns the name of the host's directory in the user's home.
    fn config_dir_name(&self) -> Option<&'static str>;

    /// Returns where the environment says that directory is.
    fn config_dir(&self, _env: &Env) -> Option<PathBuf> {
        None
    }

    /// Returns the forms of the host's transcript files, the usual one first; none if unknown.
    fn formats(&self) -> &'static [Format];
}

/// The events as Claude Code names them.
pub(super) fn named_event(name: String, fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
    match &*name {
        "Stop" => Event::Stop,
        "SubagentStop" => Event::SubagentStop,
        "StopFailure" => {
            Event::StopFailure { error: fields.text(&["error"], remarks).unwrap_or_default() }
        }
        "UserPromptSubmit" => prompt(fields, remarks),
        "SessionStart" => Event::SessionStart { source: fields.word(&["source"], remarks) },
        "SessionEnd" => Event::SessionEnd { reason: fields.word(&["reason"], remarks) },
        "Interrupt" => Event::Interrupt,
        _ => Event::Other(name),
    }
}

/// A prompt that is about to be sent.
pub(super) fn prompt(fields: &Fields<'_>, remarks: &mut Vec<Remark>) -> Event {
    let text = fields.text(&["prompt"], remarks).unwrap_or_default();
    Event::Prompt { text, source: fields.word(&["source"], remarks) }
}

/// Context in the form of Claude Code.
pub(super) fn additional_context(event: &str, text: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}

/// Under which names hosts send the name of the event.
pub(super) const EVENT_NAMES: &[&str] = &["hook_event_name", "hookEventName"];
