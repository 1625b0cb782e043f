//! What changes together in the state of a run. It is stored flat, as one object; the aliases are the
//! names that 0.1.0 stored.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::config::{Config, ExitReason};
use super::counted::CountedSignals;
use super::event::PhaseFinding;
use super::pipeline::Pipeline;
use super::state::{Detected, LastError, PendingResponse, SessionTurn};
use aldis_signal::time::Timestamp;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) task: String,
    pub(super) pipeline: Pipeline,
    pub(super) config: Config,
    /// How many stops are blocked per phase at most.
    pub(super) max_iterations: u32,
}

/// How far the run is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Whether the run can still take steps.
    pub(super) active: bool,
    /// The current phase, `complete` or `failed`.
    pub(super) phase: String,
    /// How many stops were blocked in this phase.
    pub(super) iteration: u32,
    /// The signals that were detected, each name once.
    pub(super) detected: Vec<Detected>,
    /// The phases that were completed in their turn.
    pub(super) completed: BTreeSet<String>,
    /// The phases that were not done when the agent declared the run complete.
    pub(super) left_out: Vec<String>,
    /// How many seconds each phase took.
    pub(super) durations: BTreeMap<String, u64>,
}

/// Why the run ended, or will.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Closing {
    pub(super) exit_reason: Option<ExitReason>,
    pub(super) completed_at: Option<Timestamp>,
    /// The phase it was in when it ended without success.
    pub(super) failed_in: Option<String>,
    pub(super) last_error: Option<LastError>,
}

/// What time has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Clock {
    /// `None` when the run's state file had no readable time.
    pub(super) started_at: Option<Timestamp>,
    pub(super) phase_started_at: Timestamp,
    /// It never goes back.
    pub(super) last_activity: Option<Timestamp>,
    /// When a stop was last judged.
    pub(super) last_checked: Option<Timestamp>,
    /// The session's current turn.
    pub(super) turn: Option<SessionTurn>,
    /// Since when any session may take the run over.
    pub(super) open_since: Option<Timestamp>,
}

/// What was read of what agents wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TranscriptReading {
    /// Sub-agents' signals that were already counted.
    pub(super) counted: CountedSignals,
    /// Until when what the main agent wrote has been judged.
    #[serde(alias = "heard_until")]
    pub(super) read_until: Option<Timestamp>,
    /// How far the transcript has been read, in the shell's own form.
    #[serde(alias = "heard_to")]
    pub(super) read_cursor: Option<String>,
    /// What was reported since the last stop, on hosts that report it apart.
    #[serde(alias = "response")]
    pub(super) pending_response: Option<PendingResponse>,
    /// Signals reported while the run was paused that no transcript repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) held_findings: Vec<PhaseFinding>,
}

/// What the main agent is to know and was not told yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handover {
    /// Whether it has yet to get the prompt of the phase.
    #[serde(alias = "untold")]
    pub(super) prompt_pending: bool,
    /// Whether a sub-agent completed the last phase.
    #[serde(alias = "handed_over")]
    pub(super) advanced_by_subagent: bool,
    /// Whether a sub-agent completed the run's very last phase: the main agent's stop ends the run.
    #[serde(default, alias = "over")]
    pub(super) ends_at_next_stop: bool,
    /// Messages from humans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) human_messages: Vec<String>,
    /// The session that got the first prompt, before a stop of it binds the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prompted: Option<String>,
}
