//! Codex: rollout files and the stream of `codex exec --json`.
//!
//! A rollout repeats each answer up to three times: as an item of the conversation, as an event, and
//! in the event that ends the turn. The item is taken; an event only if no item of the turn says
//! the same.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, system, tool};
use super::chain::key;
use super::json::{Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, Spot, message};
use super::waiting::Waiting;
use super::walk::{Member, Walk};
use aldis_signal::message::{Origin, Role};

/// Reader of a rollout file.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    calls: Calls,
    /// What items of this turn said, hashed without the blanks at its end: copies lose them.
    said: HashSet<u128>,
    /// What events of this turn said and no item yet, hashed likewise: line and text.
    unconfirmed: Waiting<u128, (Spot, String)>,
    /// The turn began before the lines that are read: its items may have come before them, so its
    /// events prove nothing.
    mid_turn: bool,
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Payload<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    call_id: Option<Str<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    last_agent_message: Option<Str<'a>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
}

impl Rollout {
    fn item(&mut self, line: Line<'_>, raw: &RawValue, out: &mut Out<'_>) -> Result<(), Malformed> {
        let payload: Payload<'_> = serde_json::from_str(raw.get())?;
        let matters = out.matters(raw.get());
        let id = payload.id.as_ref().map(|id| id.to_owned());
        let name = payload.name.as_deref().unwrap_or("a tool");
        let call = payload.call_id.as_deref().unwrap_or_default();
        let origin = match (&*payload.kind, payload.role.as_deref()) {
            ("message", role) => {
                let spoken = blocks::read(payload.content, &mut self.calls, "", out.may_matter);
                match role {
                    Some("assistant") => self.answer(line, id, spoken.text, out),
                    Some("user") => self.prompt(line, id, spoken.text, matters, out),
                    _ => aside(line, system("developer message"), spoken.text, matters, out),
                }
                return Ok(());
            }
            ("reasoning", _) => tool("thinking"),
            (kind, _) if kind.ends_with("_output") => self.calls.result(call, ""),
            (kind, _) if kind.ends_with("_call") => {
                self.calls.note_path(call, name, "");
                tool(format!("input of {name}"))
            }
            (kind, _) => tool(format!("{kind} item")),
        };
        let text = if matters { strings_without_type(raw) } else { String::new() };
        aside(line, origin, text, matters, out);
        Ok(())
    }

    fn answer(&mut self, line: Line<'_>, id: Option<String>, text: String, out: &mut Out<'_>) {
        let words = key(text.trim_end().as_bytes());
        self.unconfirmed.remove(&words);
        self.said.insert(words);
        out.speak(line.spot(), id, Origin::assistant(), text);
    }

    fn prompt(
        &mut self,
        line: Line<'_>,
        id: Option<String>,
        text: String,
        matters: bool,
        out: &mut Out<'_>,
    ) {
        self.confirm(out);
        let index = out.utter();
        let origin = blocks::user(&text);
        self.mid_turn &= origin.role != Role::User;
        if matters {
            out.say(message(index, line.spot(), id, origin, text));
        }
    }

    fn event(
        &mut self,
        line: Line<'_>,
        raw: &RawValue,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let payload: Payload<'_> = serde_json::from_str(raw.get())?;
        match &*payload.kind {
            "agent_message" => self.claim(line, payload.message.map(strings)),
            "item_completed" => {
                let item: Payload<'_> = lenient(payload.item);
                if matches!(&*item.kind, "AgentMessage" | "agent_message") {
                    let words = item.content.or(item.text);
                    let spoken = blocks::read(words, &mut self.calls, "", &|_| false);
                    self.claim(line, Some(spoken.text));
                } else {
                    record(line, &payload.kind, raw, out);
                }
            }
            "task_complete" | "turn_complete" => {
                self.claim(line, payload.last_agent_message.map(|text| text.to_owned()));
                self.confirm(out);
            }
            "task_started" | "turn_started" | "turn_aborted" => {
                self.confirm(out);
                self.said.clear();
                self.mid_turn = false;
            }
            // The prompt is in the conversation already.
            "user_message" => {}
            kind => record(line, kind, raw, out),
        }
        Ok(())
    }

    /// Notes what an event says was said.
    fn claim(&mut self, line: Line<'_>, text: Option<String>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let words = key(text.trim_end().as_bytes());
        if !self.mid_turn && !self.said.contains(&words) {
            self.unconfirmed.get_or_insert_with(words, || (line.spot(), text));
        }
    }

    /// Takes events at their word where no item came.
    fn confirm(&mut self, out: &mut Out<'_>) {
        for (spot, text) in self.unconfirmed.take() {
            self.said.insert(key(text.trim_end().as_bytes()));
            out.speak(spot, None, Origin::assistant(), text);
        }
    }
}

impl Host for Rollout {
    fn begin_late(&mut self, _: Option<&str>) {
        self.mid_turn = true;
    }

    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let record: Record<'_> = parse(line.bytes)?;
        let line = line.dated(record.timestamp);
        let matters = (out.may_matter)(line.bytes);
        match (&*record.kind, record.payload) {
            ("response_item", Some(payload)) => self.item(line, payload, out)?,
            ("event_msg", Some(payload)) => self.event(line, payload, out)?,
            (kind, Some(payload)) if matters => {
                let origin = match kind {
                    "compacted" => system("compaction summary"),
                    "session_meta" | "turn_context" => system("instructions"),
                    kind => host(format!("{kind} record")),
                };
                out.mention(line.spot(), None, origin, strings(payload));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.confirm(out);
    }
}

/// Reader of `codex exec --json`.
#[derive(Debug, Default)]
pub(super) struct Exec;

#[derive(Debug, Deserialize)]
struct ExecEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct ExecItem<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    tool: Option<Str<'a>>,
}

