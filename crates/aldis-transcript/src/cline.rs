//! `cline --json`, of both generations.
//!
//! The newer prints events and at the end the result; the older prints what is said and asked. The
//! final text comes in both as an event and as the result, and counts once.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{host, tool};
use super::codex::aside;
use super::json::{Malformed, Str, lenient, member_strings, parse};
use super::out::{Host, Line, Out, message, move_to};
use aldis_signal::message::{Message, Origin, Role};

/// Reader of one stream.
#[derive(Debug, Default)]
pub(super) struct Cline {
    open: Option<Message>,
    last: String,
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    say: Option<Str<'a>>,
    #[serde(borrow)]
    ask: Option<Str<'a>>,
    partial: Option<bool>,
    #[serde(borrow, rename = "finishReason")]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    content_type: Option<Str<'a>>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
}

impl Cline {
    fn event(
        &mut self,
        line: Line<'_>,
        event: &Event<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let text = event.text.as_deref().unwrap_or_default();
        match (&*event.kind, event.content_type.as_deref()) {
            (kind, Some("text")) => {
                if kind == "content_start" {
                    self.flush(out);
                }
                let open = self.open.get_or_insert_with(|| {
                    message(out.utter(), line.spot(), None, Origin::assistant(), String::new())
                });
                // The end repeats the whole.
                if kind == "content_end" && !text.is_empty() {
                    open.text.clear();
                }
                open.text.push_str(text);
                move_to(open, line);
                if kind == "content_end" {
                    self.flush(out);
                }
            }
            (kind, content) => {
                self.flush(out);
                if (out.may_matter)(line.bytes) {
                    let origin = match content {
                        Some("reasoning" | "thinking") => tool("thinking"),
                        Some(_) => tool(format!("{kind} event")),
                        None => host(format!("{kind} event")),
                    };
                    let text = member_strings(line.bytes, out.may_matter)?;
                    out.mention(line.spot(), None, origin, text);
                }
            }
        }
        Ok(())
    }

    fn said(&mut self, line: Line<'_>, text: String, origin: Origin, out: &mut Out<'_>) {
        self.flush(out);
        if !text.is_empty() && self.last != text {
            self.last.clone_from(&text);
            out.speak(line.spot(), None, origin, text);
        }
    }

    /// Takes the life of what is being said.
    fn cut_off(&mut self) {
        if let Some(open) = &mut self.open {
            open.origin = aborted();
        }
    }

    fn flush(&mut self, out: &mut Out<'_>) {
        if let Some(open) = self.open.take() {
            self.last.clone_from(&open.text);
            out.say(open);
        }
    }
}

impl Host for Cline {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let record: Record<'_> = parse(line.bytes)?;
        let line = line.dated(record.ts);
        let matters = (out.may_matter)(line.bytes);
        let text = record.text.map(|text| text.to_owned()).unwrap_or_default();
        match (&*record.kind, record.say.as_deref().or(record.ask.as_deref())) {
            ("agent_event", _) => {
                let event: Event<'_> = lenient(record.event);
                self.event(line, &event, out)?;
            }
            ("run_result", _) => {
                let mut origin = Origin::assistant();
                if record.finish_reason.is_some_and(|reason| reason.get() == r#""aborted""#) {
                    self.cut_off();
                    origin = aborted();
                }
                self.said(line, text, origin, out);
            }
            ("say" | "ask", _) if record.partial == Some(true) => {}
            ("say", Some("text" | "completion_result"))
            | ("ask", Some("followup" | "completion_result" | "plan_mode_respond")) => {
                self.said(line, text, Origin::assistant(), out);
            }
            ("say", Some("task" | "user_feedback")) => {
                let origin = Origin::new(Role::User).with_detail("prompt");
                aside(line, origin, text, matters, out);
            }
            ("say", Some("reasoning")) => aside(line, tool("thinking"), text, matters, out),
            ("say" | "ask", Some(kind)) => {
                aside(line, tool(format!("{kind} line")), text, matters, out);
            }
            (kind, _) => {
                if kind == "run_aborted" {
                    self.cut_off();
                    self.flush(out);
                }
                if matters {
                    let origin = host(format!("{kind} line"));
                    let text = member_strings(line.bytes, out.may_matter)?;
                    out.mention(line.spot(), None, origin, text);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush(out);
    }
}

/// Who says what was cut off.
fn aborted() -> Origin {
    Origin::assistant().dead("aborted message")
}
