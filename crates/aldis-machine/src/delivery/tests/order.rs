//! Who gets the next slot, and what a crash of ours leaves.

use super::*;

fn started(scene: &Scene) -> Vec<String> {
    let name =
        |it: &&Dispatch| format!("{} {}", it.role.as_str(), it.task.as_deref().unwrap_or(""));
    scene.dispatches().iter().map(name).collect()
}

#[test]
fn slots_are_filled_in_order() {
    let tasks = vec![
        TaskSpec { priority: Priority::Low, ..spec("low", &[]) },
        spec("plain", &[]),
        TaskSpec { priority: Priority::High, ..spec("high", &[]) },
        spec("needed", &[]),
        spec("x", &["needed"]),
        spec("y", &["needed"]),
    ];
    let scene = Scene::of(tasks.clone(), |_| {});
    let expected = ["developer needed", "developer high", "developer plain", "developer low"];
    assert_eq!(started(&scene), expected);
    let mut scene = Scene::of(tasks, |config| config.slots = 2);
    assert_eq!(started(&scene), expected[..2]);
    // Critics before auditors before developers.
    scene.task_says("high", "READY_FOR_REVIEW");
    assert_eq!(started(&scene), ["critic high"]);
    scene.task_says("needed", "READY_FOR_REVIEW");
    assert_eq!(started(&scene), ["critic needed"]);
    scene.task_says("high", "REVIEW_PASSED");
    assert_eq!(started(&scene), ["auditor high"]);
}

#[test]
fn a_completion_unblocks_its_dependents_once() {
    let tasks = vec![spec("a", &[]), spec("b", &["a"]), spec("c", &["a", "b"])];
    let mut scene = Scene::of(tasks, |_| {});
    assert_eq!(started(&scene), ["developer a"]);
    for (id, unblocked) in [("a", "developer b"), ("b", "developer c")] {
        for name in ["READY_FOR_REVIEW", "REVIEW_PASSED"] {
            scene.task_says(id, name);
        }
        scene.task_says(id, "AUDIT_PASSED");
        assert_eq!(started(&scene), [unblocked]);
        assert!(scene.outcome.decisions[0].remedy.contains("unblocks"));
    }
}

#[test]
fn tasks_that_are_done_already_unblock_theirs() {
    let tasks = vec![TaskSpec { done: true, ..spec("a", &[]) }, spec("b", &["a"])];
    assert_eq!(started(&Scene::of(tasks, |_| {})), ["developer b"]);
    let tasks = vec![TaskSpec { done: true, ..spec("a", &[]) }];
    assert_eq!(Scene::of(tasks, |_| {}).state.ending(), Some(Ending::Complete));
}

#[test]
fn a_task_that_was_given_back_waits_for_a_change() {
    let mut scene = Scene::of(vec![spec("a", &[]), spec("b", &[])], |_| {});
    scene.says_as(scene.agent_of("a"), "TASK_INCOMPLETE: a\n\nBlocker: no schema\nNeeded: b");
    assert_eq!(scene.task("a").status(), Status::Blocked);
    assert!(scene.dispatches().is_empty());
    for name in ["READY_FOR_REVIEW", "REVIEW_PASSED"] {
        scene.task_says("b", name);
        assert_eq!(scene.task("a").status(), Status::Blocked);
    }
    scene.task_says("b", "AUDIT_PASSED");
    assert_eq!(started(&scene), ["developer a"]);
    assert!(scene.started().prompt.contains("> Blocker: no schema"));
    // Nothing else can run: it is tried again at once.
    scene.task_says("a", "TASK_INCOMPLETE");
    assert_eq!(started(&scene), ["developer a"]);
}

#[test]
fn a_pause_starts_nobody() {
    let mut scene = Scene::of(vec![spec("a", &[]), spec("b", &["a"])], |_| {});
    scene.happens(&Event::Pause { by: String::new() });
    assert!(scene.happens(&Event::Pause { by: String::new() }).is_nothing());
    scene.task_says("a", "READY_FOR_REVIEW");
    assert!(scene.dispatches().is_empty());
    scene.happens(&Event::Resume { by: String::new() });
    assert_eq!(started(&scene), ["critic a"]);
}

