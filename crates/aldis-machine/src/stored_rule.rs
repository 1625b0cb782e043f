//! Rules of decisions that an older release stored, under their names of today.

use crate::{Decision, delivery, phases, run, turns};

/// Returns whether a stored decision was made by the rule of one of today, whatever release stored
/// it. Where an id of 0.1.0 covered several situations and its summary does not tell them apart, each
/// of them will do.
pub fn is_same_rule(stored: &Decision, today: &Decision) -> bool {
    stored.rule == today.rule || {
        let Decision { rule, summary, .. } = stored;
        let (rule, summary) = (&**rule, &**summary);
        let now = &*today.rule;
        of_delivery(rule, summary, now)
            || of_turns(rule, summary, now)
            || phases::rule_of_0_1_0(rule, summary).is_some_and(|then| then.as_str() == now)
            || run::rule_of_0_1_0(rule, summary).is_some_and(|then| then.as_str() == now)
    }
}

fn of_delivery(rule: &str, summary: &str, now: &str) -> bool {
    use delivery::Rule;
    let Some(then) = delivery::rule_of_0_1_0(rule, summary) else { return false };
    let narrower: &[Rule] = match then {
        Rule::AgentTimedOut => &[Rule::AgentCrashed, Rule::AgentStalled, Rule::AgentReplaced],
        Rule::Ended => &[Rule::AllTasksComplete, Rule::NoTaskCanRun],
        Rule::HumanAsked => &[
            Rule::AuditLimit,
            Rule::AuditPlateau,
            Rule::DispatchLimit,
            Rule::ExpansionUnconfirmed,
            Rule::ExpertTriesUsedUp,
            Rule::ExpertUnsuccessful,
            Rule::FileWaitLimit,
            Rule::IncompleteLimit,
            Rule::MergeLimit,
            Rule::QuestionAsked,
            Rule::QuestionRecovered,
            Rule::RefusalLimit,
            Rule::RemediationLimit,
            Rule::ReviewLimit,
            Rule::ReviewPlateau,
            Rule::TimeoutLimit,
        ],
        _ => &[],
    };
    then.as_str() == now || narrower.iter().any(|rule| rule.as_str() == now)
}

fn of_turns(rule: &str, summary: &str, now: &str) -> bool {
    use turns::Rule;
    let Some(then) = turns::rule_of_0_1_0(rule, summary) else { return false };
    let narrower = match then {
        Rule::Resumed => Some(Rule::ResumedByMessage),
        Rule::Timeout => Some(Rule::PausedAfterSilence),
        _ => None,
    };
    then.as_str() == now || narrower.is_some_and(|rule| rule.as_str() == now)
}

#[cfg(test)]
mod tests {
    //! A renamed rule is the same rule; another rule is not.

    use super::*;

    #[test]
    fn rules_of_0_1_0_are_those_of_today() {
        for (stored, summary, today, same) in [
            ("phases/7", "Blocked the stop and asked the agent to go on", "phases/blocked", true),
            ("phases/7", "Blocked the stop and asked the agent to go on", "phases/capped", false),
            ("run/6", "Started iteration 1", "run/iteration-started", true),
            ("run/6", "Started iteration 1", "run/done", false),
            ("delivery/question", "Asked a human", "delivery/review-limit", true),
            ("delivery/question", "Asked a human", "delivery/started", false),
            ("turns/timeout", "Ended the turn", "turns/paused-after-silence", true),
            ("turns/grace", "", "turns/grace", true),
            ("turns/grace", "", "turns/timeout", false),
        ] {
            let decision = |rule, summary| Decision::new(rule, summary);
            let (then, now) = (decision(stored, summary), decision(today, ""));
            assert_eq!(is_same_rule(&then, &now), same, "{stored} and {today}");
        }
    }
}
