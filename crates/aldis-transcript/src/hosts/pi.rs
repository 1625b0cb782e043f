//! Pi: session files, and the stream of `pi --mode json`. OpenClaw runs Pi and keeps the same files.
//!
//! Both begin with the same header. A file is a tree: an entry names its parent, and a branch that was
//! left stays. The stream has no ids: a message is whole when it ends, and what follows repeats it.

use std::borrow::Cow;

use crate::content;
use crate::ending::Form;
use crate::history::{Link, Parent};
use crate::item::{
    CallResult, Cost, Decode, Decoded, Entry, Item, Until, Usage, Verdict, Wanted, host, system,
    tool, user,
};
use crate::members::{Members, elements};

/// Decoder of a file or a stream.
#[derive(Debug, Default)]
pub(crate) struct Pi {
    cwd: String,
}

impl Decode for Pi {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let kind = line.str("type");
        let mut entry = Entry::of(line.time("timestamp"), Vec::new());
        match &*kind {
            "message" | "message_end" => {
                let message = line.strict("message")?;
                entry.at = entry.at.or_else(|| message.time("timestamp"));
                said(&mut entry.items, &message);
            }
            // They announce or repeat what the end of a message says.
            "message_start"
            | "message_update"
            | "turn_end"
            | "tool_execution_start"
            | "tool_execution_update"
            | "tool_execution_end" => {}
            "session" => {
                self.cwd = line.str("cwd").into_owned();
                entry.items.push(Item::Session(line.str("id")));
            }
            kind => other(&mut entry.items, kind, line),
        }
        entry.cwd = self.cwd.clone().into();
        entry.id = line.text("id");
        entry.link = Some(Link {
            id: line.text("id"),
            parent: match (line.has("parentId"), line.text("parentId")) {
                (true, Some(parent)) => Parent::Id(parent),
                (true, None) => Parent::Root,
                (false, _) => Parent::Before,
            },
            standing: entry.standing(),
            ..Link::default()
        });
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

fn said<'a>(items: &mut Vec<Item<'a>>, message: &Members<'a>) {
    let value = message.get("content");
    match &*message.str("role") {
        "assistant" => answer(items, message),
        "user" => items.extend(content::read(value).take_prompts(user)),
        "toolResult" => items.push(Item::Result(CallResult {
            id: message.str("toolCallId"),
            name: message.str("toolName"),
            content: value,
            is_error: message.is_true("isError"),
            form: Some(Form::Exited),
            ..CallResult::default()
        })),
        // A person ran a command beside the agent.
        "bashExecution" => {
            let by = tool("command of the user");
            items.push(Item::Record { by, value: message.get("output") });
        }
        "custom" => {
            let by = host(format!("{} message", message.str("customType")));
            items.push(Item::Prompt { by, text: content::text(value) });
        }
        // The prompt of the system, and summaries of what was said.
        role => items.push(Item::record(system(format!("{role} message")))),
    }
}

/// What the model answered. Pi never shows the model an answer again that was cut off, so nobody can
/// take back what is in it: it was not said.
fn answer<'a>(items: &mut Vec<Item<'a>>, message: &Members<'a>) {
    let usage = message.object("usage");
    let cost = Cost::of_tokens(&usage, &["totalTokens"])
        .with_dollars(usage.object("cost").number("total"));
    let id = message.any_text(&["responseId", "timestamp"]).unwrap_or_default();
    items.push(Item::Usage(Usage::Part(id, cost)));
    match &*message.str("stopReason") {
        "aborted" => items.push(Item::Interrupted),
        "error" => {
            let what = message.text("errorMessage").unwrap_or(Cow::Borrowed("error"));
            items.push(Item::error(what));
        }
        _ => {
            words(items, message);
            return;
        }
    }
    let by = host("unfinished message");
    items.push(Item::Record { by, value: message.get("content") });
}

fn words<'a>(items: &mut Vec<Item<'a>>, message: &Members<'a>) {
    let value = message.get("content");
    items.push(Item::whole(content::text(value)));
    for raw in value.map(elements).unwrap_or_default() {
        let block = Members::lenient(raw);
        match &*block.str("type") {
            "toolCall" => {
                let (id, name) = (block.str("id"), block.str("name"));
                items.push(Item::call(id, name, block.get("arguments")));
            }
            "thinking" => items.push(Item::Thought(raw)),
            _ => {}
        }
    }
}

fn other<'a>(items: &mut Vec<Item<'a>>, kind: &str, line: &Members<'a>) {
    match kind {
        "turn_start" => items.push(Item::Turn),
        // With `willRetry` it goes on by itself; the reason was told before.
        "agent_end" => {
            if !line.is_true("willRetry") {
                items.push(Item::End { verdict: Verdict::Unknown, what: None });
            }
        }
        "auto_retry_start" => items.push(Item::Retry {
            what: line.text("errorMessage").unwrap_or(Cow::Borrowed("error")),
            until: line.number("delayMs").map(Until::In),
        }),
        "auto_retry_end" if !line.is_true("success") => {
            items.push(Item::error(line.text("finalError").unwrap_or(Cow::Borrowed("error"))));
        }
        "compaction" => {
            let by = system("compaction summary");
            items.extend([Item::Compacted, Item::Record { by, value: line.get("summary") }]);
        }
        "compaction_end" if line.has("result") => items.push(Item::Compacted),
        "custom_message" => {
            let by = host(format!("{} message", line.str("customType")));
            items.push(Item::Prompt { by, text: content::text(line.get("content")) });
        }
        "branch_summary" => items.push(Item::record(system("summary of a branch"))),
        kind => items.push(Item::record(host(format!("{kind} record")))),
    }
}
