//! The parse-level part of every case in `conformance/cases.jsonl`: whole, byte by byte, and in
//! pieces of seven bytes.
//!
//! What only a machine can answer is listed as such; an expectation that is neither checked nor
//! listed fails.

use super::*;
use crate::dialect::Syntax;

/// What only a state machine, a process or a display can answer.
const STATE_LEVEL: &[(&str, &[&str])] = &[
    (
        "caw",
        &[
            "phase_after",
            "decision",
            "iteration_after",
            "active_after",
            "exit_reason",
            "state_file_untouched",
            "effective_max_iterations",
            "start_phase",
        ],
    ),
    (
        "delivery",
        &[
            "status_after",
            "pending_critique",
            "applied",
            "error",
            "infrastructure_blocked",
            "new_dispatches",
            "pending_audit",
            "audit_failures",
            "remediation_attempt_count",
            "fill_slots",
            "event",
            "action",
            "unknown_count",
            "log_level",
        ],
    ),
    ("chorus", &["action", "tests_run", "action_reason", "task_closed"]),
    (
        "turn",
        &[
            "display",
            "posted",
            "turnAdvanced",
            "advance_count",
            "reason",
            "activeAgent",
            "ignored",
            "timed_out",
            "notice",
            "nextAgent",
            "agent_state",
            "turnStartedAt",
            "turnTimeoutAt",
            "currentIndex",
            "pm_state",
            "history_contains",
            "queue",
            "history_len",
            "oldest_dropped",
        ],
    ),
    ("pilot", &["display", "levels", "on_abort"]),
];

#[test]
fn caw_cases() {
    check("caw", caw);
}

#[test]
fn delivery_cases() {
    check("delivery", delivery);
}

#[test]
fn chorus_cases() {
    check("chorus", chorus);
}

#[test]
fn turn_cases() {
    check("turn", turn);
}

#[test]
fn pilot_cases() {
    check("pilot", pilot);
}

/// Answers an expectation: what was found under that key, or `None` for an unknown key.
type Answer = fn(&ScannedCase, key: &str, want: &Value) -> Option<Value>;