#[test]
fn an_abort_ends_every_agent() {
    let mut scene = Scene::of(vec![spec("a", &[]), spec("b", &[])], |_| {});
    scene.happens(&Event::Abort { by: "`aldis abort`".into() });
    let ended = |effect: &&Effect| matches!(effect, Effect::End { .. });
    assert_eq!(scene.outcome.effects.iter().filter(ended).count(), 2);
    assert_eq!(scene.state.ending().map(Ending::exit_code), Some(130));
    assert_eq!(scene.task("a").status(), Status::Implementing, "nothing is called complete");
}

#[test]
fn after_a_crash_everybody_is_started_again_once() {
    let tasks = vec![spec("a", &[]), spec("b", &[]), spec("c", &[]), spec("d", &[])];
    let mut scene = Scene::of(tasks, |config| {
        config.slots = 4;
        config.experts.insert("crypto".to_owned(), String::new());
    });
    scene.task_says("a", "READY_FOR_REVIEW");
    scene.says_as(scene.agent_of("b"), REQUEST);
    scene.says_as(scene.agent_of("c"), "INFRA_BLOCKED: c");
    let before: Vec<u64> = scene.state.run.agents.keys().copied().collect();
    scene.happens(&Event::Recovered);
    let mut again = started(&scene);
    again.sort();
    assert_eq!(again, ["critic a", "developer d", "expert b", "remediation "]);
    for agent in &before {
        assert!(scene.outcome.effects.contains(&Effect::End { agent: *agent }));
        assert!(scene.state.agent(*agent).is_none());
    }
    assert_eq!(scene.state.run.experts.consultations["req-1"].tries, 1, "nobody's failure");
    assert_eq!(scene.task("a").counters.timeouts, 0);
    // What the old ones still say is late.
    let now = scene.state.clone();
    scene.says_as(before[0], "REVIEW_PASSED: a");
    assert_eq!(scene.state, now);
    // Questions stay.
    let mut scene = Scene::one(|_| {});
    scene.says("SEEKING_DIVINE_CLARIFICATION");
    scene.happens(&Event::Recovered);
    assert_eq!(scene.state.run.questions.len(), 1);
    assert!(scene.dispatches().is_empty());
}

#[test]
fn after_a_crash_merges_and_checks_are_asked_for_again() {
    let mut scene = Scene::with(Role::Auditor, |config| config.worktrees = true);
    scene.says("AUDIT_PASSED: task-1");
    scene.happens(&Event::Recovered);
    assert!(scene.outcome.effects.contains(&Effect::Merge { task: "task-1".into() }));
    scene.happens(&Event::Merged { task: "task-1".into(), ok: true, detail: String::new() });
    assert_eq!(scene.state.ending(), Some(Ending::Complete));

    let mut scene = Scene::one(|config| config.planner = true);
    scene.says("EXPERT_CREATED: crypto\n\nFile: agents/crypto.md\n");
    scene.happens(&Event::Recovered);
    let check = Effect::CheckExpert { name: "crypto".into(), file: "agents/crypto.md".into() };
    assert!(scene.outcome.effects.contains(&check));
}

#[test]
fn work_that_cannot_be_merged_is_a_file_conflict() {
    let mut scene = Scene::with(Role::Auditor, |config| config.worktrees = true);
    scene.says("AUDIT_PASSED: task-1");
    scene.happens(&Event::Merged { task: "task-1".into(), ok: false, detail: "src/a.rs".into() });
    assert_eq!(scene.notices(), [(Notice::FileConflict, Severity::Warning)]);
    assert_eq!(scene.started().role, Role::Developer);
    assert!(scene.started().prompt.contains("src/a.rs"));
}

#[test]
fn a_crash_before_the_beginning_begins() {
    let plan = Plan { title: String::new(), tasks: vec![spec("a", &[])] };
    let start = Start { plan, config: Config::default(), token: None };
    let mut state = State::start(at(0), start);
    let outcome = state.on_event(at(1), &Event::Recovered);
    assert!(outcome.effects.iter().any(|effect| matches!(effect, Effect::Dispatch(_))));
    let outcome = state.on_event(at(2), &Event::Begin);
    assert!(outcome.is_nothing(), "it has begun");
}
