//! Kiro CLI: session files, one entry per line. Only what a person typed has a time.

use crate::history::{Link, Rewind};
use crate::item::{CallResult, Decode, Decoded, Entry, Item, Wanted, host, system, user};
use crate::members::{Members, string};

/// Decoder of a session file.
#[derive(Debug)]
pub(crate) struct Kiro;

impl Decode for Kiro {
    fn decode<'a>(&mut self, line: &Members<'a>, _: &Wanted<'_>) -> Decoded<'a> {
        let data = line.strict("data")?;
        let mut entry = Entry::of(data.object("meta").time("timestamp"), Vec::new());
        let items = &mut entry.items;
        match &*line.str("kind") {
            "Prompt" => {
                let text = text(&data);
                items.push(Item::Prompt { by: user(&text), text: text.into() });
            }
            "AssistantMessage" => {
                items.push(Item::whole(text(&data)));
                blocks(items, &data);
            }
            "ToolResults" => blocks(items, &data),
            "Compaction" => {
                let by = system("compaction summary");
                items.extend([Item::Compacted, Item::Record { by, value: line.get("data") }]);
            }
            "Clear" => items.push(Item::Rewind(Rewind::All)),
            kind => items.push(Item::record(host(format!("{kind} entry")))),
        }
        entry.link = Some(Link { standing: entry.standing(), ..Link::default() });
        entry.id = data.text("message_id");
        Ok(vec![entry])
    }

    fn holds_back(&self) -> bool {
        true
    }
}

/// The words of a message.
fn text(data: &Members<'_>) -> String {
    let blocks = data.list("content").into_iter().map(Members::lenient);
    let texts = blocks.filter(|block| block.str("kind") == "text");
    let texts: Vec<_> = texts.map(|block| block.str("data").into_owned()).collect();
    texts.join("\n\n")
}

/// Everything else in a message.
fn blocks<'a>(items: &mut Vec<Item<'a>>, data: &Members<'a>) {
    for raw in data.list("content") {
        let block = Members::lenient(raw);
        let inside = block.object("data");
        match &*block.str("kind") {
            "text" => {}
            "thinking" => items.push(Item::Thought(raw)),
            "toolUse" => {
                let (id, name) = (inside.str("toolUseId"), inside.str("name"));
                let input = inside.get("input");
                items.push(Item::call(id, name, input));
            }
            "toolResult" => {
                let mut parts = inside.list("content").into_iter().map(Members::lenient);
                let exit = parts.find_map(|part| exit_code(&part.object("data")));
                items.push(Item::Result(CallResult {
                    id: inside.str("toolUseId"),
                    content: inside.get("content"),
                    is_error: inside.str("status") == "error",
                    exit_code: exit,
                    ..CallResult::default()
                }));
            }
            kind => {
                let by = host(format!("{kind} block"));
                items.push(Item::Record { by, value: block.get("data") });
            }
        }
    }
}

/// Reads `exit status: 1`.
fn exit_code(result: &Members<'_>) -> Option<i64> {
    let status = string(result.get("exit_status")?)?;
    status.strip_prefix("exit status: ")?.parse().ok()
}
