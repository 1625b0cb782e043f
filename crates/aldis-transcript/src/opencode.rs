//! OpenCode: `opencode run --format json`, and the same parts as events of its bus.
//!
//! A message comes as parts that name it, and a part may come again when it has changed.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, host, is_agent, tool};
use super::json::{Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, Spot, join, message};
use aldis_signal::message::{Origin, Role};

/// Reader of one stream.
#[derive(Debug, Default)]
pub(super) struct OpenCode {
    /// The session of the first line; others are of sub-agents.
    session: Option<String>,
    open: Option<Open>,
    /// Who says which message, where the bus tells.
    roles: HashMap<String, String>,
    /// Messages that were cut off.
    aborted: HashSet<String>,
}

/// A message and its text parts so far.
#[derive(Debug)]
struct Open {
    id: String,
    index: u64,
    spot: Spot,
    origin: Origin,
    parts: Vec<String>,
    /// Where the part of an id is.
    by_id: HashMap<String, usize>,
}

#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Properties<'a> {
    #[serde(borrow)]
    part: Option<&'a RawValue>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Info<'a> {
    #[serde(borrow, default)]
    id: Str<'a>,
    #[serde(borrow, default)]
    role: Str<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Failure<'a> {
    #[serde(borrow, default)]
    name: Str<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    id: Str<'a>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default, rename = "messageID")]
    message_id: Str<'a>,
    #[serde(borrow, rename = "sessionID")]
    session_id: Option<Str<'a>>,
    #[serde(borrow, default)]
    text: Str<'a>,
    #[serde(borrow)]
    tool: Option<Str<'a>>,
    #[serde(borrow, rename = "callID")]
    call_id: Option<Str<'a>>,
    #[serde(borrow)]
    state: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct State<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

impl OpenCode {
    fn part(&mut self, line: Line<'_>, part: &Part<'_>, on_bus: bool, out: &mut Out<'_>) {
        let session = part.session_id.as_ref().map(|id| id.to_owned());
        if self.session.is_none() {
            self.session.clone_from(&session);
        }
        let child = session.filter(|id| Some(id) != self.session.as_ref());
        let place = |origin: Origin| match &child {
            Some(child) => origin.in_sidechain().with_agent(child.clone()),
            None => origin,
        };
        match &*part.kind {
            "text" => {
                let role = self.roles.get(&*part.message_id).map(String::as_str);
                let origin = match role {
                    Some("assistant") => Origin::assistant(),
                    None if !on_bus => Origin::assistant(),
                    _ => blocks::user(&part.text),
                };
                self.text(line, part, place(origin), out);
            }
            "reasoning" => {
                self.leave(&part.message_id, out);
                if (out.may_matter)(line.bytes) {
                    let text = part.text.to_owned();
                    out.mention(line.spot(), None, place(tool("thinking")), text);
                }
            }
            "tool" => {
                self.leave(&part.message_id, out);
                call(line, part, place, out);
            }
            _ => self.leave(&part.message_id, out),
        }
    }

    fn text(&mut self, line: Line<'_>, part: &Part<'_>, origin: Origin, out: &mut Out<'_>) {
        self.leave(&part.message_id, out);
        let open = self.open.get_or_insert_with(|| Open {
            id: part.message_id.to_owned(),
            index: out.utter(),
            spot: line.spot(),
            origin,
            parts: Vec::new(),
            by_id: HashMap::new(),
        });
        open.spot = line.spot();
        let mut place = open.parts.len();
        if !part.id.is_empty() {
            place = *open.by_id.entry(part.id.to_owned()).or_insert(place);
        }
        match open.parts.get_mut(place) {
            Some(before) => *before = part.text.to_owned(),
            None => open.parts.push(part.text.to_owned()),
        }
    }

    /// Ends the open message if another one goes on.
    fn leave(&mut self, id: &str, out: &mut Out<'_>) {
        if self.open.as_ref().is_some_and(|open| open.id != id) {
            self.flush(out);
        }
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        let Some(mut open) = self.open.take() else { return };
        if self.aborted.contains(&open.id) {
            open.origin = open.origin.dead("aborted message");
        }
        let mut text = String::new();
        open.parts.iter().for_each(|part| join(&mut text, part));
        if open.origin.role == Role::Assistant || out.matters(&text) {
            out.say(message(open.index, open.spot, Some(open.id), open.origin, text));
        }
    }
}

impl Host for OpenCode {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let event: Event<'_> = parse(line.bytes)?;
        let line = line.dated(event.timestamp);
        let properties: Properties<'_> = lenient(event.properties);
        if let Some(raw) = event.part.or(properties.part) {
            let part: Part<'_> = serde_json::from_str(raw.get())?;
            self.part(line, &part, event.part.is_none(), out);
            // A step's end is the end of its message.
            if out.following && &*event.kind == "step_finish" {
                self.flush(out);
            }
            return Ok(());
        }
        let info: Info<'_> = lenient(properties.info);
        if !info.id.is_empty() {
            self.roles.insert(info.id.to_owned(), info.role.to_owned());
            let failure: Failure<'_> = lenient(info.error);
            if &*failure.name == "MessageAbortedError" {
                self.aborted.insert(info.id.to_owned());
            }
        } else if (out.may_matter)(line.bytes) {
            let origin = host(format!("{} event", &*event.kind));
            let text = member_strings(line.bytes, out.may_matter)?;
            out.mention(line.spot(), None, origin, text);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }
}

fn call(line: Line<'_>, part: &Part<'_>, place: impl Fn(Origin) -> Origin, out: &mut Out<'_>) {
    let index = out.utter();
    let state: State<'_> = lenient(part.state);
    let name = part.tool.as_deref().unwrap_or("a tool");
    let id = part.call_id.as_ref().map(|id| id.to_owned());
    if let Some(input) = state.input.filter(|raw| out.matters(raw.get())) {
        let origin = place(tool(format!("input of {name}")));
        out.say(message(index, line.spot(), id.clone(), origin, strings(input)));
    }
    if let Some(output) = state.output.filter(|raw| out.matters(raw.get())) {
        let origin = if is_agent(name) {
            Origin::new(Role::Subagent).with_agent(id.clone().unwrap_or_default())
        } else {
            place(tool(format!("result of {name}")))
        };
        out.say(message(index, line.spot(), id, origin, strings(output)));
    }
}
