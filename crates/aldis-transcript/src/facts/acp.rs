//! Agent Client Protocol traffic: what the agent's side says, with or without the client's.
//!
//! Where both sides are recorded, an error is the agent's only if it answers the prompt or what led
//! to it: clients answer with errors too, about files that are not there.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Out, text};

/// Facts of one connection.
#[derive(Debug, Default)]
pub(super) struct Acp {
    /// The client's requests that are not answered yet, once there was any.
    asked: Option<Vec<Value>>,
}

impl Source for Acp {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        if let Some(method) = text(line, "/method") {
            self.request(method, line, out);
        } else if let Some(error) = line.get("error").filter(|error| error.is_object()) {
            if self.answers(line) {
                let words = text(error, "/data/details").or_else(|| text(error, "/message"));
                let words = words.unwrap_or("error");
                out.error(words);
                out.ended(false, Some(words));
            }
        } else if let Some(result) = line.get("result") {
            self.answers(line);
            out.session(text(result, "/sessionId"));
            if let Some(reason) = text(result, "/stopReason") {
                let usage = result.get("usage").unwrap_or(&Value::Null);
                out.spent(Cost::of_tokens(usage, &["totalTokens"]));
                stopped(reason, out);
            }
        }
    }
}

impl Acp {
    fn request(&mut self, method: &str, line: &Value, out: &mut Out<'_>) {
        if matches!(method, "initialize" | "authenticate" | "session/new" | "session/prompt") {
            let asked = self.asked.get_or_insert_default();
            if asked.len() < ASKED_MAX {
                asked.extend(line.get("id").cloned());
            }
        }
        if method != "session/update" {
            return;
        }
        out.session(text(line, "/params/sessionId"));
        let update = line.pointer("/params/update").unwrap_or(&Value::Null);
        match text(update, "/sessionUpdate").unwrap_or_default() {
            "tool_call" => {
                let name = text(update, "/kind").or_else(|| text(update, "/title"));
                out.tool(text(update, "/toolCallId"), name.unwrap_or_default());
            }
            "agent_message" | "agent_message_chunk" => out.worked(),
            // How full the context is says nothing about the costs; the price is the session's.
            "usage_update" if text(update, "/cost/currency") == Some("USD") => {
                out.spent(Cost::default().with_dollars(update.pointer("/cost/amount")));
            }
            "state_update" if text(update, "/state") == Some("idle") => {
                if let Some(reason) = text(update, "/stopReason") {
                    stopped(reason, out);
                }
            }
            _ => {}
        }
    }

    /// Returns whether this answers the client; true where only one side is recorded.
    fn answers(&mut self, line: &Value) -> bool {
        let Some(asked) = &mut self.asked else { return true };
        let id = line.get("id").unwrap_or(&Value::Null);
        let place = asked.iter().position(|known| known == id);
        place.map(|place| asked.remove(place)).is_some()
    }
}

fn stopped(reason: &str, out: &mut Out<'_>) {
    match reason {
        "end_turn" => out.ended(true, None),
        _ => out.ended(false, Some(reason)),
    }
}

/// How many requests may be open at once.
const ASKED_MAX: usize = 64;
