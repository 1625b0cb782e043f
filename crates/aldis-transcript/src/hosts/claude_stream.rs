//! `claude -p --output-format stream-json`, and Amp's and Qwen's streams, which follow it.
//!
//! The same words can come three times: as deltas, as complete lines (one per content block) and in
//! the final result. Complete lines are taken; the others only where there are none. Each line of a
//! message names the costs of the whole message, and the result those of the process. An API error
//! comes as a message that the host wrote (`error`, or the model `<synthetic>`), then again as the
//! result.

use std::borrow::Cow;

use super::claude_code::SYNTHETIC;
use crate::content;
use crate::events::trouble::{self, Kind, kind_of};
use crate::item::{
    CLAUDE_TOKENS, Channels, Cost, Decode, Decoded, Entry, INTERRUPTED, Item, Part, Text, Trouble,
    Until, Usage, Verdict, Wanted, host, tool, user,
};
use crate::json::Malformed;
use crate::members::{Members, strings};
use aldis_signal::message::{Origin, Role};
use aldis_signal::time::Timestamp;

/// Decoder of one stream.
#[derive(Debug, Default)]
pub(crate) struct ClaudeStream {
    /// The main agent's message of which deltas come, and its costs when it began.
    open: Option<(String, Cost)>,
}

impl Decode for ClaudeStream {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let kind = line.str("type");
        let message = match (&*kind, line.get("message")) {
            ("assistant" | "user", message) => Members::of(message.ok_or(Malformed)?)?,
            _ => Members::default(),
        };
        let agent = line.text("parent_tool_use_id");
        let mut entry = Entry {
            at: line.time("timestamp"),
            id: message.text("id").or_else(|| line.text("uuid")),
            channel: agent.clone().unwrap_or_default(),
            is_side: agent.is_some(),
            agent,
            ..Entry::default()
        };
        entry.items.extend(line.text("session_id").map(Item::Session));
        match &*kind {
            "assistant" => assistant(&mut entry, line, &message),
            "user" => user_line(&mut entry.items, line, &message),
            "stream_event" => self.delta(&mut entry, &line.object("event")),
            "result" => result(&mut entry.items, line),
            kind => {
                match (kind, &*line.str("subtype")) {
                    ("rate_limit_event", _) => {
                        entry.items.extend(limit(&line.object("rate_limit_info")));
                    }
                    ("system", "api_retry") => entry.items.push(retry(line)),
                    ("system", "compact_boundary") => entry.items.push(Item::Compacted),
                    _ => {}
                }
                let name = line.text("subtype").unwrap_or_else(|| kind.to_owned().into());
                entry.items.push(Item::record(host(format!("{name} record"))));
            }
        }
        Ok(vec![entry])
    }
}

impl ClaudeStream {
    fn delta<'a>(&mut self, entry: &mut Entry<'a>, event: &Members<'a>) {
        let items = &mut entry.items;
        match &*event.str("type") {
            "message_start" => {
                let message = event.object("message");
                let id = message.text("id");
                if !entry.is_side {
                    let input = [CLAUDE_TOKENS[0], CLAUDE_TOKENS[2], CLAUDE_TOKENS[3]];
                    let cost = Cost::of_tokens(&message.object("usage"), &input);
                    self.open = id.clone().map(|id| (id.into_owned(), cost));
                }
                items.push(Item::Start { id });
            }
            "message_stop" => items.push(Item::Stop),
            // The costs of a message are only complete in its last delta.
            "message_delta" if !entry.is_side => {
                let tokens = event.object("usage").count("output_tokens");
                if let (Some((id, input)), Some(tokens)) = (&self.open, tokens) {
                    let cost = input.plus(Cost { tokens, micro_dollars: 0 });
                    items.push(Item::Usage(Usage::Part(id.clone().into(), cost)));
                }
            }
            _ => {
                let name = if event.has("delta") { "delta" } else { "content_block" };
                let piece = event.object(name);
                let text = piece.str("text");
                if matches!(&*piece.str("type"), "text" | "text_delta") && !text.is_empty() {
                    // Blocks may be interleaved.
                    let of = event.count("index").unwrap_or(0).to_string().into();
                    items.push(Item::text(Part::Piece { of }, text));
                }
            }
        }
    }
}

