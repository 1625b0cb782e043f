//! Who may say what about which task.

use super::*;
use aldis_signal::signal::Via;

#[test]
fn a_signal_counts_only_from_the_right_agent_about_the_right_task() {
    use Role::*;
    for (role, text, code) in [
        (Developer, "AUDIT_PASSED: task-1", "role_not_allowed"),
        (Developer, "REVIEW_PASSED: task-1", "role_not_allowed"),
        (Critic, "AUDIT_PASSED: task-1", "role_not_allowed"),
        (Auditor, "READY_FOR_REVIEW: task-1", "role_not_allowed"),
        (Developer, "READY_FOR_REVIEW: task-9", "subject_mismatch"),
        (Critic, "REVIEW_PASSED: task-9", "subject_mismatch"),
        (Auditor, "AUDIT_PASSED: task-9", "subject_mismatch"),
        (Developer, "SEEKING_DIVINE_CLARIFICATION\n\nTask: task-9", "subject_mismatch"),
        (Developer, "HEALTH_AUDIT: HEALTHY", "role_not_allowed"),
        (Developer, "EXPERT_ADVICE: req-1", "role_not_allowed"),
    ] {
        let mut scene = Scene::with(role, |_| {});
        let before = scene.status();
        scene.says(text);
        assert_eq!(scene.status(), before, "{role:?}: {text}");
        let noted = &scene.outcome.decisions[0];
        assert_eq!(rule(&noted.rule), Rule::ReplyRefused, "{role:?}: {text}");
        assert_eq!(noted.evidence[0].reason.as_deref(), Some(code), "{role:?}: {text}");
        // The same agent is started again and told why.
        let started = scene.started();
        assert_eq!(
            (started.role, started.resume),
            (role, Some(scene.state.run.agents_started - 1))
        );
        assert!(started.prompt.contains(code), "{}", started.prompt);
    }
}

/// Of two ids the agent's own one counts, and the other one is recorded.
#[test]
fn of_two_ids_the_own_one_counts() {
    for text in [
        "READY_FOR_REVIEW: task-9\n\nREADY_FOR_REVIEW: task-1\n",
        "READY_FOR_REVIEW: task-1\n\nREADY_FOR_REVIEW: task-9\n",
    ] {
        let mut scene = Scene::one(|_| {});
        scene.says(text);
        assert_eq!(scene.started().role, Role::Critic);
        assert_eq!(scene.rules()[..2], [Rule::SignalRefused, Rule::ReadyForReview], "{text}");
        let ignored = &scene.outcome.decisions[0];
        assert_eq!(ignored.because, "subject_mismatch: it names task-9, but the task is task-1");
        assert_eq!(ignored.evidence[0].quote, "READY_FOR_REVIEW: task-9");
    }
}

#[test]
fn a_refusal_reads_the_right_way_round() {
    for (role, text, because) in [
        (
            Role::Developer,
            "READY_FOR_REVIEW: task-9",
            "the developer reported nothing that counts: READY_FOR_REVIEW (subject_mismatch: it \
             names task-9, but the task is task-1)",
        ),
        (
            Role::Auditor,
            "REVIEW_PASSED: task-1",
            "the auditor reported nothing that counts: REVIEW_PASSED (role_not_allowed: an auditor \
             may not report it)",
        ),
    ] {
        let mut scene = Scene::with(role, |_| {});
        scene.says(text);
        assert_eq!(scene.outcome.decisions[0].because, because);
    }
    let mut scene = Scene::with(Role::Expert, |_| {});
    scene.says("SEEKING_DIVINE_CLARIFICATION");
    let because = "role_not_allowed: an expert may not report it";
    assert_eq!(scene.outcome.decisions[0].because, because);
}

