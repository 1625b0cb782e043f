//! Claude Code's transcript files (and those of hosts that copied the form, like Qwen's).
//!
//! One line holds one content block, lines of one message share its id, and branches that were
//! rewound stay in the file.

use std::borrow::Cow;

use super::claude_stream::{host_error, models};
use crate::content;
use crate::history::{EntryStanding, Link, Parent};
use crate::item::{
    CLAUDE_TOKENS, CallResult, Cost, Decode, Decoded, Entry, INTERRUPTED, Item, Part, Text, Until,
    Usage, Wanted, host, is_feedback, system, user,
};
use crate::json::Malformed;
use crate::members::Members;
use aldis_signal::message::{Origin, Role};

/// The model of messages that the host wrote.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// Decoder of a transcript file.
#[derive(Debug)]
pub(crate) struct ClaudeCode;

impl Decode for ClaudeCode {
    fn decode<'a>(&mut self, line: &Members<'a>, wanted: &Wanted<'_>) -> Decoded<'a> {
        let kind = line.str("type");
        let is_agents = kind == "assistant";
        let is_wanted = if is_agents { wanted.matters() } else { wanted.others() };
        // Most of a file is the results of tools, and mostly nobody asks for them.
        let is_result = line.get("toolUseResult").is_some();
        let is_read = is_agents || is_wanted || wanted.is_whole();
        let is_entry = ENTRIES.contains(&&*kind) && (line.has("uuid") || line.has("message"));
        let is_side = line.is_true("isSidechain");
        let agent = line.text("agentId").filter(|_| is_side);
        let channel = match is_side {
            true => agent.clone().unwrap_or(Cow::Borrowed("a sub-agent")),
            false => Cow::default(),
        };
        let mut entry = Entry { channel, is_side, agent, ..Entry::default() };
        if is_entry && is_result && !is_read {
            entry.link = Some(link(line, false, true));
            entry.items.push(Item::Counted);
            return Ok(vec![entry]);
        }
        let message = match line.get("message") {
            Some(raw) if is_agents => Members::of(raw)?,
            Some(raw) => Members::lenient(raw),
            None => Members::default(),
        };
        if is_agents && message.str("role") == "user" {
            return Err(Malformed);
        }
        entry.at = line.time("timestamp").filter(|_| is_read);
        if wanted.is_whole() {
            happened(&mut entry.items, line, &message);
        }
        entry.id = message.text("id").filter(|_| is_agents).or_else(|| line.text("uuid"));
        entry.cwd = line.str("cwd");
        let mut is_typed = false;
        match &*kind {
            _ if !is_entry => entry.items.extend(is_wanted.then(|| Item::record(recorder(line)))),
            "assistant" => assistant(&mut entry.items, line, &message),
            "user" | "tool_result" => {
                is_typed = user_line(&mut entry.items, line, &message);
            }
            _ => {
                entry.items.push(Item::Counted);
                entry.items.extend(is_wanted.then(|| Item::record(recorder(line))));
            }
        }
        if is_entry || line.has("uuid") {
            let is_typed = is_typed && kind == "user";
            entry.link = Some(link(line, is_typed, is_entry));
        }
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

/// Reads what is no part of the conversation: costs, errors, interruptions.
fn happened<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>, message: &Members<'a>) {
    match (&*line.str("type"), &*line.str("subtype")) {
        ("assistant", _) if has_error(line) => {
            items.extend(host_error(line, &content::text(message.get("content"))));
        }
        ("assistant", _) => {
            let cost = Cost::of_tokens(&message.object("usage"), &CLAUDE_TOKENS);
            items.extend(message.text("id").map(|id| Item::Usage(Usage::Part(id, cost))));
        }
        ("user", _) if content::text(message.get("content")).starts_with(INTERRUPTED) => {
            items.push(Item::Interrupted);
        }
        ("system", "api_error") => {
            let (error, until) = (line.object("error"), line.number("retryInMs").map(Until::In));
            let what = error.text("message").or_else(|| error.object("error").text("message"));
            items.push(Item::Retry { what: what.unwrap_or(Cow::Borrowed("API error")), until });
        }
        ("system", "compact_boundary") => items.push(Item::Compacted),
        ("cost-state", _) => {
            let cost = models(line).with_dollars(line.number("totalCostUSD"));
            items.push(Item::Usage(Usage::Total(cost)));
        }
        _ => {}
    }
}

/// Returns whether the host wrote an agent's line to report an error.
fn has_error(line: &Members<'_>) -> bool {
    line.is_true("isApiErrorMessage")
        || line.get("error").is_some()
        || line.get("apiErrorStatus").is_some()
}

fn link<'a>(line: &Members<'a>, is_typed: bool, is_entry: bool) -> Link<'a> {
    Link {
        id: line.text("uuid"),
        parent: match (line.text("parentUuid"), line.has("parentUuid")) {
            (Some(parent), _) => Parent::Id(parent),
            (None, true) if is_typed => Parent::Root,
            (None, _) => Parent::Before,
        },
        session: line.text("sessionId"),
        standing: match () {
            () if line.is_true("isSidechain") => EntryStanding::Side,
            () if line.get("teamName").is_some() => EntryStanding::Team,
            // What is not known may be a parent, but does not say which branch is live.
            () if line.is_true("isMeta") || !is_entry => EntryStanding::Note,
            () if is_typed => EntryStanding::Typed,
            () => EntryStanding::Spoken,
        },
        is_version: false,
    }
}