fn assistant<'a>(entry: &mut Entry<'a>, line: &Members<'a>, message: &Members<'a>) {
    let mut content = content::read(message.get("content"));
    let text = content.take_text();
    let is_synthetic = message.str("model") == SYNTHETIC;
    let by = match () {
        () if line.get("error").is_some() => host("API error"),
        () if is_synthetic => host("synthetic message"),
        () if line.is_true("aborted") => Origin::assistant().dead("aborted message"),
        () => Origin::assistant(),
    };
    if by.role == Role::Host {
        // Whether a sub-agent's failure is one is for the main agent to say.
        let is_main = !entry.is_side;
        entry.items.extend(host_error(line, &text).filter(|_| is_main));
    } else if let (Some(id), true) = (message.text("id"), message.has("usage")) {
        let cost = Cost::of_tokens(&message.object("usage"), &CLAUDE_TOKENS);
        entry.items.push(Item::Usage(Usage::Part(id, cost)));
    }
    let part = Part::Block { place: None, is_last: message.get("stop_reason").is_some() };
    let text = Text::new(by, part, text);
    entry.items.push(Item::Text(text));
    entry.items.extend(content.items);
}

/// A message that the host wrote in the agent's name.
pub(super) fn host_error<'a>(line: &Members<'a>, words: &Cow<'a, str>) -> Option<Item<'a>> {
    let Some(error) = line.get("error") else {
        return trouble::line(words).map(|kind| Item::trouble(kind, words.clone(), None));
    };
    let name = crate::members::string(error).or_else(|| line.object("error").text("type"));
    let kind = kind_of(None, name.as_deref(), words);
    let words = match words.is_empty() {
        true => name.unwrap_or(Cow::Borrowed("API error")),
        false => words.replace('\n', " ").into(),
    };
    Some(Item::trouble(kind, words, None))
}

fn user_line<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>, message: &Members<'a>) {
    let mut content = content::read(message.get("content"));
    items.extend([Item::close(), Item::Counted]);
    if content::text(message.get("content")).starts_with(INTERRUPTED) {
        items.push(Item::Interrupted);
    }
    // A sub-agent ends with the result of its call.
    for item in &content.items {
        if let Item::Result(result) = item {
            items.push(Item::Close(Channels::Named(result.id.clone())));
        }
    }
    let is_synthetic = line.is_true("isSynthetic");
    items.extend(content.take_prompts(|text| match user(text) {
        by if by.role == Role::User && is_synthetic => host("injected"),
        by => by,
    }));
    items.extend(content.items);
    let result = items.iter_mut().find_map(|item| match item {
        Item::Result(result) => Some(result),
        _ => None,
    });
    match (result, line.get("tool_use_result")) {
        (Some(result), Some(record)) => {
            result.copy = Some(record);
            result.is_left_running = Members::lenient(record).has("backgroundTaskId");
        }
        (None, value @ Some(_)) => {
            items.push(Item::Record { by: tool("record of a tool result"), value });
        }
        (_, None) => {}
    }
}

