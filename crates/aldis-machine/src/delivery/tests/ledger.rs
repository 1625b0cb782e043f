//! Findings: the same one is recognised, and what is settled stays settled.

use super::*;

fn failed(issue: &str, more: &str) -> String {
    format!("REVIEW_FAILED: task-1\n\nIssues Found:\n- {issue}\n\n{more}")
}

/// Many rounds before a human is asked.
fn patient(config: &mut Config) {
    (config.failure_limit, config.plateau_rounds) = (99, 99);
}

fn statuses(scene: &Scene) -> Vec<FindingStatus> {
    scene.task("task-1").ledger.findings().iter().map(|found| found.status).collect()
}

/// The critic refuses, the developer hands over again.
fn round(scene: &mut Scene, verdict: &str, answer: &str) {
    scene.says(verdict);
    scene.says(&format!("READY_FOR_REVIEW: task-1\n\n{answer}"));
}

#[test]
fn a_finding_is_known_by_its_place_and_its_words() {
    let mut scene = Scene::with(Role::Critic, patient);
    round(&mut scene, &failed("src/a.rs:12: No error handling!", ""), "");
    round(&mut scene, &failed("src/a.rs:12: no  error handling", ""), "");
    let findings = scene.task("task-1").ledger.findings();
    assert_eq!((findings.len(), findings[0].raised), (1, 2));
    // Another file, another line and another number are another finding.
    for (count, other) in [
        (2, "src/b.rs:12: no error handling"),
        (3, "src/a.rs:19: no error handling"),
        (4, "src/a.rs:12: no error handling in case 1"),
        (5, "src/a.rs:12: no error handling in case 2"),
    ] {
        round(&mut scene, &failed(other, ""), "");
        assert_eq!(statuses(&scene).len(), count, "{other}");
        assert_eq!(statuses(&scene).last(), Some(&FindingStatus::Open), "{other}");
    }
    scene.says("REVIEW_PASSED: task-1");
    assert_eq!(statuses(&scene), [FindingStatus::Fixed; 5]);
}

#[test]
fn a_settled_finding_needs_new_evidence() {
    let mut scene = Scene::with(Role::Critic, patient);
    let again = failed("src/a.rs:1: wrong name", "");
    round(&mut scene, &again, "");
    round(&mut scene, &failed("src/a.rs:2: other thing", ""), "");
    assert_eq!(statuses(&scene), [FindingStatus::Fixed, FindingStatus::Open]);
    let before = scene.task("task-1").counters.review_failures;
    scene.says(&again);
    assert_eq!(scene.rules()[0], Rule::ReplyRefused);
    assert_eq!(scene.started().role, Role::Critic, "the critic, not the developer");
    assert!(scene.started().prompt.contains("settled_finding"));
    assert!(scene.started().prompt.contains("Settled findings"));
    assert_eq!(scene.task("task-1").counters.review_failures, before, "no failure of the task");
    scene.says(&failed("src/a.rs:1: wrong name", "Evidence: the linter says so\n"));
    assert_eq!(scene.started().role, Role::Developer);
    assert_eq!(statuses(&scene)[0], FindingStatus::Open);
    // The same evidence is not new a second time.
    scene.says("READY_FOR_REVIEW: task-1");
    round(&mut scene, &failed("src/a.rs:3: third", ""), "");
    assert_eq!(statuses(&scene)[0], FindingStatus::Fixed);
    scene.says(&failed("src/a.rs:1: wrong name", "Evidence: the linter says so\n"));
    assert_eq!(scene.rules()[0], Rule::ReplyRefused);
}

/// Findings that differ in a number are several, in one review and after one was fixed.
#[test]
fn findings_that_differ_in_a_number_are_different() {
    let mut scene = Scene::with(Role::Critic, patient);
    let cases = "src/a.rs:10: no test for case 1\n- src/a.rs:10: no test for case 2";
    round(&mut scene, &failed(cases, ""), "");
    let prompt = &scene.started().prompt;
    assert!(prompt.contains("case 1") && prompt.contains("case 2"), "{prompt}");
    assert!(!prompt.contains("raised 2 times"), "{prompt}");
    round(&mut scene, &failed("src/a.rs:10: no test for case 2", ""), "");
    scene.says(&failed("src/a.rs:99: no test for case 3", ""));
    assert_eq!(scene.rules()[0], Rule::ReviewFailed);
    assert_eq!(scene.started().role, Role::Developer);
}

/// An auditor that finds what a critic once found does not raise a settled finding.
#[test]
fn reviews_and_audits_have_findings_of_their_own() {
    let mut scene = Scene::with(Role::Critic, patient);
    round(&mut scene, &failed("src/a.rs:1: wrong name", ""), "");
    scene.says("REVIEW_PASSED: task-1");
    scene.says("AUDIT_FAILED: task-1\n\nIssues Found:\n- src/a.rs:1: wrong name\n");
    assert_eq!(scene.rules()[0], Rule::AuditFailed);
    assert_eq!(statuses(&scene), [FindingStatus::Fixed, FindingStatus::Open]);
}

