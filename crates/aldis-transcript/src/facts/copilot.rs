//! `copilot -p --output-format json`. It names no tokens that could be added up, and no price.

use serde_json::Value;

use super::Source;
use super::out::{Out, text};
use super::trouble::kind_of;

/// Facts of one stream.
#[derive(Debug)]
pub(super) struct Copilot;

impl Source for Copilot {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        let data = line.get("data").unwrap_or(&Value::Null);
        match text(line, "/type").unwrap_or_default() {
            "session.start" | "session.resume" => out.session(text(data, "/sessionId")),
            "assistant.message" => message(line, data, out),
            "tool.execution_start" => {
                let name = text(data, "/toolName").unwrap_or_default();
                out.tool(text(data, "/toolCallId"), name);
            }
            "session.error" => {
                let status = data.get("statusCode").and_then(Value::as_u64);
                let words = text(data, "/message").unwrap_or("error");
                out.trouble(kind_of(status, text(data, "/errorType"), words), words, None);
            }
            "result" => {
                out.session(text(line, "/sessionId"));
                let code = line.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
                // An error can be followed by exit code 0.
                let ok = code == 0 && !out.is_troubled();
                let what = (code != 0 && !out.is_troubled()).then(|| format!("exit code {code}"));
                out.ended(ok, what.as_deref());
            }
            _ => {}
        }
    }
}

fn message(line: &Value, data: &Value, out: &mut Out<'_>) {
    let is_side = line.get("agentId").is_some_and(Value::is_string)
        || data.get("parentToolCallId").is_some_and(Value::is_string);
    if !is_side {
        out.worked();
    }
    let requests = data.get("toolRequests").and_then(Value::as_array);
    for request in requests.map(Vec::as_slice).unwrap_or_default() {
        out.tool(text(request, "/toolCallId"), text(request, "/name").unwrap_or_default());
    }
}
