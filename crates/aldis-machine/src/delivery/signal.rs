//! The signals of the loop, who may report them, and which goes first.
//!
//! Who may report a signal, its priority and its handler are the dialect's own data; only what is
//! done about each is code.

use aldis_signal::codes;
use aldis_signal::dialect::{Dialect, SignalDef};
use aldis_signal::signal::Meaning;

/// The dialect of the loop.
pub const DIALECT: &str = "delivery";

codes! {
    /// What an agent was started for.
    #[derive(Default)]
    pub enum Role {
        /// Turns a task without acceptance criteria into one that has some.
        BusinessAnalyst = "business_analyst",
        /// Does the work.
        #[default]
        Developer = "developer",
        /// Judges the quality of the work.
        Critic = "critic",
        /// Judges whether the acceptance criteria are met.
        Auditor = "auditor",
        /// Repairs the infrastructure: what every task needs.
        Remediation = "remediation",
        /// Judges whether it is repaired.
        HealthAuditor = "health_auditor",
        /// Answers one question of another agent.
        Expert = "expert",
        /// Looks at the plan before the work begins, and creates the experts it needs.
        Planner = "planner",
    }
}

impl Role {
    /// Returns the name in prompts and sentences: `business analyst`.
    pub fn label(self) -> &'static str {
        match self {
            Self::BusinessAnalyst => "business analyst",
            Self::HealthAuditor => "health auditor",
            Self::Remediation => "remediation agent",
            _ => self.as_str(),
        }
    }

    /// Returns the name with its article: `an auditor`.
    pub fn with_article(self) -> String {
        let label = self.label();
        let article = if label.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {label}")
    }

    /// The dialect's name for it.
    fn in_dialect(self) -> &'static str {
        match self {
            Self::Planner => "orchestrator",
            _ => self.as_str(),
        }
    }
}

/// What a signal's subject names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The agent's task.
    Task,
    /// The request that an expert answers.
    Request,
    /// Anything else, or nothing.
    Other,
}

codes! {
    /// A signal of the loop.
    pub enum SignalKind {
        /// The work is ready for the critic.
        ReadyForReview = "READY_FOR_REVIEW",
        /// The developer lacks something.
        TaskIncomplete = "TASK_INCOMPLETE",
        /// The infrastructure is broken.
        InfraBlocked = "INFRA_BLOCKED",
        /// The critic accepts.
        ReviewPassed = "REVIEW_PASSED",
        /// The critic refuses.
        ReviewFailed = "REVIEW_FAILED",
        /// The auditor accepts.
        AuditPassed = "AUDIT_PASSED",
        /// The auditor refuses.
        AuditFailed = "AUDIT_FAILED",
        /// The auditor cannot judge because of failures that are older than the task.
        AuditBlocked = "AUDIT_BLOCKED",
        /// A task got its criteria.
        Expanded = "EXPANDED_TASK_SPECIFICATION",
        /// The infrastructure is repaired, as its agent reports.
        RemediationComplete = "REMEDIATION_COMPLETE",
        /// The verdict on that.
        HealthAudit = "HEALTH_AUDIT",
        /// A human is needed.
        SeekingClarification = "SEEKING_DIVINE_CLARIFICATION",
        /// An expert is needed.
        ExpertRequest = "EXPERT_REQUEST",
        /// The expert's answer.
        ExpertAdvice = "EXPERT_ADVICE",
        /// The expert has none.
        ExpertUnsuccessful = "EXPERT_UNSUCCESSFUL",
        /// The planner created an expert.
        ExpertCreated = "EXPERT_CREATED",
        /// A file is needed that another task may hold.
        FileConflict = "FILE CONFLICT",
        /// How far the work has come.
        Checkpoint = "CHECKPOINT",
    }
}

impl SignalKind {
    /// Returns whether an agent of this role may report it.
    pub fn may_be_reported_by(self, role: Role) -> bool {
        self.definition().is_some_and(|signal| {
            signal.roles.is_empty() || signal.roles.iter().any(|may| may == role.in_dialect())
        })
    }

    /// Returns its place when one reply holds several: lower goes first.
    pub fn priority(self) -> u8 {
        self.definition().map_or(u8::MAX, |signal| signal.priority)
    }

    /// Returns what it means in any dialect.
    pub(super) fn meaning(self) -> Meaning {
        self.definition().map_or(Meaning::Info, |signal| signal.meaning)
    }

    pub(super) fn subject(self) -> Subject {
        match self {
            Self::ReadyForReview
            | Self::TaskIncomplete
            | Self::InfraBlocked
            | Self::ReviewPassed
            | Self::ReviewFailed
            | Self::AuditPassed
            | Self::AuditFailed
            | Self::AuditBlocked
            | Self::Expanded
            | Self::SeekingClarification
            | Self::ExpertRequest
            | Self::Checkpoint => Subject::Task,
            Self::ExpertAdvice | Self::ExpertUnsuccessful => Subject::Request,
            Self::RemediationComplete
            | Self::HealthAudit
            | Self::ExpertCreated
            | Self::FileConflict => Subject::Other,
        }
    }

    fn definition(self) -> Option<&'static SignalDef> {
        Dialect::builtin(DIALECT)?.signal(self.as_str())
    }
}
