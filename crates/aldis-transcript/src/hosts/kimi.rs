//! Kimi Code: the journal of an agent (`wire.jsonl`), and the stream of `kimi -p --output-format
//! stream-json`.
//!
//! Every agent of a session has a journal of its own, which names it in each line. What was said is in
//! `context.` lines; events beside them repeat it. A stream says nothing of its sub-agents but what they
//! answered.

use std::borrow::Cow;

use crate::content;
use crate::ending::Form;
use crate::history::{EntryStanding, Link, Rewind};
use crate::item::{
    CallResult, Cost, Decode, Decoded, Entry, Item, Part, Usage, Verdict, Wanted, host,
};
use crate::members::{Members, Raw};

/// The agent that a person talks to.
const MAIN: &str = "main";
/// Members of a usage record; they do not overlap.
const TOKENS: [&str; 4] = ["inputOther", "inputCacheRead", "inputCacheCreation", "output"];

/// Decoder of a journal.
#[derive(Debug)]
pub(crate) struct Wire;

impl Decode for Wire {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::of(line.time("time"), Vec::new());
        entry.agent = line.text("agentId");
        entry.is_side = entry.agent.as_deref().is_some_and(|agent| agent != MAIN);
        match (&*line.str("type"), line.get("event"), line.get("message")) {
            ("context.append_loop_event", Some(raw), _) => step(&mut entry, &Members::of(raw)?),
            ("context.append_message", _, Some(raw)) => spoken(&mut entry, &Members::of(raw)?),
            (kind, ..) => other(&mut entry.items, kind, line),
        }
        let standing = match entry.is_side {
            true => EntryStanding::Side,
            false => entry.standing(),
        };
        entry.link = Some(Link { standing, ..Link::default() });
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

/// A part of a step: one answer of the model, with the calls in it.
fn step<'a>(entry: &mut Entry<'a>, event: &Members<'a>) {
    entry.id = event.text("stepUuid");
    let items = &mut entry.items;
    match &*event.str("type") {
        "content.part" => {
            let part = event.object("part");
            match (&*part.str("type"), event.get("part")) {
                ("text", _) => {
                    let block = Part::Block { place: None, is_last: false };
                    items.push(Item::text(block, part.str("text")));
                }
                ("think" | "thinking", Some(raw)) => items.push(Item::Thought(raw)),
                (kind, value) => {
                    items.push(Item::Record { by: host(format!("{kind} part")), value });
                }
            }
        }
        "tool.call" => {
            let (id, name) = (event.str("toolCallId"), event.str("name"));
            let input = event.get("args");
            items.push(Item::call(id, name, input));
        }
        "tool.result" => {
            let result = event.object("result");
            items.push(answer(event.str("toolCallId"), result.get("output"), &result));
        }
        "step.begin" => items.push(Item::close()),
        // The host forgets what was said in such a step.
        "step.end" if matches!(&*event.str("finishReason"), "interrupted" | "error") => {
            let id = event.str("uuid");
            items.extend([Item::close(), Item::Removed { id }]);
        }
        "step.end" => items.push(Item::close()),
        kind => items.push(Item::record(host(format!("{kind} event")))),
    }
}

/// A message that is not the model's.
fn spoken<'a>(entry: &mut Entry<'a>, message: &Members<'a>) {
    entry.id = message.text("id");
    let text = content::read(message.get("content"));
    entry.items.push(Item::close());
    let origin = message.object("origin");
    let kind = origin.str("kind");
    let mut text = text;
    if kind == "user" {
        entry.items.extend(text.take_prompts(crate::item::user));
        return;
    }
    // Reminders, and what hooks answered. The name says which.
    let name = origin.any_text(&["name", "variant"]).unwrap_or_else(|| kind.clone());
    let words = text.take_text();
    entry.items.push(Item::Prompt { by: host(name), text: words });
}

fn other<'a>(items: &mut Vec<Item<'a>>, kind: &str, line: &Members<'a>) {
    let usage = line.object("usage");
    match kind {
        "usage.record" => {
            let id = line.get("time").map(Raw::as_written).unwrap_or_default();
            items.push(Item::Usage(Usage::Part(id, Cost::of_tokens(&usage, &TOKENS))));
        }
        "turn.prompt" => items.push(Item::Turn),
        "turn.ended" => items.extend([
            Item::close(),
            Item::End {
                verdict: match &*line.str("reason") {
                    "completed" => Verdict::Success,
                    "failed" | "error" => Verdict::Failure,
                    _ => Verdict::Unknown,
                },
                what: line.object("error").text("message"),
            },
        ]),
        "turn.cancel" => items.push(Item::Interrupted),
        "context.undo" => {
            items.push(Item::Rewind(Rewind::Turns(line.count("count").unwrap_or(1))));
        }
        "context.clear" => items.push(Item::Rewind(Rewind::All)),
        "context.apply_compaction" => {
            let by = crate::item::system("compaction summary");
            items.extend([Item::Compacted, Item::Record { by, value: line.get("summary") }]);
        }
        // They repeat what the journal says.
        "agent.message.appended" | "llm.tools_snapshot" | "llm.request" => {}
        kind => items.push(Item::record(host(format!("{kind} record")))),
    }
}

/// Decoder of a stream.
#[derive(Debug)]
pub(crate) struct Stream;

impl Decode for Stream {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::default();
        let items = &mut entry.items;
        match (&*line.str("role"), &*line.str("type")) {
            ("assistant", _) => {
                let text = content::text(line.get("content"));
                if !text.is_empty() {
                    items.push(Item::whole(text));
                }
                for raw in line.list("tool_calls") {
                    let (call, function) =
                        (Members::lenient(raw), Members::lenient(raw).object("function"));
                    let (id, name) = (call.str("id"), function.str("name"));
                    items.push(Item::call(id, name, function.get("arguments")));
                }
            }
            ("tool", _) => {
                items.push(answer(line.str("tool_call_id"), line.get("content"), line));
            }
            ("meta", "session.resume_hint") => items.extend([
                Item::Session(line.str("session_id")),
                Item::close(),
                Item::end(Verdict::Unknown),
            ]),
            ("meta", "turn.step.retrying") => {
                let what = line.any_text(&["error_message", "error_name"]).unwrap_or_default();
                items.push(Item::Retry { what, until: None });
            }
            (role, kind) => items.push(Item::record(host(format!("{role} {kind} line")))),
        }
        Ok(vec![entry])
    }
}

fn answer<'a>(id: Cow<'a, str>, content: Option<Raw<'a>>, members: &Members<'a>) -> Item<'a> {
    let is_error = members.is_true("isError");
    let form = Some(Form::Sentence);
    Item::Result(CallResult { id, content, is_error, form, ..CallResult::default() })
}