#[track_caller]
fn check(system: &str, answer: Answer) {
    let (_, skipped) = STATE_LEVEL.iter().find(|(name, _)| *name == system).unwrap();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for row in json_lines("conformance/cases.jsonl") {
        if row["system"] != system {
            continue;
        }
        for chunk in [usize::MAX, 1, 7] {
            let scanned = ScannedCase::new(system, &row, chunk);
            for (key, want) in row["expect"].as_object().unwrap() {
                if skipped.contains(&key.as_str()) {
                    continue;
                }
                checked += 1;
                let got = answer(&scanned, key, want);
                if got.as_ref() != Some(want) {
                    let (id, input) = (&row["id"], &row["input"]);
                    let got = got.map_or_else(|| "(unknown key)".to_owned(), |got| got.to_string());
                    wrong.push(format!(
                        "{id} in pieces of {chunk}: {key}: want {want}, got {got}\n{input}\n{:#?}",
                        scanned.found
                    ));
                }
            }
        }
    }
    assert!(checked > 0, "no case of {system}");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

/// A case, as it was scanned.
struct ScannedCase {
    expect: Value,
    found: Vec<Finding>,
    again: Vec<Finding>,
}

impl ScannedCase {
    fn new(system: &str, row: &Value, chunk: usize) -> Self {
        let rules = rules_for(system);
        let mut found = Vec::new();
        for said in row["given"]["earlier_transcript"].as_array().into_iter().flatten() {
            let origin = match (said["role"].as_str().unwrap(), said["tool"].as_str()) {
                ("tool_result", Some("Task")) => Origin::new(Role::Subagent),
                ("user", _) => Origin::new(Role::User),
                // Said before the phase began: the machine's business.
                ("assistant", _) => continue,
                other => panic!("{other:?}"),
            };
            found.extend(scan(&rules, said["text"].as_str().unwrap().as_bytes(), &origin));
        }
        let input = row["input"].as_str().unwrap().as_bytes();
        found.extend(findings(&rules, input, chunk));
        let again = findings(&rules, input, chunk);
        Self { expect: row["expect"].clone(), found, again }
    }

    fn signals(&self) -> Vec<&Signal> {
        signals(&self.found)
    }

    fn names(&self) -> Vec<&str> {
        self.signals().into_iter().map(|signal| &*signal.name).collect()
    }

    fn misses(&self) -> Vec<&NearMiss> {
        misses(&self.found)
    }

    /// Returns the wanted codes that were given, as warning or as reason.
    fn codes(&self, want: &Value) -> Value {
        let warnings = self.signals().into_iter().flat_map(|signal| &signal.warnings);
        let reasons = self.misses().into_iter().map(|miss| miss.reason.to_string());
        let given: Vec<String> = warnings.map(ToString::to_string).chain(reasons).collect();
        let wanted = want.as_array().unwrap().iter();
        wanted.filter(|code| given.iter().any(|given| *code == given)).cloned().collect()
    }
}

fn caw(scanned: &ScannedCase, key: &str, want: &Value) -> Option<Value> {
    let names = scanned.names();
    Some(match key {
        "signal" => match names.as_slice() {
            [] => Value::Null,
            [name] => Value::from(*name),
            several => Value::from(several.to_vec()),
        },
        "all" => Value::from(names),
        "last" => names.last().copied().into(),
        "recorded" => {
            let mut once = names;
            once.dedup();
            Value::from(once)
        }
        "warnings" => scanned.codes(want),
        "kind" => match scanned.signals()[0].meaning {
            Meaning::Info => "transition".into(),
            other => other.as_str().into(),
        },
        "completes_phase" => scanned.signals()[0].meaning.is_claim().into(),
        "last_error" => {
            let fields = &scanned.signals()[0].fields;
            serde_json::json!({"phase": fields["phase"], "message": fields["error"]})
        }
        _ => return None,
    })
}

/// Returns the name as the cases spell it.
fn delivery_name(signal: &Signal) -> String {
    match &*signal.name {
        "HEALTH_AUDIT" => format!("health_{}", signal.subject.as_deref().unwrap().to_lowercase()),
        "SEEKING_DIVINE_CLARIFICATION" => "divine_clarification".to_owned(),
        name => name.to_lowercase().replace(' ', "_"),
    }
}

fn delivery(scanned: &ScannedCase, key: &str, want: &Value) -> Option<Value> {
    let dialect = Dialect::builtin("delivery").unwrap();
    let mut all = scanned.signals();
    // The last one wins within a priority.
    all.reverse();
    all.sort_by_key(|signal| dialect.signal(&signal.name).unwrap().priority);
    let best = all.first().copied();
    let subject = || Value::from(best.and_then(|signal| signal.subject.clone()));
    Some(match key {
        "signal" => best.map_or_else(|| "unknown".to_owned(), delivery_name).into(),
        "task_id" | "request_id" | "path" | "name" => subject(),
        "handler" => match best.and_then(|signal| signal.handler.clone()) {
            // Refused by the machine.
            _ if scanned.expect["applied"] == false => want.clone(),
            Some(handler) => handler.to_string().into(),
            None => "REQUEST_CLARIFICATION".into(),
        },
        "fields" => {
            let scanned = &best.unwrap().fields;
            let wanted = want.as_object().unwrap().keys();
            wanted.map(|key| (key.clone(), scanned.get(key).cloned().unwrap_or_default())).collect()
        }
        "file" => best.unwrap().fields["file"].clone(),
        "can_wait" => (best.unwrap().fields["can_wait"] == "YES").into(),
        "also" => all.iter().skip(1).map(|signal| Value::from(delivery_name(signal))).collect(),
        "warnings" => scanned.codes(want),
        "near_miss" => {
            scanned.misses().first().map_or(Value::Null, |miss| Value::from(&*miss.name))
        }
        "malformed" => {
            scanned.misses().first().map_or(Value::Null, |miss| miss.reason.as_str().into())
        }
        _ => return None,
    })
}

fn pair(signal: &Signal) -> Value {
    serde_json::json!([&*signal.name, signal.payload])
}

fn chorus(scanned: &ScannedCase, key: &str, want: &Value) -> Option<Value> {
    let all = scanned.signals();
    let has = |name: &str| Value::from(all.iter().any(|signal| *signal.name == *name));
    let payload_of = |names: &[&str]| {
        let asked = all.iter().find(|signal| names.contains(&&*signal.name));
        Value::from(asked.and_then(|signal| signal.payload.clone()))
    };
    Some(match key {
        "first" => all.first().map_or(Value::Null, |signal| pair(signal)),
        "all" => all.iter().map(|signal| pair(signal)).collect(),
        "progress" => {
            let last = all.iter().rfind(|signal| *signal.name == *"PROGRESS");
            last.and_then(|signal| signal.progress).into()
        }
        "reason" => payload_of(&["BLOCKED", "NEEDS_HELP", "NEEDS_HUMAN"]),
        "question" => payload_of(&["NEEDS_HELP", "NEEDS_HUMAN"]),
        "isComplete" => has("COMPLETE"),
        "isBlocked" => has("BLOCKED"),
        "malformed" => scanned.misses().len().into(),
        "unknown" => {
            let said = |miss: &&NearMiss| {
                let inner = miss.raw.trim_start_matches("<chorus>");
                inner.split([':', '<']).next().map(Value::from)
            };
            scanned.misses().iter().filter_map(said).collect()
        }
        "quoted" => {
            let quoted = |miss: &&&NearMiss| miss.reason == Reason::Quoted;
            scanned.misses().iter().filter(quoted).map(|miss| &*miss.name).collect()
        }
        "parse_twice_same" => {
            assert!(want.is_boolean());
            (scanned.found == scanned.again).into()
        }
        _ => return None,
    })
}

fn turn(scanned: &ScannedCase, key: &str, _: &Value) -> Option<Value> {
    Some(match key {
        "detected" => (!scanned.signals().is_empty()).into(),
        "near_miss" => (!scanned.misses().is_empty()).into(),
        _ => return None,
    })
}

fn is_exit(signal: &Signal) -> bool {
    *signal.name == *"EXIT" || signal.fields.get("exit_signal") == Some(&Value::Bool(true))
}

fn pilot(scanned: &ScannedCase, key: &str, want: &Value) -> Option<Value> {
    let all = scanned.signals();
    let latest = |field: &str| {
        let mut values = all.iter().filter_map(|signal| signal.fields.get(field));
        values.next_back().cloned().unwrap_or_default()
    };
    let exit = all.iter().rfind(|signal| is_exit(signal));
    let said_at_exit =
        |field: &str| exit.and_then(|exit| exit.fields.get(field)).cloned().unwrap_or_default();
    let legacy = all.iter().any(|signal| signal.fields.get("legacy") == Some(&Value::Bool(true)));
    Some(match key {
        "count" => all.len().into(),
        "phase" | "iteration" | "v" | "indicators" => latest(key),
        "progress" => all.iter().rev().find_map(|signal| signal.progress).into(),
        "progress_default" => {
            let Syntax::Fence(fence) = &Dialect::builtin("pilot").unwrap().syntax else {
                return None;
            };
            fence.implied_progress[all[0].fields["phase"].as_str().unwrap()].into()
        }
        "exit" => exit.is_some().into(),
        "success" | "reason" => said_at_exit(key),
        "task_outcome" => exit.unwrap().meaning.as_str().into(),
        "legacy" | "navigator" => legacy.into(),
        "type" => all[0].name.to_lowercase().into(),
        "handled" => (!all[0].warnings.contains(&Warning::UnknownType)).into(),
        "no_op_reason" => match said_at_exit("no_op") {
            Value::Null => Value::Null,
            _ => said_at_exit("reason"),
        },
        "decline" => (!said_at_exit("no_op").is_null()).into(),
        "warnings" => scanned.codes(want),
        _ => return None,
    })
}
