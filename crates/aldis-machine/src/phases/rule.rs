//! The rules of the phases machine, each a name that `aldis why` shows and `docs/rules.md` explains.

use crate::rules::rules;

rules! {
    /// The last phase is complete, and with it the run.
    AllPhasesComplete = "phases/all-phases-complete",
    /// The user interrupted, the agent waits for background work or an answer, or the host failed:
    /// the agent may stop, and no iteration is used up.
    AllowedForNow = "phases/allowed-for-now",
    /// The agent stopped while the run was paused.
    AllowedWhilePaused = "phases/allowed-while-paused",
    /// The main agent declared the whole run complete.
    AutoComplete = "phases/auto-complete",
    /// The phase is not complete: the stop was blocked.
    Blocked = "phases/blocked",
    /// A human cancelled the run, by a command or by the state file.
    Cancelled = "phases/cancelled",
    /// What the checks of a claim found is for a human to say.
    CheckAsks = "phases/check-asks",
    /// The checks of a claim failed, or a file that they are made of was changed.
    CheckFailed = "phases/check-failed",
    /// Whoever ran the checks of a claim is gone without a result.
    CheckLost = "phases/check-lost",
    /// The checks of a claim passed: its phase is complete.
    CheckPassed = "phases/check-passed",
    /// The agent claims what is checked: the checks run, and the stop was blocked.
    CheckStarted = "phases/check-started",
    /// A human refused a claim whose checks passed.
    ClaimRefused = "phases/claim-refused",
    /// So many stops in a row were blocked that the host would give up next.
    Capped = "phases/capped",
    /// The host sent our own continuation prompt back as a prompt.
    ContinuationReceived = "phases/continuation-received",
    /// The agent reported an error from which it cannot recover.
    CriticalError = "phases/critical-error",
    /// The phase is not complete, and its last iteration is used up.
    IterationsUsedUp = "phases/iterations-used-up",
    /// A human sent a message; the agent gets it with its next prompt.
    MessageQueued = "phases/message-queued",
    /// The agent got the messages that humans had sent.
    MessagesDelivered = "phases/messages-delivered",
    /// A second opinion refused a claim whose checks passed.
    OpinionRefused = "phases/opinion-refused",
    /// A human paused the run.
    Paused = "phases/paused",
    /// The phase is complete: the stop was blocked with the prompt of the next phase.
    PhaseComplete = "phases/phase-complete",
    /// A prompt started a new turn of the run's session.
    PromptReceived = "phases/prompt-received",
    /// The agent reported an error from which it can recover.
    RecoverableError = "phases/recoverable-error",
    /// The host reported what the agent wrote before it reports the stop.
    ResponseReceived = "phases/response-received",
    /// A human resumed a run that had ended or was capped.
    Resumed = "phases/resumed",
    /// A human resumed a run that was paused.
    ResumedAfterPause = "phases/resumed-after-pause",
    /// The host reported that the run's session ended.
    SessionEnded = "phases/session-ended",
    /// The host reported that the run's session began or was resumed.
    SessionStarted = "phases/session-started",
    /// The run was inactive for too long before the current turn.
    Stale = "phases/stale",
    /// The agent got the prompt of the phase with the first prompt since the phase began.
    StartPromptDelivered = "phases/start-prompt-delivered",
    /// The agent wants to stop while its claim is being checked.
    StillChecking = "phases/still-checking",
    /// A human started the run.
    Started = "phases/started",
    /// Somebody edited the state file; the edit was undone.
    StateFileEdited = "phases/state-file-edited",
    /// The phase is complete, and `after_transition = "stop"` lets the agent stop.
    StoppedAfterPhase = "phases/stopped-after-phase",
    /// A sub-agent completed the phase.
    SubagentCompletedPhase = "phases/subagent-completed-phase",
    /// A sub-agent reported what only the main agent may report.
    SubagentSignalIgnored = "phases/subagent-signal-ignored",
    /// A sub-agent stopped and completed no phase.
    SubagentStopped = "phases/subagent-stopped",
    /// The host ended the turn with an error.
    TurnFailed = "phases/turn-failed",
    /// The run is in a phase that its pipeline does not have.
    UnknownPhase = "phases/unknown-phase",
    /// The user interrupted the turn.
    UserInterrupted = "phases/user-interrupted",
    /// A session that had stopped got what a human sent it.
    Woken = "phases/woken",
}

