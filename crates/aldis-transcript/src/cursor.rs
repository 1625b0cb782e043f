//! Cursor: the stream of `cursor-agent -p --output-format stream-json`, and transcript files.
//!
//! With partial output the stream says everything twice: in pieces that carry a time in milliseconds
//! and then whole. Pieces count only if the whole never comes.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, tool};
use super::codex::aside;
use super::json::{Malformed, Str, member_strings, parse, strings};
use super::out::{Host, Line, Out, message, move_to};
use aldis_signal::message::{Message, Origin};

/// Reader of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    calls: Calls,
    partial: Option<Message>,
    /// A tool ran since the last piece.
    interrupted: bool,
    spoke: bool,
}

#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    subtype: Option<Str<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    is_error: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    #[expect(dead_code, reason = "given twice it makes a line malformed")]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl Stream {
    fn assistant(
        &mut self,
        line: Line<'_>,
        event: &Event<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let said = said(event.message)?;
        let text = blocks::read(said.content, &mut self.calls, "", out.may_matter).text;
        if event.timestamp_ms.is_none() {
            self.partial = None;
            self.spoke |= !text.is_empty();
            out.speak(line.spot(), None, Origin::assistant(), text);
            return Ok(());
        }
        let partial = self.partial.get_or_insert_with(|| {
            message(0, line.spot(), None, Origin::assistant(), String::new())
        });
        if std::mem::take(&mut self.interrupted) && !partial.text.is_empty() {
            partial.text.push('\n');
        }
        partial.text.push_str(&text);
        move_to(partial, line);
        Ok(())
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        if let Some(mut partial) = self.partial.take() {
            partial.index = out.utter();
            self.spoke = true;
            out.say(partial);
        }
    }

    fn result(&mut self, line: Line<'_>, event: &Event<'_>, out: &mut Out<'_>) {
        self.flush(out);
        let text = event.result.map(strings).unwrap_or_default();
        if event.is_error == Some(true) {
            aside(line, host("error result"), text, true, out);
        } else if !self.spoke {
            out.speak(line.spot(), None, Origin::assistant(), text);
        }
    }
}

impl Host for Stream {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let event: Event<'_> = parse(line.bytes)?;
        let line = line.dated(event.timestamp_ms);
        let matters = (out.may_matter)(line.bytes);
        match &*event.kind {
            "assistant" => self.assistant(line, &event, out)?,
            "result" => self.result(line, &event, out),
            "user" => {
                let said = said(event.message)?;
                self.flush(out);
                let text = blocks::read(said.content, &mut self.calls, "", out.may_matter).text;
                aside(line, blocks::user(&text), text, matters, out);
            }
            "tool_call" => {
                self.interrupted = true;
                let text = event.tool_call.filter(|_| matters).map(strings).unwrap_or_default();
                let name = event.tool_call.map(tool_name).unwrap_or_default();
                let done = event.subtype.as_deref() == Some("completed");
                let part = if done { "result" } else { "input" };
                aside(line, tool(format!("{part} of {name}")), text, matters, out);
            }
            kind => {
                let origin = if kind == "thinking" {
                    tool("thinking")
                } else {
                    host(format!("{kind} record"))
                };
                let text = if matters {
                    member_strings(line.bytes, out.may_matter)?
                } else {
                    String::new()
                };
                aside(line, origin, text, matters, out);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }
}

/// Reader of a transcript file: one message per line, without ids.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    calls: Calls,
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    #[serde(borrow, default)]
    role: Str<'a>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

impl Host for Transcript {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let record: Record<'_> = parse(line.bytes)?;
        let said = said(record.message)?;
        let index = out.utter();
        let spoken = blocks::read(said.content, &mut self.calls, "", out.may_matter);
        let origin = match &*record.role {
            "assistant" => Origin::assistant(),
            "user" => blocks::user(&spoken.text),
            role => blocks::system(format!("{role} message")),
        };
        for (origin, text) in spoken.asides {
            out.say(message(index, line.spot(), None, origin, text));
        }
        if &*record.role == "assistant" || (out.may_matter)(line.bytes) {
            out.say(message(index, line.spot(), None, origin, spoken.text));
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Out<'_>) {}
}

fn said(message: Option<&RawValue>) -> Result<Said<'_>, Malformed> {
    Ok(serde_json::from_str(message.ok_or(Malformed)?.get())?)
}

/// `{"shellToolCall": …}` is a call of the shell.
fn tool_name(call: &RawValue) -> String {
    let members: super::json::Members<'_> = super::json::lenient(Some(call));
    let name = members.0.first().map(|member| member.0.to_owned()).unwrap_or_default();
    name.strip_suffix("ToolCall").map(str::to_owned).unwrap_or(name)
}
