//! The coordinator of a delivery, killed again and again and continued: nothing is lost or done twice.

use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Stage, assert_nobody_is_left, plan};

/// How long a coordinator lives: a moment that wanders between these, in milliseconds.
const LIFE_MIN: u64 = 60;
const LIFE_SPREAD: u64 = 190;

#[test]
fn a_killed_coordinator_is_continued() {
    killed_and_continued(12, 6);
}

#[test]
fn killed_a_hundred_times() {
    killed_and_continued(50, 100);
}

/// A plan that is complete before it was killed often enough is followed by another.
fn killed_and_continued(tasks: usize, kills: u64) {
    let (mut killed, mut random) = (0, 1_u64);
    while killed < kills {
        let stage = Stage::new("", &plan(tasks));
        let mut child = stage.start(&Stage::arguments(&[]));
        // What was never begun cannot be continued.
        stage.wait_for("the delivery", || stage.0.run(&["tasks"]).code == 0);
        let mut journal = Vec::new();
        while killed < kills {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            thread::sleep(Duration::from_millis(LIFE_MIN + (random >> 33) % LIFE_SPREAD));
            child.kill().unwrap();
            child.wait().unwrap();
            let longer = stage.journal();
            let past = longer.get(..journal.len());
            assert_eq!(past, Some(&*journal), "kill {killed} changed the past");
            journal = longer;
            if stage.status()["active"] == false {
                break;
            }
            killed += 1;
            child = stage.start(&["deliver", "--continue"]);
        }
        child.wait().unwrap();
        stage.assert_complete();
        assert_verdicts_count_once(&stage, tasks);
        assert_nobody_is_left(&stage);
    }
}

/// Agents that were killed in the middle ran again, but no verdict counted twice.
fn assert_verdicts_count_once(stage: &Stage, tasks: usize) {
    let journal = stage.journal();
    let count = |rule: &str| {
        let said = |decision: &&Value| decision["rule"] == rule;
        journal.iter().filter(said).count()
    };
    for rule in ["delivery/ready-for-review", "delivery/review-passed", "delivery/task-complete"] {
        assert_eq!(count(rule), tasks, "{rule}");
    }
    assert_eq!(count("delivery/started"), 1);
    assert_eq!(count("delivery/all-tasks-complete"), 1);
    let run = stage.status()["run"].as_str().unwrap().to_owned();
    let replay = stage.0.run(&["replay", &run]);
    assert_eq!(replay.code, 0, "{}", replay.text());
}
