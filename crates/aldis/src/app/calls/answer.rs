//! What a call is answered: whether it counts, by which rule not, and what comes next.

pub(crate) use crate::view::wire::call::CallReply;
use aldis_machine::calls::Unreportable;

/// Why a call does not count.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// The rule, by its stable name.
    pub(crate) rule: String,
    pub(crate) reason: String,
    pub(crate) remedy: String,
}

/// The rules by which calls are refused before a machine sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusalRule {
    /// An argument is missing or not filled in.
    BadArguments,
    /// No run is meant.
    NoRun,
    /// The run belongs to another session.
    OtherSession,
    /// The run has ended.
    RunEnded,
    /// The store could not be written.
    StoreUnavailable,
    /// It came in a way that is not enough here.
    Unattested,
    /// The check that decides about the claim failed.
    CheckFailed,
    /// The work tree contradicts the claim.
    ClaimRefused,
}

impl RefusalRule {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::BadArguments => "call/bad-arguments",
            Self::NoRun => "call/no-run",
            Self::OtherSession => "call/other-session",
            Self::RunEnded => "call/run-ended",
            Self::StoreUnavailable => "call/store-unavailable",
            Self::Unattested => "call/unattested",
            Self::CheckFailed => "call/check-failed",
            Self::ClaimRefused => "call/claim-refused",
        }
    }
}

impl Refused {
    pub(crate) fn new(
        rule: RefusalRule,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { rule: rule.as_str().to_owned(), reason: reason.into(), remedy: remedy.into() }
    }
}

impl From<Unreportable> for Refused {
    fn from(Unreportable { refusal, reason, remedy }: Unreportable) -> Self {
        Self { rule: format!("call/{}", refusal.as_str().replace('_', "-")), reason, remedy }
    }
}

impl CallReply {
    /// A call that counts.
    pub(crate) fn accepted(run: &str, id: Option<String>, next: String) -> Self {
        Self::of_run(Some(run.to_owned()), id, next)
    }

    fn of_run(run: Option<String>, id: Option<String>, next: String) -> Self {
        Self { v: 1, accepted: true, run, id, rule: None, reason: None, check: None, next }
    }

    /// A report that waits in the work tree for whoever drives the run.
    pub(crate) fn recorded(run: Option<&str>, id: String) -> Self {
        let next = "Recorded in the work tree. It counts when you stop: end your turn now.";
        let run = run.map(str::to_owned);
        Self::of_run(run, Some(id), next.to_owned())
    }

    /// A report that waits on this machine until the server can be reached.
    pub(crate) fn waits(run: Option<&str>, id: String) -> Self {
        let next = "The server did not answer, so the report waits on this machine and is delivered \
                    with the next one. Write it in your final message, too, as your prompt shows.";
        Self { next: next.to_owned(), ..Self::recorded(run, id) }
    }

    /// A report that was printed as a receipt, because nothing can be written.
    pub(crate) fn printed(run: Option<&str>, id: String) -> Self {
        let next = "Nothing can be written here, so this line is the report. It counts when you stop, if \
                    this command ran alone: end your turn now.";
        Self { next: next.to_owned(), ..Self::recorded(run, id) }
    }

    /// Returns whether this rule refuses it.
    pub(crate) fn is_refused_by(&self, rule: RefusalRule) -> bool {
        self.rule.as_deref() == Some(rule.as_str())
    }

    /// A call that does not.
    pub(crate) fn refused(run: Option<&str>, Refused { rule, reason, remedy }: Refused) -> Self {
        Self {
            v: 1,
            accepted: false,
            run: run.map(str::to_owned),
            id: None,
            rule: Some(rule),
            reason: Some(reason),
            check: None,
            next: remedy,
        }
    }
}
