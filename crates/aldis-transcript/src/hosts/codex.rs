//! Codex: rollout files and the stream of `codex exec --json`.
//!
//! A rollout repeats each answer up to three times: as an item of the conversation, as an event, and
//! in the event that ends the turn. The item is taken; an event only if no item of the turn says
//! the same. The stream names no price.

use std::borrow::Cow;

use crate::content;
use crate::ending::Form;
use crate::history::{EntryStanding, Link, Rewind};
use crate::item::{
    Call, CallResult, Cost, Decode, Decoded, Entry, Item, Part, Text, Usage, Verdict, Wanted, host,
    system, tool,
};
use crate::members::{Members, Raw, strings};
use aldis_signal::message::Origin;

/// Decoder of a rollout file.
#[derive(Debug)]
pub(crate) struct Rollout;

impl Decode for Rollout {
    fn repeats(&self) -> bool {
        true
    }

    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::of(line.time("timestamp"), Vec::new());
        let Some(raw) = line.get("payload") else { return Ok(Vec::new()) };
        let record = |by| Item::Record { by, value: Some(raw) };
        match &*line.str("type") {
            "response_item" => item(&mut entry, &Members::of(raw)?, raw),
            "event_msg" => event(&mut entry.items, &Members::of(raw)?, raw),
            "compacted" => {
                entry.items.extend([Item::Compacted, record(system("compaction summary"))]);
            }
            kind @ ("session_meta" | "turn_context") => {
                let meta = Members::lenient(raw);
                entry.cwd = meta.str("cwd");
                let id = meta.text("id").filter(|_| kind == "session_meta");
                entry.items.extend(id.map(Item::Session));
                entry.items.push(record(system("instructions")));
            }
            kind => entry.items.push(record(host(format!("{kind} record")))),
        }
        let is_typed = entry.items.iter().any(Item::is_typed);
        let standing = if is_typed { EntryStanding::Typed } else { EntryStanding::Spoken };
        entry.link = Some(Link { standing, ..Link::default() });
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

fn item<'a>(entry: &mut Entry<'a>, item: &Members<'a>, raw: Raw<'a>) {
    entry.id = item.text("id");
    let (id, name, items) = (item.str("call_id"), item.str("name"), &mut entry.items);
    match (&*item.str("type"), item.text("role").as_deref()) {
        ("message", Some("assistant")) => items.push(Item::Text(Text {
            by: Origin::assistant(),
            part: Part::Whole,
            text: content::text(item.get("content")),
            is_interim: item.str("phase") == "commentary",
            is_excuse: false,
        })),
        ("message", Some("user")) => {
            items.push(Item::close());
            items.extend(content::prompts(item.get("content")));
        }
        ("message", _) => {
            items
                .push(Item::Record { by: system("developer message"), value: item.get("content") });
        }
        ("reasoning", _) => items.push(Item::Thought(raw)),
        (kind, _) if kind.ends_with("_output") => {
            let content = item.get("output").or(Some(raw));
            let form = Some(Form::Header);
            items.push(Item::Result(CallResult { id, content, form, ..CallResult::default() }));
        }
        (kind, _) if kind.ends_with("_call") => {
            let input = item.any(&["arguments", "input", "action"]);
            let input = input.or(Some(raw));
            // Tools of MCP servers are named within their server.
            let name = match item.text("namespace") {
                Some(server) => format!("{server}__{name}").into(),
                None => name,
            };
            items.push(Item::Call(Call { id, name, input, ..Call::default() }));
        }
        (kind, _) => {
            items.push(Item::Record { by: tool(format!("{kind} item")), value: Some(raw) });
        }
    }
}

