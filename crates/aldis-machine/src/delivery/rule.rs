//! The rules of a delivery: one for each situation in which something is decided.
//!
//! A rule is part of every decision that is stored and shown, so its id is public and never changes
//! its meaning. `docs/rules.md` lists them for people.

use crate::rules::rules;

rules! {
    /// A human ended the delivery.
    Aborted = "delivery/aborted",
    /// Every check of a task passed, and files changed about which a human is asked.
    AcceptanceAsked = "delivery/acceptance-asked",
    /// A worker claimed an agent and starts it.
    AgentClaimed = "delivery/agent-claimed",
    /// The agent of a task crashed; another one is started.
    AgentCrashed = "delivery/agent-crashed",
    /// An agent whose replies held no signal was ended; another one is started.
    AgentReplaced = "delivery/agent-replaced",
    /// The work of a task's agent did not progress; another one is started.
    AgentStagnated = "delivery/agent-stagnated",
    /// The agent of a task missed too many checkpoints in a row; another one is started.
    AgentStalled = "delivery/agent-stalled",
    /// A slot was free, and a task got its next agent.
    AgentStarted = "delivery/agent-started",
    /// The agent of a task took longer than its role may; another one is started. Journals of 0.1.0
    /// have it for crashes and missed checkpoints too.
    AgentTimedOut = "delivery/agent-timed-out",
    /// Every task is complete.
    AllTasksComplete = "delivery/all-tasks-complete",
    /// A reply held a second valid signal beside the one that counts.
    AlsoReported = "delivery/also-reported",
    /// The auditor refused the work; the developer gets it back.
    AuditFailed = "delivery/audit-failed",
    /// The audits of a task failed as often as they may.
    AuditLimit = "delivery/audit-limit",
    /// Several audits in a row left no fewer findings open.
    AuditPlateau = "delivery/audit-plateau",
    /// The tokens or the money of the delivery are used up.
    BudgetUsedUp = "delivery/budget-used-up",
    /// Two thirds of the tokens or the money are used.
    BudgetWarning = "delivery/budget-warning",
    /// A check of a task has ended.
    CheckEnded = "delivery/check-ended",
    /// The checks of a task failed as often as they may.
    CheckLimit = "delivery/check-limit",
    /// Every check of a task passed before its work started, although one should have failed.
    CheckProvesNothing = "delivery/check-proves-nothing",
    /// A check of a task runs.
    CheckStarted = "delivery/check-started",
    /// An agent reported how far it is.
    CheckpointReceived = "delivery/checkpoint-received",
    /// An agent was asked how far it is.
    CheckpointRequested = "delivery/checkpoint-requested",
    /// The checks of a task refuse the work; the developer gets it back.
    ChecksFailed = "delivery/checks-failed",
    /// The work passed its checks; a critic gets it.
    ChecksPassed = "delivery/checks-passed",
    /// A human continued a delivery that was cut off or had ended early.
    Continued = "delivery/continued",
    /// A task used as many agents as it may.
    DispatchLimit = "delivery/dispatch-limit",
    /// Nothing was left to do. Only journals of 0.1.0 have it: completion and failure have their own
    /// rules now.
    Ended = "delivery/ended",
    /// The business analyst is not confident about its specification of a task.
    ExpansionUnconfirmed = "delivery/expansion-unconfirmed",
    /// An expert answered; the agent that asked gets the advice.
    ExpertAdvised = "delivery/expert-advised",
    /// An agent asked an expert.
    ExpertAsked = "delivery/expert-asked",
    /// The planner created an expert, and its file is looked for.
    ExpertCreated = "delivery/expert-created",
    /// An expert that the planner created cannot be used.
    ExpertLeftOut = "delivery/expert-left-out",
    /// The file of an expert is there; agents can ask it.
    ExpertRegistered = "delivery/expert-registered",
    /// An expert gave no answer and is asked again.
    ExpertRetried = "delivery/expert-retried",
    /// An expert gave no answer as often as it may.
    ExpertTriesUsedUp = "delivery/expert-tries-used-up",
    /// An expert reported that it has no answer.
    ExpertUnsuccessful = "delivery/expert-unsuccessful",
    /// A task got a file that its agent asked for.
    FileGranted = "delivery/file-granted",
    /// A task waits for a file that another one holds.
    FileQueued = "delivery/file-queued",
    /// Two tasks change one file because one of them cannot wait.
    FileShared = "delivery/file-shared",
    /// A file was still held by another task after the last wait.
    FileWaitLimit = "delivery/file-wait-limit",
    /// A file was not free in time; the agent that asked for it continues without it.
    FileWaitOver = "delivery/file-wait-over",
    /// The files of the checks are pinned before the first agent of a task starts.
    FilesPinned = "delivery/files-pinned",
    /// A human was asked. Only journals of 0.1.0 have it: each reason has its own rule now.
    HumanAsked = "delivery/human-asked",
    /// A developer gave a task back as often as it may.
    IncompleteLimit = "delivery/incomplete-limit",
    /// An agent reported something that is no longer at work.
    LateSignal = "delivery/late-signal",
    /// The work of a task could not be merged; the developer gets it back.
    MergeFailed = "delivery/merge-failed",
    /// The work of a task could not be merged as often as it may.
    MergeLimit = "delivery/merge-limit",
    /// The auditor passed the work, and its work tree is merged.
    MergeStarted = "delivery/merge-started",
    /// A human sent agents a message.
    MessageQueued = "delivery/message-queued",
    /// The tasks that are left need one that a human gave up.
    NoTaskCanRun = "delivery/no-task-can-run",
    /// Nothing refuses the work of a task, and a second opinion is asked for.
    OpinionAsked = "delivery/opinion-asked",
    /// A second opinion about the work of a task was given.
    OpinionGiven = "delivery/opinion-given",
    /// A human paused the delivery.
    Paused = "delivery/paused",
    /// The planner failed; the work starts without it.
    PlannerFailed = "delivery/planner-failed",
    /// A human answered a question.
    QuestionAnswered = "delivery/question-answered",
    /// An agent asked a human.
    QuestionAsked = "delivery/question-asked",
    /// An agent asked a human in a form that is no signal.
    QuestionRecovered = "delivery/question-recovered",
    /// The service of an agent refused to work for now.
    RateLimited = "delivery/rate-limited",
    /// The developer handed the work over; a critic reviews it.
    ReadyForReview = "delivery/ready-for-review",
    /// The coordinator of the delivery was gone and is back.
    Recovered = "delivery/recovered",
    /// An agent of a task reported signals that do not count as often as it may.
    RefusalLimit = "delivery/refusal-limit",
    /// The infrastructure is repaired, or a human says to continue as if it were.
    RemediationEnded = "delivery/remediation-ended",
    /// A second task reported that the infrastructure is broken.
    RemediationJoined = "delivery/remediation-joined",
    /// The attempts to repair the infrastructure are used up.
    RemediationLimit = "delivery/remediation-limit",
    /// The remediation agent reported that it is done; a health auditor checks it.
    RemediationReported = "delivery/remediation-reported",
    /// The infrastructure is still broken; another remediation agent was started.
    RemediationRetried = "delivery/remediation-retried",
    /// An agent reported that the infrastructure is broken; no new work starts.
    RemediationStarted = "delivery/remediation-started",
    /// Nothing in a reply counts; the agent is started again with the reason.
    ReplyRefused = "delivery/reply-refused",
    /// A human resumed the delivery.
    Resumed = "delivery/resumed",
    /// The critic refused the work; the developer gets it back.
    ReviewFailed = "delivery/review-failed",
    /// The reviews of a task failed as often as they may.
    ReviewLimit = "delivery/review-limit",
    /// The critic passed the work; an auditor checks it.
    ReviewPassed = "delivery/review-passed",
    /// Several reviews in a row left no fewer findings open.
    ReviewPlateau = "delivery/review-plateau",
    /// A signal of a reply does not count; another one may.
    SignalRefused = "delivery/signal-refused",
    /// The work of an agent does not progress.
    StagnationWarning = "delivery/stagnation-warning",
    /// The delivery started.
    Started = "delivery/started",
    /// The auditor passed what the critic passed before, and it is merged where that is to be done.
    TaskComplete = "delivery/task-complete",
    /// The business analyst gave a task its acceptance criteria.
    TaskExpanded = "delivery/task-expanded",
    /// A human gave a task up.
    TaskGivenUp = "delivery/task-given-up",
    /// The developer gave a task back because something is missing.
    TaskIncomplete = "delivery/task-incomplete",
    /// The time that agents may work is used up.
    TimeUsedUp = "delivery/time-used-up",
    /// The agents of a task crashed, timed out or brought nothing as often as they may.
    TimeoutLimit = "delivery/timeout-limit",
    /// Too many replies in a row held no signal; another agent is started with the exact forms.
    UnknownLimit = "delivery/unknown-limit",
    /// A reply held no signal; the agent is asked again.
    UnknownReply = "delivery/unknown-reply",
    /// The worker of an agent is gone; another worker starts the agent again.
    WorkerLost = "delivery/worker-lost",
}