fn assistant<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>, message: &Members<'a>) {
    let mut content = content::read(message.any(&["content", "parts"]));
    let by = match () {
        () if has_error(line) => host("API error"),
        () if message.str("model") == SYNTHETIC => host("synthetic message"),
        () if line.is_true("isAbortedMidStream") => Origin::assistant().dead("aborted message"),
        () => Origin::assistant(),
    };
    let place = line.count("apiBlockIndex");
    let part = Part::Block { place, is_last: message.get("stop_reason").is_some() };
    let text = content.take_text();
    items.push(Item::Text(Text::new(by, part, text)));
    items.extend(content.items);
}

/// Reads a user's line: prompts, tool results, and what the host says in the user's name. Returns
/// whether a human typed it into the conversation.
fn user_line<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>, message: &Members<'a>) -> bool {
    let copy = line.get("toolUseResult");
    let mut content = content::read(message.any(&["content", "parts"]));
    let prompts = content.take_prompts(|text| prompter(line, text));
    // A picture is typed, too.
    let has_typed = prompts.iter().any(Item::is_typed)
        || prompts.is_empty() && prompter(line, "").role == Role::User;
    let is_typed = has_typed && copy.is_none() && !content.has_result();
    if copy.is_some() && !content.has_result() {
        content.items.push(Item::Result(CallResult::default()));
    }
    if let Some(Item::Result(result)) =
        content.items.iter_mut().find(|item| matches!(item, Item::Result(_)))
    {
        result.copy = copy;
        let copy = line.object("toolUseResult");
        result.is_left_running = copy.has("backgroundTaskId");
        // The host's other records know a sub-agent by the name it has here.
        result.agent = copy.text("agentId");
    }
    items.push(Item::Counted);
    items.extend(prompts);
    items.extend(content.items);
    is_typed
}

/// Returns who wrote a prompt.
fn prompter(line: &Members<'_>, text: &str) -> Origin {
    let by = user(text);
    let kind = line.object("origin").any_text(&["kind", "type"]);
    match kind.filter(|kind| kind != "human") {
        _ if line.is_true("isCompactSummary") => system("compaction summary"),
        Some(kind) => host(kind),
        None if line.is_true("isMeta") && !is_feedback(text) => host("injected"),
        None => by,
    }
}

/// Returns who wrote a line that is neither the agent's nor a user's.
fn recorder(line: &Members<'_>) -> Origin {
    let (kind, attachment) = (line.str("type"), line.object("attachment").text("type"));
    match (&*kind, attachment.as_deref()) {
        ("attachment", Some("queued_command")) => {
            Origin::new(Role::User).with_detail("queued prompt")
        }
        ("attachment", Some(kind)) if kind.starts_with("hook_") => host("hook record"),
        ("attachment", Some(kind)) => host(format!("{kind} attachment")),
        ("queue-operation" | "last-prompt", _) => {
            Origin::new(Role::User).with_detail("copy of a prompt")
        }
        ("summary", _) => system("summary"),
        (kind, _) => host(format!("{} record", line.text("subtype").as_deref().unwrap_or(kind))),
    }
}

/// The types of lines that are part of the conversation; Qwen has the last one.
const ENTRIES: [&str; 6] = ["user", "assistant", "system", "attachment", "progress", "tool_result"];
