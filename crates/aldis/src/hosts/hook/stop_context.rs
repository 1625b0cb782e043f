//! What the agent wrote since its last stop: the payload first, the transcript second.

use std::fs;
use std::path::Path;
use std::str::FromStr as _;
use std::thread;

use aldis_engine::CallRecord;
use aldis_machine::phases::{
    AgentMessage, BlockCap, MustAllow, PhaseFinding, State, Stop, closing_text, scan_messages,
};
use aldis_signal::time::Timestamp;
use aldis_signal::{Message, Origin, Role, Rules, Token};

use aldis_transcript::events::ToolAnswer;

use super::called::lacks_answer;
use super::tail::{
    Limits, Tail, TailError, TailOptions, TailPosition, first_time, read_tail, settle,
    tail_of_shipped,
};
use super::{Hook, fresh_token};
use crate::error::CommandError;
use crate::hosts::{CutShort, Event as HostEvent};

/// The agent's messages, oldest first, and what is known about the turn.
#[derive(Clone, Debug, Default)]
pub(super) struct StopContext {
    messages: Vec<Message>,
    /// Which of them is the agent's final one.
    last: Option<usize>,
    /// Whether the payload has the final one: nothing is newer, whatever its time.
    final_in_payload: bool,
    /// Whether all of them stand behind what was read at the last stop.
    positioned: bool,
    tools_ran: bool,
    turn_began: Option<Timestamp>,
    /// Whether what was read begins within a turn that was read before.
    same_turn: bool,
    asked_user: bool,
    position: Option<TailPosition>,
    /// The answers to calls of our tools.
    answers: Vec<ToolAnswer>,
}

impl StopContext {
    /// Reads what a call brings. A transcript that cannot be read is recorded and done without.
    /// `waiting` are the calls whose answers should be there.
    pub(super) fn of(hook: &Hook<'_>, position: Option<&str>, waiting: &[CallRecord]) -> Self {
        match &hook.call.event {
            HostEvent::Stop => Self::of_stop(hook, position, waiting),
            HostEvent::SubagentStop => Self::of_subagent(hook, waiting),
            HostEvent::AgentResponse { text } => Self::only(text.clone(), Origin::assistant()),
            HostEvent::StopFailure { .. }
            | HostEvent::Prompt { .. }
            | HostEvent::SessionStart { .. }
            | HostEvent::SessionEnd { .. }
            | HostEvent::Interrupt
            | HostEvent::Other(_) => Self::default(),
        }
    }

    fn of_stop(hook: &Hook<'_>, position: Option<&str>, waiting: &[CallRecord]) -> Self {
        let from = position.and_then(|text| TailPosition::from_str(text).ok());
        let final_text = hook.call.final_text.as_deref();
        let mut context = Self::default();
        if let Some(path) = &hook.call.transcript {
            // A host may name a file that it never writes: that is waited for only where it must show
            // a call.
            let is_whole = |tail: Option<&Tail>| {
                let answers = tail.map(|tail| &*tail.answers).unwrap_or_default();
                (final_text.is_some() || tail.is_some_and(Tail::is_settled))
                    && !lacks_answer(waiting, answers)
            };
            match read(hook, path, from, &is_whole) {
                Ok(tail) => context.take(hook, tail, from.is_some()),
                Err(TailError::Missing) if final_text.is_some() => {}
                Err(error) => hook.record_failure(&format!("{}: {error}", error.code())),
            }
        }
        context.last =
            context.messages.iter().rposition(|message| message.origin.role == Role::Assistant);
        if let Some(text) = final_text {
            context.add_final(text);
        }
        context
    }

    fn take(&mut self, hook: &Hook<'_>, tail: Tail, had_position: bool) {
        if tail.truncated {
            hook.record_failure(
                "transcript_truncated: more was written since the last stop than is read",
            );
        }
        self.positioned = had_position && !tail.position_void;
        self.same_turn = self.positioned && tail.turn_began.is_none();
        self.messages = tail.messages;
        self.messages.retain(|message| message.origin.may_signal());
        self.tools_ran = tail.tools_ran;
        self.turn_began = tail.turn_began;
        self.asked_user = tail.asked_user;
        self.position = Some(tail.position);
        self.answers = tail.answers;
    }

