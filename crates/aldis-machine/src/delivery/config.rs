//! The limits of a delivery, and what it may use.

use std::collections::BTreeMap;
use std::time::Duration;

use super::signal::Role;
use crate::limits::{self, ConfigError, settings};
use crate::phases::TokenPolicy;
use crate::{proof, stagnation};
use aldis_signal::signal::Via;

/// How often to report that an agent is alive, where no limit is shorter.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

settings! {
    /// The limits of a delivery. Every one is finite, and none may be 0.
    pub struct Config {
        /// Agents at work at once.
        slots: u32 = 5, limit;
        /// Failed reviews, or failed audits, or failed merges, of one task before a human is asked.
        failure_limit: u32 = 3, limit;
        /// Times a developer may give a task back before a human is asked.
        incomplete_limit: u32 = 3, limit;
        /// Timeouts and crashes on one task before a human is asked.
        timeout_limit: u32 = 3, limit;
        /// Refused signals on one task before a human is asked.
        refusal_limit: u32 = 5, limit;
        /// Replies without a signal in a row before the agent is replaced.
        unknown_limit: u32 = 3, limit;
        /// Agents started for one task before a human is asked, whatever they reported.
        dispatch_limit: u32 = 40, limit;
        /// Failed reviews in a row, or failed audits in a row, that leave no fewer findings open before a
        /// human is asked.
        plateau_rounds: u32 = 3, limit;
        /// Attempts to repair the infrastructure before a human is asked.
        remediation_attempts: u32 = 10, limit;
        /// Tries of an expert with one question.
        expert_tries: u32 = 3, limit;
        /// Times an agent is started again because a file is still taken.
        conflict_retries: u32 = 3, limit;
        /// Seconds a file is waited for.
        conflict_wait: u64 = 30 * 60, limit;
        /// Seconds each role may take.
        timeouts: Timeouts = Timeouts::default(), limit;
        /// Seconds between two checkpoints.
        checkpoint_every: u64 = 5 * 60, limit;
        /// Seconds in which a checkpoint must follow when it is asked for.
        checkpoint_answer: u64 = 30, limit;
        /// Missed checkpoints in a row that make an agent stalled.
        checkpoint_misses: u32 = 3, limit;
        /// Whether an agent at work can be asked something. Processes cannot: they are started again.
        requests: bool = false;
        /// Whether tasks without acceptance criteria go to a business analyst first.
        business_analyst: bool = false;
        /// Whether a planner looks at the plan first.
        planner: bool = false;
        /// Whether each task has a work tree of its own that is merged before the task is complete.
        worktrees: bool = false;
        /// Whether workers run the agents: one that is to be started waits until a worker claims it.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        workers: bool = false;
        /// Whether READY_FOR_REVIEW and AUDIT_PASSED need a list or table of checks by environment.
        require_environment_matrix: bool = false;
        /// The environments that it must cover; any one if there are none.
        environments: Vec<String> = Vec::new();
        /// The experts that can be asked, and the expertise of each.
        experts: BTreeMap<String, String> = BTreeMap::new();
        /// Whether signals need a run token.
        token: TokenPolicy = TokenPolicy::Off;
        /// What is checked before the critic reads the work, and what must not change.
        #[serde(skip_serializing_if = "proof::Config::is_default")]
        proof: proof::Config = proof::Config::default(), limit;
        /// How a signal must come at least to count.
        #[serde(skip_serializing_if = "Via::is_said")]
        accept: Via = Via::Said;
        /// Whether the agent has the tools of the MCP server: its prompts then prefer a call.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        prefer_calls: bool = false;
        /// Tokens that all agents together may use, as far as their hosts report it.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u64> = None, limit;
        /// Millionths of a dollar that they may cost, as far as their hosts report it.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_micro_dollars: Option<u64> = None, limit;
        /// Seconds that agents may work in all. Time in which none does is not counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_time: Option<u64> = None, limit;
        /// When the work of an agent counts as stagnating. Nobody is watched unless it is enabled.
        stagnation: stagnation::Config = stagnation::Config::default();
    }
}

impl Config {
    /// Checks that every limit is one.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the first that is 0.
    pub fn check(&self) -> Result<(), ConfigError> {
        limits::check(self)
    }

    /// Returns how often to report that an agent is alive or works: often enough for every limit that
    /// depends on it, and not more often, because each report is a step that is stored.
    pub fn report_interval(&self) -> Duration {
        let stagnation::Config { enabled, warn_timeout, pause_timeout, .. } = self.stagnation;
        let watched = [warn_timeout, pause_timeout].into_iter().filter(|span| enabled && *span > 0);
        let shortest = watched.chain([self.checkpoint_every]).min().unwrap_or(u64::MAX);
        REPORT_INTERVAL.min(Duration::from_millis(shortest.saturating_mul(1_000) / 3))
    }

    /// Returns how long an agent of this role may take.
    pub fn timeout(&self, role: Role) -> Duration {
        let timeouts = &self.timeouts;
        Duration::from_secs(match role {
            Role::Developer => timeouts.developer,
            Role::Critic => timeouts.critic,
            Role::Auditor => timeouts.auditor,
            Role::BusinessAnalyst => timeouts.business_analyst,
            Role::Remediation => timeouts.remediation,
            Role::HealthAuditor => timeouts.health_auditor,
            Role::Expert => timeouts.expert,
            Role::Planner => timeouts.planner,
        })
    }
}

settings! {
    /// Seconds each role may take.
    #[derive(Copy)]
    pub struct Timeouts {
        /// 15 minutes.
        developer: u64 = 15 * 60, limit;
        /// 10 minutes.
        critic: u64 = 10 * 60, limit;
        /// 10 minutes.
        auditor: u64 = 10 * 60, limit;
        /// 10 minutes.
        business_analyst: u64 = 10 * 60, limit;
        /// 5 minutes.
        remediation: u64 = 5 * 60, limit;
        /// 5 minutes.
        health_auditor: u64 = 5 * 60, limit;
        /// 10 minutes.
        expert: u64 = 10 * 60, limit;
        /// 10 minutes.
        planner: u64 = 10 * 60, limit;
    }
}
