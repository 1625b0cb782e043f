//! Copilot CLI: `events.jsonl` and `copilot -p --output-format json`, which share their events.
//!
//! Messages of sub-agents name their agent. Deltas are copies of a message that follows; they count
//! only if the process died before it came. Events name the one before them, and a conversation that
//! was taken back leaves its events in the file.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, tool};
use super::branches::{Branches, Branching, Entries, Link};
use super::codex::aside;
use super::json::{self, Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Line, Out, message, move_to};
use super::waiting::Waiting;
use aldis_signal::message::{Message, Origin};

/// Reader of a file or a stream.
pub(super) type Copilot = Branching<Events>;

/// What events say.
#[derive(Debug, Default)]
pub(super) struct Events {
    calls: Calls,
    /// Deltas of messages that have not come, by the message's name.
    partial: Waiting<Option<String>, Message>,
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
    parent_id: Option<Str<'a>>,
    ephemeral: Option<bool>,
    #[serde(borrow)]
    agent_id: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    message_id: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    delta_content: Option<Str<'a>>,
    #[serde(borrow)]
    parent_tool_call_id: Option<Str<'a>>,
    #[serde(borrow)]
    tool_requests: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<Str<'a>>,
    #[serde(borrow)]
    tool_name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow, default)]
    tool_call_id: Str<'a>,
    #[serde(borrow, default)]
    name: Str<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Events {
    fn said(&mut self, line: Line<'_>, data: &Data<'_>, agent: Option<&str>, out: &mut Out<'_>) {
        let id = data.message_id.as_ref().map(|id| id.to_owned());
        self.partial.remove(&id);
        let index = out.utter();
        for raw in data.tool_requests.map(json::blocks).unwrap_or_default() {
            let request: Request<'_> = lenient(Some(raw));
            self.calls.note(&request.tool_call_id, &request.name, request.arguments);
            if let Some(input) = request.arguments.filter(|raw| out.matters(raw.get())) {
                let origin = place(tool(format!("input of {}", &*request.name)), agent);
                out.say(message(index, line.spot(), id.clone(), origin, strings(input)));
            }
        }
        let text = blocks::read(data.content, &mut self.calls, "", &|_| false).text;
        out.say(message(index, line.spot(), id, place(Origin::assistant(), agent), text));
    }

    fn delta(&mut self, line: Line<'_>, data: &Data<'_>, agent: Option<&str>) {
        let Some(text) = &data.delta_content else { return };
        let id = data.message_id.as_ref().map(|id| id.to_owned());
        let partial = self.partial.get_or_insert_with(id.clone(), || {
            let origin = place(Origin::assistant(), agent);
            message(0, line.spot(), id, origin, String::new())
        });
        partial.text.push_str(text);
        move_to(partial, line);
    }

    fn result(&self, line: Line<'_>, data: &Data<'_>, agent: Option<&str>, out: &mut Out<'_>) {
        let index = out.utter();
        let Some(result) = data.result.filter(|raw| out.matters(raw.get())) else { return };
        let id = data.tool_call_id.as_deref().unwrap_or_default();
        let outcome: Outcome<'_> = lenient(Some(result));
        let text = strings(outcome.content.unwrap_or(result));
        let origin = place(self.calls.result(id, ""), agent);
        out.say(message(index, line.spot(), Some(id.into()), origin, text));
    }
}

impl Entries for Events {
    fn read(
        &mut self,
        line: Line<'_>,
        branches: &mut Branches,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let event: Event<'_> = parse(line.bytes)?;
        let line = line.dated(event.timestamp);
        let data: Data<'_> = match event.data {
            Some(raw) if event.kind.starts_with("assistant.") => serde_json::from_str(raw.get())?,
            raw => lenient(raw),
        };
        let agent = event.agent_id.as_deref().or(data.parent_tool_call_id.as_deref());
        let matters = (out.may_matter)(line.bytes);
        // What does not stay in the file has no place in it.
        let stays = event.ephemeral != Some(true);
        if stays && !branches.enter(line, event.link(agent)) {
            return Ok(());
        }
        match &*event.kind {
            "assistant.message" => self.said(line, &data, agent, out),
            "assistant.message_delta" => self.delta(line, &data, agent),
            "tool.execution_start" => {
                let id = data.tool_call_id.as_deref().unwrap_or_default();
                let name = data.tool_name.as_deref().unwrap_or("a tool");
                self.calls.note(id, name, data.arguments);
            }
            "tool.execution_complete" => self.result(line, &data, agent, out),
            "user.message" => {
                self.flush(out);
                let text = blocks::read(data.content, &mut self.calls, "", &|_| false).text;
                aside(line, blocks::user(&text), text, matters, out);
            }
            kind => {
                if matters {
                    let thought = kind.starts_with("assistant.reasoning");
                    let origin =
                        if thought { tool("thinking") } else { host(format!("{kind} event")) };
                    let text = member_strings(line.bytes, out.may_matter)?;
                    let id = event.id.as_ref().map(|id| id.to_owned());
                    out.mention(line.spot(), id, place(origin, agent), text);
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        for mut partial in self.partial.take() {
            partial.index = out.utter();
            out.say(partial);
        }
    }
}

impl Event<'_> {
    fn link(&self, agent: Option<&str>) -> Link<'_> {
        let talk = ["assistant.", "tool.", "user."].iter().any(|kind| self.kind.starts_with(kind));
        Link {
            id: self.id.as_deref(),
            parent: self.parent_id.as_deref(),
            typed: &*self.kind == "user.message",
            beside: !talk || agent.is_some(),
        }
    }
}

fn place(origin: Origin, agent: Option<&str>) -> Origin {
    match agent {
        // The result of a sub-agent names that one already.
        Some(_) if origin.agent.is_some() => origin.in_sidechain(),
        Some(agent) => origin.in_sidechain().with_agent(agent),
        None => origin,
    }
}