#[test]
fn an_approval_after_a_rejection_is_neither() {
    use Role::*;
    for (role, text, taken) in [
        (Critic, "REVIEW_FAILED: task-1\n\nREVIEW_PASSED: task-1\n", None),
        (Critic, "REVIEW_PASSED: task-1\n\nREVIEW_FAILED: task-1\n", Some(Rule::ReviewFailed)),
        (Critic, "REVIEW_FAILED: task-9\n\nREVIEW_PASSED: task-1\n", Some(Rule::SignalRefused)),
        (Critic, "AUDIT_FAILED: task-1\n\nREVIEW_PASSED: task-1\n", Some(Rule::SignalRefused)),
        (Auditor, "AUDIT_FAILED: task-1\n\nAUDIT_PASSED: task-1\n", None),
        (Auditor, "AUDIT_PASSED: task-1\n\nAUDIT_FAILED: task-1\n", Some(Rule::AuditFailed)),
        (
            Auditor,
            "AUDIT_FAILED: task-1\n\nAUDIT_PASSED: task-1\n\nAUDIT_FAILED: task-1\n",
            Some(Rule::AuditFailed),
        ),
        (
            Auditor,
            "AUDIT_FAILED: task-1\n\nAUDIT_PASSED: task-1\n\nAUDIT_BLOCKED: task-1\n",
            Some(Rule::RemediationStarted),
        ),
    ] {
        let mut scene = Scene::with(role, |_| {});
        let (before, counters) = (scene.status(), scene.state.tasks[0].counters);
        scene.says(text);
        if let Some(rule) = taken {
            assert_eq!(scene.rules()[0], rule, "{text}");
            continue;
        }
        assert_eq!(scene.status(), before, "{text}");
        let now = scene.state.tasks[0].counters;
        let failures = |counters: Counters| (counters.review_failures, counters.audit_failures);
        assert_eq!(failures(now), failures(counters), "{text}");
        let noted = &scene.outcome.decisions[0];
        assert_eq!(noted.evidence[0].reason.as_deref(), Some("contradictory"), "{text}");
        let started = scene.started();
        assert_eq!(started.role, role, "{text}");
        assert!(started.prompt.contains("report only the one that holds"), "{}", started.prompt);
    }
    // Nor is a repair judged by both verdicts at once, or by one that is none.
    for text in [
        "HEALTH_AUDIT: UNHEALTHY\n\nHEALTH_AUDIT: HEALTHY\n",
        "HEALTH_AUDIT: healthy\n",
        "HEALTH_AUDIT: MOSTLY\n",
    ] {
        let mut scene = Scene::with(HealthAuditor, |_| {});
        scene.says(text);
        assert_eq!(scene.started().role, Remediation, "{text}");
        assert_eq!(scene.state.run.remediation.as_ref().unwrap().attempts, 2, "{text}");
    }
}

#[test]
fn late_words_change_nothing_and_are_recorded() {
    let mut scene = Scene::with(Role::Critic, |_| {});
    let late = scene.only_agent().0;
    scene.waits(600);
    assert!(scene.outcome.effects.contains(&Effect::End { agent: late }));
    let now = scene.only_agent().0;
    let before = scene.state.clone();
    scene.says_as(late, "REVIEW_PASSED: task-1");
    assert_eq!(scene.state, before);
    assert_eq!(scene.rules(), [Rule::LateSignal]);
    assert_eq!(scene.outcome.decisions[0].task.as_deref(), Some("task-1"));
    assert_eq!(scene.notices(), [(Notice::LateSignalIgnored, Severity::Info)]);
    // Nor does a second delivery, a sign of life, or somebody who never was.
    for agent in [late, 99] {
        scene.happens(&Event::Active { agent });
        assert!(scene.outcome.is_nothing(), "{agent}");
    }
    scene.says_as(99, "REVIEW_PASSED: task-1");
    assert!(scene.outcome.is_nothing());
    scene.says_as(now, "REVIEW_PASSED: task-1");
    scene.says_as(now, "REVIEW_PASSED: task-1");
    assert_eq!(scene.rules(), [Rule::LateSignal], "a repetition");
    assert_eq!(scene.status(), Status::AwaitingAudit);
}

#[test]
fn the_highest_priority_goes_first_and_the_rest_is_told() {
    for (text, first) in [
        ("READY_FOR_REVIEW: task-1\n\nINFRA_BLOCKED: task-1\n", Rule::RemediationStarted),
        ("INFRA_BLOCKED: task-1\n\nREADY_FOR_REVIEW: task-1\n", Rule::RemediationStarted),
        ("READY_FOR_REVIEW: task-1\n\nSEEKING_DIVINE_CLARIFICATION\n", Rule::QuestionAsked),
        ("READY_FOR_REVIEW: task-1\n\nFILE CONFLICT: src/a.rs\n", Rule::FileGranted),
        ("FILE CONFLICT: src/a.rs\n\nSEEKING_DIVINE_CLARIFICATION\n", Rule::QuestionAsked),
        ("READY_FOR_REVIEW: task-1\n\nTASK_INCOMPLETE: task-1\n", Rule::TaskIncomplete),
        ("TASK_INCOMPLETE: task-1\n\nREADY_FOR_REVIEW: task-1\n", Rule::ReadyForReview),
    ] {
        let mut scene = Scene::one(|_| {});
        scene.says(text);
        assert_eq!(scene.rules()[0], first, "{text}");
    }
    let mut scene = Scene::one(|_| {});
    scene.says("READY_FOR_REVIEW: task-1\n\nINFRA_BLOCKED: task-1\n\nIssue: disk full\n");
    scene.says("REMEDIATION_COMPLETE");
    scene.says("HEALTH_AUDIT: HEALTHY");
    let prompt = &scene.started().prompt;
    assert!(prompt.contains("also reported READY_FOR_REVIEW"), "{prompt}");
}

#[test]
fn a_crash_outranks_every_word() {
    let mut scene = Scene::one(|_| {});
    let agent = scene.only_agent().0;
    let reply =
        AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, "READY_FOR_REVIEW: task-1");
    let exit = Some(Exit { code: None, signal: Some(11) });
    scene.happens(&Event::Finished { agent, exit, reply });
    assert_eq!(scene.started().role, Role::Developer);
    assert_eq!(scene.task("task-1").counters.timeouts, 1);
}

