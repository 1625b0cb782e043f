//! Brings what 0.1.0 stored up to today's forms, at reading. Nothing else knows of older forms but
//! the names that serde accepts beside today's.

use aldis_machine::{Decision, Machine as _, delivery, phases, run, turns};
use serde_json::Value;

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

/// Brings the rule of a decision up to today's name.
pub(crate) fn decision(machine: &str, mut decision: Decision) -> Decision {
    let Decision { rule, summary, .. } = &decision;
    let renamed = match machine {
        delivery::State::NAME => delivery::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        phases::State::NAME => phases::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        run::State::NAME => run::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        turns::State::NAME => turns::rule_of_0_1_0(rule, summary).map(|it| it.as_str()),
        _ => None,
    };
    if let Some(renamed) = renamed {
        renamed.clone_into(&mut decision.rule);
    }
    decision
}
