//! `claude -p --output-format stream-json`, and Amp's and Qwen's streams, which follow it.
//!
//! The same words can come three times: as deltas, as complete lines (one per content block) and in
//! the final result. Complete lines are taken; the others only where there are none.

pub(super) mod ordinary;
mod per_agent;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::ordinary::{Block, Ordinary};
use self::per_agent::PerAgent;
use super::blocks::{self, Calls, Spoken, host, is_call, is_text};
use super::json::{self, Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, Spot, append, join, message, move_to};
use aldis_signal::message::{Message, Origin, Role};

/// Reader of one stream.
#[derive(Debug, Default)]
pub(super) struct ClaudeStream {
    calls: Calls,
    /// The message being said, per agent: the main one has no name.
    open: PerAgent<Message>,
    /// Deltas per agent.
    partial: PerAgent<Partial>,
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
    /// The message has begun and not come to its end.
    is_unfinished: bool,
    /// It never will.
    is_cut: bool,
}

/// A line.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    subtype: Option<Str<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
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
    #[serde(borrow)]
    terminal_reason: Option<&'a RawValue>,
    is_error: Option<bool>,
    aborted: Option<bool>,
    #[serde(rename = "isSynthetic")]
    is_synthetic: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    #[expect(dead_code, reason = "given twice it makes a line malformed")]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
}

/// A part of a message of an agent: who says it, and how.
#[derive(Debug)]
struct Part {
    /// The sub-agent, if it is one.
    agent: Option<String>,
    /// The message's name, or else that of its line.
    id: Option<String>,
    has_name: bool,
    origin: Origin,
    /// Whether it is the last one.
    stops: bool,
}

/// A block of a user's line that answers a call.
#[derive(Debug, Default, Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    tool_use_id: Option<Str<'a>>,
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
    fn assistant(&mut self, line: Line<'_>, part: Part, spoken: Spoken, out: &mut Out<'_>) {
        let Part { agent, id, has_name, origin, stops } = part;
        let partial = self.partial.get_or_default(agent.clone());
        partial.complete = true;
        partial.blocks.clear();
        partial.is_unfinished &= !stops;
        let same = |open: &&mut Message| open.id == id && has_name;
        if self.open.get_mut(&agent).filter(same).is_none() {
            self.flush(&agent, out);
            let new =
                message(out.utter(), line.spot(), id.clone(), Origin::assistant(), String::new());
            self.open.insert(agent.clone(), new);
        }
        let mut index = 0;
        if let Some(open) = self.open.get_mut(&agent) {
            index = open.index;
            // A message that is cut off or written by the host is so as a whole.
            if open.origin.live && open.origin.role == Role::Assistant {
                open.origin = place(agent.as_deref(), origin);
            }
            if !spoken.text.is_empty() {
                append(&mut open.text, spoken.text);
                move_to(open, line);
                // Whoever wrote it, the final result only repeats it.
                self.spoke |= agent.is_none();
            }
        }
        for (origin, text) in spoken.asides {
            let origin = place(agent.as_deref(), origin);
            out.say(message(index, line.spot(), id.clone(), origin, text));
        }
        if out.following && stops {
            self.flush(&agent, out);
        }
    }

    /// Takes a line that nothing is the matter with, unless more of it is wanted than words.
    fn ordinary(&mut self, line: Line<'_>, read: &Ordinary<'_>, out: &mut Out<'_>) -> Option<()> {
        let words_only = out.signals_only;
        let mut kinds = read.blocks().iter().map(Block::kind);
        if !kinds.all(|kind| is_text(kind) || words_only && kind != "tool_result") {
            return None;
        }
        let mut spoken = Spoken::default();
        let mut calls = Vec::new();
        for block in read.blocks() {
            if is_text(block.kind()) {
                append(&mut spoken.text, block.text.read()?.unwrap_or_default().0.into_owned());
            } else if is_call(block.kind()) {
                calls.push((block.id.read()?, block.name.read()?, block.about()?));
            }
        }
        let [agent, id, uuid] = [&read.parent_tool_use_id, &read.id, &read.uuid];
        let (agent, id, uuid) = (agent.read()?, id.read()?, uuid.read()?);
        // Nothing is changed before all of the line is known to be sound.
        for (id, name, about) in &calls {
            let [id, about] = [id, about].map(|text| text.as_deref().unwrap_or_default());
            self.calls.note_path(id, name.as_deref().unwrap_or("a tool"), about);
        }
        let part = Part {
            agent: agent.map(|agent| agent.0.into_owned()),
            has_name: id.is_some(),
            id: id.or(uuid).map(|id| id.0.into_owned()),
            origin: Origin::assistant(),
            stops: read.stop_reason.is_some(),
        };
        self.assistant(line, part, spoken, out);
        Some(())
    }

    fn user(
        &mut self,
        line: Line<'_>,
        event: &Event<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let said = event.said()?;
        self.end_turn(&event.agent(), out);
        self.end_answered(said.content, out);
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

    /// Ends what sub-agents say whose calls have their results here.
    fn end_answered(&mut self, content: Option<&RawValue>, out: &mut Out<'_>) {
        if !self.hears_others() {
            return;
        }
        for raw in content.map(json::blocks).unwrap_or_default() {
            let block: Answer<'_> = lenient(Some(raw));
            if &*block.kind == "tool_result"
                && let Some(id) = block.tool_use_id
            {
                self.end_turn(&Some(id.to_owned()), out);
            }
        }
    }

    /// Returns whether a sub-agent is heard that has not come to its end.
    fn hears_others(&self) -> bool {
        self.open.has_others() || self.partial.has_others()
    }

    fn delta(&mut self, line: Line<'_>, event: &Event<'_>, out: &mut Out<'_>) {
        let agent = event.agent();
        let delta: Delta<'_> = lenient(event.event);
        if &*delta.kind == "message_start" {
            self.end_turn(&agent, out);
            let said: Said<'_> = lenient(delta.message);
            let id = said.id.map(|id| id.to_owned());
            let new = Partial { id, is_unfinished: true, ..Partial::default() };
            self.partial.insert(agent, new);
            return;
        }
        let partial = self.partial.get_or_default(agent);
        partial.is_unfinished &= &*delta.kind != "message_stop";
        let piece: Piece<'_> = lenient(delta.delta.or(delta.content_block));
        let Some(text) = piece.text.filter(|text| !text.is_empty()) else { return };
        if partial.complete || !matches!(&*piece.kind, "text" | "text_delta") {
            return;
        }
        partial.is_unfinished = true;
        partial.spot = line.spot();
        partial.blocks.entry(delta.index).or_default().push_str(&text);
    }

    fn result(&mut self, line: Line<'_>, event: &Event<'_>, out: &mut Out<'_>) {
        let is_cut = event.terminal_reason.is_some_and(|raw| raw.get() == CUT_OFF);
        if is_cut {
            self.cut_off();
        }
        self.end_turns(out);
        let text = event.result.map(strings).unwrap_or_default();
        let id = event.uuid.as_ref().map(|uuid| uuid.to_owned());
        if event.is_error == Some(true) {
            let text = member_strings(line.bytes, out.may_matter).unwrap_or_default();
            out.mention(line.spot(), id, host("error result"), text);
        } else if !self.spoke && !text.is_empty() {
            self.spoke = true;
            let origin = Origin::assistant();
            out.speak(line.spot(), id, if is_cut { origin.dead(ABORTED) } else { origin }, text);
        }
    }

    /// Takes the life of messages in the midst of which the stream was aborted.
    fn cut_off(&mut self) {
        for agent in self.partial.agents().collect::<Vec<_>>() {
            let partial = self.partial.get_mut(&agent).filter(|partial| partial.is_unfinished);
            let Some(partial) = partial else { continue };
            partial.is_cut = true;
            if let Some(open) = self.open.get_mut(&agent).filter(|open| open.origin.live) {
                open.origin = open.origin.clone().dead(ABORTED);
            }
        }
    }

    fn end_turns(&mut self, out: &mut Out<'_>) {
        let agents = self.open.agents().chain(self.partial.agents());
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
        let mut origin = place(agent.as_deref(), Origin::assistant());
        if partial.is_cut {
            origin = origin.dead(ABORTED);
        }
        out.speak(partial.spot, partial.id, origin, text);
    }

    fn flush(&mut self, agent: &Option<String>, out: &mut Out<'_>) {
        if let Some(open) = self.open.remove(agent) {
            out.say(open);
        }
    }
}

