//! Cursor: the stream of `cursor-agent -p --output-format stream-json`, and transcript files.
//!
//! With partial output the stream says everything twice: in pieces that carry a time in milliseconds
//! and then whole. Pieces count only if the whole never comes. When the host fails there is no
//! result line, only text on standard error and an exit code.

use std::borrow::Cow;

use crate::content;
use crate::item::{
    Call, CallResult, Cost, Decode, Decoded, Entry, Item, Part, Usage, Verdict, Wanted, host,
    system, user,
};
use crate::json::Malformed;
use crate::members::Members;

/// Decoder of a stream.
#[derive(Debug, Default)]
pub(crate) struct CursorStream {
    /// How many tools ran: what is said around one is not one paragraph.
    calls: u64,
}

impl Decode for CursorStream {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let message = match (&*line.str("type"), line.get("message")) {
            ("assistant" | "user", message) => Members::of(message.ok_or(Malformed)?)?,
            _ => Members::default(),
        };
        let mut entry = Entry::of(line.time("timestamp_ms"), Vec::new());
        let items = &mut entry.items;
        items.extend(line.text("session_id").map(Item::Session));
        match &*line.str("type") {
            "assistant" => {
                let part = match line.has("timestamp_ms") {
                    true => Part::Piece { of: self.calls.to_string().into() },
                    false => Part::Whole,
                };
                items.push(Item::text(part, content::text(message.get("content"))));
            }
            "user" => {
                items.push(Item::close());
                items.extend(content::prompts(message.get("content")));
            }
            "tool_call" => self.call(items, line),
            "result" => result(items, line),
            "thinking" => items.extend(line.get("text").map(Item::Thought)),
            kind => items.push(Item::record(host(format!("{kind} record")))),
        }
        Ok(vec![entry])
    }
}

impl CursorStream {
    fn call<'a>(&mut self, items: &mut Vec<Item<'a>>, line: &Members<'a>) {
        self.calls += 1;
        let call = line.object("tool_call");
        // `{"shellToolCall": …}` is a call of the shell.
        let kind = call.iter().next().map(|(kind, _)| kind.into_owned()).unwrap_or_default();
        let kind = kind.strip_suffix("ToolCall").unwrap_or(&kind).to_owned();
        let name = call.object("function").text("name").unwrap_or_else(|| kind.into());
        let (id, raw) = (line.str("call_id"), line.get("tool_call"));
        let is_done = line.str("subtype") == "completed";
        let (about, input) = (raw, raw.filter(|_| !is_done));
        let (other_id, other_name) = (id.clone(), name.clone());
        items.push(Item::Call(Call { id, name, about, input, ..Call::default() }));
        if is_done {
            let result = call.iter().next().map(|(_, call)| Members::lenient(call));
            let result = result.map(|call| call.object("result")).unwrap_or_default();
            let end = result.iter().next().map(|(_, end)| Members::lenient(end));
            items.push(Item::Result(CallResult {
                id: other_id,
                name: other_name,
                content: raw,
                is_error: result.iter().next().is_some() && !result.has("success"),
                is_refused: result.has("rejected") || result.has("permissionDenied"),
                exit_code: end.and_then(|end| end.integer("exitCode")),
                ..CallResult::default()
            }));
        }
    }
}

fn result<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>) {
    items.push(Item::close());
    let cost = Cost::of_tokens(&line.object("usage"), &TOKENS);
    items.push(Item::Usage(Usage::Total(cost)));
    if line.is_true("is_error") {
        let words =
            line.any_text(&["result", "error", "subtype"]).unwrap_or(Cow::Borrowed("error"));
        items.push(Item::error(words.clone()));
        items.push(Item::failed(words));
        items.push(Item::Record { by: host("error result"), value: line.get("result") });
        return;
    }
    items.push(Item::text(Part::Outcome, line.str("result")));
    items.push(Item::end(Verdict::Success));
}

/// Not documented; seen in both spellings.
const TOKENS: [&str; 8] = [
    "inputTokens",
    "outputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
];

/// Decoder of a transcript file: one message per line, without ids.
#[derive(Debug)]
pub(crate) struct Transcript;

impl Decode for Transcript {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let message = Members::of(line.get("message").ok_or(Malformed)?)?;
        let mut content = content::read(message.get("content"));
        let mut items = match &*line.str("role") {
            "assistant" => vec![Item::whole(content.take_text())],
            "user" => content.take_prompts(user),
            role => content.take_prompts(|_| system(format!("{role} message"))),
        };
        items.extend(content.items);
        Ok(vec![Entry::of(None, items)])
    }
}
