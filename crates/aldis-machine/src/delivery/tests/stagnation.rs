//! Agents whose work does not move: warned of, ended, counted.

use super::*;
use crate::stagnation::Config as Watched;

/// One task whose developer is watched and has no other limit of time.
fn scene() -> Scene {
    Scene::one(|config| {
        config.timeouts.developer = 1_000_000;
        config.checkpoint_every = 1_000_000;
        config.stagnation =
            Watched { warn_timeout: 60, pause_timeout: 120, ..Watched::supervised() };
    })
}

fn ended(scene: &Scene, agent: u64) -> bool {
    scene.outcome.effects.contains(&Effect::End { agent })
}

#[test]
fn silence_is_warned_of_and_then_ends_the_agent() {
    let mut scene = scene();
    let agent = scene.only_agent().0;
    assert_eq!(scene.woken(), Some(at(61)));
    scene.waits(59);
    assert!(scene.outcome.decisions.is_empty());
    scene.waits(1);
    assert_eq!(scene.notices(), [(Notice::StagnationWarn, Severity::Warning)]);
    assert_eq!(scene.rules(), [Rule::StagnationWarning]);
    assert_eq!(scene.woken(), Some(at(121)));
    scene.waits(60);
    assert!(ended(&scene, agent));
    assert_eq!(scene.notices(), [(Notice::StagnationAbort, Severity::Error)]);
    assert_eq!(scene.rules(), [Rule::AgentStagnated, Rule::AgentStarted]);
    // Another agent is told, in a session of its own, and the task remembers why.
    let task = scene.task("task-1");
    assert_eq!(task.counters.timeouts, 1);
    let why = "the developer was ended because its work stalled: no progress for 2 min";
    assert_eq!(task.last_failure.as_deref(), Some(why));
    let started = scene.started();
    assert_eq!((started.role, started.resume), (Role::Developer, None));
    assert!(started.prompt.contains("its work stalled"), "{}", started.prompt);
    scene.says("READY_FOR_REVIEW: task-1");
    assert_eq!(scene.task("task-1").last_failure, None, "this one brought something");
}

#[test]
fn work_is_no_silence_and_talk_is_no_work() {
    let mut scene = scene();
    let agent = scene.only_agent().0;
    for _ in 0..10 {
        scene.waits(100);
        assert!(!ended(&scene, agent));
        scene.happens(&Event::Worked { agent });
    }
    for _ in 0..2 {
        scene.waits(59);
        scene.happens(&Event::Active { agent });
    }
    scene.waits(2);
    assert!(ended(&scene, agent), "it only talked");
}

#[test]
fn the_same_words_again_and_again_are_no_progress() {
    let says = |scene: &mut Scene, agent: u64, progress: &str| {
        let text = format!("CHECKPOINT: task-1\nProgress: {progress}\nCurrent Activity: tests");
        let reply = AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, &text);
        scene.happens(&Event::Reported { agent, reply });
    };
    let mut scene = scene();
    let agent = scene.only_agent().0;
    for percent in 0..20 {
        says(&mut scene, agent, &format!("{percent}%"));
        assert!(scene.notices().is_empty());
    }
    for times in 2..=4 {
        says(&mut scene, agent, "19%");
        assert_eq!(scene.notices().len(), usize::from(times == 3), "{times}");
    }
    // Evidence counts for more than words.
    scene.happens(&Event::Worked { agent });
    for _ in 0..4 {
        says(&mut scene, agent, "19%");
        assert!(!ended(&scene, agent));
    }
    says(&mut scene, agent, "19%");
    assert!(ended(&scene, agent));
    let last_failure = scene.task("task-1").last_failure.clone().unwrap();
    assert!(last_failure.ends_with("the same state 5 times"), "{last_failure}");
}

#[test]
fn waiting_for_the_service_is_no_stagnation() {
    let mut scene = scene();
    let agent = scene.only_agent().0;
    scene.happens(&Event::Waiting { agent });
    scene.waits(5_000);
    assert!(scene.outcome.decisions.is_empty());
    scene.happens(&Event::Worked { agent });
    scene.waits(119);
    assert!(!ended(&scene, agent));
    let until = at(scene.seconds + 1_000);
    scene.happens(&Event::RateLimited { agent, until });
    assert_eq!(scene.notices(), [(Notice::RateLimit, Severity::Info)]);
    scene.waits(1_100);
    assert!(!ended(&scene, agent), "it was started again at {until}");
    scene.waits(60);
    assert!(ended(&scene, agent));
}

#[test]
fn three_in_vain_ask_a_human() {
    let mut scene = scene();
    for times in 1..=3 {
        assert!(scene.state.run.questions.is_empty(), "{times}");
        scene.waits(120);
    }
    let question = scene.state.run.questions.values().next().unwrap();
    assert!(question.text.contains("its work stalled"), "{}", question.text);
}

#[test]
fn agents_of_nobodys_task_are_watched_too() {
    let mut scene = Scene::with(Role::Remediation, |config| {
        config.stagnation = Watched { pause_timeout: 100, ..Watched::supervised() };
        config.timeouts.remediation = 1_000;
        config.checkpoint_every = 1_000;
    });
    let agent = scene.only_agent().0;
    scene.waits(100);
    assert!(ended(&scene, agent));
    assert_eq!(scene.state.run.remediation.as_ref().unwrap().attempts, 2);
    assert_eq!(scene.started().role, Role::Remediation);
}

#[test]
fn nobody_is_watched_unless_asked_for() {
    let scene = Scene::one(|_| {});
    assert!(scene.state.run.agents.values().all(|agent| agent.monitor.is_none()));
}

#[test]
fn signs_of_life_are_told_often_enough_for_every_limit() {
    let config = |checkpoint_every, pause_timeout, enabled| Config {
        checkpoint_every,
        stagnation: Watched { pause_timeout, warn_timeout: 0, enabled, ..Watched::default() },
        ..Config::default()
    };
    for (config, millis) in [
        (Config::default(), 60_000),
        (config(30, 0, true), 10_000),
        (config(600, 2, true), 666),
        (config(600, 2, false), 60_000),
    ] {
        assert_eq!(config.report_interval().as_millis(), millis, "{config:?}");
    }
}
