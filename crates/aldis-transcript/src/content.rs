//! Content blocks as Claude Code writes them and most other hosts copied them.
//!
//! Only text blocks are speech. What was thought, what was handed to a tool and what came back are
//! items of their own.

use std::borrow::Cow;

use super::ending::Form;
use super::item::{CallResult, Item, tool, user};
use super::members::{Members, Raw, elements, member_strings, string};
use super::out::join;
use aldis_signal::message::Origin;

/// What the content of one message holds.
#[derive(Debug, Default)]
pub(crate) struct Content<'a> {
    /// The text blocks.
    texts: Vec<Cow<'a, str>>,
    /// Everything else, in order.
    pub(crate) items: Vec<Item<'a>>,
}

impl<'a> Content<'a> {
    /// Returns whether a call is answered here.
    pub(crate) fn has_result(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Result(_)))
    }

    /// Takes the text blocks, joined by line breaks.
    pub(crate) fn take_text(&mut self) -> Cow<'a, str> {
        std::mem::take(&mut self.texts).into_iter().reduce(joined).unwrap_or_default()
    }

    /// Takes the text blocks as prompts. Hosts write blocks of their own beside a user's, so each is
    /// judged by itself.
    pub(crate) fn take_prompts(&mut self, by: impl Fn(&str) -> Origin) -> Vec<Item<'a>> {
        let mut prompts: Vec<(Origin, Cow<'a, str>)> = Vec::new();
        for text in std::mem::take(&mut self.texts).into_iter().filter(|text| !text.is_empty()) {
            let by = by(&text);
            match prompts.last_mut() {
                Some((last, before)) if *last == by => {
                    *before = joined(std::mem::take(before), text);
                }
                _ => prompts.push((by, text)),
            }
        }
        prompts.into_iter().map(|(by, text)| Item::Prompt { by, text }).collect()
    }
}

/// Joins two text blocks.
fn joined<'a>(mut before: Cow<'a, str>, text: Cow<'a, str>) -> Cow<'a, str> {
    if before.is_empty() {
        return text;
    }
    join(before.to_mut(), &text);
    before
}

/// Reads message content: a string or a list of blocks.
pub(crate) fn read(content: Option<Raw<'_>>) -> Content<'_> {
    let mut all = Content::default();
    for raw in content.map(elements).unwrap_or_default() {
        match block(raw) {
            Block::Text(text) => all.texts.push(text),
            Block::Other(item) => all.items.push(item),
        }
    }
    all
}

/// Reads only the text of message content.
pub(crate) fn text(content: Option<Raw<'_>>) -> Cow<'_, str> {
    read(content).take_text()
}

/// Reads message content that a user wrote, or somebody in a user's name.
pub(crate) fn prompts(content: Option<Raw<'_>>) -> Vec<Item<'_>> {
    read(content).take_prompts(user)
}

enum Block<'a> {
    Text(Cow<'a, str>),
    Other(Item<'a>),
}

fn block(raw: Raw<'_>) -> Block<'_> {
    if let Some(text) = string(raw) {
        return Block::Text(text);
    }
    let block = Members::lenient(raw);
    let kind = block.str("type");
    let item = match &*kind {
        // Codex writes the names of its own types, too; Gemini's family has parts without a type.
        "text" | "output_text" | "input_text" | "Text" => return Block::Text(block.str("text")),
        "" if block.has("text") && !block.is_true("thought") => {
            return Block::Text(block.str("text"));
        }
        "" if block.has("functionCall") => {
            call(&block.object("functionCall"), block.get("functionCall"))
        }
        "" if block.has("functionResponse") => {
            let response = block.object("functionResponse");
            Item::Result(CallResult {
                id: response.str("id"),
                name: response.str("name"),
                content: response.get("response"),
                is_error: response.object("response").has("error"),
                form: Some(Form::Labelled),
                ..CallResult::default()
            })
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => call(&block, block.get("input")),
        "tool_result" => Item::Result(CallResult {
            id: block.str("tool_use_id"),
            content: block.get("content"),
            is_error: block.is_true("is_error"),
            form: Some(Form::First),
            ..CallResult::default()
        }),
        "thinking" => Item::Thought(raw),
        "" if block.is_true("thought") => Item::Thought(raw),
        kind => Item::Record { by: tool(format!("{kind} block")), value: Some(raw) },
    };
    Block::Other(item)
}

fn call<'a>(call: &Members<'a>, input: Option<Raw<'a>>) -> Item<'a> {
    Item::call(call.str("id"), call.str("name"), input)
}

/// Returns the file or address that the input of a call is about.
pub(crate) fn path(input: Option<Raw<'_>>) -> Cow<'_, str> {
    let input = input.map(Members::lenient).unwrap_or_default();
    input.any_text(&["file_path", "notebook_path", "path", "url"]).unwrap_or_default()
}

/// Returns the text of a result: its strings, without those that only say what kind of block it is.
pub(crate) fn text_of(content: Raw<'_>) -> String {
    let mut all = String::new();
    for raw in elements(content) {
        match Members::lenient(raw).text("text") {
            Some(text) => join(&mut all, &text),
            None => join(&mut all, &member_strings(raw.bytes(), &|_| true)),
        }
    }
    all
}
