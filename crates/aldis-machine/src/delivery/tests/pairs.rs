//! Every signal in every situation: those that are not allowed change nothing and are recorded.

use super::*;

/// A well-formed signal of this kind about the task or request at hand.
pub(super) fn well_formed(kind: SignalKind) -> String {
    match kind {
        SignalKind::RemediationComplete | SignalKind::SeekingClarification => {
            kind.as_str().to_owned()
        }
        SignalKind::HealthAudit => "HEALTH_AUDIT: HEALTHY".to_owned(),
        SignalKind::ExpertRequest => REQUEST.to_owned(),
        SignalKind::ExpertAdvice | SignalKind::ExpertUnsuccessful => {
            format!("{}: req-1", kind.as_str())
        }
        SignalKind::ExpertCreated => "EXPERT_CREATED: crypto\nFile: a/crypto.md".to_owned(),
        SignalKind::FileConflict => "FILE CONFLICT: src/a.rs".to_owned(),
        SignalKind::Expanded => {
            "EXPANDED_TASK_SPECIFICATION: task-1\nConfidence: HIGH\nAcceptance Criteria:\n- [ ] x\n"
                .to_owned()
        }
        _ => format!("{}: task-1", kind.as_str()),
    }
}

/// Every situation in which an agent is at work, and the agent.
fn situations() -> Vec<(Role, Scene)> {
    let roles = Role::ALL.iter().copied().filter(|role| *role != Role::Planner);
    let mut all: Vec<_> = roles.map(|role| (role, Scene::with(role, |_| {}))).collect();
    all.push((Role::Planner, Scene::one(|config| config.planner = true)));
    all
}

#[test]
fn what_a_role_may_not_say_changes_nothing_but_the_count() {
    let mut refused = 0;
    for kind in SignalKind::ALL {
        for (role, mut scene) in situations() {
            if kind.may_be_reported_by(role) {
                continue;
            }
            let before = scene.state.clone();
            scene.says(&well_formed(*kind));
            refused += 1;
            let place = format!("{kind:?} by {role:?}: {:#?}", scene.outcome);
            assert!(!scene.outcome.decisions.is_empty(), "recorded: {place}");
            assert_eq!(scene.state.tasks[0].role, before.tasks[0].role, "{place}");
            // Whatever the planner says, the work begins after it.
            let began = role == Role::Planner && scene.status() == Status::Implementing;
            assert!(began || scene.status() == before.tasks[0].status(), "{place}");
            let remediation = |state: &State| state.run.remediation.is_some();
            assert_eq!(remediation(&scene.state), remediation(&before), "{place}");
            let (was, is) = (&before.tasks[0], &scene.state.tasks[0]);
            assert_eq!((&is.spec, &is.holds), (&was.spec, &was.holds), "{place}");
            assert_eq!(
                (is.hands.reviewed_by, is.hands.audited_by),
                (was.hands.reviewed_by, was.hands.audited_by)
            );
            assert_eq!(scene.state.ending(), None, "{place}");
        }
    }
    assert!(refused > 80, "only {refused} pairs");
}

#[test]
fn what_a_role_may_say_is_never_refused_for_its_role() {
    for kind in SignalKind::ALL {
        for (role, mut scene) in situations() {
            if kind.may_be_reported_by(role) {
                scene.says(&well_formed(*kind));
                let codes = scene.outcome.decisions.iter().flat_map(|it| &it.evidence);
                let mut codes = codes.filter_map(|it| it.reason.as_deref());
                assert!(codes.all(|code| code != "role_not_allowed"), "{kind:?} by {role:?}");
            }
        }
    }
}

#[test]
fn words_for_a_task_that_waits_change_nothing() {
    // Nobody is at work on the task in any of these: whoever speaks was dismissed.
    type Made = fn() -> Scene;
    let waiting: [(&str, Made); 6] = [
        ("a human", || {
            let mut scene = Scene::one(|_| {});
            scene.says("SEEKING_DIVINE_CLARIFICATION");
            scene
        }),
        ("infrastructure", || {
            let mut scene = Scene::one(|_| {});
            scene.says("INFRA_BLOCKED: task-1");
            scene
        }),
        ("an expert", || Scene::with(Role::Expert, |_| {})),
        ("a merge", || {
            let mut scene = Scene::with(Role::Auditor, |config| config.worktrees = true);
            scene.says("AUDIT_PASSED: task-1");
            scene
        }),
        ("nothing, complete", || {
            let mut scene = Scene::of(vec![spec("task-1", &[]), spec("task-2", &[])], |_| {});
            for name in ["READY_FOR_REVIEW", "REVIEW_PASSED", "AUDIT_PASSED"] {
                scene.task_says("task-1", name);
            }
            scene
        }),
        ("nothing, failed", || {
            let mut scene = Scene::of(vec![spec("task-1", &[]), spec("task-2", &[])], |_| {});
            scene.says_as(1, "SEEKING_DIVINE_CLARIFICATION");
            scene.answers("fail");
            scene
        }),
    ];
    for (name, scene) in waiting {
        for kind in SignalKind::ALL {
            let mut scene = scene();
            let before = scene.state.clone();
            scene.says_as(1, &well_formed(*kind));
            assert_eq!(scene.state, before, "{kind:?} while it waits for {name}");
            assert_eq!(scene.rules(), [Rule::LateSignal], "{kind:?} while it waits for {name}");
        }
    }
}
