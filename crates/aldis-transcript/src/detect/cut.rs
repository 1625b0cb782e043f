//! Lists, and lines and documents of which only the beginning is known.
//!
//! A prompt may be longer than what is looked at, so the first line of a transcript may have no end.
//! Were it taken for text, the prompt would be taken for the agent's words. Where the members before
//! the cut fit several hosts, one of them is guessed: a wrong host's reader hears too little, while
//! text hears too much.

use serde::de::IgnoredAny;

use super::of_line;
use crate::Format;
use crate::members::Members;

/// Returns the format of a list of a host's lines, as `--output-format json` prints with `--verbose`.
/// The first element that tells decides; the end of the list may be missing.
pub(super) fn of_list(bytes: &[u8]) -> Option<Format> {
    elements(bytes).find_map(|element| match Members::of_bytes(element) {
        Ok(members) => of_line(&members),
        Err(_) => of_cut(element),
    })
}

/// Returns the format of an object whose end is missing, if the members before the cut tell it.
pub(super) fn of_cut(bytes: &[u8]) -> Option<Format> {
    let members = Members::before_cut(bytes);
    let has = |name: &&str| members.has(name);
    let telling = TELLING.iter().any(has) || has(&"uuid") && has(&"session_id");
    match members.text("type").as_deref() {
        // Such lines are told apart by what they lack, and that may come behind the cut.
        Some("assistant" | "system" | "user") if !telling => None,
        Some("result") if has(&"is_error") => Some(Format::ClaudeStream),
        _ => of_line(&members),
    }
}

/// Returns the likeliest format of an object or list whose end is missing, where nothing tells it.
pub(super) fn guess(bytes: &[u8]) -> Option<Format> {
    if !is_cut(bytes) {
        return None;
    }
    match bytes.first() {
        Some(b'[') => elements(bytes).find_map(|element| likeliest(&Members::before_cut(element))),
        _ => likeliest(&Members::before_cut(bytes)),
    }
}

/// Returns whether words follow a whole object on its line: somebody writes about it.
pub(super) fn has_words_behind(line: &[u8]) -> bool {
    let (_, behind) = split_value(line);
    let next = behind.trim_ascii_start().first();
    next.is_some_and(|byte| !b",]}{[\0".contains(byte))
}

fn likeliest(members: &Members<'_>) -> Option<Format> {
    let has = |name| members.has(name);
    let any = |names: &[&str]| names.iter().any(|name| members.has(name));
    let format = match members.text("type").as_deref() {
        Some("user" | "gemini") if has("content") && !has("message") => Format::GeminiSession,
        // Amp, Qwen and Cursor write lines like Claude's, and its reader knows who speaks in them.
        Some("assistant" | "result" | "system" | "user")
            if any(&["message", "result", "session_id", "subtype", "uuid"]) =>
        {
            Format::ClaudeStream
        }
        Some("completion" | "reasoning" | "tool_call" | "tool_result")
            if any(&["finalText", "messageId", "toolId", "toolName"]) =>
        {
            Format::DroidStream
        }
        None if has("method") && has("params") => Format::Acp,
        None if has("isSidechain") => Format::ClaudeCode,
        None if has("id") && has("content") => Format::GeminiSession,
        None if has("message") => Format::ClaudeStream,
        _ => return None,
    };
    Some(format)
}

/// Splits a list of objects. The last one may be cut.
fn elements(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        let element;
        (element, rest) = split_value(rest);
        element.starts_with(b"{").then_some(element)
    })
}

/// Splits off the JSON value at the front. One that is broken or cut is all there is.
fn split_value(bytes: &[u8]) -> (&[u8], &[u8]) {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => bytes.split_at(values.byte_offset().min(bytes.len())),
        _ => (bytes, &[]),
    }
}

/// Returns whether the end of a value is missing, and nothing else is wrong with it.
fn is_cut(bytes: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    matches!(values.next(), Some(Err(error)) if error.is_eof())
}

/// The members that tell whose a line is without the rest of it.
const TELLING: [&str; 7] = [
    "isSidechain",
    "leafUuid",
    "mcp_servers",
    "parentUuid",
    "parent_tool_use_id",
    "reasoning_effort",
    "sessionId",
];
