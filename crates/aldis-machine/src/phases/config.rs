//! What is chosen when a run is started, and how it can end.

use std::collections::BTreeSet;

use crate::rules::codes;
use aldis_signal::signal::Via;
use serde::{Deserialize, Serialize};

/// The limit on iterations per phase: the least, the most, and the default.
pub const MAX_ITERATIONS: (u32, u32, u32) = (1, 50, 20);
/// How long a run may be inactive before it is stale: two hours, in seconds.
const STALE_AFTER: u64 = 2 * 60 * 60;

/// Returns the limit to use for one that was asked for: never unlimited.
pub fn clamp_iterations(asked: Option<u64>) -> u32 {
    let (least, most, default) = MAX_ITERATIONS;
    match asked {
        None | Some(0) => default,
        Some(asked) => u32::try_from(asked).unwrap_or(most).clamp(least, most),
    }
}

codes! {
    /// Why a run ended.
    pub enum ExitReason {
        /// The last phase was completed.
        AllPhasesComplete = "all_phases_complete",
        /// The agent declared the whole run complete.
        AutoCompleteSignal = "auto_complete_signal",
        /// The agent reported an error from which it cannot recover.
        CriticalError = "critical_error",
        /// All iterations of a phase were used up.
        MaxIterationsReached = "max_iterations_reached",
        /// The run was inactive for too long.
        StaleState = "stale_state",
        /// A human ended it.
        UserCancelled = "user_cancelled",
    }
}

impl ExitReason {
    /// Returns whether the work was done.
    pub fn is_success(self) -> bool {
        matches!(self, Self::AllPhasesComplete | Self::AutoCompleteSignal)
    }
}

/// What follows a completed phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterTransition {
    /// The agent continues with the next phase at once.
    #[default]
    Continue,
    /// The agent may stop; the next prompt starts the next phase.
    Stop,
}

/// What a run does about run tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPolicy {
    /// None is used.
    #[default]
    Off,
    /// A wrong one is refused.
    Accept,
    /// None or a wrong one is refused.
    Require,
}

/// What was chosen when the run was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The flags that are set.
    #[serde(default)]
    pub skip: BTreeSet<String>,
    /// Whether prompts show the counters.
    #[serde(default)]
    pub verbose: bool,
    /// Whether the agent is to decide for itself instead of asking.
    #[serde(default)]
    pub no_questions: bool,
    /// Whether the review asks for functional, security and quality verdicts.
    #[serde(default)]
    pub parallel_validation: bool,
    /// What follows a completed phase.
    #[serde(default)]
    pub after_transition: AfterTransition,
    /// How many seconds without activity make a run stale.
    #[serde(default = "stale_after")]
    pub stale_after: u64,
    /// What is done about run tokens.
    #[serde(default)]
    pub token: TokenPolicy,
    /// How a signal must come at least to count.
    #[serde(default, skip_serializing_if = "Via::is_said")]
    pub accept: Via,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            skip: BTreeSet::new(),
            verbose: false,
            no_questions: false,
            parallel_validation: false,
            after_transition: AfterTransition::default(),
            stale_after: STALE_AFTER,
            token: TokenPolicy::default(),
            accept: Via::Said,
        }
    }
}

fn stale_after() -> u64 {
    STALE_AFTER
}
