//! How SQLite finds rows: by an index, however many there are.
//!
//! Runs the very queries of the store, and asks SQLite for the plan of each statement it saw.

use std::cell::RefCell;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use super::SqliteStore;
use crate::claim::ClaimRequest;
use crate::conformance::full_step;
use crate::cursor::Cursor;
use crate::record::{DecisionFilter, EffectFilter, Prune, RunFilter};
use crate::step::{Revision, RunId};
use crate::store::Store;

thread_local! {
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work`, and returns the plan of every statement in it, one step a line.
fn plan(work: impl FnOnce(&SqliteStore)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let record = |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(statement, _) = event {
            SEEN.with_borrow_mut(|seen| seen.extend(statement.expanded_sql()));
        }
    };
    let mask = TraceEventCodes::SQLITE_TRACE_STMT;
    store.with("trace", |connection| connection.trace_v2(mask, Some(record))).unwrap();
    SEEN.take();
    work(&store);
    let seen = SEEN.take();
    let explain = |sql: &String| -> Vec<String> {
        let steps = store.with("explain", |connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            statement.query_map([], |row| row.get::<_, String>(3))?.collect()
        });
        steps.unwrap()
    };
    let plans = seen.iter().filter(|sql| !["BEGIN", "COMMIT"].iter().any(|it| sql.starts_with(it)));
    plans.flat_map(explain).collect::<Vec<_>>().join("\n")
}

fn id() -> RunId {
    RunId::new("r").unwrap()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Checks that no statement of `work` looks at more than it needs, and that the plan names `index`.
#[track_caller]
fn assert_found_by(index: &str, work: impl FnOnce(&SqliteStore)) {
    let plan = plan(work);
    assert!(plan.contains(index), "no {index}:\n{plan}");
    for wasteful in ["SCAN", "TEMP B-TREE"] {
        assert!(!plan.contains(wasteful), "{wasteful}:\n{plan}");
    }
}

#[test]
fn a_hook_finds_its_run() {
    let active = RunFilter { machine: text("phases"), active: Some(true), ..RunFilter::default() };
    let by_session = RunFilter { session: text("s"), limit: 1, ..active.clone() };
    let by_project = RunFilter { projects: vec!["/p".to_owned()], ..active };
    let runs = |filter: RunFilter| move |store: &SqliteStore| drop(store.loaded(&filter).unwrap());
    let plan = plan(runs(by_session));
    assert!(plan.contains("INDEX runs_by_session (session=?)"), "{plan}");
    // The runs of one project are few, and sorting them costs nothing.
    let plan = self::plan(runs(by_project));
    assert!(plan.contains("INDEX runs_active (project=?)"), "{plan}");
}

#[test]
fn runs_are_listed_without_reading_all() {
    let plan = plan(|store| {
        let active = RunFilter { active: Some(true), ..RunFilter::default() };
        store.list(&active).unwrap();
        store.count(&active).unwrap();
    });
    assert_eq!(plan.matches("INDEX runs_active").count(), 2, "{plan}");
    assert_found_by("sqlite_autoindex_runs_1 (id>? AND id<?)", |store| {
        store.find("ab", 2).unwrap();
    });
    assert_found_by("sqlite_autoindex_runs_1 (id=?)", |store| {
        store.run(&id()).unwrap();
    });
}

#[test]
fn decisions_and_events_are_found() {
    let of_run = DecisionFilter { run: Some(id()), limit: 1, ..DecisionFilter::default() };
    assert_found_by("decisions_by_run (run=?)", |store| {
        store.decisions(&of_run).unwrap();
    });
    assert_found_by("decisions_by_run (run=? AND rowid>?)", |store| {
        store.decisions_after(Some(&id()), &Cursor::START, 10).unwrap();
    });
    assert_found_by("PRIMARY KEY (rowid>?)", |store| {
        store.decisions_after(None, &Cursor::START, 10).unwrap();
    });
    assert_found_by("decisions_by_revision (run=? AND revision=?)", |store| {
        store.decisions_of(&id(), Revision(1)).unwrap();
    });
    assert_found_by("events_by_source (run=? AND source=?)", |store| {
        store.event_by_source(&id(), "s").unwrap();
    });
    assert_found_by("PRIMARY KEY (run=? AND seq>?)", |store| {
        store.events(&id(), 3, 10).unwrap();
    });
}

#[test]
fn effects_and_timers_are_found() {
    let now = Timestamp::from_millis(5_000);
    let claim = |change: fn(&mut ClaimRequest)| {
        let mut request = ClaimRequest::new(&["notify"], "me", now, Duration::ZERO);
        change(&mut request);
        move |store: &SqliteStore| {
            for expected in 0..2 {
                store.commit(&full_step("r", expected, &format!("k{expected}"))).unwrap();
            }
            SEEN.take();
            assert!(!store.claim(&request).unwrap().is_empty());
        }
    };
    assert_found_by("outbox_pending (head=? AND kind=?)", claim(|_| {}));
    assert_found_by("outbox_by_lane (lane=?)", claim(|it| it.lane = text("lane")));
    assert_found_by("outbox_by_state (state=? AND run=?)", claim(|it| it.run = Some(id())));
    assert_found_by("outbox_by_state (state=? AND run=?)", |store| {
        let filter = EffectFilter { run: Some(id()), ..EffectFilter::due_by(now) };
        store.pending_effects(&filter).unwrap();
    });
    assert_found_by("sqlite_autoindex_outbox_1 (key=?)", |store| {
        store.effect("k").unwrap();
    });
    assert_found_by("timers_by_due", |store| {
        store.next_timer().unwrap();
    });
}

#[test]
fn writes_look_at_nothing_else() {
    assert_found_by("sqlite_autoindex_runs_1 (id=?)", |store| {
        for expected in 0..3 {
            let mut step = full_step("r", expected, &format!("k{expected}"));
            step.record.active = expected < 2;
            step.done = vec![format!("k{}", expected.saturating_sub(1))];
            store.commit(&step).unwrap();
        }
    });
    let plan = plan(|store| {
        let mut step = full_step("r", 0, "k");
        step.record.active = false;
        store.commit(&step).unwrap();
        SEEN.take();
        let ended_before = Timestamp::from_millis(i64::MAX);
        assert_eq!(store.prune(&Prune { ended_before, limit: 1 }).unwrap().len(), 1);
    });
    assert!(plan.contains("INDEX runs_ended (updated<?)"), "{plan}");
    // The list of runs that are half deleted, and what is looked at row by row already.
    let scans: Vec<&str> = plan.lines().filter(|line| line.contains("SCAN")).collect();
    assert!(scans.iter().all(|scan| *scan == "SCAN doomed"), "{plan}");
}
