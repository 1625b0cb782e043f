//! The repair of what all tasks need.

use super::*;

fn attempts(scene: &Scene) -> Option<u32> {
    scene.state.run.remediation.as_ref().map(|it| it.attempts)
}

#[test]
fn nothing_else_begins_before_the_verdict() {
    let tasks = vec![spec("a", &[]), spec("b", &[]), spec("c", &[])];
    let mut scene = Scene::of(tasks, |config| config.slots = 2);
    let b = scene.agent_of("b");
    scene.says_as(scene.agent_of("a"), "INFRA_BLOCKED: a\n\nIssue: disk full");
    assert_eq!(scene.started().role, Role::Remediation);
    assert!(scene.started().prompt.contains("> Issue: disk full"));
    assert_eq!(scene.notices(), [(Notice::RemediationStarted, Severity::Warning)]);
    // Agents at work go on, but what follows them waits.
    scene.says_as(b, "READY_FOR_REVIEW: b");
    assert!(scene.dispatches().is_empty());
    scene.says("REMEDIATION_COMPLETE\n\nIssues Fixed:\n- disk: cleaned");
    assert_eq!(scene.started().role, Role::HealthAuditor);
    assert!(scene.started().prompt.contains("disk: cleaned"));
    scene.says("HEALTH_AUDIT: HEALTHY");
    assert_eq!(attempts(&scene), None);
    let started: Vec<_> = scene.dispatches().iter().map(|it| (it.role, it.task.clone())).collect();
    let expected = [(Role::Critic, Some("b".to_owned())), (Role::Developer, Some("a".to_owned()))];
    assert_eq!(started, expected, "the critic first, then a fresh agent of the same role");
    assert_eq!(scene.dispatches()[1].resume, None);
    assert_eq!(scene.task("a").counters.review_failures, 0, "nobody's failure");
}

#[test]
fn a_second_block_joins_the_repair() {
    let mut scene = Scene::of(vec![spec("a", &[]), spec("b", &[])], |_| {});
    let b = scene.agent_of("b");
    scene.says_as(scene.agent_of("a"), "INFRA_BLOCKED: a");
    scene.says_as(b, "INFRA_BLOCKED: b");
    assert!(scene.dispatches().is_empty());
    assert_eq!((attempts(&scene), scene.state.run.agents.len()), (Some(1), 1));
    scene.says("REMEDIATION_COMPLETE");
    scene.says("HEALTH_AUDIT: HEALTHY");
    assert_eq!(scene.dispatches().len(), 2, "both go on");
}

#[test]
fn attempts_are_counted_and_at_the_limit_a_human_decides() {
    let exhausted = || {
        let mut scene = Scene::with(Role::Remediation, |config| config.remediation_attempts = 3);
        for attempt in 1..3 {
            assert_eq!(attempts(&scene), Some(attempt));
            scene.says("REMEDIATION_COMPLETE");
            scene.says("HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- unit (Mac): FAIL");
            assert_eq!(scene.started().role, Role::Remediation);
            assert!(scene.started().prompt.contains("unit (Mac): FAIL"));
        }
        assert_eq!(attempts(&scene), Some(3));
        scene.says("REMEDIATION_COMPLETE");
        scene.says("HEALTH_AUDIT: UNHEALTHY");
        assert!(scene.notices().contains(&(Notice::RemediationExhausted, Severity::Error)));
        assert_eq!(scene.state.run.questions["q1"].options, ["retry", "override", "halt"]);
        assert!(scene.state.run.agents.is_empty());
        scene
    };
    let mut scene = exhausted();
    scene.answers("Retry");
    assert_eq!((attempts(&scene), scene.started().role), (Some(1), Role::Remediation));
    let mut scene = exhausted();
    scene.answers("override");
    assert_eq!((attempts(&scene), scene.started().role), (None, Role::Developer));
    let mut scene = exhausted();
    scene.answers("halt");
    assert_eq!(scene.state.ending(), Some(Ending::Halted));
    // Any other word is advice for new attempts.
    let mut scene = exhausted();
    scene.answers("Use the other disk.");
    assert!(scene.started().prompt.contains("> Use the other disk."));
}

#[test]
fn no_verdict_counts_as_unhealthy() {
    for role in [Role::Remediation, Role::HealthAuditor] {
        for end in 0..3 {
            let mut scene = Scene::with(role, |_| {});
            let agent = scene.only_agent().0;
            match end {
                0 => scene.says("All good, I think."),
                1 => scene.crashes(agent),
                _ => drop(scene.waits(300).clone()),
            }
            assert_eq!(attempts(&scene), Some(2), "{role:?} {end}");
            assert_eq!(scene.started().role, Role::Remediation, "{role:?} {end}");
        }
    }
}

#[test]
fn the_agents_of_a_repair_may_ask() {
    let mut scene = Scene::with(Role::HealthAuditor, |_| {});
    scene.says("SEEKING_DIVINE_CLARIFICATION\n\nQuestion: which environment?");
    scene.answers("CI");
    assert_eq!(scene.started().role, Role::HealthAuditor);
    assert!(scene.started().prompt.contains("> CI"), "{}", scene.started().prompt);
    assert_eq!(attempts(&scene), Some(1), "a question is no attempt");

    let mut scene = Scene::with(Role::Remediation, |_| {});
    scene.state.run.experts.known.insert("crypto".to_owned(), String::new());
    scene.says(REQUEST);
    assert_eq!(scene.started().role, Role::Expert);
    scene.says("EXPERT_ADVICE: req-1\n\nRecommendation: argon2");
    assert_eq!(scene.started().role, Role::Remediation);
    assert!(scene.started().prompt.contains("argon2"));
    scene.says("FILE CONFLICT: src/a.rs");
    assert_eq!((attempts(&scene), scene.started().role), (Some(2), Role::Remediation));
}

#[test]
fn a_repair_goes_on_despite_a_question() {
    let mut scene = Scene::of(vec![spec("a", &[]), spec("b", &[])], |_| {});
    let b = scene.agent_of("b");
    scene.says_as(scene.agent_of("a"), "SEEKING_DIVINE_CLARIFICATION");
    scene.says_as(b, "INFRA_BLOCKED: b");
    assert_eq!(scene.started().role, Role::Remediation);
    scene.says("REMEDIATION_COMPLETE");
    assert_eq!(scene.started().role, Role::HealthAuditor);
    scene.says("HEALTH_AUDIT: HEALTHY");
    assert!(scene.dispatches().is_empty(), "the question is still open");
    scene.answers("Go on.");
    assert_eq!(scene.dispatches().len(), 2);
}