/// An item that is known by the beginning of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A command, by its id.
    Command(&'a str),
    /// What the agent says.
    Answer,
}

/// Returns the item of a line that begins as the host writes it: most of what comes is the output of
/// commands, which nobody need parse to know it as such.
pub(super) fn glance(line: &[u8]) -> Option<Item<'_>> {
    let rest = line.strip_prefix(br#"{"type":"item."#).filter(|_| line.ends_with(b"}"))?;
    let kinds: [&[u8]; 3] = [b"completed", b"started", b"updated"];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(*kind))?;
    let rest = rest.strip_prefix(br#"","item":{"id":""#)?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'-';
    let (id, rest) = rest.split_at(rest.iter().position(|byte| !plain(byte))?);
    let kind = rest.strip_prefix(br#"","type":""#)?;
    if kind.starts_with(br#"command_execution","#) {
        return std::str::from_utf8(id).ok().map(Item::Command);
    }
    kind.starts_with(br#"agent_message","#).then_some(Item::Answer)
}

/// Reads what the agent says, if the line is laid out as the host does: its name and its words.
fn answer(line: &[u8]) -> Option<(Option<Str<'_>>, Str<'_>)> {
    let mut walk = line.starts_with(COMPLETED).then(|| Walk::start(line))??;
    let [mut kind, mut id, mut item_kind, mut text] = [Member::default(); 4];
    let mut items = 0;
    walk.members(|name, walk| match name {
        "type" => kind.take(walk),
        "item" => {
            items += 1;
            walk.members(|name, walk| match name {
                "id" => id.take(walk),
                "type" => item_kind.take(walk),
                "text" => text.take(walk),
                "tool" => None,
                _ => walk.skip(),
            })
        }
        _ => walk.skip(),
    })?;
    walk.finish().filter(|()| items == 1)?;
    Some((id.read()?, text.read()?.unwrap_or_default()))
}

/// How the lines of items begin that are complete.
const COMPLETED: &[u8] = br#"{"type":"item.completed""#;

impl Host for Exec {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let item = glance(line.bytes);
        if item == Some(Item::Answer)
            && let Some((id, text)) = answer(line.bytes)
        {
            let id = id.map(|id| id.0.into_owned());
            out.speak(line.spot(), id, Origin::assistant(), text.0.into_owned());
            return Ok(());
        }
        if out.signals_only && matches!(item, Some(Item::Command(_))) {
            if line.bytes.starts_with(COMPLETED) {
                out.utter();
            }
            return Ok(());
        }
        let event: ExecEvent<'_> = parse(line.bytes)?;
        match (&*event.kind, event.item) {
            ("item.completed", Some(raw)) => {
                let item: ExecItem<'_> = serde_json::from_str(raw.get())?;
                let id = item.id.map(|id| id.to_owned());
                if &*item.kind == "agent_message" {
                    let text = item.text.map(|text| text.to_owned()).unwrap_or_default();
                    out.speak(line.spot(), id, Origin::assistant(), text);
                    return Ok(());
                }
                let origin = match (&*item.kind, item.tool.as_deref()) {
                    ("reasoning", _) => tool("thinking"),
                    ("error", _) => host("error"),
                    (_, Some(name)) => tool(format!("call of {name}")),
                    (kind, None) => tool(format!("{kind} item")),
                };
                let matters = !out.signals_only && out.matters(raw.get());
                let text = if matters { strings_without_type(raw) } else { String::new() };
                aside(line, origin, text, matters, out);
            }
            // The item comes again when it is complete.
            ("item.started" | "item.updated", _) => {}
            (kind, _) => {
                if (out.may_matter)(line.bytes) {
                    let text = member_strings(line.bytes, out.may_matter)?;
                    let origin = host(format!("{kind} record"));
                    out.mention(line.spot(), None, origin, text);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Out<'_>) {}
}

/// Counts something that is not speech and gives it out if it matters.
pub(super) fn aside(
    line: Line<'_>,
    origin: Origin,
    text: String,
    matters: bool,
    out: &mut Out<'_>,
) {
    let index = out.utter();
    if matters {
        out.say(message(index, line.spot(), None, origin, text));
    }
}

fn record(line: Line<'_>, kind: &str, raw: &RawValue, out: &mut Out<'_>) {
    if out.matters(raw.get()) {
        let origin = host(format!("{kind} record"));
        out.mention(line.spot(), None, origin, strings_without_type(raw));
    }
}

/// The strings of an item, without its kind and ids.
fn strings_without_type(raw: &RawValue) -> String {
    let skipped = ["type", "id", "call_id", "status", "name"];
    let members: super::json::Members<'_> = lenient(Some(raw));
    let texts = members.0.iter().filter(|member| !skipped.contains(&&*member.0));
    texts
        .map(|member| strings(member.1))
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
