//! Gemini CLI: session files and the stream of `gemini -p --output-format stream-json`.
//!
//! A session file is a journal: a message is written again when it changes, and a rewind is one more
//! line. A stream has no message ids: deltas belong together until something else happens.

use std::borrow::Cow;

use crate::content;
use crate::ending::Form;
use crate::history::{EntryStanding, Link, Rewind};
use crate::item::{
    CallResult, Cost, Decode, Decoded, Entry, Item, Part, Usage, Verdict, Wanted, host, user,
};
use crate::members::Members;

/// Decoder of a session file.
#[derive(Debug)]
pub(crate) struct Session;

impl Decode for Session {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        // A whole list of messages takes the place of all there were.
        let set = line.object("$set");
        let list = if set.has("messages") { &set } else { line };
        if list.has("messages") {
            let mut all = vec![Entry::of(None, vec![Item::Rewind(Rewind::All)])];
            for raw in list.list("messages") {
                all.push(record(&Members::lenient(raw)));
            }
            return Ok(all);
        }
        if let Some(id) = line.text("$rewindTo") {
            return Ok(vec![Entry::of(None, vec![Item::Rewind(Rewind::Before(id))])]);
        }
        Ok(vec![record(line)])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

fn record<'a>(record: &Members<'a>) -> Entry<'a> {
    let mut entry = Entry::of(record.time("timestamp"), Vec::new());
    let kind = record.str("type");
    if kind.is_empty() {
        return entry;
    }
    let (id, items) = (record.text("id"), &mut entry.items);
    let mut content = content::read(record.get("content"));
    match &*kind {
        "gemini" | "model" | "assistant" => items.push(Item::whole(content.take_text())),
        "user" => items.extend(content.take_prompts(user)),
        kind => {
            if kind == "error" {
                items.push(Item::error(content.take_text()));
            }
            let by = host(format!("{kind} line"));
            items.push(Item::Record { by, value: record.get("content") });
        }
    }
    items.extend(record.get("thoughts").map(Item::Thought));
    let cost = Cost::of_tokens(&record.object("tokens"), &["total"]);
    items.extend(id.clone().map(|id| Item::Usage(Usage::Part(id, cost))));
    for raw in record.list("toolCalls") {
        let call = Members::lenient(raw);
        let (id, name, input) = (call.str("id"), call.str("name"), call.get("args"));
        items.push(Item::call(id, name, input));
        if let Some(result) = call.get("result") {
            items.push(Item::Result(CallResult {
                id: call.str("id"),
                name: call.str("name"),
                content: Some(result),
                is_error: call.str("status") == "error",
                is_refused: call.str("status") == "cancelled",
                form: Some(Form::Labelled),
                ..CallResult::default()
            }));
        }
    }
    items.extend(content.items);
    let standing = if kind == "user" { EntryStanding::Typed } else { EntryStanding::Spoken };
    entry.link = Some(Link { id: id.clone(), standing, is_version: true, ..Link::default() });
    entry.id = id;
    entry
}

/// Decoder of a stream.
#[derive(Debug)]
pub(crate) struct Stream;

impl Decode for Stream {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::of(line.time("timestamp"), Vec::new());
        let (id, name, items) = (line.str("tool_id"), line.str("tool_name"), &mut entry.items);
        let kind = line.str("type");
        let is_agent = kind == "message" && line.str("role") == "assistant";
        // What a later release may add says nothing about where a message ends.
        if KINDS.contains(&&*kind) && !(is_agent && line.is_true("delta")) {
            items.push(Item::close());
        }
        match &*kind {
            "message" if is_agent => {
                items.push(Item::text(Part::Piece { of: "".into() }, line.str("content")));
            }
            "message" => items.push(Item::prompt(line.str("content"))),
            "tool_use" => {
                let input = line.get("parameters");
                items.push(Item::call(id, name, input));
            }
            "tool_result" => {
                items.push(Item::Result(CallResult {
                    id,
                    name,
                    content: line.any(&["output", "error"]),
                    is_error: line.str("status") == "error",
                    form: Some(Form::Labelled),
                    ..CallResult::default()
                }));
            }
            kind => {
                match kind {
                    "init" => items.extend(line.text("session_id").map(Item::Session)),
                    // A warning is about the work: a hook that said no, a loop that was seen.
                    "error" if line.str("severity") != "warning" => {
                        items.push(Item::error(
                            line.text("message").unwrap_or(Cow::Borrowed("error")),
                        ));
                    }
                    "result" => result(items, line),
                    _ => {}
                }
                items.push(Item::record(host(format!("{kind} line"))));
            }
        }
        Ok(vec![entry])
    }
}

fn result<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>) {
    let stats = line.object("stats");
    let mut cost = Cost::of_tokens(&stats, &["total_tokens"]);
    if cost.tokens == 0 {
        cost = Cost::of_tokens(&stats, &["input_tokens", "output_tokens"]);
    }
    items.push(Item::Usage(Usage::Total(cost)));
    if line.str("status") != "error" {
        items.push(Item::end(Verdict::Success));
        return;
    }
    let words = line.object("error").any_text(&["message", "type"]);
    // The host's own bound on turns is neither a limit nor an error of the service.
    let is_bound =
        |words: &str| words.contains("max session turns") || words.contains("FatalTurnLimited");
    items.extend(words.clone().filter(|words| !is_bound(words)).map(Item::error));
    let what = Some(words.unwrap_or(Cow::Borrowed("error")));
    items.push(Item::End { verdict: Verdict::Failure, what });
}

/// The types of lines that come between two messages.
const KINDS: [&str; 6] = ["error", "init", "message", "result", "tool_result", "tool_use"];
