//! The kinds of notices that settings switch on and off.

use aldis_machine::{delivery, run};
use serde::{Deserialize, Serialize};

/// What a notice is about. The names are stable: settings and receivers use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    BudgetSoon,
    Question,
    RateLimit,
    RunEnded,
    StagnationAbort,
    StagnationPause,
    StagnationWarn,
    TaskBlocked,
    TaskComplete,
    TaskFailed,
}

impl Kind {
    pub(super) const ALL: [Self; 10] = [
        Self::BudgetSoon,
        Self::Question,
        Self::RateLimit,
        Self::RunEnded,
        Self::StagnationAbort,
        Self::StagnationPause,
        Self::StagnationWarn,
        Self::TaskBlocked,
        Self::TaskComplete,
        Self::TaskFailed,
    ];

    /// Returns the stable name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::BudgetSoon => "budget_soon",
            Self::Question => "question",
            Self::RateLimit => "rate_limit",
            Self::RunEnded => "run_ended",
            Self::StagnationAbort => "stagnation_abort",
            Self::StagnationPause => "stagnation_pause",
            Self::StagnationWarn => "stagnation_warn",
            Self::TaskBlocked => "task_blocked",
            Self::TaskComplete => "task_complete",
            Self::TaskFailed => "task_failed",
        }
    }

    /// Returns what a notice of a delivery is for people who are elsewhere. What the machine settles
    /// by itself is nothing to them; the journal has it.
    pub(crate) fn of_delivery(notice: delivery::Notice) -> Option<Self> {
        use delivery::Notice;
        Some(match notice {
            Notice::BudgetSoon => Self::BudgetSoon,
            Notice::Question => Self::Question,
            Notice::RateLimit => Self::RateLimit,
            Notice::RunEnded => Self::RunEnded,
            Notice::StagnationAbort => Self::StagnationAbort,
            Notice::StagnationWarn => Self::StagnationWarn,
            Notice::RemediationStarted | Notice::TaskBlocked => Self::TaskBlocked,
            Notice::TaskComplete => Self::TaskComplete,
            Notice::TaskFailed => Self::TaskFailed,
            Notice::AgentSignalFailure
            | Notice::ExpertLeftOut
            | Notice::FileConflict
            | Notice::LateSignalIgnored
            | Notice::RemediationEnded
            | Notice::RemediationExhausted
            | Notice::UnknownSignalRecovery => return None,
        })
    }
}

impl From<run::Notice> for Kind {
    fn from(notice: run::Notice) -> Self {
        match notice {
            run::Notice::BudgetSoon => Self::BudgetSoon,
            run::Notice::Question => Self::Question,
            run::Notice::RateLimit => Self::RateLimit,
            run::Notice::RunEnded => Self::RunEnded,
            run::Notice::StagnationAbort => Self::StagnationAbort,
            run::Notice::StagnationPause => Self::StagnationPause,
            run::Notice::StagnationWarn => Self::StagnationWarn,
        }
    }
}
