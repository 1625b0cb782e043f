//! What the rules of all machines mean for the story of a run. A rule that is not here changes nothing
//! in it.

use crate::view::timeline::{MarkKind, SpanKind};
use crate::view::wire::report::ClaimFate;

/// What a decision by a rule means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleFacts {
    /// What goes on from then.
    pub(super) change: Option<SpanChange>,
    /// Whether it is a moment that matters, and how good it was.
    pub(super) mark: Option<MarkKind>,
    /// What it says about a claim.
    pub(super) claim: Option<ClaimFate>,
    pub(super) question: Option<QuestionChange>,
    /// Whether people want to read the decision itself.
    pub(super) matters: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanChange {
    To(SpanKind),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuestionChange {
    Asked,
    Answered,
}

/// Returns what a decision by this rule means.
pub(super) fn facts(rule: &str) -> RuleFacts {
    let has = |rules: &[&str]| rules.contains(&rule);
    let change = match rule {
        _ if has(WORKS) => Some(SpanChange::To(SpanKind::Work)),
        _ if has(CHECKS) => Some(SpanChange::To(SpanKind::Check)),
        _ if has(WAITS) || has(ASKS) => Some(SpanChange::To(SpanKind::Wait)),
        _ if has(ENDS)
            || has(HOLDS)
            || has(REFUSES)
            || has(FAILS)
            || has(CLAIMS)
            || has(ANSWERS) =>
        {
            Some(SpanChange::End)
        }
        _ => None,
    };
    let mark = match rule {
        _ if has(HOLDS) => Some(MarkKind::Good),
        _ if has(REFUSES) || has(FAILS) || has(WARNS) => Some(MarkKind::Bad),
        _ if has(ASKS) || has(WAITS) || has(NOTES) => Some(MarkKind::Note),
        _ => None,
    };
    let claim = match rule {
        _ if has(CLAIMS) => Some(ClaimFate::Open),
        _ if has(HOLDS) => Some(ClaimFate::Held),
        _ if has(REFUSES) => Some(ClaimFate::Refused),
        _ => None,
    };
    let question = match rule {
        _ if has(ASKS) => Some(QuestionChange::Asked),
        _ if has(ANSWERS) => Some(QuestionChange::Answered),
        _ => None,
    };
    RuleFacts { change, mark, claim, question, matters: mark.is_some() || has(ANSWERS) }
}

/// An agent works from here.
const WORKS: &[&str] = &[
    "delivery/agent-started",
    "phases/phase-complete",
    "phases/prompt-received",
    "phases/resumed",
    "phases/resumed-after-pause",
    "phases/session-started",
    "phases/started",
    "phases/subagent-completed-phase",
    "run/agent-started",
    "turns/next-named",
    "turns/resumed",
    "turns/started",
];

/// A check runs from here.
const CHECKS: &[&str] = &["delivery/check-started", "phases/check-started", "run/check-started"];

/// Nobody works from here, and something is waited for.
const WAITS: &[&str] = &[
    "delivery/file-queued",
    "delivery/paused",
    "delivery/rate-limited",
    "phases/paused",
    "run/crash-wait",
    "run/limit-wait",
    "run/paused",
    "run/stagnation-pause",
    "turns/paused",
    "turns/paused-after-silence",
];

/// A human is asked, and waited for.
const ASKS: &[&str] = &[
    "delivery/acceptance-asked",
    "delivery/check-limit",
    "delivery/human-asked",
    "delivery/question-asked",
    "phases/check-asks",
    "run/acceptance-asked",
    "run/attempts-used-up",
    "run/needs-human",
    "run/question-asked",
];

/// A human answered.
const ANSWERS: &[&str] = &["delivery/question-answered", "run/answer-kept", "run/answered"];

/// An agent claims something that others judge.
const CLAIMS: &[&str] = &["delivery/ready-for-review", "phases/check-started", "run/done-claimed"];

/// A claim held.
const HOLDS: &[&str] = &[
    "delivery/all-tasks-complete",
    "delivery/task-complete",
    "phases/all-phases-complete",
    "phases/auto-complete",
    "phases/check-passed",
    "phases/phase-complete",
    "phases/stopped-after-phase",
    "phases/subagent-completed-phase",
    "run/done",
];

/// A claim did not hold.
const REFUSES: &[&str] = &[
    "delivery/audit-failed",
    "delivery/checks-failed",
    "delivery/merge-failed",
    "delivery/review-failed",
    "delivery/task-given-up",
    "phases/check-failed",
    "phases/claim-refused",
    "phases/opinion-refused",
    "run/check-failed",
    "run/claim-refused",
    "run/contradiction",
    "run/proof-refused",
];

/// Work ends, without a claim.
const ENDS: &[&str] = &[
    "delivery/expert-advised",
    "delivery/file-granted",
    "delivery/file-wait-over",
    "delivery/files-pinned",
    "delivery/merge-started",
    "delivery/resumed",
    "delivery/review-passed",
    "delivery/task-incomplete",
    "delivery/unknown-reply",
    "phases/allowed-for-now",
    "phases/allowed-while-paused",
    "phases/session-ended",
    "run/crash-wait-over",
    "run/files-compared",
    "run/files-pinned",
    "run/iteration-ended",
    "run/limit-over",
    "run/recovered",
    "run/resumed",
    "turns/closed",
];

/// Work or the run ends badly.
const FAILS: &[&str] = &[
    "delivery/aborted",
    "delivery/agent-crashed",
    "delivery/agent-replaced",
    "delivery/agent-stagnated",
    "delivery/agent-timed-out",
    "delivery/budget-used-up",
    "delivery/no-task-can-run",
    "delivery/time-used-up",
    "phases/cancelled",
    "phases/capped",
    "phases/critical-error",
    "phases/iterations-used-up",
    "phases/stale",
    "phases/turn-failed",
    "run/aborted",
    "run/agent-not-started",
    "run/blocked",
    "run/budget-used-up",
    "run/crashed",
    "run/gave-up",
    "run/host-failed",
    "run/iterations-used-up",
    "run/limit-waits-used-up",
    "run/pause-expired",
    "run/permission-denied-twice",
    "run/stagnated",
    "run/timed-out",
    "turns/agent-crashed",
    "turns/timeout",
];

/// Something goes wrong, and the work goes on.
const WARNS: &[&str] = &[
    "delivery/agent-stalled",
    "delivery/reply-refused",
    "delivery/signal-refused",
    "delivery/stagnation-warning",
    "phases/check-lost",
    "phases/recoverable-error",
    "run/iteration-timeout",
    "run/permission-denied",
    "run/stagnation-abort",
    "run/stagnation-warn",
    "turns/silence",
];

/// Something is worth a look.
const NOTES: &[&str] = &[
    "delivery/budget-warning",
    "delivery/expert-asked",
    "delivery/expert-left-out",
    "delivery/remediation-ended",
    "delivery/remediation-started",
    "phases/blocked",
    "phases/state-file-edited",
    "phases/subagent-signal-ignored",
    "run/budget-warning",
    "turns/completion-phrase",
    "turns/interrupted",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use aldis_machine::{delivery, phases, run, turns};

    use super::*;

    #[test]
    fn every_rule_here_is_one_of_a_machine() {
        let mut known: BTreeSet<&str> = run::Rule::ALL.iter().map(|rule| rule.as_str()).collect();
        known.extend(delivery::Rule::ALL.iter().map(|rule| rule.as_str()));
        known.extend(phases::Rule::ALL.iter().map(|rule| rule.as_str()));
        known.extend(turns::Rule::ALL.iter().map(|rule| rule.as_str()));
        let all = [
            WORKS, CHECKS, WAITS, ASKS, ANSWERS, CLAIMS, HOLDS, REFUSES, ENDS, FAILS, WARNS, NOTES,
        ];
        for rule in all.into_iter().flatten() {
            assert!(known.contains(rule), "{rule}");
        }
    }
}
