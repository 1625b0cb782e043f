//! Antigravity CLI: the transcript of a conversation (`transcript.jsonl`), and the stream of
//! `agy -p --output-format stream-json`.
//!
//! A transcript is a list of steps. A step is written again when it changes, names who is its source,
//! and a result follows its call without naming it. Long fields are clipped there.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::history::Link;
use crate::item::{
    CallResult, Cost, Decode, Decoded, Entry, Item, Part, Usage, Verdict, Wanted, host,
    is_feedback, system, tool,
};
use crate::members::{Members, Raw};

/// Decoder of a transcript.
#[derive(Debug, Default)]
pub(crate) struct AntigravityTranscript {
    /// Calls that are not answered yet, by their names and the ids that they got here.
    open: VecDeque<(String, String)>,
    /// The last step with a result, and the call that it answers: it is written again when it ends.
    answered: Option<(String, (String, String))>,
}

impl Decode for AntigravityTranscript {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::of(line.time("created_at"), Vec::new());
        let id = line.get("step_index").map(Raw::as_written);
        let (source, kind) = (line.str("source"), line.str("type"));
        let items = &mut entry.items;
        match (&*source, &*kind) {
            ("MODEL", "PLANNER_RESPONSE") => self.planned(items, line, id.as_deref()),
            ("MODEL", _) => items.push(self.result(line, id.as_deref())),
            (source, _) if source.starts_with("USER") => {
                items.push(Item::prompt(request(line.str("content"))));
            }
            (_, kind) => system_step(items, kind, line),
        }
        let standing = entry.standing();
        entry.link = Some(Link { id: id.clone(), standing, is_version: true, ..Link::default() });
        entry.id = id;
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

impl AntigravityTranscript {
    fn planned<'a>(&mut self, items: &mut Vec<Item<'a>>, line: &Members<'a>, id: Option<&str>) {
        items.extend(line.get("thinking").map(Item::Thought));
        let is_clipped =
            line.list("truncated_fields").iter().any(|raw| raw.bytes() == b"\"content\"");
        // What is behind the cut may take the words back.
        if is_clipped {
            let by = host("clipped message");
            items.push(Item::Record { by, value: line.get("content") });
        } else if line.str("status") != "RUNNING" {
            items.push(Item::whole(line.str("content")));
        }
        for (number, raw) in line.list("tool_calls").into_iter().enumerate() {
            let call = Members::lenient(raw);
            let call_id = format!("{}.{number}", id.unwrap_or_default());
            let (name, input) = (call.str("name"), call.get("args"));
            if self.open.len() < CALLS_MAX {
                self.open.push_back((name.clone().into_owned(), call_id.clone()));
            }
            let id = Cow::Owned(call_id);
            items.push(Item::call(id, name, input));
        }
    }

    /// The results follow in the order of the calls.
    fn result<'a>(&mut self, line: &Members<'a>, step: Option<&str>) -> Item<'a> {
        let step = step.unwrap_or_default();
        let again = self.answered.take().filter(|(known, _)| known == step).map(|(_, call)| call);
        let call = again.or_else(|| self.open.pop_front()).unwrap_or_default();
        self.answered = Some((step.to_owned(), call.clone()));
        let (name, id) = call;
        Item::Result(CallResult {
            id: id.into(),
            name: name.into(),
            content: line.get("content"),
            is_error: line.str("status") == "ERROR",
            is_partial: line.str("status") == "RUNNING",
            ..CallResult::default()
        })
    }
}

/// A step of the system: notices, what hooks answered, and summaries.
fn system_step<'a>(items: &mut Vec<Item<'a>>, kind: &str, line: &Members<'a>) {
    let value = line.get("content");
    match kind {
        "CHECKPOINT" => {
            let by = system("compaction summary");
            items.extend([Item::Compacted, Item::Record { by, value }]);
        }
        "ERROR_MESSAGE" => items.push(Item::error(line.str("content"))),
        "SYSTEM_MESSAGE" | "EPHEMERAL_MESSAGE" => {
            let text = line.str("content");
            let is_hook = is_feedback(&text) || text.contains(BLOCKED);
            let by = host(if is_hook { "hook feedback" } else { "notice" });
            items.push(Item::Prompt { by, text });
        }
        kind => items.push(Item::record(host(format!("{kind} step")))),
    }
}

