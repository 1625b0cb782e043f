//! The limits of a supervised run.

use crate::limits::{self, ConfigError, settings};
use crate::{proof, stagnation};
use aldis_signal::signal::Via;

settings! {
    /// The limits of a run. Every one is finite.
    pub struct Config {
        /// Iterations.
        max_iterations: u32 = 50, limit;
        /// Seconds per iteration.
        iteration_timeout: u64 = 30 * 60, limit;
        /// Seconds in all. Waiting for a limit, a restart or a human is not counted; being suspended for
        /// missing progress is.
        timeout: u64 = 24 * 60 * 60, limit;
        /// Tokens; `None` for no limit but the others.
        max_tokens: Option<u64> = None, limit;
        /// Millionths of a dollar.
        max_micro_dollars: Option<u64> = None, limit;
        /// Whether a claim is checked.
        verify: bool = false;
        /// Whether done needs a commit since the run began.
        require_commit: bool = false;
        /// Whether done needs a clean work tree.
        require_clean: bool = false;
        /// Whether a question ends the run instead of waiting.
        no_wait: bool = false;
        /// How many seconds to wait for a service that does not say when it will work again.
        limit_wait: u64 = 15 * 60, limit;
        /// How often in a row a limit is waited for.
        max_limit_waits: u32 = 40, limit;
        /// How often in a row a crashed agent is started again; 0 ends the run at the first crash.
        max_crashes: u32 = 2;
        /// How many seconds to wait after the first crash. Each further one in a row doubles it.
        crash_wait: u64 = 10, limit;
        /// How many claims that a merge is resolved are refused before a human is asked.
        max_attempts: u32 = 3, limit;
        /// What is checked, and what must not change.
        #[serde(skip_serializing_if = "proof::Config::is_default")]
        proof: proof::Config = proof::Config::default(), limit;
        /// How a signal must come at least to count.
        #[serde(skip_serializing_if = "Via::is_said")]
        accept: Via = Via::Said;
        /// Whether the agent has the tools of the MCP server: its prompts then prefer a call.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        prefer_calls: bool = false;
        /// What counts as missing progress.
        stagnation: stagnation::Config = stagnation::Config::supervised(), limit;
    }
}

impl Config {
    /// Whether a check decides about a claim.
    pub fn has_check(&self) -> bool {
        self.verify || !self.proof.checks.is_empty()
    }

    /// Checks that every limit limits something. In `stagnation`, 0 switches a threshold off.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the first that is 0.
    pub fn check(&self) -> Result<(), ConfigError> {
        limits::check(self)
    }
}
