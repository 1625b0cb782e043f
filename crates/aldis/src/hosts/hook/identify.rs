//! Tells hosts apart by what they send.
//!
//! Cursor and Copilot run the hooks they find in Claude Code's settings, each with its own payload, and
//! several hosts set the same environment variables. So the registration is only the first guess: a
//! payload that is plainly another host's is that host's.

use super::call::PayloadError;
use super::fields::Fields;
use crate::hosts::Host;
use crate::hosts::adapter::EVENT_NAMES;

/// Returns who sent a payload.
pub(super) fn host(registered: Host, fields: &Fields<'_>) -> Result<Host, PayloadError> {
    if fields.has("hookName") && fields.has("clineVersion") {
        return Err(PayloadError::Unsupported("Cline"));
    }
    let found = by_shape(fields).or_else(|| by_path(fields)).or_else(|| by_time(fields));
    Ok(found.unwrap_or_else(|| {
        let plain = fields.get("hook_event_name").is_some() && fields.get("session_id").is_some();
        if plain && always_marked(registered, fields) { Host::ClaudeCode } else { registered }
    }))
}

/// Marks that only one host leaves. The order matters: see the tests.
fn by_shape(fields: &Fields<'_>) -> Option<Host> {
    let has = |name| fields.has(name);
    let event = fields.quiet_text(EVENT_NAMES).unwrap_or_default();
    let unnamed = !fields.has_any(EVENT_NAMES);
    match () {
        () if has("cursor_version") || has("conversation_id") && has("generation_id") => {
            Some(Host::Cursor)
        }
        () if unnamed && has("event") => Some(Host::Goose),
        () if unnamed && has("type") && has("properties") => Some(Host::OpenCode),
        () if unnamed && fields.has_any(&["runId", "sessionKey"]) => Some(Host::OpenClaw),
        () if matches!(&*event, "AfterAgent" | "BeforeAgent") || has("prompt_response") => {
            Some(Host::Gemini)
        }
        () if has("turn_id") && has("model") => Some(Host::Codex),
        () if fields.has_any(&["tool_execution_count", "elapsed_time", "task_result"])
            || has("hookEventName") =>
        {
            Some(Host::Droid)
        }
        () if fields.has_any(&["stopReason", "stop_reason"]) => Some(Host::Copilot),
        () if fields.has_any(&["context_usage", "context_limit"]) => Some(Host::Qwen),
        () => None,
    }
}

/// Transcripts lie in their host's own directory.
fn by_path(fields: &Fields<'_>) -> Option<Host> {
    let path = fields.quiet_text(&["transcript_path", "transcriptPath"])?;
    let folders = path.split(['/', '\\']);
    let owner = |folder: &str| {
        Host::ALL.into_iter().find(|host| host.adapter().config_dir_name() == Some(folder))
    };
    folders.rev().skip(1).find_map(owner)
}

/// Of the hosts that are otherwise like Claude Code, only Qwen says when it stopped.
fn by_time(fields: &Fields<'_>) -> Option<Host> {
    let dated = fields.quiet_text(&["timestamp"]).is_some();
    (dated && is_stop(fields)).then_some(Host::Qwen)
}

/// Returns whether this event would have been recognised had this host sent it.
fn always_marked(host: Host, fields: &Fields<'_>) -> bool {
    match host {
        Host::Cursor | Host::Goose | Host::OpenClaw | Host::OpenCode => true,
        Host::Codex | Host::Copilot | Host::Gemini => is_stop(fields),
        // Their marks came with later releases.
        Host::ClaudeCode | Host::Droid | Host::Qwen => false,
    }
}

fn is_stop(fields: &Fields<'_>) -> bool {
    let event = fields.quiet_text(EVENT_NAMES).unwrap_or_default();
    matches!(&*event, "Stop" | "StopFailure" | "SubagentStop")
}
