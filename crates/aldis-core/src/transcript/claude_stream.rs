//! `claude -p --output-format stream-json`, and Amp's and Qwen's streams, which follow it.
//!
//! The same words can come three times: as deltas, as complete lines (one per content block) and in
//! the final result. Complete lines are taken; the others only where there are none.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Block, Calls, Spoken, host};
use super::json::{Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, Spot, join, message, move_to};
use crate::message::{Message, Origin, Role};

/// Reader of one stream.
#[derive(Debug, Default)]
pub(super) struct ClaudeStream {
    calls: Calls,
    /// The message being said, per agent: the main one has no name.
    open: BTreeMap<Option<String>, Message>,
    /// Deltas per agent.
    partial: BTreeMap<Option<String>, Partial>,
    spoke: bool,
}

/// Deltas of a message of which no complete line has come.
#[derive(Debug, Default)]
struct Partial {
    /// By block: blocks may be interleaved.
    blocks: BTreeMap<u64, String>,
    id: Option<String>,
    spot: Spot,
    /// A complete line came: deltas are copies.
    complete: bool,
}

/// A line. The message in it is raw, or read at once.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "M: Deserialize<'de>"))]
struct Event<'a, M = &'a RawValue> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    subtype: Option<Str<'a>>,
    message: Option<M>,
    #[serde(borrow)]
    parent_tool_use_id: Option<Str<'a>>,
    #[serde(borrow)]
    uuid: Option<Str<'a>>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    is_error: Option<bool>,
    aborted: Option<bool>,
    #[serde(rename = "isSynthetic")]
    is_synthetic: Option<bool>,
}

/// A message, its content raw or read at once.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
struct Said<'a, C = &'a RawValue> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    #[expect(dead_code, reason = "given twice it makes a line malformed")]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    content: Option<C>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
}

/// A message that is read at once.
type Whole<'a> = Said<'a, Vec<Block<'a>>>;

impl<C> Default for Said<'_, C> {
    fn default() -> Self {
        Self { id: None, role: None, model: None, content: None, stop_reason: None }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
}

impl ClaudeStream {
    fn assistant<M, C>(
        &mut self,
        line: Line<'_>,
        (event, said): (&Event<'_, M>, &Said<'_, C>),
        spoken: Spoken,
        out: &mut Out<'_>,
    ) {
        let agent = event.agent();
        let id = said.id.as_ref().or(event.uuid.as_ref()).map(|id| id.to_owned());
        let partial = self.partial.entry(agent.clone()).or_default();
        partial.complete = true;
        partial.blocks.clear();
        let same = self.open.get(&agent).is_some_and(|open| open.id == id && said.id.is_some());
        if !same {
            self.flush(&agent, out);
            let origin = event.place(event.speaker(said));
            let new = message(out.utter(), line.spot(), id.clone(), origin, String::new());
            self.open.insert(agent.clone(), new);
        }
        let index = self.open.get(&agent).map_or(0, |open| open.index);
        if let Some(open) = self.open.get_mut(&agent).filter(|_| !spoken.text.is_empty()) {
            join(&mut open.text, &spoken.text);
            move_to(open, line);
            self.spoke |= open.origin.role == Role::Assistant && agent.is_none();
        }
        for (origin, text) in spoken.asides {
            out.say(message(index, line.spot(), id.clone(), event.place(origin), text));
        }
        if out.following && said.stop_reason.is_some() {
            self.flush(&agent, out);
        }
    }

    fn user(
        &mut self,
        line: Line<'_>,
        event: &Event<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let said = event.said()?;
        self.end_turn(&event.agent(), out);
        // The result of a sub-agent's call is the end of what it says.
        let named = |agent: &&String| memchr::memmem::find(line.bytes, agent.as_bytes()).is_some();
        let ended = self.open.keys().flatten().find(named).cloned();
        if ended.is_some() {
            self.end_turn(&ended, out);
        }
        let index = out.utter();
        if !(out.may_matter)(line.bytes) {
            return Ok(());
        }
        let id = event.uuid.as_ref().map(|uuid| uuid.to_owned());
        let mut spoken = blocks::read(said.content, &mut self.calls, "", out.may_matter);
        if spoken.asides.is_empty()
            && let Some(copy) = event.tool_use_result.filter(|raw| out.matters(raw.get()))
        {
            spoken.asides.push((blocks::tool("record of a tool result"), strings(copy)));
        }
        if !spoken.text.is_empty() {
            let mut origin = blocks::user(&spoken.text);
            if event.is_synthetic == Some(true) && origin.role == Role::User {
                origin = host("injected");
            }
            spoken.asides.insert(0, (origin, spoken.text));
        }
        for (origin, text) in spoken.asides {
            out.say(message(index, line.spot(), id.clone(), event.place(origin), text));
        }
        Ok(())
    }

    fn delta(&mut self, line: Line<'_>, event: &Event<'_>, out: &mut Out<'_>) {
        let agent = event.agent();
        let delta: Delta<'_> = lenient(event.event);
        if &*delta.kind == "message_start" {
            self.end_turn(&agent, out);
            let said: Said<'_> = lenient(delta.message);
            let id = said.id.map(|id| id.to_owned());
            self.partial.insert(agent, Partial { id, ..Partial::default() });
            return;
        }
        let partial = self.partial.entry(agent).or_default();
        let piece: Piece<'_> = lenient(delta.delta.or(delta.content_block));
        let Some(text) = piece.text.filter(|text| !text.is_empty()) else { return };
        if partial.complete || !matches!(&*piece.kind, "text" | "text_delta") {
            return;
        }
        partial.spot = line.spot();
        partial.blocks.entry(delta.index).or_default().push_str(&text);
    }

