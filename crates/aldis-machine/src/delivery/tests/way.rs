//! The way of a task: who is next after which signal.

use super::*;

#[test]
fn signals_lead_from_role_to_role() {
    use Role::*;
    for (role, text, status, next, rule) in [
        (
            Developer,
            "READY_FOR_REVIEW: task-1",
            "awaiting-review",
            Some(Critic),
            Rule::ReadyForReview,
        ),
        (
            Developer,
            "TASK_INCOMPLETE: task-1",
            "implementing",
            Some(Developer),
            Rule::TaskIncomplete,
        ),
        (
            Developer,
            "INFRA_BLOCKED: task-1",
            "blocked",
            Some(Remediation),
            Rule::RemediationStarted,
        ),
        (Critic, "REVIEW_PASSED: task-1", "awaiting-audit", Some(Auditor), Rule::ReviewPassed),
        (Critic, "REVIEW_FAILED: task-1", "implementing", Some(Developer), Rule::ReviewFailed),
        (Auditor, "AUDIT_PASSED: task-1", "complete", None, Rule::TaskComplete),
        (Auditor, "AUDIT_FAILED: task-1", "implementing", Some(Developer), Rule::AuditFailed),
        (Auditor, "AUDIT_BLOCKED: task-1", "blocked", Some(Remediation), Rule::RemediationStarted),
        (
            Remediation,
            "REMEDIATION_COMPLETE",
            "blocked",
            Some(HealthAuditor),
            Rule::RemediationReported,
        ),
        (
            HealthAuditor,
            "HEALTH_AUDIT: HEALTHY",
            "implementing",
            Some(Developer),
            Rule::RemediationEnded,
        ),
        (
            HealthAuditor,
            "HEALTH_AUDIT: UNHEALTHY",
            "blocked",
            Some(Remediation),
            Rule::RemediationRetried,
        ),
        (
            HealthAuditor,
            "HEALTH_AUDIT: MOSTLY",
            "blocked",
            Some(Remediation),
            Rule::RemediationRetried,
        ),
        (Developer, "SEEKING_DIVINE_CLARIFICATION", "awaiting-guidance", None, Rule::QuestionAsked),
        (Critic, "SEEKING_DIVINE_CLARIFICATION", "awaiting-guidance", None, Rule::QuestionAsked),
        (Expert, "EXPERT_ADVICE: req-1", "implementing", Some(Developer), Rule::ExpertAdvised),
        (Expert, "EXPERT_UNSUCCESSFUL: req-1", "awaiting-guidance", None, Rule::ExpertUnsuccessful),
        (Developer, "FILE CONFLICT: src/a.rs", "implementing", Some(Developer), Rule::FileGranted),
    ] {
        let mut scene = Scene::with(role, |_| {});
        scene.says(text);
        assert_eq!(scene.status().as_str(), status, "{role:?}: {text}");
        assert_eq!(scene.dispatches().first().map(|it| it.role), next, "{role:?}: {text}");
        assert_eq!(scene.rules()[0], rule, "{role:?}: {text}");
    }
}

