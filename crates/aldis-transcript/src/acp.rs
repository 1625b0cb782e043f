//! Agent Client Protocol traffic, one JSON-RPC message per line, of both protocol versions.
//!
//! Version 1 has no end of a message: chunks belong together until the agent does something else or
//! answers the prompt. Version 2 sends whole messages.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Calls, host, tool};
use super::codex::aside;
use super::json::{Malformed, Str, lenient, member_strings, parse, strings};
use super::out::{Host, Line, Out, message, move_to};
use aldis_signal::message::{Message, Origin};

/// Reader of one connection.
#[derive(Debug, Default)]
pub(super) struct Acp {
    /// The message being said, per session.
    open: BTreeMap<String, Message>,
    /// The session of each prompt that has no answer, by the id of the request.
    prompts: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Rpc<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Str<'a>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow, default)]
    session_id: Str<'a>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    update: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow, default)]
    session_update: Str<'a>,
    #[serde(borrow)]
    message_id: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Answer<'a> {
    #[serde(borrow, rename = "stopReason")]
    stop_reason: Option<&'a RawValue>,
}

impl Acp {
    fn update(&mut self, line: Line<'_>, session: &str, update: &Update<'_>, out: &mut Out<'_>) {
        let matters = (out.may_matter)(line.bytes);
        let read = || blocks::read(update.content, &mut Calls::default(), "", &|_| false).text;
        let origin = match &*update.session_update {
            kind @ ("agent_message" | "agent_message_chunk") => {
                self.said(line, session, update, kind == "agent_message", read(), out);
                return;
            }
            "user_message" | "user_message_chunk" => blocks::user(&read()),
            "agent_thought" | "agent_thought_chunk" => tool("thinking"),
            "tool_call" | "tool_call_update" => match &update.title {
                Some(title) => tool(format!("call of {}", &**title)),
                None => tool("tool call"),
            },
            "state_update" => {
                if is_cancelled(update.stop_reason) {
                    self.cut_off(Some(session));
                }
                host("state")
            }
            // News about the session come in the midst of a message.
            kind => {
                if matters {
                    let text = update.content.map(strings).unwrap_or_default();
                    let origin = host(format!("{kind} update"));
                    out.mention(line.spot(), None, origin, text);
                }
                return;
            }
        };
        self.flush(session, out);
        let text = if matters { params_text(line.bytes) } else { String::new() };
        aside(line, origin, text, matters, out);
    }

    fn said(
        &mut self,
        line: Line<'_>,
        session: &str,
        update: &Update<'_>,
        whole: bool,
        text: String,
        out: &mut Out<'_>,
    ) {
        let id = update.message_id.as_ref().map(|id| id.to_owned());
        if self.open.get(session).is_some_and(|open| open.id != id) {
            self.flush(session, out);
        }
        let open = self.open.entry(session.into()).or_insert_with(|| {
            message(out.utter(), line.spot(), id, Origin::assistant(), String::new())
        });
        if whole {
            open.text.clear();
        }
        open.text.push_str(&text);
        move_to(open, line);
    }

    fn flush(&mut self, session: &str, out: &mut Out<'_>) {
        if let Some(open) = self.open.remove(session) {
            out.say(open);
        }
    }

    /// Takes the life of what is being said, in one session or in all.
    fn cut_off(&mut self, session: Option<&str>) {
        let dead = |open: &mut Message| open.origin = Origin::assistant().dead("aborted message");
        match session {
            Some(session) => self.open.get_mut(session).into_iter().for_each(dead),
            None => self.open.values_mut().for_each(dead),
        }
    }

    fn flush_all(&mut self, out: &mut Out<'_>) {
        for (_, open) in std::mem::take(&mut self.open) {
            out.say(open);
        }
    }

    fn request(
        &mut self,
        line: Line<'_>,
        method: &str,
        params: &Params<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), Malformed> {
        let matters = (out.may_matter)(line.bytes);
        if method == "session/prompt" {
            self.flush(&params.session_id, out);
            let text = blocks::read(params.prompt, &mut Calls::default(), "", &|_| false).text;
            aside(line, blocks::user(&text), text, matters, out);
        } else if matters {
            let text = member_strings(line.bytes, out.may_matter)?;
            let origin = tool(format!("input of {method}"));
            out.mention(line.spot(), None, origin, text);
        }
        Ok(())
    }
}

impl Host for Acp {
    fn line(&mut self, line: Line<'_>, out: &mut Out<'_>) -> Result<(), Malformed> {
        let rpc: Rpc<'_> = parse(line.bytes)?;
        let params: Params<'_> = lenient(rpc.params);
        if let Some(method) = &rpc.method {
            if method.0 == "session/update"
                && let Some(raw) = params.update
            {
                let update: Update<'_> = serde_json::from_str(raw.get())?;
                self.update(line, &params.session_id, &update, out);
                return Ok(());
            }
            if method.0 == "session/prompt"
                && let Some(id) = rpc.id
            {
                self.prompts.insert(id.get().into(), params.session_id.to_owned());
            }
            return self.request(line, method, &params, out);
        }
        let answer: Answer<'_> = lenient(rpc.result);
        let session = rpc.id.and_then(|id| self.prompts.remove(id.get()));
        if is_cancelled(answer.stop_reason) {
            self.cut_off(session.as_deref());
        }
        if answer.stop_reason.is_some() || rpc.error.is_some() {
            self.flush_all(out);
        }
        if (out.may_matter)(line.bytes) {
            let text = member_strings(line.bytes, out.may_matter)?;
            out.mention(line.spot(), None, tool("answer to a request"), text);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        self.flush_all(out);
    }
}

/// Whether a turn ended because somebody wanted it to.
fn is_cancelled(stop_reason: Option<&RawValue>) -> bool {
    stop_reason.is_some_and(|reason| reason.get() == r#""cancelled""#)
}

/// The content of an update, as all the strings in it.
fn params_text(line: &[u8]) -> String {
    let rpc = parse::<Rpc<'_>>(line).ok();
    let params: Params<'_> = lenient(rpc.and_then(|rpc| rpc.params));
    let update: Update<'_> = lenient(params.update);
    update.content.or(params.update).map(blocks::block_text).unwrap_or_default()
}
