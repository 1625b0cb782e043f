//! Rules: each is documented, and those of 0.1.0 are known.

use super::*;

#[test]
fn every_rule_is_documented() {
    let docs = include_str!("../../../../../docs/rules.md");
    for rule in Rule::ALL {
        let row = format!("| `{}` |", rule.as_str());
        assert_eq!(docs.matches(&row).count(), 1, "{} in docs/rules.md", rule.as_str());
    }
    let mut ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), Rule::ALL.len());
    let named = docs.matches("| `delivery/").count();
    assert_eq!(named, Rule::ALL.len(), "docs/rules.md names a rule that does not exist");
    for id in ids {
        let name = id.strip_prefix("delivery/").expect(id);
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
    }
}

/// Every id that 0.1.0 could write, with every summary that went with it.
#[test]
fn the_rules_of_0_1_0_are_known() {
    for (id, summary, rule) in [
        ("abort", "Ended the delivery", Rule::Aborted),
        ("also", "Recorded READY_FOR_REVIEW", Rule::AlsoReported),
        ("answer", "Took the answer to q1", Rule::QuestionAnswered),
        ("audit-failed", "Sent the work back to the developer", Rule::AuditFailed),
        ("begin", "Began with 3 tasks", Rule::Started),
        ("budget", "Warned of the budget", Rule::BudgetWarning),
        ("checkpoint", "Asked for a sign of life", Rule::CheckpointRequested),
        ("checkpoint", "Heard how far the work has come", Rule::CheckpointReceived),
        ("complete", "Completed the task", Rule::TaskComplete),
        ("conflict", "Gave src/a.rs to the task", Rule::FileGranted),
        ("conflict", "Lets two tasks change src/a.rs", Rule::FileShared),
        ("conflict", "Queued the task for src/a.rs", Rule::FileQueued),
        ("conflict", "Stopped waiting for the file", Rule::FileWaitOver),
        ("dispatch", "Started the developer", Rule::AgentStarted),
        ("end", "The delivery is over", Rule::Ended),
        ("expanded", "Gave the task its acceptance criteria", Rule::TaskExpanded),
        ("expert", "Asks the expert again after 1 tries", Rule::ExpertRetried),
        ("expert", "Asks the expert crypto", Rule::ExpertAsked),
        ("expert", "Left out the expert crypto", Rule::ExpertLeftOut),
        ("expert", "Looks for the file of the expert crypto", Rule::ExpertCreated),
        ("expert", "Passed on the advice of crypto", Rule::ExpertAdvised),
        ("expert", "Registered the expert crypto", Rule::ExpertRegistered),
        ("failed", "Gave the task up", Rule::TaskGivenUp),
        ("incomplete", "Set the task aside", Rule::TaskIncomplete),
        ("late", "Ignored REVIEW_PASSED", Rule::LateSignal),
        ("limit", "Waits until 2026-03-02T10:00:00Z", Rule::RateLimited),
        ("merge", "Merges the work", Rule::MergeStarted),
        ("merge-failed", "Sent the work back to the developer", Rule::MergeFailed),
        ("pause", "Starts no further agents", Rule::Paused),
        ("plan", "Went on without the planner", Rule::PlannerFailed),
        ("question", "Asked a human", Rule::HumanAsked),
        ("ready", "Handed the work to the critic", Rule::ReadyForReview),
        ("recover", "Went on where it was", Rule::Recovered),
        ("refused", "Refused AUDIT_PASSED", Rule::SignalRefused),
        ("refused", "Refused what the agent said", Rule::ReplyRefused),
        ("remediation", "Joined the repair that is under way", Rule::RemediationJoined),
        ("remediation", "Lets the repair be judged", Rule::RemediationReported),
        ("remediation", "Stopped new work to repair what all tasks need", Rule::RemediationStarted),
        ("remediation", "Tries to repair it, attempt 2", Rule::RemediationRetried),
        ("remediation", "Went back to work", Rule::RemediationEnded),
        ("reopen", "Went on with the delivery", Rule::Continued),
        ("resume", "Goes on", Rule::Resumed),
        ("review-failed", "Sent the work back to the developer", Rule::ReviewFailed),
        ("review-passed", "Handed the work to the auditor", Rule::ReviewPassed),
        ("stagnation", "Starts another agent", Rule::AgentStagnated),
        ("stagnation", "Warned: the work does not move", Rule::StagnationWarning),
        ("timeout", "Starts another agent", Rule::AgentTimedOut),
        ("unknown", "Asked for a signal", Rule::UnknownReply),
        ("unknown", "Gave up the agent", Rule::UnknownLimit),
        ("unknown", "Starts another agent", Rule::AgentReplaced),
        ("used-up", "Ended the delivery: over_budget", Rule::BudgetUsedUp),
        ("used-up", "Ended the delivery: timed_out", Rule::TimeUsedUp),
    ] {
        let found = rule_of_0_1_0(&format!("delivery/{id}"), summary);
        assert_eq!(found, Some(rule), "{id}: {summary}");
    }
    for unknown in ["delivery/nothing", "run/4", "phases/7", ""] {
        assert_eq!(rule_of_0_1_0(unknown, "x"), None, "{unknown}");
    }
}
