//! One line of a Claude Code transcript and what it says about who spoke.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::blocks::{self, Block, Calls, Spoken, host, system};
use crate::chain::{Entry, Parent, key};
use crate::json::{Malformed, Str, lenient, parse, present, strings};
use crate::out::Spot;
use aldis_signal::message::{Origin, Role};

/// The envelope. The message in it is raw, or read at once.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "M: Deserialize<'de>"))]
pub(super) struct Record<'a, M = &'a RawValue> {
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) parent_uuid: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) uuid: Option<Str<'a>>,
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow)]
    subtype: Option<Str<'a>>,
    #[serde(borrow)]
    session_id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) timestamp: Option<Str<'a>>,
    #[serde(borrow)]
    cwd: Option<Str<'a>>,
    #[serde(borrow)]
    agent_id: Option<Str<'a>>,
    #[serde(borrow)]
    team_name: Option<Str<'a>>,
    pub(super) is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
    is_aborted_mid_stream: Option<bool>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    api_error_status: Option<&'a RawValue>,
    #[serde(borrow)]
    api_block_index: Option<&'a RawValue>,
    #[serde(borrow)]
    origin: Option<&'a RawValue>,
    pub(super) message: Option<M>,
    #[serde(borrow)]
    pub(super) attachment: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_result: Option<&'a RawValue>,
}

/// What the record of a call says about the agent that worked.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Worker<'a> {
    #[serde(borrow)]
    agent_id: Option<Str<'a>>,
}

/// The message inside, its content raw or read at once.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
pub(super) struct Said<'a, C = &'a RawValue> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    pub(super) content: Option<C>,
    /// Qwen keeps Gemini's name for it.
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Str<'a>>,
}

/// A message that is read at once.
pub(super) type Whole<'a> = Said<'a, Vec<Block<'a>>>;

impl<C> Default for Said<'_, C> {
    fn default() -> Self {
        Self { id: None, role: None, model: None, content: None, parts: None, stop_reason: None }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Kinded<'a> {
    #[serde(borrow, alias = "type")]
    kind: Option<Str<'a>>,
}

impl<'a> Record<'a> {
    /// Reads a line and the message in it.
    pub(super) fn read(line: &'a [u8]) -> Result<(Self, Said<'a>), Malformed> {
        let record: Self = parse(line)?;
        let said = match record.message {
            Some(message) => serde_json::from_str(message.get())?,
            None => Said::default(),
        };
        if record.is_assistant() && said.role.as_deref() == Some("user") {
            return Err(Malformed);
        }
        Ok((record, said))
    }

    /// Reads the blocks of the message.
    pub(super) fn spoken(
        &self,
        said: &Said<'_>,
        calls: &mut Calls,
        matters: &dyn Fn(&[u8]) -> bool,
    ) -> Spoken {
        let cwd = self.cwd.as_deref().unwrap_or_default();
        blocks::read(said.content.or(said.parts), calls, cwd, matters)
    }

    /// Reads a user's line: prompts, tool results, and what the host says in the user's name.
    pub(super) fn user(
        &self,
        said: &Said<'_>,
        calls: &mut Calls,
        matters: &dyn Fn(&[u8]) -> bool,
    ) -> Vec<(Origin, String)> {
        let mut spoken = self.spoken(said, calls, matters);
        let answered = !spoken.asides.is_empty();
        // The host's other records know a sub-agent by the name it has here, not by that of its call.
        let heard = |(origin, _): &&mut (Origin, String)| origin.role == Role::Subagent;
        if let Some((origin, _)) = spoken.asides.iter_mut().find(heard)
            && let Some(agent) = lenient::<Worker<'_>>(self.tool_use_result).agent_id
        {
            origin.agent = Some(agent.to_string());
        }
        if !spoken.text.is_empty() {
            spoken.asides.insert(0, (self.prompter(&spoken.text), spoken.text));
        }
        // The structured copy says the same again, unless the result was cut down to a notice.
        if let Some(copy) = self.tool_use_result.filter(|raw| matters(raw.get().as_bytes()))
            && !answered
        {
            let id = result_id(said.content);
            let origin = calls.result(&id, self.cwd.as_deref().unwrap_or_default());
            // Only what a sub-agent answered is its word; the copy also holds what it was asked.
            let origin = if origin.role == Role::Subagent {
                blocks::tool("record of a sub-agent")
            } else {
                origin
            };
            spoken.asides.push((origin, strings(copy)));
        }
        spoken.asides
    }