    /// Returns the answers to calls of our tools.
    pub(super) fn answers(&self) -> &[ToolAnswer] {
        &self.answers
    }

    /// The payload's text is newer than any file; where the file has it already, it counts once.
    fn add_final(&mut self, text: &str) {
        self.final_in_payload = true;
        let known = self.last.and_then(|last| self.messages.get(last));
        if !known.is_some_and(|known| known.text.trim_end().ends_with(text.trim())) {
            self.last = Some(self.messages.len());
            self.messages.push(message(text.to_owned(), Origin::assistant()));
        }
    }

    /// A sub-agent's final message: from the payload, else from its own transcript.
    fn of_subagent(hook: &Hook<'_>, waiting: &[CallRecord]) -> Self {
        let call = hook.call;
        let mut origin = Origin::new(Role::Subagent);
        if let Some(agent) = &call.agent_id {
            origin = origin.with_agent(agent);
        }
        let only = |text: &String| Self::only(text.clone(), origin.clone());
        let said = call.final_text.as_ref().map(only);
        if let (Some(said), true) = (&said, waiting.is_empty()) {
            return said.clone();
        }
        let Some(path) = &call.agent_transcript else { return said.unwrap_or_default() };
        let is_whole = |tail: Option<&Tail>| said.is_some() || tail.is_some_and(Tail::is_settled);
        match read(hook, path, None, &is_whole) {
            Ok(tail) => {
                let own = |message: &&Message| message.origin.role == Role::Assistant;
                let last = || tail.messages.iter().rfind(own).map(|message| only(&message.text));
                let context = said.or_else(last).unwrap_or_default();
                Self { answers: tail.answers, ..context }
            }
            Err(error) => {
                hook.record_failure(&format!("{}: {error}", error.code()));
                said.unwrap_or_default()
            }
        }
    }

    fn only(text: String, origin: Origin) -> Self {
        Self { messages: vec![message(text, origin)], last: Some(0), ..Self::default() }
    }

    /// What of it counts for the machine.
    pub(super) fn findings(&self, state: &State, rules: &Rules) -> Vec<PhaseFinding> {
        // Where a sub-agent ended a phase meanwhile, only times tell what was reported in which.
        let positioned = self.positioned && !state.is_advanced_by_subagent();
        let messages: Vec<AgentMessage<'_>> = self
            .messages
            .iter()
            .enumerate()
            .map(|(index, message)| AgentMessage {
                text: &message.text,
                origin: message.origin.clone(),
                at: message.at,
                new_by_position: positioned || self.final_in_payload && self.last == Some(index),
                is_final: self.last == Some(index),
            })
            .collect();
        scan_messages(rules, &state.expected_token(), &messages)
    }

    /// The end of the final message.
    pub(super) fn closing_text(&self, state: &State) -> String {
        let text = self.last.and_then(|last| self.messages.get(last)).map(|last| &*last.text);
        closing_text(text.unwrap_or_default(), &state.expected_token())
    }

    /// When the session began, as far as its transcript tells.
    pub(super) fn session_began(hook: &Hook<'_>) -> Option<Timestamp> {
        let path = hook.call.transcript.as_ref()?;
        let roots = hook.env.transcript_roots(hook.call.host, Some(hook.place.root()));
        first_time(path, hook.call.host, &roots)
    }

