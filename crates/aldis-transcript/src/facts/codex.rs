//! `codex exec --json`.
//!
//! The usage of a turn is that of its thread so far, cached tokens within the input and reasoning
//! within the output. There is no price. An error line can be a notice that the host tries again.

use memchr::memmem;
use serde_json::Value;

use super::Source;
use super::out::{Cost, Out, text};
use crate::codex::{Item, glance};

/// What an item has that was not allowed.
const DECLINED: &[u8] = br#""declined""#;

/// Facts of one stream.
#[derive(Debug)]
pub(super) struct Codex;

impl Source for Codex {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        match text(line, "/type").unwrap_or_default() {
            "thread.started" => out.session(text(line, "/thread_id")),
            "item.started" | "item.updated" | "item.completed" => item(line, out),
            "turn.completed" => {
                let usage = line.get("usage").unwrap_or(&Value::Null);
                out.spent(Cost::of_tokens(usage, &["input_tokens", "output_tokens"]));
                out.ended(true, None);
            }
            "turn.failed" => {
                let words = text(line, "/error/message").unwrap_or("the turn failed");
                out.error(words);
                out.ended(false, Some(words));
            }
            "error" => {
                let words = text(line, "/message").unwrap_or("error");
                if words.starts_with("Reconnecting") {
                    out.retrying(words, None);
                } else {
                    out.error(words);
                }
            }
            _ => {}
        }
    }

    /// Commands and what the agent says.
    fn glance(&mut self, line: &[u8], out: &mut Out<'_>) -> bool {
        if memmem::find(line, DECLINED).is_some() {
            return false;
        }
        match glance(line) {
            Some(Item::Command(id)) => out.tool(Some(id), "command_execution"),
            Some(Item::Answer) => out.worked(),
            None => return false,
        }
        true
    }
}

fn item(line: &Value, out: &mut Out<'_>) {
    let Some(item) = line.get("item") else { return };
    let id = text(item, "/id");
    if text(item, "/status") == Some("declined") {
        let kind = text(item, "/tool").or_else(|| text(item, "/type")).unwrap_or_default();
        return out.denied(kind, text(item, "/command").unwrap_or_default());
    }
    match text(item, "/type").unwrap_or_default() {
        kind @ ("command_execution" | "file_change" | "web_search") => out.tool(id, kind),
        kind @ ("mcp_tool_call" | "collab_tool_call") => {
            let tool = text(item, "/tool").unwrap_or(kind);
            match text(item, "/server") {
                Some(server) => out.tool(id, &format!("{server}/{tool}")),
                None => out.tool(id, tool),
            }
        }
        "agent_message" => out.worked(),
        // A list of plans is no work, and an error among the items is a warning.
        _ => {}
    }
}