    /// Returns who wrote a line that is neither the agent's nor a user's.
    pub(super) fn recorder(&self) -> Origin {
        let attachment: Kinded<'_> = lenient(self.attachment);
        match (&*self.kind, attachment.kind.as_deref()) {
            ("attachment", Some("queued_command")) => {
                Origin::new(Role::User).with_detail("queued prompt")
            }
            ("attachment", Some(kind)) if kind.starts_with("hook_") => host("hook record"),
            ("attachment", Some(kind)) => host(format!("{kind} attachment")),
            ("queue-operation" | "last-prompt", _) => {
                Origin::new(Role::User).with_detail("copy of a prompt")
            }
            ("summary", _) => system("summary"),
            (kind, _) => host(format!("{} record", self.subtype.as_deref().unwrap_or(kind))),
        }
    }

    /// Returns whether a human typed this into the conversation.
    pub(super) fn is_typed(&self, said: &Said<'_>) -> bool {
        &*self.kind == "user"
            && self.is_sidechain != Some(true)
            && self.is_meta != Some(true)
            && self.is_compact_summary != Some(true)
            && self.tool_use_result.is_none()
            && result_id(said.content).is_empty()
            && self.injected().is_none()
    }

    fn injected(&self) -> Option<Str<'a>> {
        let origin: Kinded<'_> = lenient(self.origin);
        origin.kind.filter(|kind| &**kind != "human")
    }

    fn prompter(&self, text: &str) -> Origin {
        let origin = blocks::user(text);
        if self.is_compact_summary == Some(true) {
            return system("compaction summary");
        }
        if let Some(kind) = self.injected() {
            return host(kind.to_owned());
        }
        if self.is_meta == Some(true) && origin.role == Role::User {
            return host("injected");
        }
        origin
    }
}

