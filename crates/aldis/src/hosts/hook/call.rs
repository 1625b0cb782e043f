//! What a host told its hook, in one shape for all hosts.

use std::path::PathBuf;

use super::fields::Fields;
use super::identify;
use crate::hosts::spec::Imports;
use crate::hosts::{BlockCap, Env, Host};

/// The longest payload that is read.
pub const PAYLOAD_MAX: usize = 32 << 20;

/// One call of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCall {
    /// Who calls, as the payload shows. Hosts run each other's hooks.
    pub host: Host,
    /// For whom the hook was registered.
    pub registered: Host,
    /// What happened.
    pub event: Event,
    /// The session; `None` if the payload names none that can be used.
    pub session: Option<String>,
    /// The turn within the session, the same for all calls of one turn.
    pub turn: Option<String>,
    /// The sub-agent this is about, or the agent that a session was started as.
    pub agent_id: Option<String>,
    /// Where the agent works; `None` where the host does not say.
    pub cwd: Option<PathBuf>,
    /// The project, where the host's environment names one.
    pub project_dir: Option<PathBuf>,
    /// What the agent said last. Newer than any file.
    pub final_text: Option<String>,
    /// The session's transcript.
    pub transcript: Option<PathBuf>,
    /// The sub-agent's own transcript.
    pub agent_transcript: Option<PathBuf>,
    /// Whether the agent goes on because of a hook already; `None` where the host does not say.
    pub re_entry: Option<bool>,
    /// How often a hook made the agent go on, where the host counts.
    pub loop_count: Option<u64>,
    /// What will wake the agent without us: tasks that still run, prompts that are sent later.
    pub waiting: Vec<String>,
    /// Why the turn did not end by itself.
    pub cut_short: Option<CutShort>,
}

impl HookCall {
    /// Returns the host whose form of answer is understood here: a host that runs a hook out of
    /// another's settings may also translate the answer.
    pub fn answer_host(&self) -> Host {
        if self.is_import() { self.registered } else { self.host }
    }

    /// Returns how often the host lets its hooks go on.
    pub fn block_cap(&self, env: &Env) -> BlockCap {
        // The limit of our own registration is not that of an imported one.
        if self.is_import() { BlockCap::NONE } else { self.host.block_cap(env) }
    }

    fn is_import(&self) -> bool {
        self.host.spec().imports == Imports::Translates && self.registered.spec().is_original
    }
}

/// What happened. Exhaustive: whoever handles calls must judge each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The agent wants to stop.
    Stop,
    /// A sub-agent wants to stop.
    SubagentStop,
    /// The turn ended by an error.
    StopFailure {
        /// The host's word for it.
        error: String,
        /// What it says of it.
        said: Option<String>,
    },
    /// A prompt is about to be sent.
    Prompt {
        /// What it says.
        text: String,
        /// Who wrote it, where the host says.
        source: Option<String>,
    },
    /// A session begins or goes on.
    SessionStart {
        /// Why.
        source: Option<String>,
    },
    /// A session ends.
    SessionEnd {
        /// Why.
        reason: Option<String>,
    },
    /// The agent said something, and the stop that follows will not repeat it.
    AgentResponse {
        /// What it said.
        text: String,
    },
    /// The user interrupted the agent.
    Interrupt,
    /// Something else, by the host's name for it.
    Other(String),
}

impl Event {
    /// Returns what happened, in a word.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::SubagentStop => "subagent_stop",
            Self::StopFailure { .. } => "stop_failure",
            Self::Prompt { .. } => "prompt",
            Self::SessionStart { .. } => "session_start",
            Self::SessionEnd { .. } => "session_end",
            Self::AgentResponse { .. } => "agent_response",
            Self::Interrupt => "interrupt",
            Self::Other(_) => "other",
        }
    }
}

/// Why a turn did not end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CutShort {
    /// The user ended it.
    Aborted,
    /// It failed.
    Failed(String),
    /// The host's word for something else: a limit, a refusal.
    Other(String),
}

/// Why a payload cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// Something is said twice, and who calls or what happened depends on it.
    #[error("the payload says `{key}` twice")]
    Ambiguous {
        /// The member.
        key: &'static str,
    },
    /// Nothing but blanks.
    #[error("the payload is empty")]
    Empty,
    /// JSON, but no object.
    #[error("the payload is not a JSON object")]
    NotAnObject,
    /// No JSON, or more than one value.
    #[error("the payload is not JSON")]
    NotJson,
    /// More than [`PAYLOAD_MAX`] bytes.
    #[error("the payload is longer than {PAYLOAD_MAX} bytes")]
    TooLong,
    /// The end is missing.
    #[error("the payload ends in the middle")]
    Truncated,
    /// From a host whose hooks cannot decide anything.
    #[error("hooks of {0} cannot keep an agent working")]
    Unsupported(&'static str),
}

