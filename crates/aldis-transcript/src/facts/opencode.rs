//! `opencode run --format json`, and the events of its bus.
//!
//! There is no result line: a step that ends with `stop` is the last word, or on the bus that the
//! session is idle. A part may come again when it has changed, so costs are kept by part.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Ledger, Out, text};
use super::trouble::kind_of;
use aldis_signal::time::Timestamp;

/// Facts of one stream.
#[derive(Debug, Default)]
pub(super) struct OpenCode {
    steps: Ledger,
}

impl Source for OpenCode {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        let props = line.get("properties").unwrap_or(line);
        let part = props.get("part");
        let session = text(props, "/sessionID").or_else(|| text(props, "/part/sessionID"));
        let is_main = out.is_main(session);
        if is_main {
            out.session(session);
        }
        match text(line, "/type").unwrap_or_default() {
            "session.idle" if is_main => out.ended(!out.is_troubled(), None),
            "session.status" if is_main => status(props, out),
            "error" | "session.error" if is_main => {
                let error = props.get("error").unwrap_or(&Value::Null);
                failure(error, out);
            }
            "step_finish" | "tool_use" | "text" | "message.part.updated" => {
                if let Some(part) = part {
                    self.part(part, is_main, out);
                }
            }
            _ => {}
        }
    }
}

impl OpenCode {
    fn part(&mut self, part: &Value, is_main: bool, out: &mut Out<'_>) {
        match text(part, "/type").unwrap_or_default() {
            "tool" => {
                let call = text(part, "/callID").or_else(|| text(part, "/id"));
                out.tool(call, text(part, "/tool").unwrap_or_default());
            }
            "text" if is_main => out.worked(),
            "step-finish" => {
                let tokens = part.get("tokens").unwrap_or(&Value::Null);
                let cache = tokens.get("cache").unwrap_or(&Value::Null);
                let cost = Cost::of_tokens(tokens, &["input", "output", "reasoning"])
                    .plus(Cost::of_tokens(cache, &["read", "write"]))
                    .with_dollars(part.get("cost"));
                self.steps.note(text(part, "/id").unwrap_or_default(), cost);
                out.spent(self.steps.total());
                match text(part, "/reason") {
                    Some("stop") if is_main => out.ended(!out.is_troubled(), None),
                    Some(reason @ ("length" | "content-filter" | "error")) if is_main => {
                        out.ended(false, Some(reason));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

fn status(props: &Value, out: &mut Out<'_>) {
    match text(props, "/status/type") {
        Some("idle") => out.ended(!out.is_troubled(), None),
        Some("retry") => {
            let next = props.pointer("/status/next").and_then(Value::as_i64);
            let words = text(props, "/status/message").unwrap_or("error");
            out.retrying(words, next.map(Timestamp::from_millis));
        }
        _ => {}
    }
}

fn failure(error: &Value, out: &mut Out<'_>) {
    let words = ["/data/message", "/message", "", "/name"];
    let words = words.iter().find_map(|path| text(error, path)).unwrap_or("error");
    let status = error.pointer("/data/statusCode").and_then(Value::as_u64);
    let wait = text(error, "/data/responseHeaders/retry-after");
    let wait = wait.and_then(|seconds| seconds.parse::<f64>().ok());
    let until = wait.and_then(|seconds| out.in_millis(seconds * 1_000.0));
    out.trouble(kind_of(status, None, words), words, until);
}
