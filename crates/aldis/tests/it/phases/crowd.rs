//! Many hooks at once on one project: none fails, none is lost, none counts twice.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use aldis_store::{RunFilter, SqliteStore, Store as _};
use serde_json::{Value, json};

use super::project::{Answer, NOW, Project};

const AT_ONCE: usize = 16;
/// One run allows at most this many refusals of a phase.
const HOOKS_PER_RUN: u64 = 50;
const RUNS: u64 = 20;

#[test]
fn a_thousand_hooks_count_to_a_thousand() {
    let project = Project::new().patient();
    let mut counted = 0;
    for _ in 0..RUNS {
        project.start(&["--max-iterations", "50"]);
        let blocks = crowd(&project, HOOKS_PER_RUN);
        assert_eq!(blocks, HOOKS_PER_RUN);
        let status = project.status();
        assert_eq!(status["iteration"], blocks);
        project.assert_sound();
        counted += status["iteration"].as_u64().unwrap();
        // The limit is reached: the next one is let go.
        assert_eq!(project.stop("Not yet."), Answer::Allow);
        assert_eq!(project.status()["exit_reason"], "max_iterations_reached");
    }
    assert_eq!(counted, RUNS * HOOKS_PER_RUN);
    assert_eq!(project.alarms(), "");
    assert_no_edit(&project);
    let store = SqliteStore::open(&project.state_dir()).unwrap();
    store.check().unwrap();
    assert_eq!(store.count(&RunFilter::default()).unwrap(), RUNS);
}

/// Calls the hook this many times, as many at once as we can, and returns how often it blocked.
fn crowd(project: &Project, hooks: u64) -> u64 {
    let (left, blocks) = (AtomicU64::new(hooks), AtomicU64::new(0));
    let take = || {
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while take() {
                    let answer = project.stop("Not yet.");
                    assert!(answer.reason().contains("EXPANSION_COMPLETE"), "{answer:?}");
                    blocks.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    blocks.into_inner()
}

/// A state file that another hook has yet to replace is no edit of anybody's.
fn assert_no_edit(project: &Project) {
    let log = project.run(&["log", "--json", "--lines", "2000"]);
    assert_eq!(log.code, 0, "{}", log.text());
    assert!(!log.stdout.contains("state_edited"), "{}", log.stdout);
}

/// A state file that another tool has just written.
pub(super) fn fresh_state() -> Value {
    json!({
        "schema_version": "2.0", "active": true, "phase": "expansion", "iteration": 0,
        "max_iterations": 50, "task_description": "Add CSV export", "started_at": NOW,
        "phase_started_at": NOW, "session_id": "S1", "theirs": [1.50],
        "config": { "skip_qa": false }, "signals": { "detected_signals": [] },
    })
}

#[test]
fn sixteen_hooks_adopt_one_run() {
    for round in 0..8 {
        let project = Project::new().patient();
        project.write_view(&fresh_state().to_string());
        let ready = Barrier::new(AT_ONCE);
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    ready.wait();
                    assert_eq!(project.stop("Not yet.").word(), "block");
                });
            }
        });
        let store = SqliteStore::open(&project.state_dir()).unwrap();
        assert_eq!(store.count(&RunFilter::default()).unwrap(), 1, "round {round}");
        assert_eq!(project.status()["iteration"], AT_ONCE);
        assert_eq!(project.view()["theirs"], json!([1.50]));
        assert_eq!(project.alarms(), "");
        assert_no_edit(&project);
        project.assert_sound();
    }
}
