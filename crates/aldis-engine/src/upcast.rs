//! Brings what 0.1.0 stored up to today's forms, at reading. Nothing else knows of older forms but
//! the names that serde accepts beside today's.

use aldis_machine::{Decision, Machine as _, delivery, phases, run, turns};
use serde_json::{Value, json};

/// Brings a state of version 1 up to today's. The members' old names are known to the machines.
pub(crate) fn state(_machine: &str, text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Brings the first event of a journal up to today's form: a start or an adoption.
pub(crate) fn first_event(machine: &str, mut event: Value) -> Value {
    // 0.1.0 laid the start of a phases run flat into the event.
    let flat = machine == phases::State::NAME && event.get("start").is_none();
    if let (true, Value::Object(members)) = (flat && event["event"] == "start", &mut event) {
        let kind = members.remove("event").unwrap_or_default();
        let start = Value::Object(std::mem::take(members));
        members.insert("event".to_owned(), kind);
        members.insert("start".to_owned(), start);
    }
    event
}

/// Returns the effects that a decision shows. 0.1.0 had the replies and warnings of a channel beside
/// them.
pub(crate) fn effects(decision: &Value) -> Vec<Value> {
    let listed = |member: &str| decision.get(member).and_then(Value::as_array);
    let mut effects = listed("effects").cloned().unwrap_or_default();
    for reply in listed("replies").into_iter().flatten() {
        let mut reply = reply.clone();
        if let Value::Object(members) = &mut reply {
            members.insert("effect".to_owned(), "reply".into());
        }
        effects.push(reply);
    }
    let warnings = listed("warnings").into_iter().flatten();
    effects.extend(warnings.map(|text| json!({ "effect": "warning", "text": text })));
    effects
}

/// Brings the rule of a decision up to today's name.
pub(crate) fn decision(machine: &str, mut decision: Decision) -> Decision {
    let Decision { rule, summary, .. } = &decision;
    let renamed = by_reason(&decision).or_else(|| match machine {
        delivery::State::NAME => delivery::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        phases::State::NAME => phases::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        run::State::NAME => run::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        turns::State::NAME => turns::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        _ => None,
    });
    if let Some(renamed) = renamed {
        renamed.clone_into(&mut decision.rule);
    }
    decision
}

/// Rules of 0.1.0 that had one name and one summary for several situations: why they applied tells
/// which it was.
fn by_reason(decision: &Decision) -> Option<&'static str> {
    let Decision { rule, summary, because, evidence, remedy, .. } = decision;
    match &**rule {
        "run/3" if because.starts_with("The conflicts were not resolved in ") => {
            Some(run::Rule::AttemptsUsedUp.as_str())
        }
        "turns/timeout" if remedy.starts_with("look after the agents") => {
            Some(turns::Rule::PausedAfterSilence.as_str())
        }
        "delivery/timeout" if because.contains(" crashed") || because.contains(" by signal ") => {
            Some(delivery::Rule::AgentCrashed.as_str())
        }
        "delivery/timeout" if because.ends_with("no sign of life") => {
            Some(delivery::Rule::AgentStalled.as_str())
        }
        "phases/listen" if summary == "Heard a sub-agent stop" && !evidence.is_empty() => {
            Some(phases::Rule::SubagentSignalIgnored.as_str())
        }
        "turns/resumed" if because.ends_with(" spoke") => {
            Some(turns::Rule::ResumedByMessage.as_str())
        }
        _ => None,
    }
}

/// Returns whether a rule that was brought up is the same as one of today's. 0.1.0 had one rule for
/// every question and one for every end; each reason has its own now, and the old ones are never used
/// again.
pub(crate) fn same_rule(was: &str, is: &str) -> bool {
    use delivery::Rule;
    let any = |rules: &[Rule]| rules.iter().any(|rule| rule.as_str() == is);
    match was {
        _ if was == is => true,
        _ if was == Rule::Ended.as_str() => any(&[Rule::AllTasksComplete, Rule::NoTaskCanRun]),
        _ if was == Rule::HumanAsked.as_str() => any(&[
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
        ]),
        _ => false,
    }
}
