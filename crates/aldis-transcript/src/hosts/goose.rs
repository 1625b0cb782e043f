//! `goose run --output-format stream-json`.
//!
//! Goose streams a message as pieces that share its id, each a message of its own on the wire. It
//! names no session and no price.

use std::borrow::Cow;

use crate::item::{
    CallResult, Cost, Decode, Decoded, Entry, Item, Part, Text, Usage, Verdict, Wanted, host,
};
use crate::members::{Members, elements};
use crate::out::join;
use aldis_signal::message::Origin;

/// Decoder of one stream.
#[derive(Debug, Default)]
pub(crate) struct Goose {
    /// An error was reported: the host explains it in the agent's name.
    has_failed: bool,
}

impl Decode for Goose {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::default();
        match (&*line.str("type"), line.get("message")) {
            ("message", Some(raw)) => self.message(&mut entry, &Members::of(raw)?),
            ("error", _) => {
                self.has_failed = true;
                let words = line.text("error").or_else(|| line.object("error").text("message"));
                entry.items.push(Item::error(words.unwrap_or(Cow::Borrowed("error"))));
            }
            ("complete", _) => entry.items.extend([
                Item::close(),
                Item::Usage(Usage::Total(Cost::of_tokens(line, &["total_tokens"]))),
                Item::end(Verdict::Unknown),
            ]),
            _ => {}
        }
        let kind = line.str("type");
        if kind != "message" {
            entry.items.push(Item::record(host(format!("{kind} line"))));
        }
        Ok(vec![entry])
    }
}

impl Goose {
    fn message<'a>(&mut self, entry: &mut Entry<'a>, message: &Members<'a>) {
        entry.at = message.time("created");
        entry.id = message.text("id");
        let is_agent = message.str("role") == "assistant";
        let mut words = String::new();
        let mut others = Vec::new();
        for raw in message.get("content").map(elements).unwrap_or_default() {
            let part = Members::lenient(raw);
            let id = part.str("id");
            match &*part.str("type") {
                "text" => join(&mut words, &part.str("text")),
                "toolRequest" | "frontendToolRequest" => {
                    self.has_failed = false;
                    let name = part.object("toolCall").object("value").str("name");
                    let input = part.get("toolCall");
                    others.push(Item::call(id, name, input));
                }
                "toolResponse" => {
                    let content = part.get("toolResult");
                    let result = part.object("toolResult");
                    let is_error = result.str("status") == "error"
                        || result.object("value").is_true("isError");
                    let result = CallResult { id, content, is_error, ..CallResult::default() };
                    others.push(Item::Result(result));
                }
                "thinking" | "reasoning" => others.push(Item::Thought(raw)),
                kind => {
                    let by = host(format!("{kind} part"));
                    others.push(Item::Record { by, value: Some(raw) });
                }
            }
        }
        if !is_agent {
            entry.items.push(Item::close());
        }
        match is_agent {
            _ if words.is_empty() => {}
            true => entry.items.push(Item::Text(Text {
                by: Origin::assistant(),
                part: Part::Piece { of: "".into() },
                text: words.into(),
                is_interim: false,
                is_excuse: self.has_failed,
            })),
            false => entry.items.push(Item::prompt(words)),
        }
        entry.items.extend(others);
    }
}
