//! `[deliver]`, `[roles.NAME]` and `[experts.NAME]`: how plans are delivered.

use std::collections::BTreeMap;

use aldis_machine::delivery::{self, Role};
use aldis_machine::{proof, stagnation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sections::{Notify, Tokens};
use super::table::{Setting, table};
use super::values::{Count, Dollars, Seconds};
use crate::settings::prompt_by::PromptBy;
use aldis_signal::signal::Via;

table! {
    /// `[deliver]`
    struct Deliver sets delivery::Config, usually delivery::Config::default();
    own {
        timeouts: Timeouts = Timeouts::default(),
        /// Whether tasks have work trees; where nobody says, whether they can.
        worktrees: Option<bool> = None,
        /// Agents at once; where nobody says, as many as do not get in each other's way.
        slots: Option<Count<1, 100>> = None,
    }
    sets {
        business_analyst: bool = business_analyst,
        planner: bool = planner,
        failure_limit: Limit = failure_limit,
        incomplete_limit: Limit = incomplete_limit,
        timeout_limit: Limit = timeout_limit,
        refusal_limit: Limit = refusal_limit,
        plateau_rounds: Limit = plateau_rounds,
        remediation_attempts: Limit = remediation_attempts,
        expert_tries: Limit = expert_tries,
        conflict_retries: Limit = conflict_retries,
        conflict_wait: Seconds<1> = conflict_wait,
        checkpoint_every: Seconds<1> = checkpoint_every,
        checkpoint_misses: Limit = checkpoint_misses,
        require_environment_matrix: bool = require_environment_matrix,
        environments: Vec<String> = environments,
        total_timeout: Option<Seconds<1>> = max_time,
        max_tokens: Option<Tokens> = max_tokens,
        max_cost: Option<Dollars> = max_micro_dollars,
    }
}

type Limit = Count<1, 1000>;

table! {
    /// `[deliver.timeouts]`
    struct Timeouts sets delivery::Timeouts, usually delivery::Timeouts::default();
    own {}
    sets {
        developer: Seconds<1> = developer,
        critic: Seconds<1> = critic,
        auditor: Seconds<1> = auditor,
        business_analyst: Seconds<1> = business_analyst,
        remediation: Seconds<1> = remediation,
        health_auditor: Seconds<1> = health_auditor,
        expert: Seconds<1> = expert,
        planner: Seconds<1> = planner,
    }
}

/// `[roles.NAME]`: how the agents of a role are started, if not like all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpertTable {
    /// What it knows, in words for the agents that may ask it.
    about: String,
}

/// What a delivery goes by.
#[derive(Clone, Debug)]
pub(crate) struct Delivering {
    /// The host of `[run]`.
    pub(crate) host: Option<String>,
    pub(crate) deliver: Deliver,
    pub(crate) roles: BTreeMap<Role, RoleTable>,
    pub(crate) experts: BTreeMap<String, ExpertTable>,
    pub(crate) stagnation: stagnation::Config,
    pub(crate) notify: Notify,
    pub(crate) strict: bool,
    pub(crate) accept: Via,
    pub(crate) proof: proof::Config,
}

impl Delivering {
    /// Returns the limits of the delivery.
    pub(crate) fn limits(&self) -> delivery::Config {
        let experts = self.experts.iter();
        let mut config = delivery::Config {
            stagnation: self.stagnation.clone(),
            accept: self.accept,
            proof: self.proof.clone(),
            experts: experts.map(|(name, expert)| (name.clone(), expert.about.clone())).collect(),
            ..delivery::Config::default()
        };
        self.deliver.set(&mut config);
        self.deliver.timeouts.set(&mut config.timeouts);
        for (role, table) in &self.roles {
            if let Some(Seconds(own)) = table.timeout {
                let times = &mut config.timeouts;
                *match role {
                    Role::BusinessAnalyst => &mut times.business_analyst,
                    Role::Developer => &mut times.developer,
                    Role::Critic => &mut times.critic,
                    Role::Auditor => &mut times.auditor,
                    Role::Remediation => &mut times.remediation,
                    Role::HealthAuditor => &mut times.health_auditor,
                    Role::Expert => &mut times.expert,
                    Role::Planner => &mut times.planner,
                } = own;
            }
        }
        config
    }
}
