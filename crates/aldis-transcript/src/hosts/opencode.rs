//! OpenCode: `opencode run --format json`, and the same parts as events of its bus.
//!
//! A message comes as parts that name it, and a part may come again when it has changed. There is
//! no result line: a step that ends with `stop` is the last word, or on the bus that the session is
//! idle.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::events::trouble::kind_of;
use crate::history::Link;
use crate::item::{
    Call, CallResult, Channels, Cost, Decode, Decoded, Entry, Item, Part, Until, Usage, Verdict,
    Wanted, host,
};
use crate::members::{Members, string};
use aldis_signal::time::Timestamp;

/// Decoder of one stream.
#[derive(Debug, Default)]
pub(crate) struct OpenCode {
    /// The session that is named first; others are of sub-agents.
    main: Option<String>,
    /// Who says which message, where the bus tells.
    roles: HashMap<String, String>,
}

impl Decode for OpenCode {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let on_bus = line.has("properties");
        let props = if on_bus { line.object("properties") } else { line.clone() };
        let part = props.strict("part")?;
        let info = props.object("info");
        let session = [&props, &part, &info].iter().find_map(|from| from.text("sessionID"));
        if self.main.is_none() {
            self.main = session.as_deref().map(str::to_owned);
        }
        let is_main = session.is_none() || session.as_deref() == self.main.as_deref();
        let mut entry = Entry {
            at: line.time("timestamp"),
            channel: session.clone().unwrap_or_default(),
            is_side: !is_main,
            agent: session.clone().filter(|_| !is_main),
            link: Some(Link::default()),
            ..Entry::default()
        };
        entry.items.extend(session.filter(|_| is_main).map(Item::Session));
        let kind = line.str("type");
        if part.has("type") {
            entry.id = part.text("messageID");
            self.part(&mut entry, &part, on_bus);
        } else if let Some(id) = info.text("id") {
            self.roles.insert(id.clone().into_owned(), info.str("role").into_owned());
            if info.object("error").str("name") == "MessageAbortedError" {
                entry.items.extend([Item::Abort(Channels::Own), Item::Interrupted]);
            }
        } else {
            event(&mut entry, &kind, &props, is_main);
        }
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

impl OpenCode {
    fn part<'a>(&self, entry: &mut Entry<'a>, part: &Members<'a>, on_bus: bool) {
        let items = &mut entry.items;
        match &*part.str("type") {
            "text" => {
                let role = self.roles.get(&*part.str("messageID")).map(String::as_str);
                let is_agent = role.map_or(!on_bus, |role| role == "assistant");
                let text = part.str("text");
                match is_agent {
                    true => items.push(Item::text(Part::Version { of: part.str("id") }, text)),
                    false => items.extend([Item::close(), Item::prompt(text)]),
                }
            }
            "reasoning" => items.extend(part.get("text").map(Item::Thought)),
            "tool" => {
                let (name, state) = (part.str("tool"), part.object("state"));
                let id = part.any_text(&["callID", "id"]).unwrap_or_default();
                let (input, content) = (state.get("input"), state.any(&["output", "error"]));
                let call = Call {
                    id: id.clone(),
                    name: name.clone(),
                    about: input,
                    input,
                    ..Call::default()
                };
                items.push(Item::Call(call));
                let is_error = state.str("status") == "error";
                if content.is_some() || is_error {
                    items.push(Item::Result(CallResult {
                        id,
                        name,
                        content,
                        is_error,
                        exit_code: state.object("metadata").integer("exit"),
                        ..CallResult::default()
                    }));
                }
            }
            "step-finish" => step(entry, part),
            _ => {}
        }
    }
}

/// The end of a step is the end of its message.
fn step<'a>(entry: &mut Entry<'a>, part: &Members<'a>) {
    let tokens = part.object("tokens");
    let cost = Cost::of_tokens(&tokens, &["input", "output", "reasoning"])
        .plus(Cost::of_tokens(&tokens.object("cache"), &["read", "write"]))
        .with_dollars(part.number("cost"));
    entry.items.extend([Item::close(), Item::Usage(Usage::Part(part.str("id"), cost))]);
    let what = part.text("reason").filter(|_| !entry.is_side);
    match what.as_deref() {
        Some("stop") => entry.items.push(Item::end(Verdict::Unknown)),
        Some("length" | "content-filter" | "error") => {
            entry.items.push(Item::End { verdict: Verdict::Failure, what });
        }
        _ => {}
    }
}

fn event<'a>(entry: &mut Entry<'a>, kind: &str, props: &Members<'a>, is_main: bool) {
    let items = &mut entry.items;
    let status = props.object("status");
    match (kind, &*status.str("type")) {
        ("message.removed", _) => {
            items.extend(props.text("messageID").map(|id| Item::Removed { id }));
        }
        ("message.part.removed", _) => {
            entry.id = props.text("messageID");
            items.push(Item::text(Part::Version { of: props.str("partID") }, ""));
        }
        ("session.idle", _) | ("session.status", "idle") if is_main => {
            items.push(Item::end(Verdict::Unknown));
        }
        ("session.status", "retry") if is_main => {
            let until = status.number("next").map(|next| Timestamp::from_millis(next as i64));
            let what = status.text("message").unwrap_or(Cow::Borrowed("error"));
            items.push(Item::Retry { what, until: until.map(Until::At) });
        }
        ("error" | "session.error", _) if is_main => items.push(failure(props)),
        _ => {}
    }
    items.push(Item::record(host(format!("{kind} event"))));
}

fn failure<'a>(props: &Members<'a>) -> Item<'a> {
    let error = props.object("error");
    let data = error.object("data");
    let words = data.text("message").or_else(|| error.text("message"));
    let words = words.or_else(|| string(props.get("error")?)).or_else(|| error.text("name"));
    let words = words.unwrap_or(Cow::Borrowed("error"));
    let wait = data.object("responseHeaders").text("retry-after");
    let wait = wait.and_then(|seconds| seconds.parse::<f64>().ok());
    let kind = kind_of(data.count("statusCode"), None, &words);
    Item::trouble(kind, words, wait.map(|seconds| Until::In(seconds * 1_000.0)))
}
