//! The limits of a supervised run.

use serde::{Deserialize, Serialize};

use crate::limits::ConfigError;
use crate::stagnation;
use aldis_signal::signal::Via;

/// The limits of a run. Every one is finite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Iterations.
    pub max_iterations: u32,
    /// Seconds per iteration.
    pub iteration_timeout: u64,
    /// Seconds in all. Waiting for a limit, a restart or a human is not counted; being suspended for
    /// missing progress is.
    pub timeout: u64,
    /// Tokens; `None` for no limit but the others.
    pub max_tokens: Option<u64>,
    /// Millionths of a dollar.
    pub max_micro_dollars: Option<u64>,
    /// Whether a claim is checked.
    pub verify: bool,
    /// Whether done needs a commit since the run began.
    pub require_commit: bool,
    /// Whether done needs a clean work tree.
    pub require_clean: bool,
    /// Whether a question ends the run instead of waiting.
    pub no_wait: bool,
    /// How many seconds to wait for a service that does not say when it will work again.
    pub limit_wait: u64,
    /// How often in a row a limit is waited for.
    pub max_limit_waits: u32,
    /// How often in a row a crashed agent is started again; 0 ends the run at the first crash.
    pub max_crashes: u32,
    /// How many seconds to wait after the first crash. Each further one in a row doubles it.
    pub crash_wait: u64,
    /// How many claims that a merge is resolved are refused before a human is asked.
    pub max_attempts: u32,
    /// How a signal must come at least to count.
    #[serde(skip_serializing_if = "Via::is_said")]
    pub accept: Via,
    /// What counts as missing progress.
    pub stagnation: stagnation::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            iteration_timeout: 30 * 60,
            timeout: 24 * 60 * 60,
            max_tokens: None,
            max_micro_dollars: None,
            verify: false,
            require_commit: false,
            require_clean: false,
            no_wait: false,
            limit_wait: 15 * 60,
            max_limit_waits: 40,
            max_crashes: 2,
            crash_wait: 10,
            max_attempts: 3,
            accept: Via::Said,
            stagnation: stagnation::Config::supervised(),
        }
    }
}

impl Config {
    /// Checks that every limit limits something. In `stagnation`, 0 switches a threshold off.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the first that is 0.
    pub fn check(&self) -> Result<(), ConfigError> {
        let limits = [
            ("max_iterations", Some(u64::from(self.max_iterations))),
            ("iteration_timeout", Some(self.iteration_timeout)),
            ("timeout", Some(self.timeout)),
            ("max_tokens", self.max_tokens),
            ("max_micro_dollars", self.max_micro_dollars),
            ("limit_wait", Some(self.limit_wait)),
            ("max_limit_waits", Some(u64::from(self.max_limit_waits))),
            ("crash_wait", Some(self.crash_wait)),
            ("max_attempts", Some(u64::from(self.max_attempts))),
            ("pause_limit", self.stagnation.pause_limit),
        ];
        match limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
            Some((key, _)) => Err(ConfigError { key }),
            None => Ok(()),
        }
    }
}
