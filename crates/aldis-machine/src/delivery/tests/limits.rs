//! Limits: each is reached exactly, and then a human is asked.

use super::*;

/// Lets something happen again and again; returns how often until a human was asked.
fn until_asked(scene: &mut Scene, mut again: impl FnMut(&mut Scene)) -> u32 {
    for times in 1..100 {
        again(scene);
        if !scene.state.run.questions.is_empty() {
            assert_eq!(scene.status(), Status::AwaitingGuidance);
            assert!(scene.notices().contains(&(Notice::Question, Severity::Warning)));
            assert!(scene.state.waits_for_human());
            return times;
        }
    }
    panic!("no human was asked");
}

#[test]
fn the_third_failure_asks_a_human_and_reviews_and_audits_count_apart() {
    let mut scene = Scene::one(|_| {});
    let failed = until_asked(&mut scene, |scene| {
        scene.says("READY_FOR_REVIEW: task-1");
        scene.says("REVIEW_FAILED: task-1");
    });
    assert_eq!(failed, 3);
    scene.answers("Keep it simple.");
    let started = scene.started();
    assert_eq!(started.role, Role::Developer);
    assert!(started.prompt.contains("> Keep it simple."), "{}", started.prompt);
    assert_eq!(scene.task("task-1").counters.review_failures, 0, "the count begins anew");

    let mut scene = Scene::one(|config| config.plateau_rounds = 99);
    for verdicts in
        [["REVIEW_FAILED", "x"], ["REVIEW_FAILED", "x"], ["REVIEW_PASSED", "AUDIT_FAILED"]]
    {
        scene.says("READY_FOR_REVIEW: task-1");
        for verdict in verdicts.iter().filter(|verdict| **verdict != "x") {
            scene.says(&format!("{verdict}: task-1"));
        }
    }
    let counters = scene.task("task-1").counters;
    assert_eq!((counters.review_failures, counters.audit_failures), (2, 1));
    assert!(scene.state.run.questions.is_empty());
}

#[test]
fn other_limits_ask_a_human() {
    let silent = |scene: &mut Scene| scene.says("Almost there!");
    let refused = |scene: &mut Scene| scene.says("AUDIT_PASSED: task-1");
    let crash = |scene: &mut Scene| scene.crashes(scene.only_agent().0);
    let slow = |scene: &mut Scene| {
        scene.waits(900);
    };
    let give_back = |scene: &mut Scene| scene.says("TASK_INCOMPLETE: task-1");
    assert_eq!(until_asked(&mut Scene::one(|_| {}), refused), 5);
    assert_eq!(until_asked(&mut Scene::one(|_| {}), crash), 3);
    assert_eq!(until_asked(&mut Scene::one(|_| {}), slow), 3);
    assert_eq!(until_asked(&mut Scene::one(|_| {}), give_back), 3);
    // Three replies without a signal are one timeout, and three of those ask.
    assert_eq!(until_asked(&mut Scene::one(|_| {}), silent), 9);
}

#[test]
fn no_agent_can_go_on_for_ever() {
    // Each of these is a valid signal that leads back to the same role.
    for text in ["FILE CONFLICT: src/a.rs", "CHECKPOINT: task-1", REQUEST] {
        let mut scene = Scene::one(|config| config.dispatch_limit = 7);
        scene.state.run.experts.known.insert("crypto".to_owned(), String::new());
        let times = until_asked(&mut scene, |scene| {
            scene.says(text);
            if scene.state.run.agents.values().any(|agent| agent.role == Role::Expert) {
                let id = scene.state.run.experts.consultations.keys().next().unwrap().clone();
                scene.says(&format!("EXPERT_ADVICE: {id}"));
            }
        });
        assert!(times <= 7, "{text}: {times}");
    }
}

#[test]
fn replies_without_a_signal_are_recovered_from() {
    let mut scene = Scene::one(|_| {});
    for (attempt, level) in [(1, Severity::Warning), (2, Severity::Error)] {
        let agent = scene.only_agent().0;
        scene.says("**READY_FOR_REVIEW: task-1**");
        assert_eq!(scene.notices(), [(Notice::UnknownSignalRecovery, level)]);
        assert_eq!(scene.task("task-1").counters.unknown, attempt);
        // The same session goes on, and is told what was almost right.
        let started = scene.started();
        assert_eq!((started.role, started.resume), (Role::Developer, Some(agent)));
        assert!(started.prompt.contains("is almost one"), "{}", started.prompt);
    }
    scene.says("");
    assert_eq!(scene.notices(), [(Notice::AgentSignalFailure, Severity::Error)]);
    let counters = scene.task("task-1").counters;
    assert_eq!((counters.unknown, counters.timeouts), (0, 1));
    let started = scene.started();
    assert_eq!(started.resume, None, "another agent");
    for line in ["    READY_FOR_REVIEW: task-1\n", "    SEEKING_DIVINE_CLARIFICATION\n"] {
        assert_eq!(started.prompt.matches(line).count(), 2, "{}", started.prompt);
    }
}

