//! The rules of a supervised run: one for each situation in which something is decided.
//!
//! A rule is part of every decision that is stored and shown, so its id is public and never changes
//! its meaning. `docs/rules.md` lists them for people.

use crate::rules::rules;

rules! {
    /// A human, or a program on its behalf, ended the run.
    Abort = "run/abort",
    /// The agent stopped after it was asked to because of an abort.
    Aborted = "run/aborted",
    /// The agent could not be started: no such program, no permission to run it.
    AgentNotStarted = "run/agent-not-started",
    /// The agent's process runs.
    AgentStarted = "run/agent-started",
    /// Every check passed, and files changed about which a human is asked.
    AcceptanceAsked = "run/acceptance-asked",
    /// A human answered a question after the run had ended.
    AnswerKept = "run/answer-kept",
    /// A human answered the open question.
    Answered = "run/answered",
    /// Too many claims that a merge is resolved were refused in a row.
    AttemptsUsedUp = "run/attempts-used-up",
    /// The agent reported that something outside is missing.
    Blocked = "run/blocked",
    /// The tokens or the money of the run are used up.
    BudgetUsedUp = "run/budget-used-up",
    /// Two thirds of the tokens or the money are used.
    BudgetWarning = "run/budget-warning",
    /// One check of several has ended.
    CheckEnded = "run/check-ended",
    /// The agent claimed to be done, and the check failed.
    CheckFailed = "run/check-failed",
    /// Every check passed before the work started, although one should have failed.
    CheckProvesNothing = "run/check-proves-nothing",
    /// The agent claimed to be done, the work tree is in order, and a check is configured.
    CheckStarted = "run/check-started",
    /// The agent claimed to be done, and the work tree contradicts it.
    ClaimRefused = "run/claim-refused",
    /// The agent reported success after failure in one message.
    Contradiction = "run/contradiction",
    /// The agent crashed and will be started again after a pause.
    CrashWait = "run/crash-wait",
    /// The pause after a crash is over.
    CrashWaitOver = "run/crash-wait-over",
    /// The agent crashed more often in a row than is allowed.
    Crashed = "run/crashed",
    /// The claim to be done holds.
    Done = "run/done",
    /// The agent stopped and claims to be done.
    DoneClaimed = "run/done-claimed",
    /// The agent reported failure as its last word.
    GaveUp = "run/gave-up",
    /// The agent claimed to be done, and the files of the checks are compared with their pins.
    FilesCompared = "run/files-compared",
    /// The files of the checks are pinned before the work starts.
    FilesPinned = "run/files-pinned",
    /// The host reported an error that waiting does not fix; the agent's process still runs.
    HostErrorReported = "run/host-error-reported",
    /// The host gave up because of an error that waiting does not fix.
    HostFailed = "run/host-failed",
    /// The host retries by itself after an error of its service.
    HostRetrying = "run/host-retrying",
    /// The agent stopped without claiming to be done.
    IterationEnded = "run/iteration-ended",
    /// The work is not done and no limit is reached.
    IterationStarted = "run/iteration-started",
    /// One iteration took longer than is allowed.
    IterationTimeout = "run/iteration-timeout",
    /// Every iteration is used up.
    IterationsUsedUp = "run/iterations-used-up",
    /// The wait for a rate limit is over.
    LimitOver = "run/limit-over",
    /// The host reported a rate limit; the agent's process still runs.
    LimitReported = "run/limit-reported",
    /// The agent stopped because of a rate limit.
    LimitWait = "run/limit-wait",
    /// The rate limit was still there after the last wait that is allowed.
    LimitWaitsUsedUp = "run/limit-waits-used-up",
    /// A human left a message for the agent.
    MessageReceived = "run/message-received",
    /// The agent asked, and the run does not wait for answers.
    NeedsHuman = "run/needs-human",
    /// The agent claimed to be done, nothing refuses it, and a second opinion is asked for.
    OpinionAsked = "run/opinion-asked",
    /// A second opinion about a claim was given.
    OpinionGiven = "run/opinion-given",
    /// Nobody resumed an agent that was suspended for missing progress.
    PauseExpired = "run/pause-expired",
    /// A human paused the run.
    Paused = "run/paused",
    /// The host denied the agent a permission.
    PermissionDenied = "run/permission-denied",
    /// The host denied the same permission a second time.
    PermissionDeniedTwice = "run/permission-denied-twice",
    /// What a claim rests on was changed: a file of a check, a protected file, the tests.
    ProofRefused = "run/proof-refused",
    /// The agent asked for help or for a human.
    QuestionAsked = "run/question-asked",
    /// A human reopened a run whose question has no answer yet.
    QuestionReopened = "run/question-reopened",
    /// A new supervisor took over after the old one was gone.
    Recovered = "run/recovered",
    /// A human reopened a run that had ended within an iteration.
    Reopened = "run/reopened",
    /// A human resumed the run.
    Resumed = "run/resumed",
    /// The agent reported a signal; nothing is decided before it stops.
    SignalReported = "run/signal-reported",
    /// The run ended because the work made no progress.
    Stagnated = "run/stagnated",
    /// Missing progress reached the level at which the agent is stopped.
    StagnationAbort = "run/stagnation-abort",
    /// There is progress again.
    StagnationCleared = "run/stagnation-cleared",
    /// Missing progress reached the level at which the agent is suspended.
    StagnationPause = "run/stagnation-pause",
    /// Missing progress reached the level at which people and the agent are warned.
    StagnationWarn = "run/stagnation-warn",
    /// The agent claimed to be done and still runs after the grace period.
    StillRunning = "run/still-running",
    /// The time of the whole run is used up.
    TimedOut = "run/timed-out",
}

impl Rule {
    /// Returns whether the rule only records what was reported: nothing was decided that an agent or
    /// a human would notice.
    pub fn is_record(self) -> bool {
        matches!(
            self,
            Self::AgentStarted
                | Self::HostErrorReported
                | Self::HostRetrying
                | Self::LimitReported
                | Self::SignalReported
        )
    }
}
