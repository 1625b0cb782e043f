//! What is chosen when a run is started, and how it can end.

use std::collections::BTreeSet;

use crate::limits::settings;
use aldis_signal::codes;
use aldis_signal::scan::Token;
use aldis_signal::signal::Via;
use serde::{Deserialize, Serialize};

/// The limit on iterations per phase: the least, the most, and the default.
pub const MAX_ITERATIONS: (u32, u32, u32) = (1, 50, 20);

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

impl TokenPolicy {
    /// Returns what the scanner must expect of an agent with this code.
    pub(crate) fn expects(self, code: Option<String>) -> Token {
        match (self, code) {
            (Self::Accept, Some(code)) => Token::Accept(code),
            (Self::Require, Some(code)) => Token::Require(code),
            (Self::Accept | Self::Off | Self::Require, _) => Token::Off,
        }
    }
}

settings! {
    /// What was chosen when the run was started.
    pub struct Config {
        /// The flags that are set.
        skip: BTreeSet<String> = BTreeSet::new();
        /// Whether prompts show the counters.
        verbose: bool = false;
        /// Whether the agent is to decide for itself instead of asking.
        no_questions: bool = false;
        /// Whether the review asks for functional, security and quality verdicts.
        parallel_validation: bool = false;
        /// What follows a completed phase.
        after_transition: AfterTransition = AfterTransition::default();
        /// How many seconds without activity make a run stale.
        stale_after: u64 = 2 * 60 * 60;
        /// What is done about run tokens.
        token: TokenPolicy = TokenPolicy::default();
        /// Whether nothing but other signals may follow a claim, and no colon may lead into it.
        strict: bool = false;
        /// How a signal must come at least to count.
        #[serde(skip_serializing_if = "Via::is_said")]
        accept: Via = Via::Said;
        /// What makes the claim count that ends the run.
        #[serde(skip_serializing_if = "crate::proof::Config::is_default")]
        proof: crate::proof::Config = crate::proof::Config::default();
        /// Whether the agent has the tools of the MCP server: its prompts then prefer a call.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        prefer_calls: bool = false;
    }
}
