//! The kinds of notices, and the settings that switch them on and off.

use aldis_machine::{delivery, run};
use serde::{Deserialize, Serialize};

use super::config::Where;

/// Each kind with its name and whether it is told unless somebody says otherwise. The names are stable:
/// settings and receivers use them.
macro_rules! kinds {
    ($($kind:ident = $name:ident: $usual:literal,)+) => {
        /// What a notice is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($kind,)+
        }

        /// `[notify.events]`: where each kind of notice goes.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct Events {
            $($name: Where,)+
        }

        impl Default for Events {
            fn default() -> Self {
                Self { $($name: Where::All($usual),)+ }
            }
        }

        impl Events {
            /// Returns where notices of a kind go.
            pub(crate) fn of(&self, kind: Kind) -> &Where {
                match kind {
                    $(Kind::$kind => &self.$name,)+
                }
            }
        }

        impl Kind {
            /// Returns the stable name.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($name),)+
                }
            }
        }
    };
}

kinds! {
    Question = question: true,
    RateLimit = rate_limit: true,
    RunEnded = run_ended: true,
    StagnationWarn = stagnation_warn: true,
    StagnationPause = stagnation_pause: true,
    StagnationAbort = stagnation_abort: true,
    BudgetSoon = budget_soon: true,
    TaskBlocked = task_blocked: true,
    // A plan has many tasks, and that they become complete is what is expected.
    TaskComplete = task_complete: false,
    TaskFailed = task_failed: true,
}

impl Kind {
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
