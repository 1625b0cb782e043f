//! Content blocks and tool calls as Claude Code writes them and most others copied them.
//!
//! Only `text` blocks are speech. What was thought, what was handed to a tool and what came back is
//! kept apart as asides, each with an origin that cannot signal, except for the result of a tool
//! that is itself an agent: that is the sub-agent's final message.

use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{Str, blocks, lenient, strings};
use super::out::join;
use aldis_signal::message::{Origin, Role};

/// What the content of one message holds.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    /// The text blocks, joined by line breaks.
    pub(super) text: String,
    /// Everything else that matters.
    pub(super) asides: Vec<(Origin, String)>,
}

/// Reads message content: a string or a list of blocks.
pub(super) fn read(
    content: Option<&RawValue>,
    calls: &mut Calls,
    cwd: &str,
    matters: &dyn Fn(&[u8]) -> bool,
) -> Spoken {
    let mut spoken = Spoken::default();
    for raw in content.map(blocks).unwrap_or_default() {
        // Most blocks are objects, and an error costs more than a look.
        if raw.get().starts_with('"')
            && let Ok(text) = serde_json::from_str::<Str<'_>>(raw.get())
        {
            join(&mut spoken.text, &text);
            continue;
        }
        let block: Block<'_> = lenient(Some(raw));
        let wanted = || matters(raw.get().as_bytes());
        match block.kind() {
            kind if is_text(kind) => {
                join(&mut spoken.text, block.text.as_deref().unwrap_or_default());
            }
            kind if is_call(kind) => {
                block.note(calls);
                if let Some(input) = block.input.filter(|_| wanted()) {
                    let origin = tool(format!("input of {}", block.name()));
                    spoken.asides.push((origin, strings(input)));
                }
            }
            "tool_result" => {
                if let Some(content) = block.content.filter(|_| wanted()) {
                    let id = block.tool_use_id.as_deref().unwrap_or_default();
                    let origin = match (calls.result(id, cwd), block.is_error) {
                        // An agent that failed has said nothing: this is the host's word.
                        (origin, Some(true)) if origin.may_signal() => tool("a sub-agent's error"),
                        (origin, _) => origin,
                    };
                    spoken.asides.push((origin, block_text(content)));
                }
            }
            "thinking" => {
                if wanted() {
                    spoken.asides.push((tool("thinking"), strings(raw)));
                }
            }
            other => {
                if wanted() {
                    spoken.asides.push((tool(format!("{other} block")), strings(raw)));
                }
            }
        }
    }
    spoken
}