fn result<'a>(items: &mut Vec<Item<'a>>, line: &Members<'a>) {
    let (subtype, reason) = (line.str("subtype"), line.text("terminal_reason"));
    let is_cut = reason.as_deref() == Some("aborted_streaming");
    if is_cut {
        items.push(Item::Abort(Channels::All));
    }
    items.push(Item::Close(Channels::All));
    let all = models(line);
    let main = Cost::of_tokens(&line.object("usage"), &CLAUDE_TOKENS);
    let total = if all.tokens > main.tokens { all } else { main };
    let total = total.with_dollars(line.number("total_cost_usd"));
    items.push(Item::Usage(Usage::Total(total)));
    for denial in line.list("permission_denials") {
        let denial = Members::lenient(denial);
        let what = denial.object("tool_input").any_text(&DENIED).unwrap_or_default();
        items.push(Item::Denied { tool: denial.str("tool_name"), what });
    }
    // A result can be a success by its subtype and an error nevertheless.
    let is_error = match line.get("is_error") {
        Some(flag) => flag.bytes() == b"true",
        None => subtype.starts_with("error") || subtype == "failure",
    };
    if is_error {
        items.push(Item::record(host("error result")));
        failure(items, line, (subtype, reason));
        return;
    }
    let mut by = Origin::assistant();
    if is_cut {
        by = by.dead("aborted message");
    }
    let text = line.get("result").map(strings).unwrap_or_default().into();
    let part = Part::Outcome;
    items.push(Item::Text(Text::new(by, part, text)));
    let what = reason.filter(|reason| reason != "completed");
    items.push(Item::End { verdict: Verdict::Success, what });
}

/// The tokens of all models.
pub(super) fn models(line: &Members<'_>) -> Cost {
    let models = line.object("modelUsage");
    let models = models.iter().map(|(_, usage)| Members::lenient(usage));
    let all = models.map(|usage| Cost::of_tokens(&usage, &CLAUDE_TOKENS));
    all.fold(Cost::default(), Cost::plus)
}

fn failure<'a>(
    items: &mut Vec<Item<'a>>,
    line: &Members<'a>,
    (subtype, reason): (Cow<'a, str>, Option<Cow<'a, str>>),
) {
    let first = line.list("errors").into_iter().next();
    let words = line.any_text(&["result", "error"]);
    let words = words.or_else(|| line.object("error").text("message"));
    let words = words.or_else(|| crate::members::string(first?));
    let words = words.or_else(|| Members::lenient(first?).text("message")).unwrap_or_default();
    let status = line.count("api_error_status");
    let is_api = status.is_some()
        || subtype == "success"
        || matches!(reason.as_deref(), Some("api_error" | "model_error" | "prompt_too_long"));
    let is_limit = !is_api && trouble::line(&words) == Some(Kind::Limit);
    items.push(Item::Trouble(Trouble {
        kind: if is_limit { Kind::Limit } else { kind_of(status, None, &words) },
        what: words.clone(),
        until: None,
        is_doubtful: !is_api && !is_limit,
    }));
    let what = if words.is_empty() { reason.unwrap_or(subtype) } else { words };
    items.push(Item::failed(what));
}

/// Comes with every answer; only a refusal without paid overage is a limit.
fn limit<'a>(info: &Members<'a>) -> Option<Item<'a>> {
    let goes_on = info.is_true("isUsingOverage")
        || matches!(&*info.str("overageStatus"), "allowed" | "allowed_warning");
    if info.str("status") != "rejected" || goes_on {
        return None;
    }
    let until = info.number("resetsAt");
    let until = until.map(|seconds| Until::At(Timestamp::from_millis((seconds * 1e3) as i64)));
    let window = info.text("rateLimitType").unwrap_or(Cow::Borrowed("usage")).replace('_', " ");
    Some(Item::trouble(Kind::Limit, format!("{window} limit reached"), until))
}

fn retry<'a>(line: &Members<'a>) -> Item<'a> {
    let until = line.number("retry_delay_ms").map(Until::In);
    let error = line.text("error").unwrap_or(Cow::Borrowed("API error"));
    let status = line.count("error_status").map(|status| format!(" ({status})"));
    let status = status.unwrap_or_default();
    let attempt = line.count("attempt").unwrap_or(1);
    let most = line.count("max_retries").map(|most| format!(" of {most}")).unwrap_or_default();
    Item::Retry { what: format!("{error}{status}, attempt {attempt}{most}").into(), until }
}

/// Where a denied call says what it was to do.
const DENIED: [&str; 6] = ["command", "file_path", "notebook_path", "path", "url", "query"];
