//! `cline --json`, of both generations.
//!
//! The newer prints events and at the end the result; the older prints what is said and asked, and
//! its requests as lines whose text is JSON, again and again while they run, under the same time
//! stamp. The final text comes in both as an event and as the result, and counts once.

use std::borrow::Cow;

use serde_json::Value;

use crate::item::{
    Call, Channels, Cost, Decode, Decoded, Entry, Item, Part, Text, Usage, Verdict, Wanted, host,
    tool,
};
use crate::members::{Members, Raw};
use aldis_signal::message::{Origin, Role};

/// Decoder of one stream.
#[derive(Debug)]
pub(crate) struct Cline;

impl Decode for Cline {
    fn repeats(&self) -> bool {
        true
    }

    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::of(line.time("ts"), Vec::new());
        let items = &mut entry.items;
        let kind = line.str("type");
        match &*kind {
            "agent_event" => event(items, &line.object("event")),
            "run_result" => result(items, line),
            "say" | "ask" => older(items, line),
            "run_aborted" => {
                let reason = line.text("reason").unwrap_or(Cow::Borrowed("aborted"));
                items.extend([Item::Abort(Channels::All), Item::close()]);
                items.push(Item::failed(reason));
                items.push(Item::record(host("run_aborted line")));
            }
            "error" => {
                let words = line.any_text(&["message", "error", "text"]);
                let words = words.or_else(|| line.object("error").text("message"));
                items.push(Item::error(words.unwrap_or(Cow::Borrowed("error"))));
                items.push(Item::record(host("error line")));
            }
            kind => items.push(Item::record(host(format!("{kind} line")))),
        }
        Ok(vec![entry])
    }
}

fn event<'a>(items: &mut Vec<Item<'a>>, event: &Members<'a>) {
    let (kind, text, of) = (event.str("type"), event.str("text"), Cow::Borrowed(""));
    match event.text("contentType").as_deref() {
        Some("text") => {
            if kind == "content_start" {
                items.push(Item::close());
            }
            // The end repeats the whole.
            if kind != "content_end" {
                items.push(Item::text(Part::Piece { of }, text));
            } else if !text.is_empty() {
                items.extend([Item::text(Part::Version { of }, text), Item::close()]);
            } else {
                items.push(Item::close());
            }
        }
        Some(content) => {
            items.push(Item::close());
            let id = event.any_text(&["toolCallId", "toolUseId"]);
            let by = match content {
                "reasoning" | "thinking" => tool("thinking"),
                _ => tool(format!("{kind} event")),
            };
            // The end of a call without a name would count it twice.
            if matches!(content, "tool" | "tool_call" | "tool_use")
                && (id.is_some() || kind == "content_start")
            {
                let (id, name) = (id.unwrap_or_default(), event.str("toolName"));
                items.push(Item::Call(Call { id, name, ..Call::default() }));
            }
            items.push(Item::record(by));
        }
        None => items.extend([Item::close(), Item::record(host(format!("{kind} event")))]),
    }
}

fn result<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>) {
    let reason = line.text("finishReason");
    let mut by = Origin::assistant();
    if reason.as_deref() == Some("aborted") {
        items.push(Item::Abort(Channels::All));
        by = by.dead("aborted message");
    }
    let text = line.str("text");
    items.push(Item::close());
    items.push(Item::Text(Text::new(by, Part::Copy, text)));
    items.push(Item::close());
    let usage = line.object("usage");
    let tokens = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];
    let price = usage.number("totalCost").or_else(|| usage.number("cost"));
    let cost = Cost::of_tokens(&usage, &tokens).with_dollars(price);
    items.push(Item::Usage(Usage::Total(cost)));
    items.push(match reason.as_deref() {
        Some("completed" | "stop") | None => Item::end(Verdict::Unknown),
        Some(_) => Item::End { verdict: Verdict::Failure, what: reason },
    });
}

/// The older generation.
fn older<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>) {
    let kind = line.any_text(&["say", "ask"]).unwrap_or_default();
    let text = line.str("text");
    let stamp = line.get("ts").map(Raw::as_written).unwrap_or_default();
    if kind == "api_req_started" {
        let request: Value = serde_json::from_str(&text).unwrap_or_default();
        let count = |name| request.get(name).and_then(Value::as_u64).unwrap_or(0);
        let tokens = ["tokensIn", "tokensOut", "cacheWrites", "cacheReads"];
        let tokens = tokens.into_iter().map(count).fold(0, u64::saturating_add);
        let price = request.get("cost").and_then(Value::as_f64);
        let cost = Cost { tokens, micro_dollars: 0 }.with_dollars(price);
        items.push(Item::Usage(Usage::Part(stamp.clone(), cost)));
    }
    if line.is_true("partial") {
        return;
    }
    let call = |name| Item::Call(Call { id: stamp.clone(), name, ..Call::default() });
    let record = |by| Item::Record { by, value: line.get("text") };
    match &*kind {
        "text" | "followup" | "plan_mode_respond" => items.push(Item::whole(text)),
        "completion_result" => {
            items.extend([Item::text(Part::Copy, text), Item::close()]);
            items.push(Item::end(Verdict::Success));
        }
        "task" | "user_feedback" => {
            let by = Origin::new(Role::User).with_detail("prompt");
            items.push(Item::Prompt { by, text });
        }
        "tool" => {
            let inner: Value = serde_json::from_str(&text).unwrap_or_default();
            let name = inner.get("tool").and_then(Value::as_str).unwrap_or_default();
            items.extend([call(name.to_owned().into()), record(tool("tool line"))]);
        }
        "command" | "use_mcp_server" | "browser_action" => {
            let by = tool(format!("{kind} line"));
            items.extend([call(kind), record(by)]);
        }
        "api_req_failed" => {
            items.extend([Item::error(text), record(tool("api_req_failed line"))]);
        }
        "reasoning" => items.push(record(tool("thinking"))),
        kind => items.push(record(tool(format!("{kind} line")))),
    }
}
