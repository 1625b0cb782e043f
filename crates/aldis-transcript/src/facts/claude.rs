//! `claude -p --output-format stream-json`, and the streams of Amp and Qwen, which follow it.
//!
//! A message comes as one line per block, each with the usage of the whole message, and with deltas
//! before them: costs are kept by message. The result names the totals of the process. An API error
//! comes as a message that the host wrote (`error`, or the model `<synthetic>`), then again as the
//! result.

use serde_json::Value;

use super::Source;
use super::out::{Cost, Ledger, Out, count, text};
use super::trouble::{self, Kind, kind_of};
use crate::blocks::is_call;
use crate::claude_stream::ordinary::{CLAUDE_TOKENS, Ordinary};
use aldis_signal::time::Timestamp;

/// Where a denied call says what it was to do.
const DENIED: [&str; 6] = [
    "/tool_input/command",
    "/tool_input/file_path",
    "/tool_input/notebook_path",
    "/tool_input/path",
    "/tool_input/url",
    "/tool_input/query",
];

/// Facts of one stream.
#[derive(Debug, Default)]
pub(super) struct Claude {
    messages: Ledger,
    /// The main agent's message of which deltas come, and its costs when it began.
    open: Option<(String, Cost)>,
}

impl Source for Claude {
    fn line(&mut self, line: &Value, out: &mut Out<'_>) {
        out.session(text(line, "/session_id"));
        let is_main = line.get("parent_tool_use_id").is_none_or(Value::is_null);
        match text(line, "/type").unwrap_or_default() {
            "assistant" => self.message(line, is_main, out),
            "stream_event" if is_main => self.delta(line, out),
            "result" => result(line, out),
            "rate_limit_event" => limit(line, out),
            "system" if text(line, "/subtype") == Some("api_retry") => retry(line, out),
            _ => {}
        }
    }

    /// What tools printed, and prompts: the session is known from the lines before. And what the
    /// agent says and calls.
    fn glance(&mut self, line: &[u8], out: &mut Out<'_>) -> bool {
        if line.starts_with(br#"{"type":"user","message":"#) {
            return true;
        }
        Ordinary::read(line).is_some_and(|line| self.ordinary(&line, out))
    }

    fn ordinary(&mut self, line: &Ordinary<'_>, out: &mut Out<'_>) -> bool {
        self.said(line, out).is_some()
    }
}

impl Claude {
    /// As [`message`](Self::message), for one that nothing is the matter with.
    fn said(&mut self, line: &Ordinary<'_>, out: &mut Out<'_>) -> Option<()> {
        let (session, id) = (line.session_id.read()?, line.id.read()?);
        let calls = line.blocks().iter().filter(|block| is_call(block.kind()));
        let calls: Option<Vec<_>> =
            calls.map(|call| Some((call.id.read()?, call.name.read()?))).collect();
        let calls = calls?;
        out.session(session.as_deref());
        if !line.parent_tool_use_id.is_some() {
            out.worked();
        }
        if let (Some(id), Some(tokens)) = (id.as_deref(), line.tokens) {
            self.messages.note(id, Cost { tokens, micro_dollars: 0 });
            out.spent(self.messages.total());
        }
        for (id, name) in &calls {
            out.tool(id.as_deref(), name.as_deref().unwrap_or_default());
        }
        Some(())
    }

    fn message(&mut self, line: &Value, is_main: bool, out: &mut Out<'_>) {
        let said = line.get("message").unwrap_or(&Value::Null);
        let blocks = said.get("content").and_then(Value::as_array);
        let blocks = blocks.map(Vec::as_slice).unwrap_or_default();
        let error = line.get("error").filter(|error| !error.is_null());
        if error.is_some() || text(said, "/model") == Some("<synthetic>") {
            // Whether a sub-agent's failure is one is for the main agent to say.
            if is_main {
                let words = blocks.iter().filter_map(|block| text(block, "/text"));
                host_message(error, &words.collect::<Vec<_>>().join(" "), out);
            }
            return;
        }
        if is_main {
            out.worked();
        }
        if let (Some(id), Some(usage)) = (text(said, "/id"), said.get("usage")) {
            self.messages.note(id, Cost::of_tokens(usage, &CLAUDE_TOKENS));
            out.spent(self.messages.total());
        }
        for block in blocks {
            let kind = text(block, "/type").unwrap_or_default();
            if is_call(kind) {
                out.tool(text(block, "/id"), text(block, "/name").unwrap_or_default());
            }
        }
    }

