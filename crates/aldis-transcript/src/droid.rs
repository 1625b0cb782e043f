//! Droid: transcript files and the stream of `droid exec -o stream-json`.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, tool};
use super::branches::{Branches, Branching, Entries, Link};
use super::chain::key;
use super::codex::aside;
use super::json::{Malformed, Str, member_strings, parse, strings};
use super::out::{Host, Line, Out, message};
use aldis_signal::message::{Origin, Role};

/// Reader of a transcript file.
pub(super) type Transcript = Branching<Records>;

/// Claude's blocks in an envelope of its own.
#[derive(Debug, Default)]
pub(super) struct Records {
    calls: Calls,
    cwd: String,
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow, rename = "parentId")]
    parent_id: Option<Str<'a>>,
    #[serde(borrow)]
    cwd: Option<Str<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Entries for Records {
    fn read(
        &mut self,
        line: Line<'_>,
        branches: &mut Branches,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let record: Record<'_> = parse(line.bytes)?;
        let line = line.dated(record.timestamp);
        let matters = (out.may_matter)(line.bytes);
        if let Some(cwd) = &record.cwd {
            self.cwd = cwd.to_owned();
        }
        let Some(raw) = record.message.filter(|_| &*record.kind == "message") else {
            if matters {
                let origin = host(format!("{} record", &*record.kind));
                let text = member_strings(line.bytes, out.may_matter)?;
                out.mention(line.spot(), None, origin, text);
            }
            return Ok(());
        };
        let said: Said<'_> = serde_json::from_str(raw.get())?;
        let spoken = blocks::read(said.content, &mut self.calls, &self.cwd, out.may_matter);
        let by_user = &*said.role == "user" && !spoken.text.is_empty();
        let link = Link {
            id: record.id.as_deref(),
            parent: record.parent_id.as_deref(),
            typed: by_user && blocks::user(&spoken.text).role == Role::User,
            beside: false,
        };
        if !branches.enter(line, link) {
            return Ok(());
        }
        let index = out.utter();
        let id = record.id.map(|id| id.to_owned());
        for (origin, text) in spoken.asides {
            out.say(message(index, line.spot(), id.clone(), origin, text));
        }
        match &*said.role {
            "assistant" => {
                out.say(message(index, line.spot(), id, Origin::assistant(), spoken.text));
            }
            role if matters => {
                let is_user = role == "user";
                let origin = if is_user {
                    blocks::user(&spoken.text)
                } else {
                    blocks::system("system message")
                };
                out.say(message(index, line.spot(), id, origin, spoken.text));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Reader of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    calls: Calls,
    /// What was said, without the blanks at its end: the last line repeats it without them. Hashed,
    /// because a live stream may go on for days.
    said: HashSet<u128>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    tool_name: Option<Str<'a>>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    final_text: Option<Str<'a>>,
}

impl Host for Stream {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let event: Event<'_> = parse(line.bytes)?;
        let line = line.dated(event.timestamp);
        let matters = (out.may_matter)(line.bytes);
        let id = event.id.as_ref().map(|id| id.to_owned());
        let text = event.text.map(|text| text.to_owned()).unwrap_or_default();
        match (&*event.kind, event.role.as_deref()) {
            ("message", Some("assistant")) => {
                self.said.insert(key(text.trim_end().as_bytes()));
                out.speak(line.spot(), id, Origin::assistant(), text);
            }
            ("message", _) => aside(line, blocks::user(&text), text, matters, out),
            ("reasoning", _) => aside(line, tool("thinking"), text, matters, out),
            ("completion", _) => {
                let text = event.final_text.map(|text| text.to_owned()).unwrap_or_default();
                if self.said.insert(key(text.trim_end().as_bytes())) {
                    out.speak(line.spot(), id, Origin::assistant(), text);
                }
            }
            ("tool_call", _) => {
                let name = event.tool_name.as_deref().unwrap_or("a tool");
                self.calls.note(id.as_deref().unwrap_or_default(), name, event.parameters);
                let text = event.parameters.map(strings).unwrap_or_default();
                aside(line, tool(format!("input of {name}")), text, matters, out);
            }
            ("tool_result", _) => {
                let origin = self.calls.result(id.as_deref().unwrap_or_default(), "");
                let text = match event.value {
                    Some(value) if matters => strings(value),
                    None if matters => member_strings(line.bytes, out.may_matter)?,
                    _ => String::new(),
                };
                aside(line, origin, text, matters, out);
            }
            (kind, _) => {
                if matters {
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
