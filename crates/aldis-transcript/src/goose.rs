//! `goose run --output-format stream-json`.
//!
//! Goose streams a message as pieces that share its id, each a message of its own on the wire.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, tool};
use super::json::{self, Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, join, message, move_to};
use aldis_signal::message::{Message, Origin, Role};

/// Reader of one stream.
#[derive(Debug, Default)]
pub(super) struct Goose {
    open: Option<Message>,
    calls: Calls,
}

#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    created: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default)]
    id: Str<'a>,
    #[serde(borrow, default)]
    text: Str<'a>,
    #[serde(borrow)]
    tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_result: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Str<'a>,
}

impl Goose {
    fn said(&mut self, line: Line<'_>, said: &Said<'_>, out: &mut Out<'_>) {
        let id = said.id.as_ref().map(|id| id.to_owned());
        let assistant = &*said.role == "assistant";
        let goes_on = self.open.as_ref().is_some_and(|open| {
            id.is_some() && open.id == id && (open.origin.role == Role::Assistant) == assistant
        });
        if !goes_on {
            self.flush(out);
        }
        let mut text = String::new();
        let mut asides = Vec::new();
        for raw in said.content.map(json::blocks).unwrap_or_default() {
            let part: Part<'_> = lenient(Some(raw));
            if &*part.kind == "text" {
                join(&mut text, &part.text);
                continue;
            }
            let origin = self.aside(&part);
            if out.matters(raw.get()) {
                let inner = part.tool_call.or(part.tool_result).unwrap_or(raw);
                asides.push((origin, strings(inner)));
            }
        }
        let open = self.open.get_or_insert_with(|| {
            let origin = if assistant { Origin::assistant() } else { blocks::user(&text) };
            message(out.utter(), line.spot(), id.clone(), origin, String::new())
        });
        let index = open.index;
        if !text.is_empty() {
            open.text.push_str(&text);
            move_to(open, line);
        }
        for (origin, text) in asides {
            out.say(message(index, line.spot(), id.clone(), origin, text));
        }
    }

    fn aside(&mut self, part: &Part<'_>) -> Origin {
        match &*part.kind {
            "toolRequest" => {
                let call: Call<'_> = lenient(part.tool_call);
                let named: Named<'_> = lenient(call.value);
                self.calls.note_path(&part.id, &named.name, "");
                tool(format!("input of {}", &*named.name))
            }
            "toolResponse" => self.calls.result(&part.id, ""),
            "thinking" | "reasoning" => tool("thinking"),
            kind => host(format!("{kind} part")),
        }
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        let Some(open) = self.open.take() else { return };
        if open.origin.role == Role::Assistant || out.matters(&open.text) {
            out.say(open);
        }
    }
}

impl Host for Goose {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let event: Event<'_> = parse(line.bytes)?;
        if let ("message", Some(raw)) = (&*event.kind, event.message) {
            let said: Said<'_> = serde_json::from_str(raw.get())?;
            self.said(line.dated(said.created), &said, out);
            return Ok(());
        }
        if &*event.kind == "complete" {
            self.flush(out);
        }
        if (out.may_matter)(line.bytes) {
            let origin = host(format!("{} line", &*event.kind));
            let text = member_strings(line.bytes, out.may_matter)?;
            out.mention(line.spot(), None, origin, text);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }
}
