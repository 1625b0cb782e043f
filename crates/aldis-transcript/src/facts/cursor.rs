//! `cursor-agent -p --output-format stream-json`.
//!
//! When it fails there is no result line, only text on standard error and an exit code.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Out, text};

/// Facts of one stream.
#[derive(Debug)]
pub(super) struct Cursor;

impl Source for Cursor {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        out.session(text(line, "/session_id"));
        match text(line, "/type").unwrap_or_default() {
            "assistant" => out.worked(),
            "tool_call" => {
                let call = line.get("tool_call").and_then(Value::as_object);
                let kind = call.and_then(|call| call.keys().next());
                let kind = kind.map(String::as_str).unwrap_or_default();
                let name = text(line, "/tool_call/function/name");
                let name = name.unwrap_or_else(|| kind.strip_suffix("ToolCall").unwrap_or(kind));
                out.tool(text(line, "/call_id"), name);
            }
            "result" => {
                let usage = line.get("usage").unwrap_or(&Value::Null);
                out.spent(Cost::of_tokens(usage, &TOKENS));
                if line.get("is_error").and_then(Value::as_bool) == Some(true) {
                    let words = text(line, "/result").or_else(|| text(line, "/error"));
                    let words = words.or_else(|| text(line, "/subtype")).unwrap_or("error");
                    out.error(words);
                    out.ended(false, Some(words));
                } else {
                    out.ended(true, None);
                }
            }
            _ => {}
        }
    }
}

/// Not documented; seen in both spellings.
const TOKENS: [&str; 8] = [
    "inputTokens",
    "outputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
];
