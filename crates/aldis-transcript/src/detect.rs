//! Tells formats apart by their first lines.
//!
//! The hosts' forms share member names, so the order of the tests below matters: the most telling
//! ones come first. A line that could be of several hosts decides nothing and the next is asked.
//!
//! Both mistakes cost. A transcript that is taken for text makes prompts and tool results the agent's
//! own words; an answer that shows a host's line and is taken for a transcript is not heard at all.

mod cut;
mod opening;

use self::cut::{guess, has_words_behind, of_cut, of_list};
use self::opening::{Ask, decide};
use super::Format;
use super::lines::trim;
use super::members::Members;

/// Returns the format of an input, given its first bytes (64 KiB are plenty).
///
/// The first line that is a JSON object of a known form decides. After lines that are none, it does
/// so only where most of what follows is JSON too. Anything else is text: an answer of an agent may
/// well show JSON.
pub fn detect(head: &[u8]) -> Format {
    let whole = trim(head);
    let of_lines = || decide(head, Ask::AllThereIs).ok().map(|found| found.0);
    let found = if opening::is_laid_out(whole) {
        of_value(whole).or_else(of_lines)
    } else {
        of_lines().or_else(|| of_value(whole))
    };
    found.unwrap_or(Format::Text)
}

/// Returns the format of an input that still comes, once its first bytes tell, and how many of them
/// are text whatever follows. A `silent` input is not waited for where a line has told enough.
pub(super) fn so_far(head: &[u8], silent: bool) -> (Option<Format>, usize) {
    let ask = if silent { Ask::WholeLines } else { Ask::MoreComes };
    match decide(head, ask) {
        Ok((format, start)) => (Some(format), start),
        Err(text) => (None, text),
    }
}

/// Returns the format that a trimmed line shows, else how much noise it is.
pub(super) fn judge(line: &[u8]) -> Result<Format, usize> {
    match Members::of_bytes(line) {
        Ok(members) => of_line(&members).ok_or(1),
        // Prose before JSON is more likely an answer that shows some.
        Err(_) if has_words_behind(line) => Err(5),
        Err(_) => of_list(line).or_else(|| of_cut(line)).ok_or(5),
    }
}

/// Returns the format of one value, whose end may be missing.
fn of_value(bytes: &[u8]) -> Option<Format> {
    judge(bytes).ok().or_else(|| guess(bytes))
}

fn of_line(members: &Members<'_>) -> Option<Format> {
    if members.has("jsonrpc") {
        return Some(Format::Acp);
    }
    let Some(kind) = members.text("type") else { return of_untyped(members) };
    let has = |name| members.has(name);
    match &*kind {
        "session_meta" | "turn_context" | "response_item" | "event_msg" | "compacted"
            if has("payload") =>
        {
            Some(Format::CodexRollout)
        }
        "run_start" | "agent_event" | "run_result" | "run_aborted" | "team_event" => {
            Some(Format::Cline)
        }
        "say" | "ask" if has("say") || has("ask") => Some(Format::Cline),
        _ if kind.contains('.') => of_event(&kind, members),
        _ if has("sessionID") => Some(Format::OpenCode),
        "session_start" if has("id") => Some(Format::Droid),
        "message" => of_message(members),
        "notification" if has("extension_id") => Some(Format::Goose),
        "complete" if has("total_tokens") => Some(Format::Goose),
        "init" if has("session_id") => Some(Format::GeminiStream),
        "tool_use" if has("tool_name") => Some(Format::GeminiStream),
        "tool_result" if has("tool_id") => Some(Format::GeminiStream),
        "user" | "gemini" | "info" | "error" | "warning" if has("id") && has("content") => {
            Some(Format::GeminiSession)
        }
        "reasoning" | "tool_call" | "tool_result" | "completion" | "error"
            if has("session_id") && !has("subtype") =>
        {
            Some(Format::DroidStream)
        }
        "result" if has("exitCode") => Some(Format::Copilot),
        "result" if has("stats") => Some(Format::GeminiStream),
        _ => of_claude_like(&kind, members),
    }
}

/// Lines without a type, or with none before they are cut: Gemini's session file and Cursor's transcript.
fn of_untyped(members: &Members<'_>) -> Option<Format> {
    let has = |name| members.has(name);
    if has("$set")
        || has("$rewindTo")
        || has("sessionId") && (has("projectHash") || has("messages"))
    {
        return Some(Format::GeminiSession);
    }
    // The type of a long line may come last.
    if has("parentUuid") {
        return Some(Format::ClaudeCode);
    }
    (has("role") && has("message")).then_some(Format::CursorTranscript)
}

/// Types with a dot in them.
fn of_event(kind: &str, members: &Members<'_>) -> Option<Format> {
    let first = kind.split('.').next().unwrap_or_default();
    if members.has("properties") {
        return Some(Format::OpenCode);
    }
    if members.has("data") {
        return Some(Format::Copilot);
    }
    ["thread", "turn", "item"].contains(&first).then_some(Format::CodexExec)
}

/// The three hosts that call their lines `message`, and Gemini.
fn of_message(members: &Members<'_>) -> Option<Format> {
    let has = |name| members.has(name);
    match () {
        () if has("message") && has("id") => Some(Format::Droid),
        () if has("message") => Some(Format::Goose),
        () if has("text") => Some(Format::DroidStream),
        () if has("content") => Some(Format::GeminiStream),
        () => None,
    }
}

fn of_claude_like(kind: &str, members: &Members<'_>) -> Option<Format> {
    let has = |name| members.has(name);
    if has("parentUuid") || has("sessionId") || has("isSidechain") || has("leafUuid") {
        return Some(Format::ClaudeCode);
    }
    match kind {
        "file-history-snapshot" | "summary" => Some(Format::ClaudeCode),
        "stream_event" => Some(Format::ClaudeStream),
        "system" if has("reasoning_effort") => Some(Format::DroidStream),
        "system" if has("tools") && !has("mcp_servers") && !has("uuid") => {
            Some(Format::DroidStream)
        }
        "system" if has("apiKeySource") && !has("tools") && !has("uuid") => {
            Some(Format::CursorStream)
        }
        "user" | "assistant" if has("parent_tool_use_id") => Some(Format::ClaudeStream),
        "user" | "assistant" if has("message") && has("session_id") && !has("uuid") => {
            Some(Format::CursorStream)
        }
        "user" | "assistant" if has("message") && !has("session_id") => Some(Format::ClaudeCode),
        "thinking" | "tool_call" if has("subtype") => Some(Format::CursorStream),
        "result" if has("request_id") => Some(Format::CursorStream),
        // Other hosts' lines name their session like this too.
        _ if CLAUDE_KINDS.contains(&kind) => has("session_id").then_some(Format::ClaudeStream),
        _ => None,
    }
}

/// The types of lines in Claude's stream that are told by their session alone.
const CLAUDE_KINDS: [&str; 11] = [
    "active_goal",
    "assistant",
    "control_request",
    "control_response",
    "keep_alive",
    "rate_limit_event",
    "result",
    "system",
    "tool_progress",
    "tool_use_summary",
    "user",
];
