//! `gemini -p --output-format stream-json`.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Out, text};

/// Facts of one stream.
#[derive(Debug)]
pub(super) struct Gemini;

impl Source for Gemini {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        match text(line, "/type").unwrap_or_default() {
            "init" => out.session(text(line, "/session_id")),
            "message" if text(line, "/role") == Some("assistant") => out.worked(),
            "tool_use" => {
                out.tool(text(line, "/tool_id"), text(line, "/tool_name").unwrap_or_default());
            }
            // A warning is about the work: a hook that said no, a loop that was seen.
            "error" if text(line, "/severity") != Some("warning") => {
                out.error(text(line, "/message").unwrap_or("error"));
            }
            "result" => result(line, out),
            _ => {}
        }
    }
}

fn result(line: &Value, out: &mut Out<'_>) {
    let stats = line.get("stats").unwrap_or(&Value::Null);
    let total = Cost::of_tokens(stats, &["total_tokens"]);
    out.spent(if total.tokens > 0 {
        total
    } else {
        Cost::of_tokens(stats, &["input_tokens", "output_tokens"])
    });
    if text(line, "/status") != Some("error") {
        out.ended(true, None);
        return;
    }
    let words = text(line, "/error/message").or_else(|| text(line, "/error/type"));
    if let Some(words) = words.filter(|words| !is_turn_limit(words)) {
        out.error(words);
    }
    out.ended(false, words.or(Some("error")));
}

/// The host's own bound on turns is neither a limit nor an error of the service.
fn is_turn_limit(words: &str) -> bool {
    words.contains("max session turns") || words.contains("FatalTurnLimited")
}
