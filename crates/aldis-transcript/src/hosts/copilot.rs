//! Copilot CLI: `events.jsonl` and `copilot -p --output-format json`, which share their events.
//!
//! Messages of sub-agents name their agent. Deltas are copies of a message that follows; they count
//! only if the process died before it came. Events name the one before them, and a conversation that
//! was taken back leaves its events in the file. There are no tokens that could be added up, and no
//! price.

use std::borrow::Cow;

use crate::content;
use crate::ending::Form;
use crate::events::trouble::kind_of;
use crate::history::{EntryStanding, Link, Parent, Rewind};
use crate::item::{
    Call, CallResult, Channels, Decode, Decoded, Entry, Item, Part, Verdict, Wanted, host, tool,
};
use crate::members::Members;

/// Decoder of a file or a stream.
#[derive(Debug)]
pub(crate) struct Copilot;

impl Decode for Copilot {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let kind = line.str("type");
        let data = match line.get("data") {
            Some(raw) if kind.starts_with("assistant.") => Members::of(raw)?,
            _ => line.object("data"),
        };
        let agent = line.text("agentId").or_else(|| data.text("parentToolCallId"));
        let mut entry = Entry {
            at: line.time("timestamp"),
            id: data.any_text(&["messageId", "toolCallId"]).or_else(|| line.text("id")),
            channel: data.str("messageId"),
            is_side: agent.is_some(),
            agent,
            ..Entry::default()
        };
        // What does not stay in the file has no place in it.
        if !line.is_true("ephemeral") {
            entry.link = Some(link(line, &kind, entry.is_side));
        }
        event(&mut entry.items, &kind, line, &data);
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

fn link<'a>(line: &Members<'a>, kind: &str, is_side: bool) -> Link<'a> {
    let is_talk = ["assistant.", "tool.", "user."].iter().any(|start| kind.starts_with(start));
    Link {
        id: line.text("id"),
        parent: line.text("parentId").map_or(Parent::Before, Parent::Id),
        standing: match kind {
            "user.message" => EntryStanding::Typed,
            _ if !is_talk || is_side => EntryStanding::Note,
            _ => EntryStanding::Spoken,
        },
        ..Link::default()
    }
}

fn event<'a>(items: &mut Vec<Item<'a>>, kind: &str, line: &Members<'a>, data: &Members<'a>) {
    let id = data.str("toolCallId");
    match kind {
        "assistant.message" => {
            items.push(Item::whole(content::text(data.get("content"))));
            for raw in data.list("toolRequests") {
                let request = Members::lenient(raw);
                let (id, name) = (request.str("toolCallId"), request.str("name"));
                let input = request.get("arguments");
                items.push(Item::call(id, name, input));
            }
            return;
        }
        "assistant.message_delta" => {
            let piece = Part::Piece { of: "".into() };
            items.push(Item::text(piece, data.str("deltaContent")));
            return;
        }
        "tool.execution_start" => {
            let (name, about) = (data.str("toolName"), data.get("arguments"));
            items.push(Item::Call(Call { id, name, about, ..Call::default() }));
            return;
        }
        "tool.execution_complete" => {
            let result = data.get("result");
            let content = data.object("result").get("content").or(result);
            items.push(Item::Result(CallResult {
                id,
                content: content.or_else(|| data.get("error")),
                is_error: data.has("success") && !data.is_true("success"),
                form: Some(Form::Last),
                ..CallResult::default()
            }));
            return;
        }
        "user.message" => {
            items.push(Item::Close(Channels::All));
            return items.extend(content::prompts(data.get("content")));
        }
        "session.snapshot_rewind" => {
            items.extend(data.text("upToEventId").map(|id| Item::Rewind(Rewind::Before(id))));
        }
        "session.start" | "session.resume" => {
            items.extend(data.text("sessionId").map(Item::Session));
        }
        "session.error" => {
            let words = data.text("message").unwrap_or(Cow::Borrowed("error"));
            let name = data.text("errorType");
            let kind = kind_of(data.count("statusCode"), name.as_deref(), &words);
            items.push(Item::trouble(kind, words, None));
        }
        "session.compaction_complete" => items.push(Item::Compacted),
        "abort" => items.push(Item::Interrupted),
        "result" => {
            items.extend(line.text("sessionId").map(Item::Session));
            items.push(match line.number("exitCode").unwrap_or(0.0) {
                // An error can be followed by exit code 0.
                0.0 => Item::end(Verdict::Unknown),
                code => {
                    let what = Some(format!("exit code {code}").into());
                    Item::End { verdict: Verdict::Failure, what }
                }
            });
        }
        _ => {}
    }
    let is_thought = kind.starts_with("assistant.reasoning");
    let by = if is_thought { tool("thinking") } else { host(format!("{kind} event")) };
    items.push(Item::record(by));
}
