//! Which signal each call stands for, as data.

use crate::delivery::Role;

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    /// The machine.
    pub machine: &'static str,
    /// Who may call it; everybody if nobody is named.
    pub roles: &'static [Role],
    /// The tool.
    pub tool: &'static str,
    /// The argument on which it depends, if it does.
    pub when: &'static str,
    /// What it becomes.
    pub becomes: Becomes,
    /// The field that holds its words.
    pub(super) field: &'static str,
}

/// What a call becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Becomes {
    /// The signal of this name.
    Named(&'static str),
    /// The signal of this name, about this verdict.
    Verdict(&'static str, &'static str),
    /// The signal that ends the phase.
    PhaseEnd,
    /// The signal that ends all phases.
    RunEnd,
    /// The signal by which the dialect reports an error.
    PhaseError,
    /// The agent may stop: a human is asked in the session, or answers from elsewhere.
    Question,
    /// Nothing: it is only answered.
    Nothing,
}

pub(crate) const DELIVERY: &str = "delivery";
pub(crate) const PHASES: &str = "phases";
pub(crate) const RUN: &str = "run";
const DEVELOPER: &[Role] = &[Role::Developer];
const ASKING: &[Role] = &[
    Role::Developer,
    Role::Critic,
    Role::Auditor,
    Role::BusinessAnalyst,
    Role::Remediation,
    Role::HealthAuditor,
];

/// Which signal each call stands for: the first row that fits counts.
#[rustfmt::skip]
pub const TABLE: &[CallRow] = &[
    row(RUN, &[], "complete", "", Becomes::Named("COMPLETE"), "summary"),
    row(RUN, &[], "progress", "", Becomes::Named("PROGRESS"), "summary"),
    row(RUN, &[], "blocked", "", Becomes::Named("BLOCKED"), "reason"),
    row(RUN, &[], "ask_human", "", Becomes::Named("NEEDS_HUMAN"), "question"),
    row(PHASES, &[], "complete", "phase = all", Becomes::RunEnd, "summary"),
    row(PHASES, &[], "complete", "", Becomes::PhaseEnd, "summary"),
    row(PHASES, &[], "blocked", "", Becomes::PhaseError, "error"),
    row(PHASES, &[], "ask_human", "", Becomes::Question, "question"),
    row(PHASES, &[], "progress", "", Becomes::Nothing, "summary"),
    row(DELIVERY, DEVELOPER, "complete", "", Becomes::Named("READY_FOR_REVIEW"), "summary"),
    row(DELIVERY, DEVELOPER, "progress", "", Becomes::Named("CHECKPOINT"), "current_activity"),
    row(DELIVERY, DEVELOPER, "blocked", "needs = environment", Becomes::Named("INFRA_BLOCKED"), "issue"),
    row(DELIVERY, DEVELOPER, "blocked", "", Becomes::Named("TASK_INCOMPLETE"), "blocker"),
    row(DELIVERY, &[Role::Critic], "verdict", "verdict = approve", Becomes::Named("REVIEW_PASSED"), "summary"),
    row(DELIVERY, &[Role::Critic], "verdict", "verdict = reject", Becomes::Named("REVIEW_FAILED"), "summary"),
    row(DELIVERY, &[Role::Auditor], "verdict", "verdict = approve", Becomes::Named("AUDIT_PASSED"), "summary"),
    row(DELIVERY, &[Role::Auditor], "verdict", "verdict = reject", Becomes::Named("AUDIT_FAILED"), "summary"),
    row(DELIVERY, &[Role::Auditor], "blocked", "", Becomes::Named("AUDIT_BLOCKED"), "pre_existing_failures"),
    row(DELIVERY, &[Role::Remediation], "complete", "", Becomes::Named("REMEDIATION_COMPLETE"), "summary"),
    row(DELIVERY, &[Role::HealthAuditor], "verdict", "verdict = approve", Becomes::Verdict("HEALTH_AUDIT", "HEALTHY"), "summary"),
    row(DELIVERY, &[Role::HealthAuditor], "verdict", "verdict = reject", Becomes::Verdict("HEALTH_AUDIT", "UNHEALTHY"), "summary"),
    row(DELIVERY, &[Role::Expert], "complete", "", Becomes::Named("EXPERT_ADVICE"), "advice"),
    row(DELIVERY, &[Role::Expert], "blocked", "", Becomes::Named("EXPERT_UNSUCCESSFUL"), "reason"),
    row(DELIVERY, ASKING, "ask_human", "", Becomes::Named("SEEKING_DIVINE_CLARIFICATION"), "question"),
];

const fn row(
    machine: &'static str,
    roles: &'static [Role],
    tool: &'static str,
    when: &'static str,
    becomes: Becomes,
    field: &'static str,
) -> CallRow {
    CallRow { machine, roles, tool, when, becomes, field }
}

/// Returns whether a signal of the delivery loop can be reported by a call.
pub(crate) fn has_tool(name: &str) -> bool {
    TABLE.iter().any(|row| match row.becomes {
        Becomes::Named(known) | Becomes::Verdict(known, _) => known == name,
        _ => false,
    })
}

impl Becomes {
    /// Returns it in a few words, as the documentation shows it.
    pub fn label(self) -> String {
        match self {
            Self::Named(name) => format!("`{name}`"),
            Self::Verdict(name, verdict) => format!("`{name}: {verdict}`"),
            Self::PhaseEnd => "the signal of the phase".to_owned(),
            Self::RunEnd => "the signal that ends all phases".to_owned(),
            Self::PhaseError => "an error that the agent cannot recover from".to_owned(),
            Self::Question => {
                "the agent may stop; you answer in the session or with `aldis answer`".to_owned()
            }
            Self::Nothing => "nothing".to_owned(),
        }
    }
}
