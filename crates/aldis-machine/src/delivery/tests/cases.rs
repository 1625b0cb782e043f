//! The worked cases of the collection, at the level of the machine.

use serde_json::Value;

use super::*;

fn cases() -> Vec<Value> {
    let text = include_str!("../../../../../testdata/conformance/cases.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.filter(|case| case["system"] == "delivery").collect()
}

/// The situation that a case begins in.
fn given(case: &Value) -> Scene {
    let given = &case["given"];
    let role = given["role"].as_str().unwrap();
    let role = Role::named(role).unwrap_or(Role::Planner);
    let mut scene = match role {
        Role::Planner => Scene::one(|config| config.planner = true),
        role => Scene::with(role, |_| {}),
    };
    if let Some(count) = given["unknown_count"].as_u64() {
        scene.state.tasks[0].counters.unknown = u32::try_from(count).unwrap();
    }
    if let Some(count) = given["remediation_attempt_count"].as_u64() {
        scene.state.run.remediation.as_mut().unwrap().attempts = u32::try_from(count).unwrap();
    }
    scene
}

/// Lets the case's agent speak; one that is no longer live was replaced before.
fn reply(case: &Value, scene: &mut Scene) {
    let input = case["input"].as_str().unwrap().replace("req-42", "req-1");
    let agent = scene.only_agent().0;
    if case["given"]["live_agent"].is_string() {
        scene.waits(600);
    }
    scene.says_as(agent, &input);
}

fn code(scene: &Scene) -> Option<&str> {
    let mut evidence = scene.outcome.decisions.iter().flat_map(|noted| &noted.evidence);
    evidence.find(|it| it.what == "refused").and_then(|it| it.reason.as_deref())
}

#[test]
fn the_cases_of_the_collection_hold() {
    let mut checked = 0;
    for case in cases() {
        let mut scene = given(&case);
        let status_before = scene.status();
        reply(&case, &mut scene);
        let (id, expect) = (&case["id"], &case["expect"]);
        let mut check = |key: &str, holds: &dyn Fn(&Value) -> bool| {
            if let Some(wanted) = expect.get(key) {
                checked += 1;
                assert!(holds(wanted), "{id}: {key} is not {wanted}: {:#?}", scene.outcome);
            }
        };
        check("status_after", &|wanted| scene.status().as_str() == wanted);
        check("applied", &|_| scene.status() == status_before);
        check("error", &|wanted| code(&scene) == wanted.as_str());
        check("signal", &|wanted| {
            // Unknown is recovered from; anything else is not.
            let unknown = scene.rules().contains(&Rule::UnknownReply)
                || scene.outcome.decisions.iter().any(|it| it.because.contains("holds no signal"));
            unknown == (wanted == "unknown")
        });
        check("infrastructure_blocked", &|wanted| {
            scene.state.run.remediation.is_some() == wanted.as_bool().unwrap()
        });
        check("new_dispatches", &|_| {
            scene.dispatches().iter().all(|it| it.role == Role::Remediation)
        });
        check("remediation_attempt_count", &|_| scene.state.run.remediation.is_none());
        check("fill_slots", &|_| scene.started().role == Role::Developer);
        check("audit_failures", &|wanted| {
            u64::from(scene.state.tasks[0].counters.audit_failures) == *wanted
        });
        check("unknown_count", &|wanted| {
            u64::from(scene.state.tasks[0].counters.unknown) == *wanted
        });
        check("log_level", &|_| {
            scene.notices() == [(Notice::UnknownSignalRecovery, Severity::Error)]
        });
        check("event", &|wanted| {
            let name = |notice: &Notice| serde_json::to_value(notice).unwrap();
            scene.notices().iter().any(|(notice, _)| name(notice) == *wanted)
        });
        check("pending_critique", &|wanted| {
            (scene.state.tasks[0].role == Role::Critic) != wanted.as_array().unwrap().is_empty()
        });
        check("pending_audit", &|_| scene.state.tasks[0].role == Role::Auditor);
        check("also", &|_| {
            let told = |note: &PromptNote| note.heading.contains("READY_FOR_REVIEW");
            scene.state.tasks[0].notes.iter().any(told)
                && scene.rules().contains(&Rule::AlsoReported)
        });
        check("path", &|wanted| scene.state.tasks[0].holds.contains(wanted.as_str().unwrap()));
        check("file", &|wanted| {
            let check = |effect: &Effect| matches!(effect, Effect::CheckExpert { file, .. } if file == wanted.as_str().unwrap());
            scene.outcome.effects.iter().any(check)
        });
        check("request_id", &|_| scene.status() == Status::AwaitingGuidance);
        check("handler", &|wanted| handled(&scene, wanted.as_str().unwrap()));
    }
    assert_eq!(cases().len(), 25);
    assert!(checked > 60, "only {checked} expectations");
}

/// Whether what happened is what the handler stands for.
fn handled(scene: &Scene, handler: &str) -> bool {
    let next = scene.dispatches().first().map(|it| it.role);
    match handler {
        "DISPATCH_CRITIC" => next == Some(Role::Critic),
        "DISPATCH_AUDITOR" => next == Some(Role::Auditor),
        "ENTER_REMEDIATION" => next == Some(Role::Remediation),
        "DISPATCH_HEALTH_AUDITOR" => next == Some(Role::HealthAuditor),
        "EXIT_REMEDIATION" => scene.state.run.remediation.is_none(),
        "ESCALATE_TO_DIVINE" => !scene.state.run.questions.is_empty(),
        "REGISTER_EXPERT" => !scene.state.run.experts.candidates.is_empty(),
        "REQUEST_CLARIFICATION" => {
            next == Some(Role::Developer) && scene.status() == Status::Implementing
        }
        other => panic!("{other} is not checked"),
    }
}
