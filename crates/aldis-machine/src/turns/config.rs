//! The configuration of a channel, as people write it.
//!
//! Names are in snake case; the camel case of the files that people migrate from is understood too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::persona::Persona;
use crate::limits::settings;

/// The longest turn, in seconds: a day. Every limit is finite.
const TIMEOUT_MAX: u64 = 24 * 60 * 60;
/// The longest text of a notice, in bytes.
const MESSAGE_MAX: usize = 500;
/// How many keywords or phrases there may be.
const PHRASES_MAX: usize = 32;

settings! {
    /// The configuration of a channel.
    pub struct Config {
        /// Who may post when; by default the number of agents decides.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<Mode> = None;
        /// Who is next.
        #[serde(alias = "turnOrder")]
        turn_order: TurnOrder = TurnOrder::default();
        /// What becomes of a human's message during a turn.
        #[serde(alias = "humanInterrupt")]
        human_interrupt: HumanInterrupt = HumanInterrupt::default();
        /// The keyword that ends a turn.
        #[serde(alias = "turnCompleteSignal")]
        keyword: String = "TURN_COMPLETE".to_owned();
        /// Whether its case matters.
        #[serde(alias = "caseSensitive")]
        case_sensitive: bool = true;
        /// Whether nothing may follow it.
        #[serde(alias = "requireAtEnd")]
        require_at_end: bool = true;
        /// Other keywords that mean the same.
        #[serde(alias = "alternativeSignals")]
        alternative_signals: Vec<String> = Vec::new();
        /// How many seconds a turn has where the agent's persona has no own number.
        #[serde(alias = "defaultTimeoutSeconds")]
        default_timeout_seconds: u64 = 60;
        /// Accepted and ignored: timeouts come by timer, not by polling.
        #[serde(alias = "checkIntervalMs", skip_serializing)]
        check_interval_ms: Option<u64> = None;
        /// Whether timeouts are posted in the channel.
        #[serde(alias = "announceTimeouts")]
        announce_timeouts: bool = true;
        /// With which text; `{agent}` and `{duration}` are filled in.
        #[serde(alias = "timeoutMessage")]
        timeout_message: String = "⏱️ {agent} turn timed out after {duration}s".to_owned();
        /// Whether an agent is warned at its deadline and gets a grace period.
        grace: bool = false;
        /// The grace period, in seconds.
        #[serde(alias = "graceSeconds")]
        grace_seconds: u64 = 5;
        /// Whether turns can end without the keyword.
        #[serde(alias = "autoDetect")]
        auto_detect: AutoDetect = AutoDetect::default();
    }
}

settings! {
    /// When a turn ends without the keyword.
    pub struct AutoDetect {
        /// Whether at all.
        enabled: bool = false;
        /// After how many seconds of silence.
        #[serde(alias = "silenceThresholdSeconds")]
        silence_threshold: u64 = 30;
        /// Whether silence counts only after closing punctuation.
        #[serde(alias = "detectPunctuation")]
        detect_punctuation: bool = true;
        /// What ends a turn at once as a whole final sentence.
        #[serde(alias = "completionPhrases")]
        completion_phrases: Vec<String> =
            ["done", "finished", "complete", "that's all"].map(str::to_owned).to_vec();
    }
}

/// Who may post when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every agent gets every message, there are no turns.
    Broadcast,
    /// Messages pass, there are no turns.
    Direct,
    /// Exactly one agent.
    Single,
    /// Two or more agents, one at a time.
    #[serde(alias = "turn_based")]
    TurnBased,
}

/// Who is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnOrder {
    /// The one that a human or a program names.
    Manual,
    /// By the priority of personas, the higher first, then as in the queue.
    Priority,
    /// As in the queue.
    #[default]
    #[serde(alias = "round_robin")]
    RoundRobin,
}

/// What becomes of a human's message during a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HumanInterrupt {
    /// The active agent gets it; the turn continues.
    #[default]
    Inject,
    /// The turn waits until it is answered.
    Interrupt,
    /// All agents get it; no turn changes.
    Parallel,
    /// It is held until the turn ends.
    Queue,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A keyword that could not be told from other text.
    #[error("`{0}` cannot be a keyword; use 3 to 64 ASCII letters, digits or `_`")]
    Keyword(String),
    /// A number of seconds outside the limits.
    #[error("`{name}` must be between 1 and {TIMEOUT_MAX} seconds")]
    Seconds {
        /// The member.
        name: &'static str,
    },
    /// A list or a text that is too long.
    #[error("`{name}` is too long; the limit is {max}")]
    TooLong {
        /// The member.
        name: &'static str,
        /// How many there may be.
        max: usize,
    },
}

impl Config {
    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        for keyword in self.alternative_signals.iter().chain([&self.keyword]) {
            if !(3..=64).contains(&keyword.len()) || !keyword.bytes().all(word) {
                return Err(ConfigError::Keyword(keyword.clone()));
            }
        }
        for (name, seconds) in [
            ("default_timeout_seconds", self.default_timeout_seconds),
            ("grace_seconds", self.grace_seconds),
            ("silence_threshold", self.auto_detect.silence_threshold),
        ] {
            if !(1..=TIMEOUT_MAX).contains(&seconds) {
                return Err(ConfigError::Seconds { name });
            }
        }
        for (name, length, max) in [
            ("alternative_signals", self.alternative_signals.len(), PHRASES_MAX),
            ("completion_phrases", self.auto_detect.completion_phrases.len(), PHRASES_MAX),
            ("timeout_message", self.timeout_message.len(), MESSAGE_MAX),
        ] {
            if length > max {
                return Err(ConfigError::TooLong { name, max });
            }
        }
        Ok(())
    }

    /// Returns how long a turn of an agent is. 0 in a persona means none.
    pub fn timeout(&self, persona: Option<&Persona>) -> Duration {
        let own = persona.and_then(|persona| persona.turn_behavior.timeout_seconds);
        let seconds = own.filter(|seconds| *seconds > 0).unwrap_or(self.default_timeout_seconds);
        Duration::from_secs(seconds.min(TIMEOUT_MAX))
    }

    /// Returns how much longer than its deadline a turn lasts.
    pub(super) fn grace(&self) -> Option<Duration> {
        self.grace.then(|| Duration::from_secs(self.grace_seconds))
    }

    /// Returns the notice of a timeout.
    pub(super) fn timeout_notice(&self, agent: &str, seconds: u64) -> String {
        let notice = self.timeout_message.replace("{duration}", &seconds.to_string());
        notice.replace("{agent}", agent)
    }
}