    /// Everything the machine wants to know about a stop.
    pub(super) fn stop(
        &self,
        hook: &Hook<'_>,
        state: &State,
        rules: &Rules,
    ) -> Result<Stop, CommandError> {
        let call = hook.call;
        let cap = call.block_cap(hook.env);
        let findings = self.findings(state, rules);
        // A host that names each continuation anew counts them instead.
        let counted = call.loop_count.map(|count| count > 0);
        let turn = call.turn.clone().filter(|_| call.host.spec().payload.turn_survives_block);
        Ok(Stop {
            session: call.session.clone(),
            host: call.host.to_string(),
            host_name: call.host.title().to_owned(),
            turn,
            turn_began: if self.same_turn { state.last_checked() } else { self.turn_began },
            continued: call.re_entry.or(counted),
            token_leaked: self.leaks(&state.expected_token(), &findings),
            findings,
            closing_text: self.closing_text(state),
            tools_ran: self.tools_ran,
            cap: BlockCap { limit: cap.limit, resets_on_tool_use: cap.resets_on_tool_use },
            must_allow: self.must_allow(hook),
            asks: None,
            read_cursor: self.position.map(|position| position.to_string()),
            took_ms: u64::try_from(hook.began.elapsed().as_millis()).ok(),
            fresh_token: fresh_token(state.config().token)?,
        })
    }

    /// Why this stop must not be refused.
    fn must_allow(&self, hook: &Hook<'_>) -> Option<MustAllow> {
        if hook.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.late) {
            return Some(MustAllow::Late);
        }
        match &hook.call.cut_short {
            Some(CutShort::Aborted) => return Some(MustAllow::Aborted),
            Some(CutShort::Failed(what) | CutShort::Other(what)) => {
                return Some(MustAllow::Failed { what: what.clone() });
            }
            None => {}
        }
        if !hook.call.waiting.is_empty() {
            return Some(MustAllow::Background { what: hook.call.waiting.join(", ") });
        }
        self.asked_user.then_some(MustAllow::Question)
    }

    /// Whether the run token was said where no signal carries it.
    fn leaks(&self, token: &Token, findings: &[PhaseFinding]) -> bool {
        let (Token::Accept(code) | Token::Require(code)) = token else { return false };
        let times: usize = self.messages.iter().map(|m| m.text.matches(&**code).count()).sum();
        let carried =
            findings.iter().filter(|it| matches!(it, PhaseFinding::Signal(s) if s.trusted)).count();
        times > carried
    }

    /// A digest of what was said, to recognise it again.
    pub(super) fn digest(&self) -> String {
        let text: String = self.messages.iter().map(|message| &*message.text).collect();
        aldis_machine::phases::digest(&text)
    }
}

fn message(text: String, origin: Origin) -> Message {
    Message::new(0, origin, text)
}

/// Waits until the agent's last words are in its transcript, unless the payload has them.
pub(super) fn settle_transcript(hook: &Hook<'_>) {
    let Some(path) = hook.call.transcript.as_ref().filter(|_| hook.call.final_text.is_none())
    else {
        return;
    };
    // What cannot be read is not sent.
    let _settled = read(hook, path, None, &|tail| tail.is_some_and(Tail::is_settled));
}

/// Reads the end of a transcript, and waits for its last words where nothing else has them.
fn read(
    hook: &Hook<'_>,
    path: &Path,
    from: Option<TailPosition>,
    is_whole: &dyn Fn(Option<&Tail>) -> bool,
) -> Result<Tail, TailError> {
    let is_subagent = hook.call.event == HostEvent::SubagentStop;
    let shipped = hook.elsewhere.as_ref().map(|elsewhere| match is_subagent {
        true => elsewhere.agent_transcript.as_ref(),
        false => elsewhere.transcript.as_ref(),
    });
    let roots = match shipped {
        // What another machine names is not looked for here.
        Some(_) => Vec::new(),
        None => hook.env.transcript_roots(hook.call.host, Some(hook.place.root())),
    };
    let options = TailOptions {
        roots: &roots,
        session: hook.call.session.as_deref(),
        of_agent: is_subagent,
        may_matter: &|_| true,
        limits: Limits::default(),
    };
    if let Some(shipped) = shipped {
        let shipped = shipped.ok_or(TailError::Missing)?;
        return tail_of_shipped(shipped, hook.call.host, from, &options);
    }
    let once = || match read_tail(path, hook.call.host, from, &options) {
        Err(TailError::Missing) => Ok(None),
        tail => tail.map(Some),
    };
    let length = || fs::symlink_metadata(path).map(|file| file.len()).unwrap_or_default();
    settle(once, is_whole, length, thread::sleep)?.ok_or(TailError::Missing)
}