    fn result(&mut self, line: Line<'_>, event: &Event<'_>, out: &mut Out<'_>) {
        self.end_turns(out);
        let text = event.result.map(strings).unwrap_or_default();
        let id = event.uuid.as_ref().map(|uuid| uuid.to_owned());
        if event.is_error == Some(true) {
            let text = member_strings(line.bytes, out.may_matter).unwrap_or_default();
            out.mention(line.spot(), id, host("error result"), text);
        } else if !self.spoke && !text.is_empty() {
            self.spoke = true;
            out.speak(line.spot(), id, Origin::assistant(), text);
        }
    }

    fn end_turns(&mut self, out: &mut Out<'_>) {
        let agents = self.open.keys().chain(self.partial.keys()).cloned();
        for agent in agents.collect::<Vec<_>>() {
            self.end_turn(&agent, out);
        }
    }

    /// Gives out what an agent said so far, be it only in deltas.
    fn end_turn(&mut self, agent: &Option<String>, out: &mut Out<'_>) {
        self.flush(agent, out);
        let Some(partial) = self.partial.remove(agent) else { return };
        let mut text = String::new();
        partial.blocks.values().for_each(|block| join(&mut text, block));
        if text.is_empty() {
            return;
        }
        self.spoke |= agent.is_none();
        let origin = place(agent.as_deref(), Origin::assistant());
        out.speak(partial.spot, partial.id, origin, text);
    }

    fn flush(&mut self, agent: &Option<String>, out: &mut Out<'_>) {
        if let Some(open) = self.open.remove(agent) {
            out.say(open);
        }
    }
}

/// How the results of the main agent's tools begin, as the host writes them.
const TOOL_RESULT: &[u8] =
    br#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":""#;

/// How the agent's lines begin.
const ASSISTANT: &[u8] = br#"{"type":"assistant","#;

impl Host for ClaudeStream {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        // Without sub-agents a result ends what was said before it, and no more of it is wanted.
        if out.signals_only
            && !self.calls.has_agents()
            && line.bytes.starts_with(TOOL_RESULT)
            && line.bytes.ends_with(b"}")
        {
            self.end_turn(&None, out);
            out.utter();
            return Ok(());
        }
        if let Some((event, said, content)) = Event::read_at_once(line.bytes, out.signals_only) {
            let spoken = blocks::read_words(&content, &mut self.calls);
            self.assistant(line.dated(event.timestamp), (&event, &said), spoken, out);
            return Ok(());
        }
        let event: Event<'_> = parse(line.bytes)?;
        let line = line.dated(event.timestamp);
        match &*event.kind {
            "assistant" => {
                let said = event.said()?;
                let spoken = blocks::read(said.content, &mut self.calls, "", out.may_matter);
                self.assistant(line, (&event, &said), spoken, out);
            }
            "user" => self.user(line, &event, out)?,
            "stream_event" => self.delta(line, &event, out),
            "result" => self.result(line, &event, out),
            kind => {
                if (out.may_matter)(line.bytes) {
                    let name = event.subtype.as_deref().unwrap_or(kind);
                    let origin = event.place(host(format!("{name} record")));
                    let text = member_strings(line.bytes, out.may_matter)?;
                    out.mention(line.spot(), None, origin, text);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.end_turns(out);
    }
}

impl<'a> Event<'a> {
    fn said(&self) -> Result<Said<'a>, Malformed> {
        Ok(serde_json::from_str(self.message.ok_or(Malformed)?.get())?)
    }
}

impl<'a> Event<'a, Whole<'a>> {
    /// Reads a line of the agent's and its content in one go; `None` if it is not that simple.
    fn read_at_once(line: &'a [u8], words_only: bool) -> Option<(Self, Whole<'a>, Vec<Block<'a>>)> {
        let line = line.starts_with(ASSISTANT).then_some(line)?;
        let mut event: Self = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
        let mut said = event.message.take()?;
        let content = said.content.take()?;
        blocks::are_words(&content, words_only).then_some((event, said, content))
    }
}

impl<M> Event<'_, M> {
    fn agent(&self) -> Option<String> {
        self.parent_tool_use_id.as_ref().map(|agent| agent.to_owned())
    }

    fn speaker<C>(&self, said: &Said<'_, C>) -> Origin {
        if self.error.is_some() {
            host("API error")
        } else if said.model.as_deref() == Some("<synthetic>") {
            host("synthetic message")
        } else if self.aborted == Some(true) {
            Origin::assistant().dead("aborted message")
        } else {
            Origin::assistant()
        }
    }

    fn place(&self, origin: Origin) -> Origin {
        place(self.parent_tool_use_id.as_deref(), origin)
    }
}

fn place(agent: Option<&str>, origin: Origin) -> Origin {
    match agent {
        // The result of a sub-agent names that one already.
        Some(_) if origin.agent.is_some() => origin.in_sidechain(),
        Some(agent) => origin.in_sidechain().with_agent(agent),
        None => origin,
    }
}
