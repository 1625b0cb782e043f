//! How the lines of each format look.

use crate::Format::{self, *};
use crate::members::Members;

/// One way in which a line of a format looks.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) format: Format,
    /// The line's type: one of these. `*` stands for anything; no type at all for a line without one.
    kinds: &'static [&'static str],
    /// Members that it has, be they `null`.
    with: &'static [&'static str],
    /// Members that it does not have.
    pub(super) without: &'static [&'static str],
}

impl Row {
    const fn new(
        format: Format,
        kinds: &'static [&'static str],
        with: &'static [&'static str],
        without: &'static [&'static str],
    ) -> Self {
        Self { format, kinds, with, without }
    }

    /// Returns whether a line of this type with these members looks like this.
    pub(super) fn fits(&self, kind: Option<&str>, members: &Members<'_>) -> bool {
        let is_kind = |known: &&str| match (kind, known.split_once('*')) {
            (Some(kind), None) => kind == *known,
            (Some(kind), Some((start, inside))) => {
                kind.strip_prefix(start).is_some_and(|rest| rest.contains(inside))
            }
            (None, _) => false,
        };
        (self.kinds.iter().any(is_kind) || kind.is_none() && self.kinds.is_empty())
            && self.with.iter().all(|name| members.has(name))
            && !self.without.iter().any(|name| members.has(name))
    }
}

/// No type.
const NONE: &[&str] = &[];
/// Any type.
const ANY: &[&str] = &["*"];
/// A type with a dot in it.
const DOTTED: &[&str] = &["*."];

/// Whole lines. The first row that fits decides.
pub(super) const LINES: &[Row] = &[
    Row::new(Acp, NONE, &["jsonrpc"], &[]),
    Row::new(Acp, ANY, &["jsonrpc"], &[]),
    // Lines without a type.
    Row::new(GeminiSession, NONE, &["$set"], &[]),
    Row::new(GeminiSession, NONE, &["$rewindTo"], &[]),
    Row::new(GeminiSession, NONE, &["sessionId", "projectHash"], &[]),
    Row::new(GeminiSession, NONE, &["sessionId", "messages"], &[]),
    Row::new(ClaudeCode, NONE, &["parentUuid"], &[]),
    Row::new(CursorTranscript, NONE, &["role", "message"], &[]),
    Row::new(KimiStream, NONE, &["role", "tool_calls"], &[]),
    Row::new(KimiStream, NONE, &["role", "tool_call_id"], &[]),
    Row::new(AntigravityStream, NONE, &["event", "init"], &[]),
    Row::new(AntigravityStream, NONE, &["event", "step_update"], &[]),
    Row::new(AntigravityStream, NONE, &["event", "result"], &[]),
    Row::new(Kiro, NONE, &["version", "kind", "data"], &[]),
    // Types that one host alone has.
    Row::new(Antigravity, ANY, &["step_index", "source"], &[]),
    Row::new(AntigravityStream, &["step_update"], &["step_type"], &[]),
    Row::new(Pi, &["session"], &["version", "cwd"], &[]),
    Row::new(Pi, PI_ENTRIES, &["parentId"], &[]),
    Row::new(Pi, PI_EVENTS, &[], &[]),
    Row::new(CodexRollout, ROLLOUT, &["payload"], &[]),
    Row::new(Cline, &["run_start", "agent_event", "run_result", "run_aborted"], &[], &[]),
    Row::new(Cline, &["team_event"], &[], &[]),
    Row::new(Cline, &["say", "ask"], &["say"], &[]),
    Row::new(Cline, &["say", "ask"], &["ask"], &[]),
    Row::new(KimiWire, &["metadata"], &["protocol_version"], &[]),
    Row::new(KimiWire, DOTTED, &["agentId"], &["data"]),
    Row::new(KimiStream, DOTTED, &["role"], &[]),
    Row::new(OpenCode, DOTTED, &["properties"], &[]),
    Row::new(Copilot, DOTTED, &["data"], &[]),
    Row::new(CodexExec, &["thread.*", "turn.*", "item.*"], &[], &[]),
    Row::new(OpenCode, ANY, &["sessionID"], &[]),
    Row::new(Droid, &["session_start"], &["id"], &[]),
    Row::new(Goose, &["notification"], &["extension_id"], &[]),
    Row::new(Goose, &["complete"], &["total_tokens"], &[]),
    // Types that several hosts have.
    Row::new(Droid, &["message"], &["message", "id"], &[]),
    Row::new(Goose, &["message"], &["message"], &[]),
    Row::new(DroidStream, &["message"], &["text"], &[]),
    Row::new(GeminiStream, &["message"], &["content"], &[]),
    Row::new(GeminiStream, &["init"], &["session_id"], &[]),
    Row::new(GeminiStream, &["tool_use"], &["tool_name"], &[]),
    Row::new(GeminiStream, &["tool_result"], &["tool_id"], &[]),
    Row::new(GeminiSession, JOURNAL, &["id", "content"], &[]),
    Row::new(DroidStream, DROID, &["session_id"], &["subtype"]),
    Row::new(Copilot, &["result"], &["exitCode"], &[]),
    Row::new(GeminiStream, &["result"], &["stats"], &[]),
    // Claude Code and those that copied it.
    Row::new(ClaudeCode, ANY, &["parentUuid"], &[]),
    Row::new(ClaudeCode, ANY, &["sessionId"], &[]),
    Row::new(ClaudeCode, ANY, &["isSidechain"], &[]),
    Row::new(ClaudeCode, ANY, &["leafUuid"], &[]),
    Row::new(ClaudeCode, &["file-history-snapshot", "summary"], &[], &[]),
    Row::new(ClaudeStream, &["stream_event"], &[], &[]),
    Row::new(DroidStream, &["system"], &["reasoning_effort"], &[]),
    Row::new(DroidStream, &["system"], &["tools"], &["mcp_servers", "uuid"]),
    Row::new(CursorStream, &["system"], &["apiKeySource"], &["tools", "uuid"]),
    Row::new(ClaudeStream, &["user", "assistant"], &["parent_tool_use_id"], &[]),
    Row::new(CursorStream, &["user", "assistant"], &["message", "session_id"], &["uuid"]),
    Row::new(ClaudeCode, &["user", "assistant"], &["message"], &["session_id"]),
    Row::new(CursorStream, &["thinking", "tool_call"], &["subtype"], &[]),
    Row::new(CursorStream, &["result"], &["request_id"], &[]),
    // Other hosts' lines name their session like this too.
    Row::new(ClaudeStream, STREAM, &["session_id"], &[]),
];