#[test]
fn an_expansion_replaces_description_and_criteria() {
    let expansion = |confidence: &str| {
        format!(
            "EXPANDED_TASK_SPECIFICATION: task-1\nConfidence: {confidence}\n\n\
             Expanded Specification:\nA CSV with a header.\n\nAcceptance Criteria:\n\
             - [ ] there is a header\n- [ ] quotes are escaped\n\nTarget Files:\n- src/csv.rs\n"
        )
    };
    for confidence in ["HIGH", "MEDIUM"] {
        let mut scene = Scene::with(Role::BusinessAnalyst, |_| {});
        assert_eq!(scene.status(), Status::Expanding);
        scene.says(&expansion(confidence));
        let spec = &scene.task("task-1").spec;
        assert_eq!(spec.description, "A CSV with a header.");
        assert_eq!(spec.acceptance, ["there is a header", "quotes are escaped"]);
        assert_eq!(spec.files, ["src/csv.rs"]);
        assert_eq!(scene.started().role, Role::Developer);
        assert!(scene.task("task-1").holds.contains("src/csv.rs"));
    }
    for (answer, next, criteria) in
        [("accept", Some(Role::Developer), 2), ("no", Some(Role::BusinessAnalyst), 0)]
    {
        let mut scene = Scene::with(Role::BusinessAnalyst, |_| {});
        scene.says(&expansion("LOW"));
        assert_eq!(scene.status(), Status::AwaitingGuidance);
        assert!(scene.task("task-1").spec.acceptance.is_empty(), "nothing before the answer");
        scene.answers(answer);
        assert_eq!(scene.dispatches().first().map(|it| it.role), next, "{answer}");
        assert_eq!(scene.task("task-1").spec.acceptance.len(), criteria, "{answer}");
    }
    // An expansion without criteria is none.
    let mut scene = Scene::with(Role::BusinessAnalyst, |_| {});
    scene.says("EXPANDED_TASK_SPECIFICATION: task-1\nConfidence: HIGH\n");
    assert_eq!(scene.rules()[0], Rule::ReplyRefused);
    assert_eq!(scene.started().role, Role::BusinessAnalyst);
}

#[test]
fn without_an_analyst_a_task_goes_straight_to_a_developer() {
    let task = TaskSpec { acceptance: Vec::new(), ..spec("task-1", &[]) };
    let scene = Scene::of(vec![task], |_| {});
    assert_eq!(scene.started().role, Role::Developer);
}

#[test]
fn a_task_is_complete_after_its_merge_where_there_is_one() {
    let merged = |ok| Event::Merged { task: "task-1".into(), ok, detail: "both changed".into() };
    let mut scene = Scene::with(Role::Auditor, |config| config.worktrees = true);
    scene.happens(&merged(true));
    assert_eq!(scene.outcome, Outcome::default(), "nothing to merge yet");
    scene.says("AUDIT_PASSED: task-1");
    assert_eq!(scene.status(), Status::AwaitingAudit);
    assert!(scene.outcome.effects.contains(&Effect::Merge { task: "task-1".into() }));
    scene.happens(&merged(false));
    assert_eq!(scene.started().role, Role::Developer);
    assert!(scene.started().prompt.contains("> both changed"));
    // Rework always passes the critic again.
    for text in ["READY_FOR_REVIEW: task-1", "REVIEW_PASSED: task-1", "AUDIT_PASSED: task-1"] {
        scene.says(text);
    }
    scene.happens(&merged(true));
    assert_eq!(scene.state.ending(), Some(Ending::Complete));
}

#[test]
fn what_a_reviewer_wants_is_in_the_developers_prompt() {
    let mut scene = Scene::with(Role::Critic, |_| {});
    scene.says(
        "REVIEW_FAILED: task-1\n\nIssues Found:\n- src/a.rs:12: no error handling\n\nRequired \
         Fixes:\n- handle it\n",
    );
    let prompt = &scene.started().prompt;
    for part in ["Open findings", "line 12", "no error handling", "> - handle it"] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    scene.says("READY_FOR_REVIEW: task-1\n\nSummary: handled now\n");
    let prompt = &scene.started().prompt;
    assert!(prompt.contains("> Summary: handled now"), "{prompt}");
    assert!(prompt.contains("Open findings"), "the critic checks them");
}

#[test]
fn rework_passes_the_critic_again_also_after_an_audit() {
    let mut scene = Scene::with(Role::Auditor, |_| {});
    scene.says("AUDIT_FAILED: task-1");
    scene.says("READY_FOR_REVIEW: task-1");
    assert_eq!(scene.started().role, Role::Critic);
}

