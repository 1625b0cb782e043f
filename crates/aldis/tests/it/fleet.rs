//! `aldis worker`: real workers, a real git remote, and what happens when they are killed.

mod losses;
mod sessions;
mod stage;

use std::time::Duration;

use serde_json::Value;

use self::stage::{Fleet, signal};
use crate::shared::cluster;

#[test]
fn two_workers_deliver_a_plan() {
    two_workers(&Fleet::new("- [ ] a: Write a\n- [ ] b: Write b\n- [ ] c: Write c\n"));
}

#[test]
fn two_workers_share_a_postgres_store() {
    let Some(cluster) = cluster() else { return };
    let plan = "- [ ] a: Write a\n- [ ] b: Write b\n";
    two_workers(&Fleet::new(plan).sharing(&cluster.address_of("fleet")));
}

fn two_workers(fleet: &Fleet) {
    let workers = [fleet.worker("one", &["--slots", "2"]), fleet.worker("two", &[])];
    let done = fleet.deliver(&[]);
    assert_eq!(done.code, 0, "{}", done.text());
    let tasks = fleet.tasks();
    assert!(tasks.iter().all(|task| task["status"] == "complete"), "{tasks:?}");
    let files = fleet.git(&["ls-tree", "--name-only", "main"]);
    for task in &tasks {
        let file = format!("{}.txt", task["task"].as_str().unwrap());
        assert!(files.lines().any(|line| line == file), "{files}");
    }
    assert!(!fleet.git(&["branch", "--list", "aldis/*"]).contains("aldis/"), "all are merged");
    let why = fleet.run(&["why", "a"]).stdout;
    assert!(why.contains("Worker one runs the") || why.contains("Worker two runs the"), "{why}");
    fleet.sound();
    for mut worker in workers {
        worker.terminate();
        assert_eq!(worker.wait(), Some(0));
    }
    assert_eq!(fleet.workers(), [Value::Null; 0], "those that left are not listed");
}

#[test]
fn roles_labels_and_variables_decide_who_runs_what() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    let _builds = fleet.worker("builds", &["--labels", "linux", "--roles", "developer"]);
    let _plain = fleet.worker("plain", &[]);
    let mut deliver = fleet.start(&["--labels", "linux", "--needs-env", "FLEET_KEY"]);
    fleet.wait_for("an agent that waits for a worker", || {
        fleet.tasks().first().is_some_and(|task| task["queued"] == true)
    });
    let shown = fleet.run(&["tasks"]).stdout;
    assert!(shown.contains("developer waits for a worker"), "{shown}");
    assert!(fleet.run(&["status"]).stdout.contains("1 waits for a worker"));
    let env = [("FLEET_KEY", "secret")];
    let builds = ["--labels", "linux,gpu", "--roles", "developer"];
    let _makes = fleet.worker_with("makes", &builds, &env);
    let _judges =
        fleet.worker_with("judges", &["--labels", "linux", "--roles", "critic,auditor"], &env);
    assert_eq!(deliver.wait(), Some(0));
    for (role, worker) in fleet.claims() {
        let wanted = if role == "developer" { "makes" } else { "judges" };
        assert_eq!(worker, wanted, "{role}");
    }
    fleet.sound();
}

#[test]
fn workers_are_listed_with_what_they_run() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    assert_eq!(fleet.run(&["worker", "list"]).code, 1);
    let mut worker = fleet.worker("one", &["--slots", "3", "--labels", "linux"]);
    fleet.hold("developer-a");
    let mut deliver = fleet.start(&[]);
    fleet.wait_for_agent("developer-a");
    fleet.wait_for("the worker to say what it runs", || {
        fleet.workers().iter().any(|worker| worker["agents"][0]["task"] == "a")
    });
    let listed = fleet.workers().remove(0);
    assert_eq!((&listed["name"], &listed["state"]), (&"one".into(), &"ready".into()), "{listed}");
    assert_eq!((&listed["slots"], &listed["labels"][0]), (&3.into(), &"linux".into()), "{listed}");
    assert_eq!(listed["agents"][0]["role"], "developer");
    let text = fleet.run(&["worker", "list"]).stdout;
    assert!(text.contains("one  ready  1/3 slots") && text.contains("developer of a"), "{text}");
    assert!(fleet.run(&["tasks"]).stdout.contains("developer on one"));
    let status = fleet.run(&["status"]).stdout;
    assert!(status.contains("1 agent at work on one"), "{status}");

    // Asked to leave, it takes no more, and its agent finishes.
    worker.terminate();
    fleet.wait_for("the worker to drain", || {
        fleet.workers().iter().any(|worker| worker["state"] == "draining")
    });
    fleet.release("developer-a");
    assert_eq!(worker.wait(), Some(0));
    fleet.wait_for("the critic to wait for a worker", || {
        fleet.tasks().first().is_some_and(|task| task["queued"] == true && task["role"] == "critic")
    });
    let _next = fleet.worker("two", &[]);
    assert_eq!(deliver.wait(), Some(0));
    fleet.sound();
}

#[test]
fn whoever_asks_twice_ends_the_agents_and_another_worker_runs_them() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    let mut worker = fleet.worker("one", &[]);
    fleet.hold("developer-a");
    let mut deliver = fleet.start(&[]);
    let agent = fleet.wait_for_agent("developer-a");
    worker.terminate();
    fleet.wait_for("the worker to drain", || {
        fleet.workers().iter().any(|worker| worker["state"] == "draining")
    });
    worker.terminate();
    assert_eq!(worker.wait(), Some(0));
    fleet.wait_for("the agent to be gone", || !signal::lives(agent));
    fleet.release("developer-a");
    let _next = fleet.worker("two", &[]);
    assert_eq!(deliver.wait(), Some(0));
    fleet.sound();
}

#[test]
fn an_abort_reaches_agents_through_their_claims() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    let _worker = fleet.worker("one", &[]);
    fleet.hold("developer-a");
    let mut deliver = fleet.start(&[]);
    let agent = fleet.wait_for_agent("developer-a");
    // Also where nobody coordinates any more.
    deliver.kill();
    let run = fleet.run_id();
    assert_eq!(fleet.run(&["abort", &run]).code, 0);
    fleet.wait_for("the agent to be ended", || !signal::lives(agent));
    fleet.wait_for("the worker to be free", || {
        fleet.workers().iter().all(|worker| worker["agents"].as_array().unwrap().is_empty())
    });
}

#[test]
fn a_coordinator_that_was_killed_leaves_agents_alone() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    let _worker = fleet.worker("one", &[]);
    fleet.hold("developer-a");
    let mut deliver = fleet.start(&[]);
    let agent = fleet.wait_for_agent("developer-a");
    deliver.kill();
    let mut again = fleet.go_on();
    std::thread::sleep(Duration::from_millis(500));
    assert!(signal::lives(agent), "it goes on");
    fleet.release("developer-a");
    assert_eq!(again.wait(), Some(0));
    assert_eq!(fleet.claims().iter().filter(|(role, _)| role == "developer").count(), 1);
    fleet.sound();
}

#[test]
fn what_workers_cannot_get_is_said_before_anything_starts() {
    let fleet = Fleet::new("- [ ] a: Write a\n");
    fleet.commit("only here");
    let done = fleet.deliver(&[]);
    assert_eq!(done.code, 2, "{}", done.text());
    assert!(done.stderr.contains("the branch `main` of the remote is at another commit"));
    assert!(done.stderr.contains("git push origin main"), "{}", done.stderr);
}