/// Lines whose end is missing, if no row of [`LINES`] fits. Where the members before the cut fit
/// several hosts, one of them is taken: a wrong host's reader finds too little, while text finds too
/// much. Amp, Qwen and Cursor write lines like Claude's, and its reader knows who speaks in them.
pub(super) const CUT: &[Row] = &[
    Row::new(GeminiSession, &["user", "gemini"], &["content"], &["message"]),
    Row::new(ClaudeStream, SPOKEN, &["message"], &[]),
    Row::new(ClaudeStream, SPOKEN, &["result"], &[]),
    Row::new(ClaudeStream, SPOKEN, &["subtype"], &[]),
    Row::new(ClaudeStream, SPOKEN, &["uuid"], &[]),
    Row::new(DroidStream, DROID, &["finalText"], &[]),
    Row::new(DroidStream, DROID, &["messageId"], &[]),
    Row::new(DroidStream, DROID, &["toolId"], &[]),
    Row::new(DroidStream, DROID, &["toolName"], &[]),
    Row::new(Acp, NONE, &["method", "params"], &[]),
    Row::new(ClaudeCode, NONE, &["isSidechain"], &[]),
    Row::new(GeminiSession, NONE, &["id", "content"], &[]),
    Row::new(ClaudeStream, NONE, &["message"], &[]),
];

const ROLLOUT: &[&str] =
    &["session_meta", "turn_context", "response_item", "event_msg", "compacted"];
/// Its messages have Droid's envelope: without the first line they are taken for Droid's, whose reader
/// knows who speaks in them.
const PI_ENTRIES: &[&str] =
    &["model_change", "thinking_level_change", "compaction", "custom_message"];
const PI_EVENTS: &[&str] = &["agent_start", "agent_end", "message_end", "turn_start", "turn_end"];
const JOURNAL: &[&str] = &["user", "gemini", "info", "error", "warning"];
const DROID: &[&str] = &["reasoning", "tool_call", "tool_result", "completion", "error"];
const SPOKEN: &[&str] = &["assistant", "result", "system", "user"];
const STREAM: &[&str] = &[
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