/// What the person typed, without what the host wrote around it.
fn request(content: Cow<'_, str>) -> Cow<'_, str> {
    let inside = content.split_once("<USER_REQUEST>").map(|(_, rest)| rest);
    let inside = inside.and_then(|rest| rest.rsplit_once("</USER_REQUEST>"));
    match inside {
        Some((request, _)) => Cow::Owned(request.trim_matches('\n').to_owned()),
        None => content,
    }
}

/// Decoder of a stream.
#[derive(Debug, Default)]
pub(crate) struct AntigravityStream {
    /// The conversation that is named first; others are of sub-agents.
    main: Option<String>,
}

impl Decode for AntigravityStream {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        // Each event has its members under its own name; the first version had them beside it.
        let kind = line.any_text(&["event", "type"]).unwrap_or_default();
        let event = match line.get(&kind) {
            Some(raw) => Members::of(raw)?,
            None => line.clone(),
        };
        let mut entry = Entry::default();
        let conversation =
            [&event, line].iter().find_map(|from| from.text("conversation_id")).unwrap_or_default();
        let main = self.main.get_or_insert_with(|| conversation.clone().into_owned());
        entry.is_side = *main != *conversation;
        if entry.is_side {
            entry.agent = Some(conversation.clone());
        } else {
            entry.items.push(Item::Session(conversation.clone()));
        }
        entry.channel = conversation;
        match &*kind {
            "step_update" => step(&mut entry, &event),
            "result" if !entry.is_side => result(&mut entry.items, &event),
            kind => entry.items.push(Item::record(host(format!("{kind} event")))),
        }
        Ok(vec![entry])
    }

    fn repeats(&self) -> bool {
        true
    }
}

fn step<'a>(entry: &mut Entry<'a>, step: &Members<'a>) {
    entry.id = step.get("step_index").map(Raw::as_written);
    let (id, state) = (entry.id.clone().unwrap_or_default(), step.str("state"));
    let items = &mut entry.items;
    match &*step.str("step_type") {
        "agent_response" => {
            items.push(Item::text(Part::Piece { of: id }, step.str("text_delta")));
            if state != "ACTIVE" {
                items.push(Item::close());
            }
        }
        "tool" => {
            let info = step.object("tool_info");
            let name = info.any_text(&["name"]).unwrap_or_else(|| step.str("tool_name"));
            let input = info.get("parameters");
            items.push(match &*state {
                "ACTIVE" => Item::call(id, name, input),
                state => Item::Result(CallResult {
                    id,
                    name,
                    content: info.any(&["output", "error"]),
                    is_error: state == "ERROR",
                    ..CallResult::default()
                }),
            });
        }
        "user_input" => items.extend([Item::close(), Item::Turn]),
        // The answer was cut off, and it tries again.
        "error_message" => items.push(Item::Retry { what: step.str("text_delta"), until: None }),
        kind => items.push(Item::Record { by: tool(format!("{kind} step")), value: None }),
    }
}

fn result<'a>(items: &mut Vec<Item<'a>>, result: &Members<'a>) {
    items.extend([Item::close(), Item::text(Part::Copy, result.str("response"))]);
    let cost = Cost::of_tokens(&result.object("usage"), &["total_tokens"]);
    items.push(Item::Usage(Usage::Total(cost)));
    let is_success = result.str("status") == "SUCCESS";
    let what = result.text("error").filter(|what| !what.is_empty() && !is_success);
    items.push(Item::End {
        verdict: if is_success { Verdict::Success } else { Verdict::Failure },
        what: what.or_else(|| (!is_success).then(|| result.str("status"))),
    });
}

/// How the system tells the agent what a hook answered.
const BLOCKED: &str = "Stop hook blocked termination:";
/// How many calls may wait for their results.
const CALLS_MAX: usize = 256;