#[test]
fn a_run_ends_when_every_task_is_complete_or_nothing_else_can_be_done() {
    let mut scene = Scene::with(Role::Auditor, |_| {});
    scene.says("AUDIT_PASSED: task-1");
    assert_eq!(scene.outcome.effects.last(), Some(&Effect::Finish { ending: Ending::Complete }));
    assert!(scene.happens(&Event::Tick).is_nothing(), "an ended run takes nothing");

    let mut scene =
        Scene::of(vec![spec("a", &[]), spec("b", &["a"]), spec("c", &[])], |c| c.slots = 1);
    scene.says("SEEKING_DIVINE_CLARIFICATION\n\nQuestion: how?");
    scene.answers("fail");
    assert_eq!(scene.task("a").status(), Status::Failed);
    for name in ["READY_FOR_REVIEW", "REVIEW_PASSED", "AUDIT_PASSED"] {
        scene.task_says("c", name);
    }
    assert_eq!(scene.state.ending(), Some(Ending::Failed));
    assert_eq!(scene.task("b").status(), Status::Pending);
}

#[test]
fn the_matrix_is_demanded_where_it_is_configured() {
    let demand = |config: &mut Config| {
        config.require_environment_matrix = true;
        config.environments = vec!["Mac".to_owned(), "CI".to_owned()];
    };
    let rows = |rows: &str| format!("\n\nVerification Results:\n{rows}");
    for (name, body, next) in [
        ("none", String::new(), Role::Developer),
        ("one missing", rows("- unit: PASS (Mac)\n"), Role::Developer),
        ("one failed", rows("- unit: PASS (Mac)\n- unit: FAIL (CI)\n"), Role::Developer),
        ("all", rows("- unit: PASS (Mac)\n- unit (CI): PASS\n"), Role::Critic),
    ] {
        let mut scene = Scene::one(demand);
        scene.says(&format!("READY_FOR_REVIEW: task-1{body}"));
        assert_eq!(scene.started().role, next, "{name}");
        let refused = scene.outcome.decisions[0].evidence[0].reason.as_deref();
        let wanted = (next == Role::Developer).then_some("missing_environment_matrix");
        assert_eq!(refused, wanted, "{name}");
    }
    let audit = |body: &str| {
        let mut scene = Scene::one(demand);
        let good = rows("- unit: PASS (Mac)\n- unit (CI): PASS\n");
        scene.says(&format!("READY_FOR_REVIEW: task-1{good}"));
        scene.says("REVIEW_PASSED: task-1");
        scene.says(&format!("AUDIT_PASSED: task-1\n\nVerification Results:\n{body}"));
        scene
    };
    // A failed row beats a verified claim, and is a failed audit.
    let scene = audit("- csv: VERIFIED - seen\n- unit (CI): FAIL\n");
    assert_eq!(scene.started().role, Role::Developer);
    assert_eq!(scene.task("task-1").counters.audit_failures, 1);
    let scene = audit("- unit: PASS (Mac)\n- unit (CI): PASS\n");
    assert_eq!(scene.state.ending(), Some(Ending::Complete));
}

#[test]
fn a_developer_goes_on_with_its_own_session() {
    let mut scene = Scene::one(|_| {});
    let developer = scene.only_agent().0;
    scene.says("READY_FOR_REVIEW: task-1");
    assert_eq!(scene.started().resume, None);
    scene.says("REVIEW_FAILED: task-1\nIssues Found:\n- a.rs:1: wrong");
    assert_eq!((scene.started().role, scene.started().resume), (Role::Developer, Some(developer)));
    scene.says("READY_FOR_REVIEW: task-1");
    assert_eq!(scene.started().resume, None, "a critic looks with fresh eyes");
    scene.says("REVIEW_PASSED: task-1");
    scene.says("AUDIT_FAILED: task-1\nFailed Criteria:\n- the tests pass");
    assert_eq!(scene.started().resume, Some(developer + 2));
    scene.crashes(scene.only_agent().0);
    assert_eq!(scene.started().resume, None, "what crashed is not trusted again");
}
