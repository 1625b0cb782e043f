//! `droid exec -o stream-json`. Its prices are in credits, which are no money.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Out, text};
use crate::claude_stream::ordinary::CLAUDE_TOKENS;

/// Facts of one stream.
#[derive(Debug)]
pub(super) struct Droid;

impl Source for Droid {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        out.session(text(line, "/session_id"));
        match text(line, "/type").unwrap_or_default() {
            "message" if text(line, "/role") == Some("assistant") => out.worked(),
            "tool_call" => {
                let name = text(line, "/toolName").or_else(|| text(line, "/toolId"));
                out.tool(text(line, "/id"), name.unwrap_or_default());
            }
            "error" => out.error(text(line, "/message").unwrap_or("error")),
            "completion" => {
                let usage = line.get("usage").unwrap_or(&Value::Null);
                out.spent(Cost::of_tokens(usage, &CLAUDE_TOKENS));
                out.ended(!out.is_troubled(), None);
            }
            _ => {}
        }
    }
}