impl PayloadError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Ambiguous { .. } => "ambiguous",
            Self::Empty => "empty",
            Self::NotAnObject => "not_an_object",
            Self::NotJson => "not_json",
            Self::TooLong => "too_long",
            Self::Truncated => "truncated",
            Self::Unsupported(_) => "unsupported_host",
        }
    }
}

/// Reads what a host wrote to its hook's standard input.
///
/// # Errors
///
/// When it is not one whole JSON object, or says twice what must be said once. Everything else that
/// is odd is tolerated.
pub fn parse(registered: Host, stdin: &[u8], env: &Env) -> Result<HookCall, PayloadError> {
    if stdin.len() > PAYLOAD_MAX {
        return Err(PayloadError::TooLong);
    }
    let stdin = stdin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stdin);
    let text = String::from_utf8_lossy(stdin);
    if text.trim().is_empty() {
        return Err(PayloadError::Empty);
    }
    let fields = Fields::read(&text)?;
    for names in [["session_id", "sessionId"], ["hook_event_name", "hookEventName"]] {
        if fields.contradicts(names) {
            return Err(PayloadError::Ambiguous { key: names[0] });
        }
    }
    let host = identify::host(registered, &fields)?;
    Ok(read(host, registered, &fields, env))
}

fn read(host: Host, registered: Host, fields: &Fields<'_>, env: &Env) -> HookCall {
    let spec = host.spec();
    let payload = &spec.payload;
    let event = (payload.event)(fields);
    let stops = matches!(event, Event::Stop | Event::SubagentStop);
    let final_text = stops.then(|| (payload.final_text)(fields)).flatten();
    let file = |names: &[&str]| fields.word(names).map(|path| env.expand(&path));
    let loop_count = fields.count("loop_count");
    let flag = fields.flag(&["stop_hook_active", "stopHookActive"]);
    HookCall {
        host,
        registered,
        event,
        session: (payload.session)(fields).filter(|session| is_usable(session)),
        turn: fields.word(TURN_NAMES),
        agent_id: fields.word(&["agent_id", "agentId"]),
        cwd: (payload.cwd)(fields, env).filter(|path| path.is_absolute()),
        project_dir: spec.project_variables.iter().find_map(|name| env.path(name)),
        final_text: final_text.filter(|text| !text.trim().is_empty()),
        transcript: file(&["transcript_path", "transcriptPath"]),
        agent_transcript: file(&["agent_transcript_path", "agentTranscriptPath"]),
        re_entry: flag.or_else(|| loop_count.map(|count| count > 0)),
        loop_count,
        waiting: waiting(fields),
        cut_short: stops.then(|| (payload.cut_short)(fields)).flatten(),
    }
}

/// A session's name goes into keys, logs and messages: it must be one, and of sane length.
fn is_usable(session: &str) -> bool {
    !session.trim().is_empty()
        && session.len() <= SESSION_MAX
        && !session.chars().any(char::is_control)
}

fn waiting(fields: &Fields<'_>) -> Vec<String> {
    let text = |fields: &Fields<'_>, names: &[&'static str]| {
        fields.cow(names).unwrap_or_default().into_owned()
    };
    let tasks = fields.list("background_tasks").into_iter();
    let running = tasks.filter(|task| !is_ended(&text(task, &["status"])));
    let mut all: Vec<String> =
        running.map(|task| text(&task, &["description", "command", "name", "type"])).collect();
    let crons = fields.list("session_crons").into_iter();
    all.extend(crons.map(|cron| text(&cron, &["prompt", "schedule"])));
    if fields.flag(&["fullyIdle"]) == Some(false) {
        all.push("work in the background".to_owned());
    }
    all
}

/// Whether a background task in this state wakes nobody any more.
fn is_ended(status: &str) -> bool {
    matches!(
        status,
        "aborted"
            | "cancelled"
            | "canceled"
            | "completed"
            | "done"
            | "error"
            | "exited"
            | "failed"
            | "finished"
            | "killed"
            | "stopped"
    )
}

/// Under which names hosts send the id of the turn.
const TURN_NAMES: &[&str] =
    &["generation_id", "turn_id", "turnId", "prompt_id", "promptId", "runId"];
const SESSION_MAX: usize = 256;
