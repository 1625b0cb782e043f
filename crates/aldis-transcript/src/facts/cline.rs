//! `cline --json`, of both generations.
//!
//! The older one writes its requests as lines whose text is JSON, again and again while they run,
//! under the same time stamp.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Ledger, Out, text};

/// Facts of one stream.
#[derive(Debug, Default)]
pub(super) struct Cline {
    requests: Ledger,
}

impl Source for Cline {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        match text(line, "/type").unwrap_or_default() {
            "agent_event" => event(line.get("event").unwrap_or(&Value::Null), out),
            "run_result" => result(line, out),
            "run_aborted" => out.ended(false, text(line, "/reason").or(Some("aborted"))),
            "error" => {
                let words = ["/message", "/error", "/error/message", "/text"];
                out.error(words.iter().find_map(|path| text(line, path)).unwrap_or("error"));
            }
            "say" | "ask" => self.older(line, out),
            _ => {}
        }
    }
}

impl Cline {
    fn older(&mut self, line: &Value, out: &mut Out<'_>) {
        let is_partial = line.get("partial").and_then(Value::as_bool) == Some(true);
        let stamp = line.get("ts").map(Value::to_string).unwrap_or_default();
        let words = text(line, "/text").unwrap_or_default();
        let inner = || serde_json::from_str::<Value>(words).unwrap_or_default();
        match text(line, "/say").or_else(|| text(line, "/ask")).unwrap_or_default() {
            "api_req_started" => {
                let request = inner();
                let tokens = ["tokensIn", "tokensOut", "cacheWrites", "cacheReads"];
                let cost = Cost::of_tokens(&request, &tokens).with_dollars(request.get("cost"));
                self.requests.note(&stamp, cost);
                out.spent(self.requests.total());
            }
            "api_req_failed" => out.error(words),
            "tool" if !is_partial => {
                out.tool(Some(&stamp), text(&inner(), "/tool").unwrap_or_default());
            }
            kind @ ("command" | "use_mcp_server" | "browser_action") if !is_partial => {
                out.tool(Some(&stamp), kind);
            }
            "completion_result" if !is_partial => out.ended(true, None),
            "text" => out.worked(),
            _ => {}
        }
    }
}

fn event(event: &Value, out: &mut Out<'_>) {
    match text(event, "/contentType") {
        Some("text") => out.worked(),
        Some("tool" | "tool_call" | "tool_use") => {
            let call = text(event, "/toolCallId").or_else(|| text(event, "/toolUseId"));
            // The end of a call without a name would count it twice.
            if call.is_some() || text(event, "/type") == Some("content_start") {
                out.tool(call, text(event, "/toolName").unwrap_or_default());
            }
        }
        _ => {}
    }
}

fn result(line: &Value, out: &mut Out<'_>) {
    let usage = line.get("usage").unwrap_or(&Value::Null);
    let tokens = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];
    let price = usage.get("totalCost").or_else(|| usage.get("cost"));
    out.spent(Cost::of_tokens(usage, &tokens).with_dollars(price));
    match text(line, "/finishReason") {
        Some("completed" | "stop") | None => out.ended(!out.is_troubled(), None),
        Some(reason) => out.ended(false, Some(reason)),
    }
}
