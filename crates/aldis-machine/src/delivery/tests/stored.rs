//! The stored form: parts that fit together again, and steps that touch few of them.

use super::*;
use crate::run::Usage;

#[test]
fn parts_fit_together_again() {
    let mut scene = Scene::of(vec![spec("a", &[]), spec("b", &["a"])], |_| {});
    scene.task_says("a", "READY_FOR_REVIEW");
    let run = serde_json::to_string(scene.state.run()).unwrap();
    let tasks: Vec<String> =
        scene.state.tasks().iter().map(|task| serde_json::to_string(task).unwrap()).collect();
    let run: DeliveryRun = serde_json::from_str(&run).unwrap();
    let tasks: Vec<Task> = tasks.iter().map(|task| serde_json::from_str(task).unwrap()).collect();
    let again = State::from_parts(run.clone(), tasks).unwrap();
    assert_eq!(again, scene.state);
    let error = State::from_parts(run, Vec::new()).unwrap_err();
    assert!(error.contains("no task number 0"), "{error}");
}

#[test]
fn a_step_touches_few_tasks() {
    let count = 2_000;
    let tasks = (0..count).map(|no| spec(&format!("t{no}"), &[])).collect();
    let mut scene = Scene::of(tasks, |config| config.slots = 3);
    let size = |scene: &Scene| serde_json::to_string(scene.state.run()).unwrap().len();
    let first = size(&scene);
    scene.state.take_changed();
    let mut steps = 0;
    while scene.state.ending().is_none() && steps < 300 {
        let (agent, live) = scene.state.run.agents.iter().next().unwrap();
        let Work::Task { task } = live.work else { panic!() };
        let name = match live.role {
            Role::Developer => "READY_FOR_REVIEW",
            Role::Critic => "REVIEW_PASSED",
            _ => "AUDIT_PASSED",
        };
        let (agent, text) = (*agent, format!("{name}: t{task}"));
        let reply = AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, &text);
        scene.seconds += 1;
        let event = Event::Finished { agent, exit: None, reply };
        let outcome = scene.state.on_event(at(scene.seconds), &event);
        assert!((1..=3).contains(&scene.state.take_changed().len()), "{outcome:?}");
        steps += 1;
    }
    assert!(size(&scene) < first + 200, "the run itself does not grow");
}

#[test]
fn events_survive_their_stored_form() {
    let reply = AgentReply::read(
        Rules::builtin(),
        &aldis_signal::Token::Off,
        "Done.\n\nREADY_FOR_REVIEW: task-1\n\nSummary: x\n\n**REVIEW_PASSED: a**\n",
    );
    assert_eq!((reply.signals.len(), reply.near_misses.len()), (1, 1));
    for event in [
        Event::Begin,
        Event::Finished { agent: 1, exit: None, reply: reply.clone() },
        Event::Reported { agent: 2, reply },
        Event::Answer { id: "q1".into(), text: "x".into(), by: String::new() },
        Event::Spent { agent: 3, usage: Usage { tokens: u64::MAX, micro_dollars: 1 } },
        Event::Worked { agent: 4 },
        Event::Reopen { config: Box::new(Config { max_time: Some(7), ..Config::default() }) },
        Event::Merged { task: "a".into(), ok: false, detail: "x".into() },
    ] {
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
    }
}
