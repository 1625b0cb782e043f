//! Droid: transcript files and the stream of `droid exec -o stream-json`.
//!
//! A file has Claude's blocks in an envelope of its own. The stream's prices are in credits, which
//! are no money; its last line repeats the final text.

use std::borrow::Cow;

use crate::content;
use crate::history::{EntryStanding, Link, Parent};
use crate::item::{
    CLAUDE_TOKENS, CallResult, Cost, Decode, Decoded, Entry, Item, Part, Usage, Verdict, Wanted,
    host, system, user,
};
use crate::members::Members;

/// Decoder of a transcript file.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    cwd: String,
}

impl Decode for Transcript {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::of(line.time("timestamp"), Vec::new());
        let message = match (&*line.str("type"), line.get("message")) {
            ("message", Some(raw)) => Members::of(raw)?,
            (kind, _) => {
                if let Some(cwd) = line.text("cwd") {
                    self.cwd = cwd.into_owned();
                }
                entry.items.push(Item::record(host(format!("{kind} record"))));
                return Ok(vec![entry]);
            }
        };
        let role = message.str("role");
        let mut content = content::read(message.get("content"));
        let items = match &*role {
            "assistant" => vec![Item::whole(content.take_text())],
            "user" => content.take_prompts(user),
            _ => content.take_prompts(|_| system("system message")),
        };
        let is_typed = !content.has_result() && items.iter().any(Item::is_typed);
        entry.cwd = self.cwd.clone().into();
        entry.id = line.text("id");
        entry.link = Some(Link {
            id: line.text("id"),
            parent: line.text("parentId").map_or(Parent::Before, Parent::Id),
            standing: if is_typed { EntryStanding::Typed } else { EntryStanding::Spoken },
            ..Link::default()
        });
        entry.items.extend(items);
        entry.items.extend(content.items);
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

/// Decoder of a stream.
#[derive(Debug)]
pub(crate) struct DroidStream;

impl Decode for DroidStream {
    fn repeats(&self) -> bool {
        true
    }

    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::of(line.time("timestamp"), Vec::new());
        entry.id = line.text("id");
        let (id, items) = (line.str("id"), &mut entry.items);
        items.extend(line.text("session_id").map(Item::Session));
        match (&*line.str("type"), &*line.str("role")) {
            ("message", "assistant") => items.push(Item::whole(line.str("text"))),
            ("message", _) => items.push(Item::prompt(line.str("text"))),
            ("reasoning", _) => items.extend(line.get("text").map(Item::Thought)),
            ("tool_call", _) => {
                let name = line.any_text(&["toolName", "toolId"]).unwrap_or_default();
                let input = line.get("parameters");
                items.push(Item::call(id, name, input));
            }
            ("tool_result", _) => {
                items.push(Item::Result(CallResult {
                    id,
                    name: line.str("toolName"),
                    content: line.any(&["value", "error"]),
                    is_error: line.is_true("isError"),
                    ..CallResult::default()
                }));
            }
            ("completion", _) => {
                items.extend([Item::text(Part::Copy, line.str("finalText")), Item::close()]);
                let cost = Cost::of_tokens(&line.object("usage"), &CLAUDE_TOKENS);
                items.push(Item::Usage(Usage::Total(cost)));
                items.push(Item::end(Verdict::Unknown));
            }
            (kind, _) => {
                if kind == "error" {
                    items.push(Item::error(line.text("message").unwrap_or(Cow::Borrowed("error"))));
                }
                items.push(Item::record(host(format!("{kind} record"))));
            }
        }
        Ok(vec![entry])
    }
}
