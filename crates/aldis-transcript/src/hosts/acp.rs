//! Agent Client Protocol traffic, one JSON-RPC message per line, of both protocol versions.
//!
//! Version 1 has no end of a message: chunks belong together until the agent does something else or
//! answers the prompt. Version 2 sends whole messages. Where both sides are recorded, an error is
//! the agent's only if it answers the prompt or what led to it: clients answer with errors too,
//! about files that are not there.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::content;
use crate::item::{
    Call, CallResult, Channels, Cost, Decode, Decoded, Entry, Item, Part, Usage, Verdict, Wanted,
    host, tool,
};
use crate::members::{Members, Raw};

/// Decoder of one connection.
#[derive(Debug, Default)]
pub(crate) struct Acp {
    /// The client's requests that have no answer, by id, and the session of each. `None` as long as
    /// no request was seen: only the agent's side may be recorded.
    asked: Option<HashMap<String, String>>,
}

impl Decode for Acp {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let params = line.object("params");
        let mut entry = Entry { channel: params.str("sessionId"), ..Entry::default() };
        match line.text("method") {
            Some(method) if method == "session/update" => {
                if let Some(raw) = params.get("update") {
                    let update = Members::of(raw)?;
                    entry.items.extend(params.text("sessionId").map(Item::Session));
                    self::update(&mut entry, &update, raw);
                }
            }
            Some(method) => self.request(&mut entry, &method, line, &params),
            None => self.answer(&mut entry, line),
        }
        Ok(vec![entry])
    }
}

impl Acp {
    fn request<'a>(
        &mut self,
        entry: &mut Entry<'a>,
        method: &str,
        line: &Members<'a>,
        params: &Members<'a>,
    ) {
        if matches!(method, "initialize" | "authenticate" | "session/new" | "session/prompt") {
            let asked = self.asked.get_or_insert_default();
            if let Some(id) = line.get("id").filter(|_| asked.len() < ASKED_MAX) {
                asked.insert(id.as_written().into_owned(), params.str("sessionId").into_owned());
            }
        }
        if method == "session/prompt" {
            entry.items.push(Item::close());
            entry.items.extend(content::prompts(params.get("prompt")));
        } else {
            entry.items.push(Item::record(tool(format!("input of {method}"))));
        }
    }

    fn answer<'a>(&mut self, entry: &mut Entry<'a>, line: &Members<'a>) {
        let id = line.get("id").map(Raw::as_written).unwrap_or_default();
        let session = self.asked.as_mut().map(|asked| asked.remove(&*id));
        // True also where only one side is recorded.
        let is_agents = session.as_ref().is_none_or(Option::is_some);
        let result = line.object("result");
        if let Some(reason) = result.text("stopReason") {
            if reason == "cancelled" {
                entry.items.push(Item::Abort(match session.flatten() {
                    Some(session) => Channels::Named(session.into()),
                    None => Channels::All,
                }));
            }
            let usage = Cost::of_tokens(&result.object("usage"), &["totalTokens"]);
            entry.items.extend([Item::Close(Channels::All), Item::Usage(Usage::Total(usage))]);
            entry.items.push(stopped(reason));
        } else if line.get("error").is_some() {
            entry.items.push(Item::Close(Channels::All));
            if is_agents {
                let error = line.object("error");
                let words = error.object("data").text("details").or_else(|| error.text("message"));
                let words = words.unwrap_or(Cow::Borrowed("error"));
                entry.items.push(Item::error(words.clone()));
                entry.items.push(Item::failed(words));
            }
        }
        entry.items.extend(result.text("sessionId").map(Item::Session));
        entry.items.push(Item::record(tool("answer to a request")));
    }
}

fn update<'a>(entry: &mut Entry<'a>, update: &Members<'a>, raw: Raw<'a>) {
    let kind = update.str("sessionUpdate");
    let text = || content::text(update.get("content"));
    let of = Cow::Borrowed("");
    let items = &mut entry.items;
    match &*kind {
        "agent_message" => {
            entry.id = update.text("messageId");
            items.push(Item::text(Part::Version { of }, text()));
        }
        "agent_message_chunk" => {
            entry.id = update.text("messageId");
            items.push(Item::text(Part::Piece { of }, text()));
        }
        // News about the session comes in the middle of a message.
        "usage_update" => {
            let cost = update.object("cost");
            if cost.str("currency") == "USD" {
                let cost = Cost::default().with_dollars(cost.number("amount"));
                items.push(Item::Usage(Usage::Total(cost)));
            }
        }
        "user_message" | "user_message_chunk" => {
            items.push(Item::close());
            items.extend(content::prompts(update.get("content")));
        }
        "agent_thought" | "agent_thought_chunk" => {
            items.extend([Item::close(), Item::Thought(update.get("content").unwrap_or(raw))]);
        }
        "tool_call" => {
            let name = update.any_text(&["kind", "title"]).unwrap_or_default();
            let (id, input) = (update.str("toolCallId"), update.get("content").or(Some(raw)));
            items.push(Item::close());
            items.push(Item::Call(Call { id, name, about: Some(raw), input, ..Call::default() }));
        }
        "tool_call_update" => {
            let (id, content) = (update.str("toolCallId"), update.get("content").or(Some(raw)));
            items.push(Item::close());
            let status = update.str("status");
            items.push(Item::Result(CallResult {
                id,
                content,
                is_error: status == "failed",
                is_partial: !matches!(&*status, "completed" | "failed"),
                ..CallResult::default()
            }));
        }
        "state_update" => {
            let reason = update.text("stopReason");
            if reason.as_deref() == Some("cancelled") {
                items.push(Item::Abort(Channels::Own));
            }
            items.push(Item::close());
            if let Some(reason) = reason.filter(|_| update.str("state") == "idle") {
                items.push(stopped(reason));
            }
            items.push(Item::Record { by: host("state"), value: Some(raw) });
        }
        kind => {
            let by = host(format!("{kind} update"));
            items.push(Item::Record { by, value: Some(raw) });
        }
    }
}

fn stopped(reason: Cow<'_, str>) -> Item<'_> {
    match &*reason {
        "end_turn" => Item::end(Verdict::Success),
        _ => Item::failed(reason),
    }
}

/// How many requests may be open at once.
const ASKED_MAX: usize = 64;