impl<'a> Record<'a, Whole<'a>> {
    /// Reads a line of the agent's and its content in one go: most lines that matter are such. `None`
    /// if it is not that simple.
    pub(super) fn read_at_once(
        line: &'a [u8],
        words_only: bool,
    ) -> Option<(Self, Whole<'a>, Vec<Block<'a>>)> {
        static ROLE: LazyLock<Finder<'static>> =
            LazyLock::new(|| Finder::new(br#""role":"assistant""#));
        ROLE.find(&line[..line.len().min(ROLE_WITHIN)])?;
        let mut record: Self = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
        let mut said = record.message.take().filter(|_| record.is_assistant())?;
        let content = said.content.take().filter(|_| said.role.as_deref() != Some("user"))?;
        blocks::are_words(&content, words_only).then_some((record, said, content))
    }
}

impl<'a, M> Record<'a, M> {
    /// Returns what the chain needs to know. `first` says that no entry came before.
    pub(super) fn entry(&self, typed: bool, print: u32, first: bool) -> Entry {
        Entry {
            key: self.uuid.as_ref().map_or(0, |uuid| key(uuid.as_bytes())),
            parent: self.parent(typed, first),
            print,
            session: self.session_key(),
            sidechain: self.is_sidechain.unwrap_or_default(),
            // What is not known may be a parent, but does not say which branch is live.
            meta: self.is_meta.unwrap_or_default() || !ENTRIES.contains(&&*self.kind),
            team: self.team_name.is_some(),
            typed,
        }
    }

    /// Returns the session as the chain compares it.
    pub(super) fn session_key(&self) -> u32 {
        self.session_id.as_ref().map_or(0, |id| session_key(id))
    }

    /// Returns where and when this was said.
    pub(super) fn spot(&self, number: u64) -> Spot {
        let at = self.timestamp.as_ref().and_then(|stamp| stamp.parse().ok());
        Spot { entry: number, at }
    }

    /// Returns whether this line is part of the conversation and not a record beside it.
    pub(super) fn is_entry(&self) -> bool {
        ENTRIES.contains(&&*self.kind) && (self.uuid.is_some() || self.message.is_some())
    }

    /// Returns the place of this line's block in its message, if it is named.
    pub(super) fn block(&self) -> Option<u64> {
        self.api_block_index.and_then(|raw| raw.get().parse().ok())
    }

    /// Returns whether the agent's words are in this line.
    pub(super) fn is_assistant(&self) -> bool {
        self.kind.0 == "assistant"
    }

    /// Returns whether anything about this line must not be taken over to lines that look alike.
    pub(super) fn is_special<C>(&self, said: &Said<'_, C>) -> bool {
        [self.is_meta, self.is_compact_summary, self.is_api_error_message]
            .into_iter()
            .chain([self.is_aborted_mid_stream])
            .any(|flag| flag == Some(true))
            || self.team_name.is_some()
            || self.is_error()
            || said.model.as_deref() == Some(SYNTHETIC)
    }

    fn is_error(&self) -> bool {
        self.error.is_some() || self.api_error_status.is_some()
    }

    /// Returns who speaks in an assistant's line.
    pub(super) fn speaker<C>(&self, said: &Said<'_, C>) -> Origin {
        if self.is_api_error_message == Some(true) || self.is_error() {
            host("API error")
        } else if said.model.as_deref() == Some(SYNTHETIC) {
            host("synthetic message")
        } else if self.is_aborted_mid_stream == Some(true) {
            Origin::assistant().dead("aborted message")
        } else {
            Origin::assistant()
        }
    }

    /// Marks an origin with the sub-agent it is in.
    pub(super) fn place(&self, mut origin: Origin) -> Origin {
        if self.is_sidechain == Some(true) {
            origin = origin.in_sidechain();
            if let Some(agent) = &self.agent_id
                && origin.agent.is_none()
            {
                origin = origin.with_agent(agent.to_owned());
            }
        }
        origin
    }

    fn parent(&self, typed: bool, first: bool) -> Parent {
        let Some(raw) = self.parent_uuid else { return Parent::Before };
        if let Ok(id) = serde_json::from_str::<Str<'_>>(raw.get()) {
            return Parent::Key(key(id.as_bytes()));
        }
        if !first && typed { Parent::None } else { Parent::Before }
    }
}

/// The types of lines that are part of the conversation; Qwen has the last one.
pub(super) const ENTRIES: [&str; 6] =
    ["user", "assistant", "system", "attachment", "progress", "tool_result"];

/// Returns a session's id as the chain compares it.
pub(super) fn session_key(id: &str) -> u32 {
    key(id.as_bytes()) as u32 | 1
}

/// Returns the call that content is the result of, or nothing.
fn result_id(content: Option<&RawValue>) -> String {
    #[derive(Default, Deserialize)]
    struct Result<'a> {
        #[serde(borrow)]
        tool_use_id: Option<Str<'a>>,
    }
    let blocks = content.map(crate::json::blocks).unwrap_or_default();
    let ids = blocks.into_iter().map(|raw| lenient::<Result<'_>>(Some(raw)).tool_use_id);
    ids.flatten().next().map(|id| id.to_owned()).unwrap_or_default()
}

/// How far into a line its role stands, as the host writes it.
const ROLE_WITHIN: usize = 512;

const SYNTHETIC: &str = "<synthetic>";