fn event<'a>(items: &mut Vec<Item<'a>>, event: &Members<'a>, raw: Raw<'a>) {
    let copy = |text: Cow<'a, str>| Item::text(Part::Copy, text);
    let kind = event.str("type");
    let inner = event.object("item");
    match &*kind {
        "agent_message" => {
            items.extend(event.get("message").map(|text| copy(strings(text).into())));
        }
        "item_completed" if matches!(&*inner.str("type"), "AgentMessage" | "agent_message") => {
            items.push(copy(content::text(inner.any(&["content", "text"]))));
        }
        "task_complete" | "turn_complete" => {
            items.extend(event.text("last_agent_message").map(copy));
            items.push(Item::close());
            let error = event.object("error").text("message").or_else(|| event.text("error"));
            items.push(match error {
                Some(what) => Item::failed(what),
                None => Item::end(Verdict::Success),
            });
        }
        "task_started" | "turn_started" => items.push(Item::Turn),
        "turn_aborted" if event.str("reason") == "interrupted" => {
            items.extend([Item::Turn, Item::Interrupted]);
        }
        "turn_aborted" => items.push(Item::Turn),
        "token_count" => {
            let total = event.object("info").object("total_token_usage");
            let cost = Cost::of_tokens(&total, &["input_tokens", "output_tokens"]);
            items.push(Item::Usage(Usage::Total(cost)));
        }
        "error" | "stream_error" => {
            let what = event.text("message").unwrap_or(Cow::Borrowed("error"));
            items.push(match &*kind {
                "error" => Item::error(what),
                _ => Item::Retry { what, until: None },
            });
        }
        "thread_rolled_back" => {
            let turns = event.count("num_turns").unwrap_or(1);
            items.push(Item::Rewind(Rewind::Turns(turns)));
        }
        // The prompt is in the conversation already.
        "user_message" => {}
        kind => items.push(Item::Record { by: host(format!("{kind} record")), value: Some(raw) }),
    }
}

/// Decoder of `codex exec --json`.
#[derive(Debug)]
pub(crate) struct Exec;

impl Decode for Exec {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let mut entry = Entry::default();
        let kind = line.str("type");
        if let ("item.started" | "item.updated" | "item.completed", Some(raw)) =
            (&*kind, line.get("item"))
        {
            let item = Members::of(raw)?;
            entry.id = item.text("id");
            work(&mut entry.items, &item, raw, kind == "item.completed");
            return Ok(vec![entry]);
        }
        let items = &mut entry.items;
        match &*kind {
            "thread.started" => items.extend(line.text("thread_id").map(Item::Session)),
            "turn.completed" => {
                let tokens = ["input_tokens", "output_tokens"];
                let cost = Cost::of_tokens(&line.object("usage"), &tokens);
                items.push(Item::Usage(Usage::Total(cost)));
                items.push(Item::end(Verdict::Success));
            }
            "turn.failed" => {
                let words = line.object("error").text("message");
                let words = words.unwrap_or(Cow::Borrowed("the turn failed"));
                items.push(Item::error(words.clone()));
                items.push(Item::failed(words));
            }
            // An error can be a notice that the host tries again.
            "error" => {
                let what = line.text("message").unwrap_or(Cow::Borrowed("error"));
                items.push(if what.starts_with("Reconnecting") {
                    Item::Retry { what, until: None }
                } else {
                    Item::error(what)
                });
            }
            _ => {}
        }
        items.push(Item::record(host(format!("{kind} record"))));
        Ok(vec![entry])
    }
}

/// Reads an item of the stream, which is complete or not.
fn work<'a>(items: &mut Vec<Item<'a>>, item: &Members<'a>, raw: Raw<'a>, is_complete: bool) {
    let whole = is_complete.then_some(raw);
    let (kind, id) = (item.str("type"), item.str("id"));
    let mut name = item.text("tool").unwrap_or_else(|| kind.clone());
    if item.str("status") == "declined" {
        items.push(Item::Denied { tool: name, what: item.str("command") });
        return;
    }
    match &*kind {
        "agent_message" => {
            if whole.is_some() {
                items.push(Item::whole(item.str("text")));
            }
            return;
        }
        "reasoning" => return items.extend(whole.map(Item::Thought)),
        "error" => {
            return items.extend(whole.map(|_| Item::Record { by: host("error"), value: whole }));
        }
        "command_execution" | "file_change" | "web_search" | "mcp_tool_call"
        | "collab_tool_call" => {
            if let Some(server) = item.text("server") {
                name = format!("{server}/{name}").into();
            }
            let (id, name) = (id.clone(), name.clone());
            let call = Call { id, name, about: Some(raw), is_numbered: true, ..Call::default() };
            items.push(Item::Call(call));
        }
        // A list of plans is no work.
        _ => {}
    }
    if whole.is_some() {
        items.push(Item::Result(CallResult {
            id,
            name,
            content: whole,
            is_error: item.str("status") == "failed",
            exit_code: item.integer("exit_code"),
            ..CallResult::default()
        }));
    }
}
