//! What changes together in the state of a run. It is stored flat, as one object.

use serde::{Deserialize, Serialize};

use super::event::{AgentExit, Usage, WorkTree};
use super::signal::RunSignal;
use super::state::{ClaimRefusal, Denial, ServiceLimit};
use aldis_signal::time::Timestamp;

/// What time has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Clock {
    pub(super) started_at: Timestamp,
    /// When the last event came. Time without a supervisor is not counted as work.
    pub(super) seen_at: Option<Timestamp>,
    pub(super) iteration_started_at: Timestamp,
    /// How many milliseconds were spent waiting.
    #[serde(alias = "waited")]
    pub(super) waited_ms: u64,
    /// How many milliseconds it worked before it was last reopened.
    #[serde(default, skip_serializing_if = "crate::words::is_zero")]
    pub(super) worked_before_ms: u64,
    /// Since when the run waits, if it does, or ended.
    pub(super) waiting_since: Option<Timestamp>,
    /// Since when the agent is suspended for missing progress.
    pub(super) paused_at: Option<Timestamp>,
}

/// How far the work is, as the agent reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Reported {
    pub(super) phase: Option<String>,
    pub(super) progress: Option<u8>,
    /// The percentage to show: the reported one, or what its dialect gives to the phase.
    #[serde(alias = "bar")]
    pub(super) shown_progress: Option<u8>,
    /// When progress that only moves a number was last recorded.
    pub(super) progress_recorded_at: Option<Timestamp>,
}

/// What is known about the current attempt. Each attempt starts with nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Attempt {
    /// The signals so far, the last of each meaning for certain.
    #[serde(alias = "said")]
    pub(super) signals: Vec<RunSignal>,
    /// The agent's own count of iterations, where it reports one.
    #[serde(alias = "own_iteration")]
    pub(super) reported_iteration: Option<u32>,
    /// When the agent first claimed to be done.
    pub(super) claimed_at: Option<Timestamp>,
    #[serde(alias = "limited")]
    pub(super) limit: Option<ServiceLimit>,
    /// The host's message when it gave up.
    #[serde(alias = "refused")]
    pub(super) host_error: Option<String>,
    /// Whether the host retries by itself.
    pub(super) retrying: bool,
    /// Why the agent was asked to stop, as a clause.
    pub(super) stop_because: Option<String>,
}

/// What the next attempts should know, and whoever asks why the run is not done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// What prompts hold beside the task: first what stands in the current one, then what is new. It
    /// stays until an iteration that got it was completed by the agent itself.
    pub(super) feedback: Vec<String>,
    /// How much of the feedback stands in the current prompt.
    pub(super) feedback_given: usize,
    /// The last hint about something that looked like a signal.
    pub(super) last_near_miss: Option<String>,
    /// The last claim to be done that did not hold.
    pub(super) last_refusal: Option<ClaimRefusal>,
    /// How the agent last crashed, until an attempt ends without a crash.
    pub(super) last_crash: Option<AgentExit>,
    /// Permissions that the host denied once.
    pub(super) denials: Vec<Denial>,
}

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    /// How often the agent was started for this iteration.
    pub(super) starts: u32,
    /// Waits for a limit, in a row.
    pub(super) limit_waits: u32,
    /// Crashes of the agent, in a row.
    pub(super) crashes: u32,
    /// Refused claims that a merge is resolved, in a row.
    #[serde(alias = "attempts")]
    pub(super) refused_resolutions: u32,
    #[serde(alias = "questions")]
    pub(super) questions_asked: u32,
}

/// What the run has cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Spending {
    /// The cost of earlier attempts.
    #[serde(alias = "spent")]
    pub(super) spent_before: Usage,
    /// The cost of this one so far.
    #[serde(alias = "spending")]
    pub(super) spent_now: Usage,
    /// Whether people were warned that a budget runs out.
    #[serde(alias = "warned_of_budget")]
    pub(super) budget_warned: bool,
}

/// The work tree when the run began, and when it was last inspected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Trees {
    /// The commit at the start.
    pub(super) base: Option<String>,
    /// Whether the work tree was inspected at the start: there may have been no commit.
    #[serde(alias = "based")]
    pub(super) base_known: bool,
    pub(super) base_fingerprint: Option<String>,
    pub(super) tree: WorkTree,
}