/// Returns whether [`read_words`] is enough for content: it holds the agent's words alone, or also
/// calls and thoughts where those are not wanted.
pub(super) fn are_words(content: &[Block<'_>], words_only: bool) -> bool {
    let mut kinds = content.iter().map(Block::kind);
    kinds.all(|kind| is_text(kind) || words_only && kind != "tool_result")
}

/// As [`read`] for content that was taken apart with its line; nothing but words is given out.
pub(super) fn read_words(content: &[Block<'_>], calls: &mut Calls) -> Spoken {
    let mut spoken = Spoken::default();
    for block in content {
        match block.kind() {
            kind if is_text(kind) => {
                join(&mut spoken.text, block.text.as_deref().unwrap_or_default());
            }
            kind if is_call(kind) => block.note(calls),
            _ => {}
        }
    }
    spoken
}

/// Returns whether a block of this type is words. Codex writes the names of its own types too.
pub(super) fn is_text(kind: &str) -> bool {
    matches!(kind, "text" | "output_text" | "input_text" | "Text")
}

/// Returns whether a block of this type calls a tool.
pub(super) fn is_call(kind: &str) -> bool {
    matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use")
}

/// Returns the origin of something a tool said, was told, or the agent only thought.
pub(super) fn tool(detail: impl Into<String>) -> Origin {
    Origin::new(Role::Tool).with_detail(detail)
}

/// Returns the origin of something the host wrote.
pub(super) fn host(detail: impl Into<String>) -> Origin {
    Origin::new(Role::Host).with_detail(detail)
}

/// Returns the origin of something a user wrote or that was written in a user's name.
pub(super) fn user(text: &str) -> Origin {
    // Hosts that have no mark for it still begin the text of a hook's feedback like this.
    if text.starts_with("Stop hook feedback:") || text.starts_with("<hook_prompt") {
        return host("hook feedback");
    }
    Origin::new(Role::User).with_detail("prompt")
}

/// Returns the origin of text in the system's name.
pub(super) fn system(detail: impl Into<String>) -> Origin {
    Origin::new(Role::System).with_detail(detail)
}

/// Remembers tool calls, so that a result can be told by its tool.
///
/// A result follows its call closely, so a short memory is enough to describe it. Calls of agents
/// are kept for good: they run long, and who spoke depends on them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    agents: HashSet<String>,
    recent: VecDeque<Call>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    path: String,
}

impl Calls {
    /// Remembers a call and the file it is about, if it is about one.
    pub(super) fn note(&mut self, id: &str, name: &str, input: Option<&RawValue>) {
        let input: Input<'_> = lenient(input);
        self.note_path(id, name, input.path().unwrap_or_default());
    }

    /// Remembers a call whose path is known already.
    pub(super) fn note_path(&mut self, id: &str, name: &str, path: &str) {
        if id.is_empty() {
            return;
        }
        if is_agent(name) {
            self.agents.insert(id.into());
        }
        // The strings of the oldest call are used again: this runs for every call of a transcript.
        let mut call = Call::default();
        if self.recent.len() >= RECENT_MAX {
            call = self.recent.pop_front().unwrap_or_default();
        }
        for (target, value) in [(&mut call.id, id), (&mut call.name, name), (&mut call.path, path)]
        {
            target.clear();
            target.push_str(value);
        }
        self.recent.push_back(call);
    }

    /// Returns whether any call was one of an agent.
    pub(super) fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Returns the origin of a call's result.
    pub(super) fn result(&self, id: &str, cwd: &str) -> Origin {
        if self.agents.contains(id) {
            return Origin::new(Role::Subagent).with_agent(id).with_detail("result of a sub-agent");
        }
        let Some(call) = self.recent.iter().rev().find(|call| call.id == id) else {
            return tool("tool result");
        };
        if call.path.is_empty() {
            return tool(format!("result of {}", call.name));
        }
        let inside = call.path.strip_prefix(cwd).filter(|_| !cwd.is_empty());
        let path = inside.and_then(|path| path.strip_prefix('/')).unwrap_or(&call.path);
        tool(format!("result of {} {path}", call.name))
    }
}

/// Returns whether a tool is an agent of its own.
pub(super) fn is_agent(name: &str) -> bool {
    name.eq_ignore_ascii_case("task") || name.eq_ignore_ascii_case("agent")
}

const RECENT_MAX: usize = 256;

/// A content block. Members that it should not have are missing.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
    thought: Option<bool>,
}

impl Block<'_> {
    /// Gemini's family has parts without a type.
    fn kind(&self) -> &str {
        match (&self.kind, &self.text, self.thought) {
            (Some(kind), ..) => kind,
            (None, Some(_), Some(true)) => "thinking",
            (None, Some(_), _) => "text",
            (None, None, _) => "unknown",
        }
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("a tool")
    }

    /// Remembers the call that this block is.
    fn note(&self, calls: &mut Calls) {
        calls.note(self.id.as_deref().unwrap_or_default(), self.name(), self.input);
    }
}

/// The text of a result: its strings, without those that only say what kind of block this is.
pub(super) fn block_text(content: &RawValue) -> String {
    let mut all = String::new();
    for raw in blocks(content) {
        let block: Block<'_> = lenient(Some(raw));
        match block.text {
            Some(text) => join(&mut all, &text),
            None => join(&mut all, &strings(raw)),
        }
    }
    all
}

#[derive(Debug, Default, Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    file_path: Option<Str<'a>>,
    #[serde(borrow)]
    notebook_path: Option<Str<'a>>,
    #[serde(borrow)]
    path: Option<Str<'a>>,
    #[serde(borrow)]
    url: Option<Str<'a>>,
}

impl Input<'_> {
    fn path(&self) -> Option<&str> {
        [&self.file_path, &self.notebook_path, &self.path, &self.url]
            .into_iter()
            .find_map(Option::as_deref)
    }
}
