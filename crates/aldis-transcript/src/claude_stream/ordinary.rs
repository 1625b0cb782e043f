//! A line of an agent that nothing is the matter with, read without a tree of values: agents write
//! many.
//!
//! Whatever is not as the host usually writes it is left to the careful way, of which there is one
//! for messages and one for facts.

use crate::json::Str;
use crate::walk::{Member, Walk};

/// How the agent's lines begin.
const BEGIN: &[u8] = br#"{"type":"assistant","#;

/// One line of an agent.
#[derive(Debug, Default)]
pub(crate) struct Ordinary<'a> {
    kind: Member<'a>,
    /// The session, as the host names it.
    pub(crate) session_id: Member<'a>,
    /// Set for sub-agents.
    pub(crate) parent_tool_use_id: Member<'a>,
    pub(crate) uuid: Member<'a>,
    /// The message's name.
    pub(crate) id: Member<'a>,
    pub(crate) stop_reason: Member<'a>,
    model: Member<'a>,
    role: Member<'a>,
    content: Option<Vec<Block<'a>>>,
    /// How many tokens the message took, if that is told.
    pub(crate) tokens: Option<u64>,
}

/// A part of what it says: words, a thought, a call.
#[derive(Debug, Default)]
pub(crate) struct Block<'a> {
    kind: Member<'a>,
    pub(crate) text: Member<'a>,
    pub(crate) id: Member<'a>,
    pub(crate) name: Member<'a>,
    /// What a call may be about: members of its input, the one that counts most first.
    about: Option<[Member<'a>; 4]>,
}

impl<'a> Ordinary<'a> {
    /// Reads a line; `None` if it may be anything else.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let mut walk = line.starts_with(BEGIN).then(|| Walk::start(line))??;
        let mut read = Self::default();
        let mut messages = 0;
        walk.members(|name, walk| match name {
            "type" => read.kind.take(walk),
            "session_id" => read.session_id.take(walk),
            "parent_tool_use_id" => read.parent_tool_use_id.take(walk),
            "uuid" => read.uuid.take(walk),
            "message" => {
                messages += 1;
                read.message(walk)
            }
            // These make a line unusual.
            "timestamp" | "subtype" | "event" | "result" | "tool_use_result" | "error"
            | "terminal_reason" | "is_error" | "aborted" | "isSynthetic" => None,
            _ => walk.skip(),
        })?;
        walk.finish()?;
        let by_host = read.model.is_some() && read.model.plain().is_none_or(|m| m == "<synthetic>");
        (messages == 1 && read.content.is_some() && !by_host).then_some(read)
    }

    fn message(&mut self, walk: &mut Walk<'a>) -> Option<()> {
        let mut usages = 0;
        walk.members(|name, walk| match name {
            "id" => self.id.take(walk),
            "model" => self.model.take(walk),
            "role" => self.role.take(walk),
            "stop_reason" => self.stop_reason.take(walk),
            "content" => {
                let mut blocks = Vec::new();
                walk.elements(|walk| Block::read(walk).map(|block| blocks.push(block)))?;
                self.content.replace(blocks).is_none().then_some(())
            }
            "usage" => {
                usages += 1;
                self.tokens = usage(walk)?;
                (usages == 1).then_some(())
            }
            _ => walk.skip(),
        })
    }

    /// What it says, part by part.
    pub(crate) fn blocks(&self) -> &[Block<'a>] {
        self.content.as_deref().unwrap_or_default()
    }
}

/// Adds up the members of [`CLAUDE_TOKENS`]; nothing if there is no usage.
fn usage(walk: &mut Walk<'_>) -> Option<Option<u64>> {
    if walk.null().is_some() {
        return Some(None);
    }
    let (mut tokens, mut seen) = (0_u64, [false; CLAUDE_TOKENS.len()]);
    walk.members(|name, walk| match CLAUDE_TOKENS.iter().position(|known| *known == name) {
        Some(index) => {
            tokens = tokens.saturating_add(walk.count()?);
            (!std::mem::replace(&mut seen[index], true)).then_some(())
        }
        None => walk.skip(),
    })?;
    Some(Some(tokens))
}

impl<'a> Block<'a> {
    fn read(walk: &mut Walk<'a>) -> Option<Self> {
        let mut block = Self::default();
        walk.members(|name, walk| match name {
            "type" => block.kind.take(walk),
            "text" => block.text.take(walk),
            "id" => block.id.take(walk),
            "name" => block.name.take(walk),
            "input" => block.about.replace(about(walk)?).is_none().then_some(()),
            // These make a block unusual.
            "tool_use_id" | "content" | "is_error" | "thought" => None,
            _ => walk.skip(),
        })?;
        block.kind.plain().map(|_| block)
    }

    /// What kind of part it is.
    pub(crate) fn kind(&self) -> &'a str {
        self.kind.plain().unwrap_or_default()
    }

    /// Returns what a call is about, if it says; nothing at all if it cannot be said.
    pub(crate) fn about(&self) -> Option<Option<Str<'a>>> {
        let about = self.about.as_ref().and_then(|about| about.iter().find(|path| path.is_some()));
        about.map_or(Some(None), Member::read)
    }
}

/// Reads which file or address the input of a call names.
fn about<'a>(walk: &mut Walk<'a>) -> Option<[Member<'a>; 4]> {
    let mut about = [Member::default(); 4];
    walk.members(|name, walk| match ABOUT.iter().position(|known| *known == name) {
        Some(index) => about[index].take(walk),
        None => walk.skip(),
    })?;
    Some(about)
}

/// Members of the input of calls.
const ABOUT: [&str; 4] = ["file_path", "notebook_path", "path", "url"];

/// Members of usage records that do not overlap, in the spellings of Claude's kin.
pub(crate) const CLAUDE_TOKENS: [&str; 8] = [
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
];
