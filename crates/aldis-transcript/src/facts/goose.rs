//! `goose run --output-format stream-json`. It names no session and no price.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Out, text};

/// Facts of one stream.
#[derive(Debug)]
pub(super) struct Goose;

impl Source for Goose {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        match text(line, "/type").unwrap_or_default() {
            "message" if text(line, "/message/role") == Some("assistant") => {
                let parts = line.pointer("/message/content").and_then(Value::as_array);
                for part in parts.map(Vec::as_slice).unwrap_or_default() {
                    match text(part, "/type").unwrap_or_default() {
                        "toolRequest" | "frontendToolRequest" => {
                            let name = text(part, "/toolCall/value/name").unwrap_or_default();
                            out.tool(text(part, "/id"), name);
                        }
                        // The host explains its errors in the agent's name, after them.
                        "text" if out.is_troubled() => {}
                        _ => out.worked(),
                    }
                }
            }
            "error" => {
                let words = text(line, "/error").or_else(|| text(line, "/error/message"));
                out.error(words.unwrap_or("error"));
            }
            "complete" => {
                out.spent(Cost::of_tokens(line, &["total_tokens"]));
                out.ended(!out.is_troubled(), None);
            }
            _ => {}
        }
    }
}
