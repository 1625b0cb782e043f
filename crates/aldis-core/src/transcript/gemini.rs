//! Gemini CLI: session files and the stream of `gemini -p --output-format stream-json`.
//!
//! A session file is a journal: a message is written again when it changes, and a rewind is one more
//! line. A stream has no message ids: deltas belong together until something else happens.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, tool};
use super::codex::aside;
use super::json::{self, Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, message, move_to};
use crate::message::{Message, Origin, Role};

/// Reader of a session file.
#[derive(Debug, Default)]
pub(super) struct Session {
    records: Vec<Entry>,
    /// The beginning of the file is not read.
    late: bool,
    /// Where the message of an id is.
    by_id: HashMap<String, usize>,
}

/// One message of the journal and what goes with it.
#[derive(Debug)]
struct Entry {
    index: u64,
    rewound: bool,
    messages: Vec<Message>,
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, rename = "toolCalls")]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    thoughts: Option<&'a RawValue>,
    #[serde(borrow, rename = "$set")]
    set: Option<&'a RawValue>,
    #[serde(borrow, rename = "$rewindTo")]
    rewind_to: Option<Str<'a>>,
    /// The whole session as one document.
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Reset<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

impl Session {
    fn record(&mut self, line: Line<'_>, record: &Record<'_>, out: &mut Out<'_>) {
        let Some(kind) = record.kind.as_deref() else { return };
        let line = line.dated(record.timestamp);
        let id = record.id.as_ref().map(|id| id.to_owned());
        let earlier = id.as_ref().and_then(|id| self.by_id.get(id)).copied();
        let index = earlier.map_or_else(|| out.utter(), |at| self.records[at].index);
        let say = |origin, text| message(index, line.spot(), id.clone(), origin, text);
        let matters = |raw: &&RawValue| out.matters(raw.get());
        let mut messages = Vec::new();
        if let Some(thoughts) = record.thoughts.filter(matters) {
            messages.push(say(tool("thinking"), strings(thoughts)));
        }
        for raw in record.tool_calls.filter(matters).map(json::blocks).unwrap_or_default() {
            let call: Call<'_> = lenient(Some(raw));
            let name = call.name.as_deref().unwrap_or("a tool");
            if let Some(args) = call.args.filter(matters) {
                messages.push(say(tool(format!("input of {name}")), strings(args)));
            }
            if let Some(result) = call.result.filter(matters) {
                messages.push(say(tool(format!("result of {name}")), strings(result)));
            }
        }
        let text = blocks::read(record.content, &mut Calls::default(), "", &|_| false).text;
        let interesting = record.content.is_some_and(|raw| out.matters(raw.get()));
        match kind {
            "gemini" | "model" | "assistant" => messages.push(say(Origin::assistant(), text)),
            "user" if interesting => messages.push(say(blocks::user(&text), text)),
            kind if interesting => messages.push(say(host(format!("{kind} line")), text)),
            _ => {}
        }
        if let Some(id) = id {
            self.by_id.insert(id, earlier.unwrap_or(self.records.len()));
        }
        let entry = Entry { index, rewound: false, messages };
        match earlier {
            Some(at) => self.records[at] = entry,
            None => self.records.push(entry),
        }
    }

    /// Takes a whole list of messages in place of all there were.
    fn reset(&mut self, line: Line<'_>, messages: &RawValue, out: &mut Out<'_>) {
        for entry in &mut self.records {
            entry.rewound = true;
        }
        for raw in json::blocks(messages) {
            let Ok(record) = serde_json::from_str::<Record<'_>>(raw.get()) else { continue };
            self.record(line, &record, out);
        }
    }

    fn rewind(&mut self, id: &str) {
        // An unknown message is one before all that were read, if there may be such.
        let unknown = self.late.then_some(0);
        let Some(from) = self.by_id.get(id).copied().or(unknown) else { return };
        for entry in &mut self.records[from..] {
            entry.rewound = true;
        }
        // Should an id be used again, that is another message.
        self.by_id.retain(|_, at| *at < from);
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        self.by_id.clear();
        for entry in std::mem::take(&mut self.records) {
            for mut message in entry.messages {
                if entry.rewound && message.origin.role == Role::Assistant {
                    message.origin = message.origin.dead("rewound");
                }
                message.origin.live &= !entry.rewound;
                out.say(message);
            }
        }
    }
}

impl Host for Session {
    fn begin_late(&mut self, _: Option<&str>) {
        self.late = true;
    }

    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let record: Record<'_> = parse(line.bytes)?;
        let reset: Reset<'_> = lenient(record.set);
        if let Some(messages) = reset.messages.or(record.messages) {
            self.reset(line, messages, out);
        } else if let Some(id) = &record.rewind_to {
            self.rewind(id);
        } else {
            self.record(line, &record, out);
        }
        if out.following {
            self.flush(out);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }
}

/// Reader of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    open: Option<Message>,
    calls: Calls,
}

#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Str<'a>>,
    delta: Option<bool>,
    #[serde(borrow)]
    tool_name: Option<Str<'a>>,
    #[serde(borrow)]
    tool_id: Option<Str<'a>>,
}

impl Stream {
    fn flush(&mut self, out: &mut Out<'_>) {
        if let Some(open) = self.open.take() {
            out.say(open);
        }
    }

    fn assistant(&mut self, line: Line<'_>, event: &Event<'_>, out: &mut Out<'_>) {
        if event.delta != Some(true) {
            self.flush(out);
        }
        let open = self.open.get_or_insert_with(|| {
            message(out.utter(), line.spot(), None, Origin::assistant(), String::new())
        });
        open.text.push_str(event.content.as_deref().unwrap_or_default());
        move_to(open, line);
    }
}

/// The types of lines that come between two messages.
const KINDS: [&str; 6] = ["error", "init", "message", "result", "tool_result", "tool_use"];

impl Host for Stream {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let event: Event<'_> = parse(line.bytes)?;
        let line = line.dated(event.timestamp);
        if &*event.kind == "message" && event.role.as_deref() == Some("assistant") {
            self.assistant(line, &event, out);
            return Ok(());
        }
        // What a later release may add says nothing about where words end.
        if KINDS.contains(&&*event.kind) {
            self.flush(out);
        }
        let matters = (out.may_matter)(line.bytes);
        let name = event.tool_name.as_deref().unwrap_or("a tool");
        let id = event.tool_id.as_deref().unwrap_or_default();
        let origin = match &*event.kind {
            "message" => {
                let text = event.content.map(|text| text.to_owned()).unwrap_or_default();
                aside(line, blocks::user(&text), text, matters, out);
                return Ok(());
            }
            "tool_use" => {
                self.calls.note_path(id, name, "");
                tool(format!("input of {name}"))
            }
            "tool_result" => self.calls.result(id, ""),
            kind => host(format!("{kind} line")),
        };
        let text =
            if matters { member_strings(line.bytes, out.may_matter)? } else { String::new() };
        aside(line, origin, text, matters, out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }
}