impl Rule {
    /// Returns whether the decision only records what the host reported: it explains no stop, and
    /// whoever asks why wants to read the one before it.
    pub fn is_record(self) -> bool {
        matches!(
            self,
            Self::ContinuationReceived
                | Self::MessagesDelivered
                | Self::PromptReceived
                | Self::ResponseReceived
                | Self::SessionEnded
                | Self::SessionStarted
                | Self::StartPromptDelivered
                | Self::SubagentStopped
                | Self::UserInterrupted
        )
    }
}

#[cfg(test)]
mod tests {
    //! Names are unique, documented, and found again for what 0.1.0 stored.

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_one_name_and_a_line_in_the_document() {
        let document = include_str!("../../../../docs/rules.md");
        let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
        for rule in Rule::ALL.iter().copied() {
            let name = rule.as_str();
            let plain = |byte: u8| byte.is_ascii_lowercase() || b"-/".contains(&byte);
            assert!(name.bytes().all(plain), "{name}");
            assert!(document.contains(&format!("\n| `{name}` | ")), "{name} is not documented");
            assert_eq!(Rule::of_stored(name, ""), Some(rule));
        }
    }

    /// Every rule and summary that 0.1.0 could write.
    #[test]
    fn rules_of_0_1_0_are_known() {
        for (rule, summary, want) in [
            ("phases/3", "Let the agent stop: the phase is unknown", Rule::UnknownPhase),
            ("phases/3", "Let the agent stop and left the run: stale", Rule::Stale),
            ("phases/4", "Phase qa is complete", Rule::SubagentCompletedPhase),
            ("phases/4", "Let the agent stop: all phases are complete", Rule::AllPhasesComplete),
            ("phases/4", "Let the agent stop after phase qa", Rule::StoppedAfterPhase),
            ("phases/4", "Let the agent stop after the last phase", Rule::StoppedAfterPhase),
            (
                "phases/4",
                "Kept the agent working: phase qa is complete, phase review begins",
                Rule::PhaseComplete,
            ),
            ("phases/5", "Let the agent stop: the run is complete", Rule::AutoComplete),
            ("phases/6", "Let the agent stop: it reported an error", Rule::RecoverableError),
            ("phases/6", "Let the agent stop: the run failed", Rule::CriticalError),
            (
                "phases/7",
                "Let the agent stop: the run failed, too many iterations",
                Rule::IterationsUsedUp,
            ),
            ("phases/7", "Blocked the stop and asked the agent to go on", Rule::Blocked),
            (
                "phases/cap",
                "Let the agent stop: too many refusals in a row, the run is capped",
                Rule::Capped,
            ),
            ("phases/cancel", "Ended the run: cancelled", Rule::Cancelled),
            ("phases/hold", "Let the agent stop for now", Rule::AllowedForNow),
            (
                "phases/hold",
                "Let the agent stop: the host ended the turn with an error",
                Rule::TurnFailed,
            ),
            ("phases/listen", "Heard a prompt", Rule::PromptReceived),
            ("phases/listen", "Heard a sub-agent stop", Rule::SubagentStopped),
            ("phases/listen", "Heard an interruption", Rule::UserInterrupted),
            ("phases/listen", "Heard its own continuation", Rule::ContinuationReceived),
            ("phases/listen", "Heard the session begin", Rule::SessionStarted),
            ("phases/listen", "Heard the session end", Rule::SessionEnded),
            ("phases/listen", "Heard what the agent said", Rule::ResponseReceived),
            ("phases/listen", "Told the agent what the phase is about", Rule::StartPromptDelivered),
            ("phases/resume", "Resumed the run", Rule::Resumed),
            ("phases/start", "Started the run in phase expansion", Rule::Started),
            ("phases/state", "Undid an edit of the state file", Rule::StateFileEdited),
        ] {
            assert_eq!(rule_of_0_1_0(rule, summary), Some(want), "{rule}: {summary}");
            assert_eq!(Rule::of_stored(rule, summary), Some(want), "{rule}: {summary}");
        }
        assert_eq!(rule_of_0_1_0("phases/8", ""), None);
        assert_eq!(rule_of_0_1_0("turns/said", ""), None);
    }
}
