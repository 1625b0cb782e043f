//! Workers that are lost: killed, and frozen for longer than their claims last.

use super::stage::{Fleet, signal};

#[test]
fn the_agent_of_a_worker_that_was_killed_is_run_again_once() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    let mut lost = fleet.worker("lost", &[]);
    fleet.hold("developer-a");
    let mut deliver = fleet.start(&[]);
    let agent = fleet.wait_for_agent("developer-a");
    lost.kill();
    fleet.wait_for("its agent to go with it", || !signal::lives(agent));
    fleet.release("developer-a");
    let _other = fleet.worker("other", &[]);
    assert_eq!(deliver.wait(), Some(0));
    let developers: Vec<_> =
        fleet.claims().into_iter().filter(|(role, _)| role == "developer").collect();
    let claims = ["lost", "other"].map(|worker| ("developer".to_owned(), worker.to_owned()));
    assert_eq!(developers, claims);
    let why = fleet.run(&["why", "a"]).stdout;
    assert!(why.contains("Worker other starts the developer again"), "{why}");
    assert!(why.contains("worker lost no longer has agent 1"), "{why}");
    // It is seen to be gone.
    let listed = fleet.workers();
    let gone = listed.iter().find(|worker| worker["name"] == "lost").unwrap();
    assert_eq!(gone["state"], "gone", "{listed:?}");
    fleet.sound();
}

#[test]
fn what_a_frozen_worker_reports_too_late_is_a_near_miss() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    let frozen = fleet.worker("frozen", &[]);
    fleet.hold("developer-a");
    let mut deliver = fleet.start(&[]);
    fleet.wait_for_agent("developer-a");
    frozen.freeze();
    // Its agent says that it is done, and nobody reads it.
    fleet.hold("critic-a");
    fleet.release("developer-a");
    let _other = fleet.worker("other", &[]);
    fleet.wait_for_agent("critic-a");
    frozen.thaw();
    fleet.wait_for("the late result", || {
        fleet.run(&["log", &fleet.run_id()]).stdout.contains("Ignored a late READY_FOR_REVIEW")
    });
    fleet.release("critic-a");
    assert_eq!(deliver.wait(), Some(0));
    let why = fleet.run(&["why", "a"]).stdout;
    assert!(why.contains("Ignored a late READY_FOR_REVIEW"), "{why}");
    fleet.sound();
}
