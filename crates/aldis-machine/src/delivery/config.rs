//! The limits of a delivery, and what it may use.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::signal::Role;
use crate::limits::ConfigError;
use crate::phases::TokenPolicy;
use crate::stagnation;
use aldis_signal::signal::Via;

/// How often to report that an agent is alive, where no limit is shorter.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The limits of a delivery. Every one is finite, and none may be 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Agents at work at once.
    pub slots: u32,
    /// Failed reviews, or failed audits, or failed merges, of one task before a human is asked.
    pub failure_limit: u32,
    /// Times a developer may give a task back before a human is asked.
    pub incomplete_limit: u32,
    /// Timeouts and crashes on one task before a human is asked.
    pub timeout_limit: u32,
    /// Refused signals on one task before a human is asked.
    pub refusal_limit: u32,
    /// Replies without a signal in a row before the agent is replaced.
    pub unknown_limit: u32,
    /// Agents started for one task before a human is asked, whatever they reported.
    pub dispatch_limit: u32,
    /// Failed reviews in a row, or failed audits in a row, that leave no fewer findings open before a
    /// human is asked.
    pub plateau_rounds: u32,
    /// Attempts to repair the infrastructure before a human is asked.
    pub remediation_attempts: u32,
    /// Tries of an expert with one question.
    pub expert_tries: u32,
    /// Times an agent is started again because a file is still taken.
    pub conflict_retries: u32,
    /// Seconds a file is waited for.
    pub conflict_wait: u64,
    /// Seconds each role may take.
    pub timeouts: Timeouts,
    /// Seconds between two checkpoints.
    pub checkpoint_every: u64,
    /// Seconds in which a checkpoint must follow when it is asked for.
    pub checkpoint_answer: u64,
    /// Missed checkpoints in a row that make an agent stalled.
    pub checkpoint_misses: u32,
    /// Whether an agent at work can be asked something. Processes cannot: they are started again.
    pub requests: bool,
    /// Whether tasks without acceptance criteria go to a business analyst first.
    pub business_analyst: bool,
    /// Whether a planner looks at the plan first.
    pub planner: bool,
    /// Whether each task has a work tree of its own that is merged before the task is complete.
    pub worktrees: bool,
    /// Whether READY_FOR_REVIEW and AUDIT_PASSED need a list or table of checks by environment.
    pub require_environment_matrix: bool,
    /// The environments that it must cover; any one if there are none.
    pub environments: Vec<String>,
    /// The experts that can be asked, and the expertise of each.
    pub experts: BTreeMap<String, String>,
    /// Whether signals need a run token.
    pub token: TokenPolicy,
    /// How a signal must come at least to count, where a tool can report it.
    #[serde(skip_serializing_if = "Via::is_said")]
    pub accept: Via,
    /// Tokens that all agents together may use, as far as their hosts report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Millionths of a dollar that they may cost, as far as their hosts report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_micro_dollars: Option<u64>,
    /// Seconds that agents may work in all. Time in which none does is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<u64>,
    /// When the work of an agent counts as stagnating. Nobody is watched unless it is enabled.
    pub stagnation: stagnation::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slots: 5,
            failure_limit: 3,
            incomplete_limit: 3,
            timeout_limit: 3,
            refusal_limit: 5,
            unknown_limit: 3,
            dispatch_limit: 40,
            plateau_rounds: 3,
            remediation_attempts: 10,
            expert_tries: 3,
            conflict_retries: 3,
            conflict_wait: 30 * 60,
            timeouts: Timeouts::default(),
            checkpoint_every: 5 * 60,
            checkpoint_answer: 30,
            checkpoint_misses: 3,
            requests: false,
            business_analyst: false,
            planner: false,
            worktrees: false,
            require_environment_matrix: false,
            environments: Vec::new(),
            experts: BTreeMap::new(),
            token: TokenPolicy::default(),
            accept: Via::Said,
            max_tokens: None,
            max_micro_dollars: None,
            max_time: None,
            stagnation: stagnation::Config::default(),
        }
    }
}

impl Config {
    /// Checks that every limit is one.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the first that is 0.
    pub fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            ("slots", self.slots),
            ("failure_limit", self.failure_limit),
            ("incomplete_limit", self.incomplete_limit),
            ("timeout_limit", self.timeout_limit),
            ("refusal_limit", self.refusal_limit),
            ("unknown_limit", self.unknown_limit),
            ("dispatch_limit", self.dispatch_limit),
            ("plateau_rounds", self.plateau_rounds),
            ("remediation_attempts", self.remediation_attempts),
            ("expert_tries", self.expert_tries),
            ("conflict_retries", self.conflict_retries),
            ("checkpoint_misses", self.checkpoint_misses),
        ];
        let Timeouts {
            developer,
            critic,
            auditor,
            business_analyst,
            remediation,
            health_auditor,
            expert,
            planner,
        } = self.timeouts;
        let spans = [
            ("conflict_wait", self.conflict_wait),
            ("checkpoint_every", self.checkpoint_every),
            ("checkpoint_answer", self.checkpoint_answer),
            ("timeouts.developer", developer),
            ("timeouts.critic", critic),
            ("timeouts.auditor", auditor),
            ("timeouts.business_analyst", business_analyst),
            ("timeouts.remediation", remediation),
            ("timeouts.health_auditor", health_auditor),
            ("timeouts.expert", expert),
            ("timeouts.planner", planner),
        ];
        let budgets = [
            ("max_tokens", self.max_tokens),
            ("max_micro_dollars", self.max_micro_dollars),
            ("max_time", self.max_time),
        ];
        let budgets = budgets.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let counts = counts.into_iter().map(|(key, value)| (key, u64::from(value)));
        match counts.chain(spans).chain(budgets).find(|(_, value)| *value == 0) {
            Some((key, _)) => Err(ConfigError { key }),
            None => Ok(()),
        }
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

/// Seconds each role may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// 15 minutes.
    pub developer: u64,
    /// 10 minutes.
    pub critic: u64,
    /// 10 minutes.
    pub auditor: u64,
    /// 10 minutes.
    pub business_analyst: u64,
    /// 5 minutes.
    pub remediation: u64,
    /// 5 minutes.
    pub health_auditor: u64,
    /// 10 minutes.
    pub expert: u64,
    /// 10 minutes.
    pub planner: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            developer: 15 * 60,
            critic: 10 * 60,
            auditor: 10 * 60,
            business_analyst: 10 * 60,
            remediation: 5 * 60,
            health_auditor: 5 * 60,
            expert: 10 * 60,
            planner: 10 * 60,
        }
    }
}
