//! `[deliver]`, `[roles.NAME]` and `[experts.NAME]`: how plans are delivered.

use std::collections::BTreeMap;

use aldis_machine::delivery::{self, Role};
use aldis_machine::stagnation;
use serde::{Deserialize, Serialize};

use super::sections::{Notify, Tokens};
use super::values::{Count, Dollars, Seconds};
use crate::settings::prompt_by::PromptBy;

/// `[deliver]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deliver {
    slots: Count<1, 100>,
    worktrees: bool,
    business_analyst: bool,
    planner: bool,
    failure_limit: Limit,
    incomplete_limit: Limit,
    timeout_limit: Limit,
    refusal_limit: Limit,
    plateau_rounds: Limit,
    remediation_attempts: Limit,
    expert_tries: Limit,
    conflict_retries: Limit,
    conflict_wait: Seconds<1>,
    checkpoint_every: Seconds<1>,
    checkpoint_misses: Limit,
    require_environment_matrix: bool,
    environments: Vec<String>,
    total_timeout: Option<Seconds<1>>,
    max_tokens: Option<Tokens>,
    max_cost: Option<Dollars>,
    timeouts: Timeouts,
}

type Limit = Count<1, 1000>;

/// `[deliver.timeouts]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timeouts {
    developer: Seconds<1>,
    critic: Seconds<1>,
    auditor: Seconds<1>,
    business_analyst: Seconds<1>,
    remediation: Seconds<1>,
    health_auditor: Seconds<1>,
    expert: Seconds<1>,
    planner: Seconds<1>,
}

/// `[roles.NAME]`: how the agents of a role are started, if not like all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleTable {
    /// The program and its arguments; no shell.
    #[serde(default)]
    pub(crate) command: Option<Vec<String>>,
    /// How they get their prompt.
    #[serde(default)]
    pub(crate) prompt_by: Option<PromptBy>,
    /// The command that goes on with an earlier session, `{session}` in it.
    #[serde(default)]
    pub(crate) resume: Option<Vec<String>>,
    /// What is said before every prompt of the role.
    #[serde(default)]
    pub(crate) prompt: Option<String>,
    /// How long they may take, whatever `[deliver.timeouts]` says.
    #[serde(default)]
    timeout: Option<Seconds<1>>,
}

/// `[experts.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpertTable {
    /// What it knows, in words for the agents that may ask it.
    about: String,
}

/// What a delivery goes by.
#[derive(Clone, Debug)]
pub(crate) struct Delivering {
    pub(crate) deliver: Deliver,
    pub(crate) roles: BTreeMap<Role, RoleTable>,
    pub(crate) experts: BTreeMap<String, ExpertTable>,
    pub(crate) stagnation: stagnation::Config,
    pub(crate) notify: Notify,
}

impl Default for Deliver {
    fn default() -> Self {
        let usual = delivery::Config::default();
        let times = usual.timeouts;
        Self {
            slots: Count(usual.slots.into()),
            worktrees: usual.worktrees,
            business_analyst: usual.business_analyst,
            planner: usual.planner,
            failure_limit: Count(usual.failure_limit.into()),
            incomplete_limit: Count(usual.incomplete_limit.into()),
            timeout_limit: Count(usual.timeout_limit.into()),
            refusal_limit: Count(usual.refusal_limit.into()),
            plateau_rounds: Count(usual.plateau_rounds.into()),
            remediation_attempts: Count(usual.remediation_attempts.into()),
            expert_tries: Count(usual.expert_tries.into()),
            conflict_retries: Count(usual.conflict_retries.into()),
            conflict_wait: Seconds(usual.conflict_wait),
            checkpoint_every: Seconds(usual.checkpoint_every),
            checkpoint_misses: Count(usual.checkpoint_misses.into()),
            require_environment_matrix: usual.require_environment_matrix,
            environments: usual.environments,
            total_timeout: usual.max_time.map(Seconds),
            max_tokens: usual.max_tokens.map(Count),
            max_cost: usual.max_micro_dollars.map(Dollars),
            timeouts: Timeouts {
                developer: Seconds(times.developer),
                critic: Seconds(times.critic),
                auditor: Seconds(times.auditor),
                business_analyst: Seconds(times.business_analyst),
                remediation: Seconds(times.remediation),
                health_auditor: Seconds(times.health_auditor),
                expert: Seconds(times.expert),
                planner: Seconds(times.planner),
            },
        }
    }
}

impl Delivering {
    /// Returns the limits of the delivery.
    pub(crate) fn limits(&self) -> delivery::Config {
        let Deliver { timeouts, .. } = &self.deliver;
        let deliver = &self.deliver;
        let experts = self.experts.iter();
        let time = |role: Role, usual: Seconds<1>| {
            self.roles.get(&role).and_then(|table| table.timeout).unwrap_or(usual).0
        };
        delivery::Config {
            slots: deliver.slots.small(),
            worktrees: deliver.worktrees,
            business_analyst: deliver.business_analyst,
            planner: deliver.planner,
            failure_limit: deliver.failure_limit.small(),
            incomplete_limit: deliver.incomplete_limit.small(),
            timeout_limit: deliver.timeout_limit.small(),
            refusal_limit: deliver.refusal_limit.small(),
            plateau_rounds: deliver.plateau_rounds.small(),
            remediation_attempts: deliver.remediation_attempts.small(),
            expert_tries: deliver.expert_tries.small(),
            conflict_retries: deliver.conflict_retries.small(),
            conflict_wait: deliver.conflict_wait.0,
            checkpoint_every: deliver.checkpoint_every.0,
            checkpoint_misses: deliver.checkpoint_misses.small(),
            require_environment_matrix: deliver.require_environment_matrix,
            environments: deliver.environments.clone(),
            max_time: deliver.total_timeout.map(|time| time.0),
            max_tokens: deliver.max_tokens.map(|tokens| tokens.0),
            max_micro_dollars: deliver.max_cost.map(|cost| cost.0),
            stagnation: self.stagnation.clone(),
            timeouts: delivery::Timeouts {
                developer: time(Role::Developer, timeouts.developer),
                critic: time(Role::Critic, timeouts.critic),
                auditor: time(Role::Auditor, timeouts.auditor),
                business_analyst: time(Role::BusinessAnalyst, timeouts.business_analyst),
                remediation: time(Role::Remediation, timeouts.remediation),
                health_auditor: time(Role::HealthAuditor, timeouts.health_auditor),
                expert: time(Role::Expert, timeouts.expert),
                planner: time(Role::Planner, timeouts.planner),
            },
            experts: experts.map(|(name, expert)| (name.clone(), expert.about.clone())).collect(),
            ..delivery::Config::default()
        }
    }
}
