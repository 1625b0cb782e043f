//! Files that only one task changes at a time.

use super::*;
use crate::proof::{CheckResult, CheckStatus};

fn with_files(id: &str, files: &[&str]) -> TaskSpec {
    TaskSpec { files: files.iter().map(|&file| file.to_owned()).collect(), ..spec(id, &[]) }
}

fn at_work(scene: &Scene) -> Vec<&str> {
    let busy = scene.state.tasks.iter().filter(|task| task.agent().is_some());
    busy.map(|task| &*task.spec.id).collect()
}

fn completes(scene: &mut Scene, id: &str) {
    for name in ["READY_FOR_REVIEW", "REVIEW_PASSED", "AUDIT_PASSED"] {
        scene.task_says(id, name);
    }
}

#[test]
fn tasks_with_a_file_in_common_follow_one_another() {
    let tasks = vec![
        with_files("a", &["src/x.rs", "src/y.rs"]),
        with_files("b", &["./src/y.rs"]),
        with_files("c", &["src/y.rs", "src/z.rs"]),
        with_files("d", &["src/z.rs"]),
    ];
    let mut scene = Scene::of(tasks, |_| {});
    assert_eq!(at_work(&scene), ["a", "d"], "`./` makes no difference");
    completes(&mut scene, "d");
    assert_eq!(at_work(&scene), ["a"], "c still lacks y");
    completes(&mut scene, "a");
    assert_eq!(at_work(&scene), ["b"]);
    completes(&mut scene, "b");
    assert_eq!(at_work(&scene), ["c"]);
    completes(&mut scene, "c");
    assert_eq!(scene.state.ending(), Some(Ending::Complete));
}

#[test]
fn a_task_that_is_set_aside_lets_others_have_the_files_it_could_have_had() {
    let tasks = vec![
        with_files("a", &["x"]),
        with_files("b", &["y"]),
        with_files("c", &["x", "y"]),
        with_files("d", &["x"]),
    ];
    let mut scene = Scene::of(tasks, |_| {});
    assert_eq!(at_work(&scene), ["a", "b"]);
    completes(&mut scene, "a");
    // c comes first in line but lacks y: d may use x meanwhile.
    assert_eq!(at_work(&scene), ["b", "d"]);
}

/// The files of a task's checks are there as they were.
fn pinned(scene: &mut Scene, id: &str) {
    let (task, seen) = (id.to_owned(), Box::default());
    scene.happens(&Event::Inspected { task, head: None, dirty: false, seen });
}

/// The next in line for a file does not take it yet: the one behind it is asked about at once, as it
/// is where the lookups are made anew.
#[test]
fn a_task_whose_checks_are_pinned_first_does_not_keep_others_from_its_files() {
    let needing = |id: &str| TaskSpec { needs: vec!["first".to_owned()], ..with_files(id, &["x"]) };
    let tasks = vec![spec("first", &[]), with_files("a", &["x"]), needing("b"), needing("c")];
    let mut scene = Scene::of(tasks, |config| {
        config.proof = crate::proof::Config::unnamed("make test");
    });
    pinned(&mut scene, "first");
    pinned(&mut scene, "a");
    for id in ["first", "a"] {
        assert!(at_work(&scene).contains(&"a"), "b and c wait for it");
        scene.task_says(id, "READY_FOR_REVIEW");
        pinned(&mut scene, id);
        let result = Box::new(CheckResult::new("", "make test", CheckStatus::Passed));
        scene.happens(&Event::CheckEnded { task: id.to_owned(), result });
        scene.task_says(id, "REVIEW_PASSED");
        scene.task_says(id, "AUDIT_PASSED");
    }
    for id in ["b", "c"] {
        let task = scene.task(id);
        assert!(matches!(task.wait, Wait::Checks { .. }), "{:?}", task.wait);
    }
    pinned(&mut scene, "c");
    assert_eq!(at_work(&scene), ["c"]);
}