#[test]
fn a_checkpoint_does_not_reset_the_count_of_unknown_replies_and_a_signal_does() {
    let mut scene = Scene::one(|_| {});
    scene.says("Almost there!");
    scene.says("Almost there!");
    let agent = scene.only_agent().0;
    let text = "CHECKPOINT: task-1\n\nProgress: 10%";
    let reply = AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, text);
    scene.happens(&Event::Reported { agent, reply });
    assert_eq!(scene.rules(), [Rule::CheckpointReceived]);
    assert_eq!(scene.task("task-1").counters.unknown, 2);
    assert_eq!(scene.task("task-1").progress.as_deref(), Some("10%"));
    assert_eq!(scene.status(), Status::Implementing);
    assert_eq!(scene.only_agent().0, agent, "it works on");
    // Before the end only a checkpoint counts.
    let reply =
        AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, "READY_FOR_REVIEW: task-1");
    assert!(scene.happens(&Event::Reported { agent, reply }).is_nothing());
    scene.says("READY_FOR_REVIEW: task-1");
    assert_eq!(scene.task("task-1").counters.unknown, 0);
}

#[test]
fn agents_that_can_be_asked_are_asked() {
    let asked = |scene: &Scene| {
        let request = |effect: &Effect| match effect {
            Effect::Request { request, .. } => Some(*request),
            _ => None,
        };
        scene.outcome.effects.iter().find_map(request)
    };
    let mut scene = Scene::one(|config| config.requests = true);
    let agent = scene.only_agent().0;
    scene.says("Almost there!");
    assert_eq!(asked(&scene), Some(AgentRequest::Checkpoint));
    assert_eq!(scene.only_agent().0, agent, "the agent is still there");
    let reply = AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, "CHECKPOINT: task-1");
    scene.happens(&Event::Reported { agent, reply });
    assert_eq!(asked(&scene), Some(AgentRequest::Resend));
    // Unanswered within 30 seconds it is a timeout.
    scene.says("Really, almost!");
    scene.waits(29);
    assert_eq!(scene.only_agent().0, agent);
    scene.waits(2);
    assert!(scene.outcome.effects.contains(&Effect::End { agent }));
    assert_eq!(scene.task("task-1").counters.timeouts, 1);
    // Three in a row replace it.
    let agent = scene.only_agent().0;
    for _ in 0..3 {
        scene.says_as(agent, "Hm.");
    }
    assert_ne!(scene.only_agent().0, agent);
    assert_eq!(scene.task("task-1").counters.timeouts, 2);
}

impl Scene {
    fn reports(&mut self, agent: u64, text: &str) {
        let reply = AgentReply::read(Rules::builtin(), &self.state.expected_token(agent), text);
        self.happens(&Event::Reported { agent, reply });
    }
}

/// Whoever is asked for a checkpoint may send one, whatever its role.
#[test]
fn whoever_is_asked_for_a_checkpoint_may_send_one() {
    use Role::*;
    for role in [Developer, Critic, Auditor, BusinessAnalyst, Remediation, HealthAuditor, Expert] {
        let mut scene = Scene::with(role, |config| config.requests = true);
        let agent = scene.only_agent().0;
        if role != Developer {
            scene.reports(agent, "CHECKPOINT: task-1\n\nProgress: 10%");
            assert_eq!(scene.rules(), [Rule::SignalRefused], "{role:?} was not asked");
        }
        scene.says("Almost there!");
        assert!(scene.rules().contains(&Rule::UnknownReply), "{role:?}: {:?}", scene.outcome);
        scene.waits(20);
        scene.reports(agent, "CHECKPOINT: task-1\n\nProgress: 50%");
        assert_eq!(scene.rules(), [Rule::CheckpointReceived], "{role:?}");
        let summary = &scene.outcome.decisions[0].summary;
        assert_eq!(summary, "Received a checkpoint: 50%", "{role:?}");
        scene.waits(20);
        assert_eq!(scene.only_agent().0, agent, "the {role:?} was ended for its checkpoint");
    }
}

/// The steps for replies without a signal are reached by an agent that answers each request.
#[test]
fn answering_requests_does_not_put_off_the_replacement() {
    let mut scene = Scene::one(|config| config.requests = true);
    let agent = scene.only_agent().0;
    for (attempt, level) in [(1, Severity::Warning), (2, Severity::Error)] {
        scene.says("Almost there!");
        assert_eq!(scene.notices(), [(Notice::UnknownSignalRecovery, level)]);
        assert_eq!(scene.task("task-1").counters.unknown, attempt);
        scene.reports(agent, "CHECKPOINT: task-1\n\nProgress: 50%");
    }
    scene.says("Almost there!");
    assert_eq!(scene.notices(), [(Notice::AgentSignalFailure, Severity::Error)]);
    assert_ne!(scene.only_agent().0, agent);
}