#[test]
fn tokens_differ_between_agents_and_are_required_where_that_is_asked_for() {
    let plan = Plan { title: String::new(), tasks: vec![spec("task-1", &[])] };
    let token = crate::phases::TokenPolicy::Require;
    let config = Config { token, ..Config::default() };
    let start = Start { plan, config, token: Some("secret".to_owned()) };
    let mut scene =
        Scene { state: State::start(at(0), start), seconds: 0, outcome: Outcome::default() };
    scene.happens(&Event::Begin);
    let code = scene.state.token_of(1).unwrap();
    assert_ne!(Some(&code), scene.state.token_of(2).as_ref());
    assert!(scene.started().prompt.contains(&code) && !scene.started().prompt.contains("secret"));
    scene.says("READY_FOR_REVIEW: task-1");
    assert_eq!(scene.rules()[0], Rule::UnknownReply, "no code, no signal");
    let code = scene.state.token_of(2).unwrap();
    scene.says(&format!("READY_FOR_REVIEW: task-1\n\nTOKEN: {code}\n"));
    assert_eq!(scene.started().role, Role::Critic);
}

#[test]
fn neither_secrets_nor_tokens_are_kept() {
    let key = format!("ghp_{}", "x".repeat(36));
    let token = aldis_signal::Token::Accept("k7qz".to_owned());
    for text in [
        "It is KEY.\n\nREADY_FOR_REVIEW: task-1\nSummary: KEY works\nFiles Modified:\n- a.rs:1: KEY\n",
        "SEEKING_DIVINE_CLARIFICATION\nTask: task-1\nQuestion: is KEY ours?\nTOKEN: k7qz\n",
        "k7qz, and FILE CONFLICT: KEY\n",
        " READY_FOR_REVIEW: task-1 KEY k7qz\n",
    ] {
        let reply = AgentReply::read(Rules::builtin(), &token, &text.replace("KEY", &key));
        let stored = serde_json::to_string(&reply).unwrap();
        assert!(!stored.contains(&key) && !stored.contains("k7qz"), "{text:?}: {stored}");
        assert!(!stored.contains("xxxx"), "half a key is one, too: {stored}");
    }
}

#[test]
fn the_dialect_and_the_machine_know_the_same_signals() {
    let dialect = aldis_signal::Dialect::builtin(DIALECT).unwrap();
    let spoken: Vec<&str> = dialect.signals.iter().map(|signal| &*signal.name).collect();
    let known: Vec<&str> = SignalKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(spoken, known);
    for kind in SignalKind::ALL {
        assert_eq!(SignalKind::named(kind.as_str()), Some(*kind));
        let sayers = Role::ALL.iter().filter(|role| kind.may_be_reported_by(**role)).count();
        assert!(sayers > 0, "nobody may say {kind:?}");
    }
    assert_eq!(SignalKind::InfraBlocked.priority(), 1);
    assert!(!SignalKind::SeekingClarification.may_be_reported_by(Role::Expert));
    assert!(SignalKind::SeekingClarification.may_be_reported_by(Role::Critic));
    assert!(SignalKind::ExpertCreated.may_be_reported_by(Role::Planner));
}

/// Who is believed when an agent reports in several ways in one reply.
#[test]
fn a_stronger_report_beats_a_weaker_one() {
    use Role::{Critic, Developer};
    for (name, role, text, call, first, status) in [
        (
            "another word",
            Developer,
            "TASK_INCOMPLETE: task-1\nBlocker: no key\n",
            ("READY_FOR_REVIEW", Some("task-1")),
            Rule::SignalRefused,
            Status::AwaitingReview,
        ),
        (
            "a verdict is no contradiction then",
            Critic,
            "REVIEW_FAILED: task-1\nIssues Found:\n- a.rs:1: x\n",
            ("REVIEW_PASSED", Some("task-1")),
            Rule::SignalRefused,
            Status::AwaitingAudit,
        ),
        (
            "the same counts once",
            Critic,
            "REVIEW_PASSED: task-1\n",
            ("REVIEW_PASSED", Some("task-1")),
            Rule::ReviewPassed,
            Status::AwaitingAudit,
        ),
    ] {
        let mut scene = Scene::with(role, |_| {});
        let agent = scene.only_agent().0;
        let token = scene.state.expected_token(agent);
        let mut reply = AgentReply::read(Rules::builtin(), &token, text);
        let meaning = SignalKind::named(call.0).unwrap().meaning();
        let mut called =
            aldis_signal::Signal::by_call("delivery", call.0, meaning, Via::Call, "called".into());
        called.subject = call.1.map(str::to_owned);
        reply.add_call(&called);
        scene.happens(&Event::Finished { agent, exit: None, reply });
        assert_eq!(scene.status(), status, "{name}");
        assert_eq!(scene.rules()[0], first, "{name}");
        let noted = &scene.outcome.decisions[0];
        if first == Rule::SignalRefused {
            assert_eq!(noted.evidence[0].reason.as_deref(), Some("outranked"), "{name}");
            assert!(text.starts_with(&noted.evidence[0].quote[..15]), "{name}");
            assert!(noted.because.contains("by tool call"), "{name}: {}", noted.because);
        }
    }
}