#[test]
fn a_free_file_is_granted() {
    let mut scene = Scene::one(|_| {});
    scene.says("FILE CONFLICT: src/my module/util.py\n\nCan Wait: YES");
    assert!(scene.task("task-1").holds.contains("src/my module/util.py"));
    assert!(scene.started().prompt.contains("> src/my module/util.py"));
}

#[test]
fn who_can_wait_is_told_when_the_file_is_free() {
    let mut scene = Scene::of(vec![with_files("a", &["x"]), spec("b", &[])], |_| {});
    scene.says_as(scene.agent_of("b"), "FILE CONFLICT: x\n\nCan Wait: YES");
    assert_eq!(scene.task("b").status(), Status::Blocked);
    assert_eq!(scene.notices(), [(Notice::FileConflict, Severity::Warning)]);
    completes(&mut scene, "a");
    assert_eq!(at_work(&scene), ["b"]);
    assert!(scene.task("b").holds.contains("x"));
    assert!(scene.started().prompt.contains("is yours now"));
}

#[test]
fn who_cannot_wait_shares_it_and_both_are_told() {
    let mut scene =
        Scene::of(vec![with_files("a", &["x"]), spec("b", &[]), with_files("c", &["x"])], |_| {});
    scene.says_as(scene.agent_of("b"), "FILE CONFLICT: x\n\nCan Wait: NO");
    assert_eq!(at_work(&scene), ["a", "b"]);
    assert!(scene.started().prompt.contains("although \"Title of a\" (a) holds it, too"));
    scene.says_as(scene.agent_of("a"), "Not done.");
    assert!(scene.started().prompt.contains("\"Title of b\" (b) must change a file of yours"));
    completes(&mut scene, "a");
    assert_eq!(at_work(&scene), ["b"], "b still has it");
    completes(&mut scene, "b");
    assert_eq!(at_work(&scene), ["c"]);
}

#[test]
fn a_file_is_waited_for_half_an_hour_three_times() {
    let mut scene = Scene::of(vec![with_files("a", &["x"]), spec("b", &[])], |config| {
        config.timeouts.developer = 90_000;
        config.checkpoint_every = 90_000;
    });
    let asks = "FILE CONFLICT: x\n\nCan Wait: YES";
    scene.says_as(scene.agent_of("b"), asks);
    for retry in 1..=3 {
        scene.waits(1_799);
        assert_eq!(scene.task("b").status(), Status::Blocked, "retry {retry}");
        scene.waits(1);
        assert_eq!(scene.task("b").counters.conflicts, retry);
        assert!(scene.started().prompt.contains("still holds the file"));
        scene.says_as(scene.agent_of("b"), asks);
    }
    scene.waits(1_800);
    assert_eq!(scene.task("b").status(), Status::AwaitingGuidance);
}

/// Each business analyst asks for a file that the other's developer needs.
#[test]
fn tasks_that_are_expanded_do_not_wait_for_each_other() {
    let tasks = ["a", "b"].map(|id| TaskSpec { acceptance: Vec::new(), ..spec(id, &[]) });
    let mut scene = Scene::of(tasks.to_vec(), |config| config.business_analyst = true);
    for (id, path) in [("a", "x"), ("b", "y")] {
        scene.says_as(scene.agent_of(id), &format!("FILE CONFLICT: {path}\n\nCan Wait: YES"));
    }
    for (id, path) in [("a", "y"), ("b", "x")] {
        let expanded = format!(
            "EXPANDED_TASK_SPECIFICATION: {id}\nConfidence: HIGH\nTarget Files:\n- {path}\n\
             Acceptance Criteria:\n- it works\n"
        );
        scene.says_as(scene.agent_of(id), &expanded);
    }
    completes(&mut scene, "a");
    completes(&mut scene, "b");
    assert_eq!(scene.state.ending(), Some(Ending::Complete));
}

#[test]
fn a_task_that_is_given_up_gives_its_files_back() {
    let mut scene = Scene::of(vec![with_files("a", &["x"]), with_files("b", &["x"])], |_| {});
    scene.says("SEEKING_DIVINE_CLARIFICATION");
    scene.answers("fail");
    assert_eq!(at_work(&scene), ["b"]);
}