#[test]
fn the_plateau_counts_reviews_and_audits_apart() {
    let audit = "AUDIT_FAILED: task-1\n\nFailed Criteria:\n- the tests pass\n";
    for verdicts in [
        [&*failed("src/a.rs:1: one", ""), &*failed("src/a.rs:2: two", ""), audit],
        ["REVIEW_FAILED: task-1", "REVIEW_FAILED: task-1", "AUDIT_FAILED: task-1"],
    ] {
        let mut scene = Scene::with(Role::Critic, |config| {
            (config.failure_limit, config.plateau_rounds) = (99, 3);
        });
        for verdict in verdicts {
            if verdict.starts_with("AUDIT") {
                scene.says("REVIEW_PASSED: task-1");
            }
            scene.says(verdict);
            assert!(scene.state.run.questions.is_empty(), "{verdict}");
            scene.says("READY_FOR_REVIEW: task-1");
        }
        scene.says(&failed("src/a.rs:3: three", ""));
        assert_eq!(scene.rules()[0], Rule::ReviewPlateau, "the third review of its own kind");
    }
}

#[test]
fn what_was_not_fixed_can_be_raised_again_at_once() {
    let mut scene = Scene::with(Role::Critic, |_| {});
    round(&mut scene, &failed("src/a.rs:1: wrong name", ""), "");
    scene.says(&failed("src/a.rs:1: wrong name", ""));
    assert_eq!(scene.started().role, Role::Developer);
    assert!(scene.started().prompt.contains("raised 2 times"));
}

#[test]
fn a_developer_can_dispute() {
    let mut scene = Scene::with(Role::Critic, patient);
    let disputed = "Disputed:\n- wrong name: it is the name in the RFC\n";
    round(&mut scene, &failed("src/a.rs:1: wrong name", ""), disputed);
    assert_eq!(statuses(&scene), [FindingStatus::Disputed]);
    let prompt = &scene.started().prompt;
    assert!(prompt.contains("Disputed findings") && prompt.contains("RFC"), "{prompt}");
    // Who does not insist lets it go.
    round(&mut scene, &failed("src/a.rs:2: other", ""), "");
    assert_eq!(statuses(&scene), [FindingStatus::Withdrawn, FindingStatus::Open]);
    scene.says(&failed("src/a.rs:1: wrong name", ""));
    assert_eq!(scene.rules()[0], Rule::ReplyRefused);
}

#[test]
fn rounds_that_bring_nothing_ask_a_human() {
    let mut scene = Scene::with(Role::Critic, |config| {
        (config.failure_limit, config.plateau_rounds) = (99, 3);
    });
    for (issue, asked) in [("one thing", false), ("another", false), ("a third", true)] {
        scene.says(&failed(&format!("src/a.rs:1: {issue}"), ""));
        assert_eq!(!scene.state.run.questions.is_empty(), asked, "{issue}");
        if !asked {
            scene.says("READY_FOR_REVIEW: task-1");
        }
    }
    // Fewer from round to round is fine.
    let mut scene = Scene::with(Role::Critic, |config| {
        (config.failure_limit, config.plateau_rounds) = (99, 3);
    });
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
    for open in (1..=5).rev() {
        let issues: Vec<String> =
            words[..open].iter().map(|word| format!("- src/a.rs:1: {word}")).collect();
        scene.says(&format!("REVIEW_FAILED: task-1\n\nIssues Found:\n{}\n", issues.join("\n")));
        assert!(scene.state.run.questions.is_empty(), "{open}");
        scene.says("READY_FOR_REVIEW: task-1");
    }
}

#[test]
fn an_auditor_judges_criteria_only() {
    let mut scene = Scene::with(Role::Auditor, |_| {});
    scene.says(
        "AUDIT_FAILED: task-1\n\nFailed Criteria:\n- the tests pass: FAILED - two fail\n\nIssues \
         Found:\n- src/a.rs:1: I dislike the name\n",
    );
    let findings = scene.task("task-1").ledger.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((&*findings[0].file, findings[0].by), ("criterion", Role::Auditor));
}

#[test]
fn the_ledger_does_not_grow_for_ever() {
    let mut scene = Scene::with(Role::Critic, |config| {
        (config.failure_limit, config.plateau_rounds, config.dispatch_limit) = (999, 999, 9_999);
    });
    let name = |mut number: usize| {
        let mut name = String::new();
        while number > 0 {
            name.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
            number /= 26;
        }
        name
    };
    for first in 0..12 {
        let issues: Vec<String> =
            (0..30).map(|n| format!("- src/a.rs:1: x {}", name(first * 30 + n + 1))).collect();
        let verdict = format!("REVIEW_FAILED: task-1\n\nIssues Found:\n{}\n", issues.join("\n"));
        round(&mut scene, &verdict, "");
    }
    let findings = scene.task("task-1").ledger.findings();
    assert_eq!(findings.len(), 200);
    assert_eq!(scene.task("task-1").ledger.with_status(FindingStatus::Open).count(), 30);
}
