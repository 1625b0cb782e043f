//! `codex exec --json`.
//!
//! The usage of a turn is that of its thread so far, cached tokens within the input and reasoning
//! within the output. There is no price. An error line can be a notice that the host tries again.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Out, text};

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
        let Some(rest) = line.strip_prefix(br#"{"type":"item."#) else { return false };
        let kinds: [&[u8]; 3] = [b"completed", b"started", b"updated"];
        let Some(rest) = kinds.iter().find_map(|kind| rest.strip_prefix(*kind)) else {
            return false;
        };
        let Some(rest) = rest.strip_prefix(br#"","item":{"id":""#) else { return false };
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'-';
        let length = rest.iter().position(|byte| !plain(byte)).unwrap_or(0);
        let (id, rest) = rest.split_at(length);
        let Ok(id) = std::str::from_utf8(id) else { return false };
        if rest.starts_with(br#"","type":"command_execution","#) {
            out.tool(Some(id), "command_execution");
            return true;
        }
        if rest.starts_with(br#"","type":"agent_message","#) {
            out.worked();
            return true;
        }
        false
    }
}

fn item(line: &Value, out: &mut Out<'_>) {
    let Some(item) = line.get("item") else { return };
    let id = text(item, "/id");
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