#[test]
fn signs_of_life_are_asked_for_and_three_misses_are_a_stall() {
    let mut scene = Scene::one(|config| {
        config.requests = true;
        config.timeouts.developer = 9_000;
    });
    let agent = scene.only_agent().0;
    for misses in 1..=3 {
        scene.waits(300);
        let asked = |effect: &Effect| matches!(effect, Effect::Request { .. });
        assert!(scene.outcome.effects.iter().any(asked), "miss {misses}");
        scene.waits(30);
    }
    assert!(scene.outcome.effects.contains(&Effect::End { agent }));
    assert_eq!(scene.task("task-1").counters.timeouts, 1);
    // For processes any sign of life will do.
    let mut scene = Scene::one(|config| config.timeouts.developer = 9_000);
    let agent = scene.only_agent().0;
    for _ in 0..10 {
        scene.waits(299);
        scene.happens(&Event::Active { agent });
    }
    assert_eq!(scene.only_agent().0, agent);
    for _ in 0..3 {
        scene.waits(301);
        scene.waits(31);
    }
    assert_ne!(scene.only_agent().0, agent, "three misses");
}

#[test]
fn wake_ups_come_when_something_is_due() {
    let mut scene = Scene::one(|_| {});
    assert_eq!(scene.woken(), Some(at(301)), "a sign of life is due after five minutes");
    let agent = scene.only_agent().0;
    scene.waits(100);
    scene.happens(&Event::Active { agent });
    assert_eq!(scene.woken(), Some(at(301)), "the one that is set is early enough");
    scene.seconds = 300;
    scene.happens(&Event::Tick);
    assert_eq!(scene.woken(), Some(at(402)), "five minutes after the sign of life");
}

#[test]
fn each_role_has_its_own_time() {
    use Role::*;
    for (role, minutes) in [
        (Developer, 15),
        (Critic, 10),
        (Auditor, 10),
        (Remediation, 5),
        (HealthAuditor, 5),
        (Expert, 10),
    ] {
        let mut scene = Scene::with(role, |config| config.checkpoint_every = 90_000);
        let agent = scene.only_agent().0;
        scene.waits(minutes * 60 - 1);
        assert_eq!(scene.only_agent().0, agent, "{role:?}");
        scene.waits(1);
        assert_ne!(scene.only_agent().0, agent, "{role:?}");
    }
}

#[test]
fn questions_stop_the_filling_of_slots_until_they_are_answered() {
    let tasks = vec![spec("a", &[]), spec("b", &[]), spec("c", &[])];
    let mut scene = Scene::of(tasks, |config| config.slots = 2);
    scene.says_as(scene.agent_of("a"), "SEEKING_DIVINE_CLARIFICATION\n\nQuestion: keep or drop?");
    let ask = scene.outcome.effects.iter().find_map(|effect| match effect {
        Effect::Ask { id, task, text, .. } => Some((id.clone(), task.clone(), text.clone())),
        _ => None,
    });
    assert_eq!(ask, Some(("q1".into(), Some("a".into()), "keep or drop?".into())));
    let text = "\"Title of a\" (a): keep or drop?";
    let notice = |effect: &Effect| matches!(effect, Effect::Notice { text: it, .. } if it == text);
    assert!(scene.outcome.effects.iter().any(notice), "{:#?}", scene.outcome);
    assert!(scene.dispatches().is_empty(), "c waits");
    scene.waits(90_000);
    assert!(scene.dispatches().is_empty(), "and never times out");
    assert_eq!(scene.state.run.questions.len(), 1);
    scene.happens(&Event::Answer { id: "q9".into(), text: "x".into(), by: String::new() });
    assert!(scene.outcome.is_nothing());
    scene.answers("Drop it.");
    assert_eq!(scene.dispatches().len(), 2);
    assert!(scene.dispatches()[0].prompt.contains("> Drop it."));
}

#[test]
fn no_limit_may_be_missing() {
    assert_eq!(Config::default().check(), Ok(()));
    let whole = serde_json::to_value(Config::default()).unwrap();
    let mut tried = 0;
    let mut try_zero = |path: &str, value: serde_json::Value| {
        let config: Config = serde_json::from_value(value).unwrap();
        let error = config.check().expect_err(path);
        assert_eq!(error.key, path);
        assert!(error.to_string().contains("at least 1"));
        tried += 1;
    };
    for (key, value) in whole.as_object().unwrap() {
        let mut changed = whole.clone();
        if value.is_u64() {
            changed[key] = 0.into();
            try_zero(key, changed);
        } else if key == "timeouts" {
            for role in value.as_object().unwrap().keys() {
                let mut changed = whole.clone();
                changed[key][role] = 0.into();
                try_zero(&format!("timeouts.{role}"), changed);
            }
        }
    }
    assert_eq!(tried, 23);
}
