//! What version 0.1.0 stored stays readable: events, states and tasks under their old names.
//!
//! The files were written by that version: a delivery with failed reviews and a crash, one that was
//! aborted while agents worked, and its demonstration.

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::Machine as _;

#[derive(Deserialize)]
struct Stored {
    start: StoredStart,
    events: Vec<StoredEvent>,
    run: Value,
    tasks: Vec<Value>,
    decisions: Vec<StoredDecision>,
}

#[derive(Deserialize)]
struct StoredStart {
    at: i64,
    body: Start,
}

#[derive(Deserialize)]
struct StoredEvent {
    at: i64,
    body: Event,
}

#[derive(Deserialize)]
struct StoredDecision {
    rule: String,
    task: Option<String>,
    summary: String,
}

impl Stored {
    fn all() -> [(&'static str, Self); 3] {
        [
            ("reviewed", include_str!("stored_0_1_0/reviewed.json")),
            ("aborted", include_str!("stored_0_1_0/aborted.json")),
            ("demo", include_str!("stored_0_1_0/demo.json")),
        ]
        .map(|(name, text)| (name, serde_json::from_str(text).unwrap()))
    }

    fn named(name: &str) -> Self {
        Self::all().into_iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// The state as it was stored.
    fn state(&self) -> State {
        let tasks: Vec<(String, String)> = (0..)
            .zip(&self.tasks)
            .map(|(no, task)| (format!("task/{no:08}"), task.to_string()))
            .collect();
        let tasks: Vec<(&str, &str)> = tasks.iter().map(|(key, task)| (&**key, &**task)).collect();
        State::from_stored(&self.run.to_string(), &tasks).unwrap()
    }
}

#[test]
fn states_are_read_under_their_old_names() {
    let state = Stored::named("aborted").state();
    let run = state.run();
    assert_eq!(
        (run.agents_started, run.questions_asked, run.experts.consultations_started),
        (8, 1, 1)
    );
    assert_eq!(run.interrupted.len(), 3, "the agents that were at work");
    let developer = &run.interrupted[&6];
    assert_eq!((developer.role, developer.missed_checkpoints), (Role::Developer, 0));
    assert_eq!(developer.last_seen, developer.started_at);
    assert_eq!(
        (run.spending.worked_millis, run.spending.worked_counted_at.is_some()),
        (4_981, true)
    );
    let last_failure = state.task("t1").unwrap().last_failure.as_deref();
    assert_eq!(last_failure, Some("the developer crashed with exit code 9"));
    let note = &run.remediation.as_ref().unwrap().notes[0];
    assert_eq!(note.heading, "The developer of t3 reported:");
    assert_eq!(note.quote, "Command: make\nIssue: no disk\n");

    let state = Stored::named("reviewed").state();
    let statuses = state.tasks()[0].ledger.findings().iter().map(|finding| finding.status);
    assert_eq!(statuses.collect::<Vec<_>>(), [FindingStatus::Open, FindingStatus::Withdrawn]);
    assert_eq!(state.run().questions["q1"].text, "keep or drop?");
}

#[test]
fn events_and_parts_are_read_under_their_old_names() {
    let read = |value: Value| serde_json::from_value::<Event>(value).unwrap();
    let miss = json!({"name": "AUDIT_PASSED", "reason": "decorated", "hint": "x"});
    let heard = read(json!({"event": "heard", "agent": 2, "signals": [], "misses": [miss]}));
    let Event::Reported { agent: 2, reply } = heard else { panic!("{heard:?}") };
    assert_eq!(reply.near_misses[0].reason, "decorated");
    let told = read(json!({"event": "told", "text": "hello", "to": "critic"}));
    assert!(matches!(&told, Event::Tell { text, .. } if text == "hello"), "{told:?}");
    let limited = read(json!({"event": "limited", "agent": 1, "until": "2026-03-02T10:00:00Z"}));
    assert!(matches!(limited, Event::RateLimited { agent: 1, .. }), "{limited:?}");

    let candidate = json!({"file": "agents/crypto.md", "knows": "keys"});
    let candidate: ExpertCandidate = serde_json::from_value(candidate).unwrap();
    assert_eq!(candidate.expertise, "keys");
    let asked = json!({"at": "2026-03-02T10:00:00Z", "unknown": true});
    let asked: CheckpointRequest = serde_json::from_value(asked).unwrap();
    assert!(asked.after_unknown_reply);
    let subject = serde_json::from_value(json!({"about": "exhausted"})).unwrap();
    assert_eq!(QuestionSubject::RemediationExhausted, subject);
    let dispatch = json!({"effect": "dispatch", "agent": 1, "role": "developer", "prompt": "x"});
    assert!(matches!(serde_json::from_value(dispatch).unwrap(), Effect::Dispatch(_)));
}

#[test]
fn journals_lead_to_the_same_decisions() {
    for (name, stored) in Stored::all() {
        let at = Timestamp::from_millis;
        let mut state = State::start(at(stored.start.at), stored.start.body);
        let mut decisions = Vec::new();
        for StoredEvent { at: then, body } in &stored.events {
            decisions.extend(state.on_event(at(*then), body).decisions);
        }
        let now: Vec<_> = decisions.iter().map(|it| (rule(&it.rule), it.task.clone())).collect();
        let then = stored.decisions.iter().map(|it| {
            let rule =
                rule_of_0_1_0(&it.rule, &it.summary).unwrap_or_else(|| panic!("{}", it.rule));
            (rule, it.task.clone())
        });
        let then: Vec<_> = then.collect();
        assert_eq!(now.len(), then.len(), "{name}: {now:#?}");
        for ((now, task), (then, of)) in now.into_iter().zip(then) {
            assert_eq!(task, of, "{name}");
            // Its ids did not tell these apart.
            let same = match then {
                Rule::AgentTimedOut => now == Rule::AgentCrashed,
                Rule::Ended => now == Rule::AllTasksComplete,
                Rule::HumanAsked => now == Rule::QuestionAsked,
                then => now == then,
            };
            assert!(same, "{name}: was {then:?}, is {now:?}");
        }
    }
}