    /// The costs of a message are only complete in its last delta.
    fn delta(&mut self, line: &Value, out: &mut Out<'_>) {
        let event = line.get("event").unwrap_or(&Value::Null);
        match text(event, "/type").unwrap_or_default() {
            "message_start" => {
                let usage = event.pointer("/message/usage").unwrap_or(&Value::Null);
                let input = [CLAUDE_TOKENS[0], CLAUDE_TOKENS[2], CLAUDE_TOKENS[3]];
                let cost = Cost::of_tokens(usage, &input);
                self.open = text(event, "/message/id").map(|id| (id.to_owned(), cost));
            }
            "message_delta" => {
                let said = event.pointer("/usage/output_tokens").and_then(count);
                if let (Some((id, input)), Some(tokens)) = (&self.open, said) {
                    self.messages.note(id, input.plus(Cost { tokens, micro_dollars: 0 }));
                    out.spent(self.messages.total());
                }
            }
            _ => {}
        }
    }
}

fn result(line: &Value, out: &mut Out<'_>) {
    let models = line.get("modelUsage").and_then(Value::as_object);
    let models = models.map(|models| {
        let costs = models.values().map(|usage| Cost::of_tokens(usage, &CLAUDE_TOKENS));
        costs.fold(Cost::default(), Cost::plus)
    });
    let usage = line.get("usage").map(|usage| Cost::of_tokens(usage, &CLAUDE_TOKENS));
    let main = usage.unwrap_or_default();
    let all = models.unwrap_or_default();
    let tokens = main.tokens.max(all.tokens);
    let total = Cost { tokens, micro_dollars: 0 };
    out.spent(total.with_dollars(line.get("total_cost_usd")));

    let denials = line.get("permission_denials").and_then(Value::as_array);
    for denial in denials.into_iter().flatten() {
        let what = DENIED.iter().find_map(|path| text(denial, path)).unwrap_or_default();
        out.denied(text(denial, "/tool_name").unwrap_or_default(), what);
    }

    let subtype = text(line, "/subtype").unwrap_or_default();
    let reason = text(line, "/terminal_reason");
    // A result can be a success by its subtype and an error nevertheless.
    let is_error = line.get("is_error").and_then(Value::as_bool);
    if !is_error.unwrap_or_else(|| subtype.starts_with("error") || subtype == "failure") {
        out.ended(true, reason.filter(|reason| *reason != "completed"));
        return;
    }
    let words = ["/result", "/error", "/error/message", "/errors/0", "/errors/0/message"];
    let words = words.iter().find_map(|path| text(line, path)).unwrap_or_default();
    let status = line.get("api_error_status").and_then(Value::as_u64);
    let is_api = status.is_some()
        || subtype == "success"
        || matches!(reason, Some("api_error" | "model_error" | "prompt_too_long"));
    if is_api || out.is_troubled() {
        out.trouble(kind_of(status, None, words), words, None);
    } else if let Some(Kind::Limit) = trouble::line(words) {
        out.trouble(Kind::Limit, words, None);
    }
    let what = if words.is_empty() { reason.unwrap_or(subtype) } else { words };
    out.ended(false, Some(what));
}

/// A message that the host wrote in the agent's name.
fn host_message(error: Option<&Value>, words: &str, out: &mut Out<'_>) {
    let Some(error) = error else {
        if let Some(kind) = trouble::line(words) {
            out.trouble(kind, words, None);
        }
        return;
    };
    let name = error.as_str().or_else(|| text(error, "/type"));
    let words = if words.is_empty() { name.unwrap_or("API error") } else { words };
    out.trouble(kind_of(None, name, words), words, None);
}

/// Comes with every answer; only a refusal without paid overage is a limit.
fn limit(line: &Value, out: &mut Out<'_>) {
    let Some(info) = line.get("rate_limit_info") else { return };
    let goes_on = info.get("isUsingOverage").and_then(Value::as_bool) == Some(true)
        || matches!(text(info, "/overageStatus"), Some("allowed" | "allowed_warning"));
    if text(info, "/status") != Some("rejected") || goes_on {
        return;
    }
    let until = info.get("resetsAt").and_then(Value::as_i64);
    let until = until.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1_000)));
    let window = text(info, "/rateLimitType").unwrap_or("usage").replace('_', " ");
    out.trouble(Kind::Limit, &format!("{window} limit reached"), until);
}

fn retry(line: &Value, out: &mut Out<'_>) {
    let delay = line.get("retry_delay_ms").and_then(Value::as_f64);
    let until = delay.and_then(|millis| out.in_millis(millis));
    let error = text(line, "/error").unwrap_or("API error");
    let status = line.get("error_status").and_then(Value::as_u64);
    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
    let attempt = line.get("attempt").and_then(Value::as_u64).unwrap_or(1);
    let most = line.get("max_retries").and_then(Value::as_u64);
    let most = most.map(|most| format!(" of {most}")).unwrap_or_default();
    out.retrying(&format!("{error}{status}, attempt {attempt}{most}"), until);
}
