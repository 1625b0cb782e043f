//! A hook call that is handled on another machine: what is sent of it, and what comes back.
//!
//! The server has none of the files that a call names, so the end of the transcript goes along, at its
//! place in the file: positions mean the same on both sides.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use aldis_engine::{Engine, EngineError};
use aldis_store::{RunId, Store};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::live::{self, PhasesRun};
use super::tail::{TailSource, ship};
use super::{Hook, HookError, Respond, stop_context};
use crate::hosts::{Env, Event, HookCall, Host};
use crate::settings::project::Place;
use crate::settings::tokens::Grant;

/// How much of a transcript goes along.
const TAIL_MAX: u64 = 256 << 10;
/// The longest payload that is sent: a request has a mebibyte.
pub(crate) const PAYLOAD_SENT_MAX: usize = 256 << 10;

/// A hook call as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookForm {
    /// Makes a second delivery recognisable.
    pub(crate) id: String,
    /// For which host the hook is registered.
    pub(crate) host: String,
    /// What the host wrote to the hook.
    pub(crate) payload: String,
    /// Variables of the host that are set there.
    pub(crate) variables: BTreeMap<String, String>,
    /// The directory in which the agent works.
    pub(crate) directory: String,
    /// The end of the session's transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<ShippedForm>,
    /// The end of the transcript of a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_transcript: Option<ShippedForm>,
    /// Whether the agent has stopped already, because nobody answered in time.
    #[serde(default)]
    pub(crate) late: bool,
}

/// The end of a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShippedForm {
    /// How many bytes of the file lie before it.
    pub(crate) offset: u64,
    /// The bytes, in Base64.
    pub(crate) bytes: String,
}

/// What the hook prints.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct HookReply {
    /// The answer for the host, which the hook prints.
    pub(crate) output: String,
    /// The run that took a step, if one did.
    pub(crate) run: Option<String>,
    /// Whether this call was taken before.
    pub(crate) repeated: bool,
}

/// The end of a file of another machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shipped {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Shipped {
    /// Returns how long the whole file was.
    pub(crate) fn length(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }

    fn form(&self) -> ShippedForm {
        ShippedForm { offset: self.offset, bytes: STANDARD.encode(&self.bytes) }
    }

    fn of(form: &ShippedForm) -> Option<Self> {
        let bytes = STANDARD.decode(&form.bytes).ok()?;
        Some(Self { offset: form.offset.min(u64::MAX >> 1), bytes })
    }
}

impl TailSource for &Shipped {
    /// What was not sent reads as zeros, which are neither lines nor what a position remembers.
    fn read_exact_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        for (at, byte) in (offset..).zip(buffer) {
            *byte = match at.checked_sub(self.offset).map(usize::try_from) {
                None => 0,
                Some(Ok(place)) if place < self.bytes.len() => self.bytes[place],
                Some(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        Ok(())
    }
}

/// What is different about a call from another machine.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    pub(crate) transcript: Option<Shipped>,
    pub(crate) agent_transcript: Option<Shipped>,
    /// Which runs it may concern.
    pub(crate) grant: Grant,
    /// Whether the agent has stopped already.
    pub(crate) late: bool,
    /// By what a second delivery is recognised.
    pub(crate) id: String,
}

impl HookForm {
    /// Puts together what is sent of a call. Waits for the agent's last words as a hook does that reads
    /// them itself.
    pub(crate) fn of(hook: &Hook<'_>, payload: &str, id: String) -> Self {
        let call = hook.call;
        let stops = matches!(call.event, Event::Stop | Event::SubagentStop);
        if call.event == Event::Stop {
            stop_context::settle_transcript(hook);
        }
        let end = |path: &Option<PathBuf>| {
            let path = path.as_deref().filter(|_| stops)?;
            let roots = hook.env.transcript_roots(call.host, Some(hook.place.root()));
            ship(path, &roots, TAIL_MAX).ok().map(|shipped| shipped.form())
        };
        Self {
            id,
            host: call.registered.to_string(),
            payload: payload.to_owned(),
            variables: hook.env.texts(),
            directory: hook.place.directory().to_string_lossy().into_owned(),
            transcript: end(&call.transcript),
            agent_transcript: end(&call.agent_transcript),
            late: false,
        }
    }

    /// Returns the environment of the hook, as far as it was sent.
    pub(crate) fn env(&self) -> Env {
        Env::from_lookup(|name| self.variables.get(name).map(Into::into))
    }

    /// Returns for which host the hook is registered.
    pub(crate) fn host(&self) -> Option<Host> {
        self.host.parse().ok()
    }

    /// Returns where the work happens: in the project of the token, which may lie elsewhere on each
    /// machine.
    pub(crate) fn place(&self, grant: &Grant) -> Place {
        Place::elsewhere(Path::new(grant.project.as_ref().unwrap_or(&self.directory)))
    }

    /// Returns what is different about the call.
    pub(crate) fn elsewhere(&self, grant: Grant) -> Elsewhere {
        let shipped = |form: &Option<ShippedForm>| form.as_ref().and_then(Shipped::of);
        Elsewhere {
            transcript: shipped(&self.transcript),
            agent_transcript: shipped(&self.agent_transcript),
            grant,
            late: self.late,
            id: self.id.clone(),
        }
    }
}

impl Hook<'_> {
    /// Handles a call from another machine: what would need its files is left out. Checks are not started,
    /// so that a claim that needs them is refused and never counts unchecked.
    ///
    /// # Errors
    ///
    /// Why nothing was decided.
    pub(crate) fn handle_elsewhere(
        &self,
        engine: &Engine,
        respond: &mut Respond<'_>,
    ) -> Result<Option<RunId>, HookError> {
        if self.call.session.is_none() || !concerns_runs(self.call) {
            return Ok(None);
        }
        let Some(stepped) = self.decide(engine, None)? else { return Ok(None) };
        respond(&self.answer(&stepped));
        Ok(Some(stepped.run.id().clone()))
    }

    /// Finds the run that is concerned.
    pub(super) fn live(&self, store: &dyn Store) -> Result<Option<PhasesRun>, EngineError> {
        let live = live::live(store, &self.place, self.call.session.as_deref())?;
        let Some(elsewhere) = &self.elsewhere else { return Ok(live) };
        Ok(live.filter(|run| elsewhere.grant.reaches(run.id().as_str(), run.project())))
    }
}

/// Whether a call concerns runs at all: others are answered without asking anybody.
pub(crate) fn concerns_runs(call: &HookCall) -> bool {
    match call.event {
        Event::Other(_) => false,
        // Some hosts report a sub-agent's prompt under the session of the main agent.
        Event::Prompt { .. } => call.agent_id.is_none(),
        _ => call.session.is_some(),
    }
}