/// What is the matter with a message that was cut off.
const ABORTED: &str = "aborted message";

/// Why a turn ended whose message was cut off.
const CUT_OFF: &str = r#""aborted_streaming""#;

/// How the results of the main agent's tools begin, as the host writes them.
const TOOL_RESULT: &[u8] =
    br#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":""#;

impl Host for ClaudeStream {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        // Without sub-agents a result ends what was said before it, and no more of it is wanted.
        if out.signals_only
            && !self.calls.has_agents()
            && !self.hears_others()
            && line.bytes.starts_with(TOOL_RESULT)
            && line.bytes.ends_with(b"}")
        {
            self.end_turn(&None, out);
            out.utter();
            return Ok(());
        }
        let read = match line.ordinary {
            Some(read) => self.ordinary(line, read, out),
            None => Ordinary::read(line.bytes).and_then(|read| self.ordinary(line, &read, out)),
        };
        if read.is_some() {
            return Ok(());
        }
        let event: Event<'_> = parse(line.bytes)?;
        let line = line.dated(event.timestamp);
        match &*event.kind {
            "assistant" => {
                let said = event.said()?;
                let spoken = blocks::read(said.content, &mut self.calls, "", out.may_matter);
                self.assistant(line, event.part(&said), spoken, out);
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

impl Event<'_> {
    fn agent(&self) -> Option<String> {
        self.parent_tool_use_id.as_ref().map(|agent| agent.to_owned())
    }

    fn part(&self, said: &Said<'_>) -> Part {
        Part {
            agent: self.agent(),
            id: said.id.as_ref().or(self.uuid.as_ref()).map(|id| id.to_owned()),
            has_name: said.id.is_some(),
            origin: self.speaker(said),
            stops: said.stop_reason.is_some(),
        }
    }

    fn speaker(&self, said: &Said<'_>) -> Origin {
        if self.error.is_some() {
            host("API error")
        } else if said.model.as_deref() == Some("<synthetic>") {
            host("synthetic message")
        } else if self.aborted == Some(true) {
            Origin::assistant().dead(ABORTED)
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
