//! Gemini CLI: session files and the stream of `gemini -p --output-format stream-json`.
//!
//! A session file is a journal: a message is written again when it changes, and a rewind is one more
//! line. A stream has no message ids: deltas belong together until something else happens.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, tool};
use super::chain::key;
use super::codex::aside;
use super::json::{self, Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, message, move_to};
use aldis_signal::message::{Message, Origin, Role};

/// Reader of a session file.
#[derive(Debug, Default)]
pub(super) struct Session {
    records: Vec<Entry>,
    /// The beginning of the file is not read.
    late: bool,
    /// Where the message of an id is.
    by_id: HashMap<String, usize>,
    /// Which records are not rewound, in order: a rewind takes them from the end, each once.
    standing: Vec<usize>,
    /// How often all messages were replaced.
    resets: u64,
    /// What was told while following.
    told: Told,
}

/// One message of the journal and what goes with it.
#[derive(Debug)]
struct Entry {
    index: u64,
    id: Option<String>,
    rewound: bool,
    /// How many resets came before it; with any after it, it is gone.
    resets: u64,
    messages: Vec<Message>,
}

/// What was told of a file that is followed: a message that is written again is told again only if
/// it has changed. The latest ones alone are remembered: older ones seldom change.
#[derive(Debug, Default)]
struct Told {
    /// By the message's id, hashed.
    by_id: HashMap<u128, Version>,
    /// The ids, oldest first.
    order: VecDeque<u128>,
    /// Some were forgotten.
    has_forgotten: bool,
}

/// A message as it was told last.
#[derive(Debug)]
struct Version {
    index: u64,
    /// Who said what, hashed.
    words: HashSet<[u128; 2]>,
}

impl Told {
    fn index(&self, id: &str) -> Option<u64> {
        self.by_id.get(&key(id.as_bytes())).map(|version| version.index)
    }

    /// Gives out what is new in a message.
    fn tell(&mut self, id: Option<&str>, index: u64, messages: Vec<Message>, out: &mut Out<'_>) {
        let words = messages.iter().map(print).collect();
        let mut before = None;
        if let Some(id) = id.map(|id| key(id.as_bytes())) {
            before = self.by_id.insert(id, Version { index, words });
            if before.is_none() {
                self.order.push_back(id);
            }
        }
        let is_new = |message: &Message| {
            before.as_ref().is_none_or(|before| !before.words.contains(&print(message)))
        };
        messages.into_iter().filter(is_new).for_each(|message| out.say(message));
        if self.order.len() > TOLD_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
            self.has_forgotten = true;
        }
    }

    /// Forgets a message and all after it: should an id be used again, that is another message.
    fn rewind(&mut self, id: &str, is_late: bool) {
        let id = key(id.as_bytes());
        // An unknown message is one before all that are known, if there may be such.
        if !self.by_id.contains_key(&id) && !is_late && !self.has_forgotten {
            return;
        }
        while let Some(last) = self.order.pop_back() {
            self.by_id.remove(&last);
            if last == id {
                return;
            }
        }
    }
}

/// Hashes who says what.
fn print(message: &Message) -> [u128; 2] {
    let origin = &message.origin;
    let who = format!("{} {}", origin.role, origin.detail.as_deref().unwrap_or_default());
    [key(who.as_bytes()), key(message.text.as_bytes())]
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
        let index = earlier.map(|at| self.records[at].index);
        let index = index.or_else(|| self.told.index(id.as_deref()?));
        let index = index.unwrap_or_else(|| out.utter());
        let messages = messages(line, record, (index, kind), out);
        if out.following {
            self.told.tell(id.as_deref(), index, messages, out);
            return;
        }
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), earlier.unwrap_or(self.records.len()));
        }
        let entry = Entry { index, id, rewound: false, resets: self.resets, messages };
        match earlier {
            Some(at) => self.records[at] = entry,
            None => {
                self.standing.push(self.records.len());
                self.records.push(entry);
            }
        }
    }

    /// Takes a whole list of messages in place of all there were.
    fn reset(&mut self, line: Line<'_>, messages: &RawValue, out: &mut Out<'_>) {
        self.resets += 1;
        for raw in json::blocks(messages) {
            let Ok(record) = serde_json::from_str::<Record<'_>>(raw.get()) else { continue };
            self.record(line, &record, out);
        }
    }

    fn rewind(&mut self, id: &str) {
        self.told.rewind(id, self.late);
        // An unknown message is one before all that were read, if there may be such.
        let unknown = self.late.then_some(0);
        let Some(from) = self.by_id.get(id).copied().or(unknown) else { return };
        while let Some(at) = self.standing.pop_if(|at| *at >= from) {
            let entry = &mut self.records[at];
            entry.rewound = true;
            // Should an id be used again, that is another message.
            if let Some(id) = &entry.id {
                self.by_id.remove(id);
            }
        }
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        for entry in std::mem::take(&mut self.records) {
            let is_gone = entry.rewound || entry.resets < self.resets;
            for mut message in entry.messages {
                if is_gone && message.origin.role == Role::Assistant {
                    message.origin = message.origin.dead("rewound");
                }
                message.origin.live &= !is_gone;
                out.say(message);
            }
        }
    }
}

/// Reads what a record says.
fn messages(
    line: Line<'_>,
    record: &Record<'_>,
    (index, kind): (u64, &str),
    out: &Out<'_>,
) -> Vec<Message> {
    let id = record.id.as_ref().map(|id| id.to_owned());
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
    messages
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

/// How many messages of a file that is followed are remembered. A reset writes all of them again.
const TOLD_MAX: usize = 16 * 1024;
