//! Retention: what ended long ago goes, whole, and nothing else does.

use std::time::Duration;

use super::listing::missing_things_are_not_errors;
use super::{at, decision, effect, event, id, ok, record, refused, set, some, step};
use crate::claim::ClaimRequest;
use crate::cursor::{Continuity, Cursor};
use crate::error::CommitError;
use crate::record::{DecisionFilter, Prune, RunFilter};
use crate::step::{NewEffect, PartChange, Revision, RunRecord, Step};
use crate::store::Store;

/// A first step that ends the run at `millis`, or does not, and touches every table.
fn last_step(run: &str, active: bool, millis: i64) -> Step {
    Step {
        events: vec![event("e", Some("e"))],
        decisions: vec![decision(run)],
        effects: vec![effect(run, 0), effect(&format!("{run}/open"), 0)],
        done: vec![run.to_owned()],
        timers: vec![set("t", 0)],
        parts: vec![PartChange::Set { key: "p".to_owned(), body: run.to_owned() }],
        record: RunRecord { active, ..record() },
        at: at(millis),
        ..step(run, 0)
    }
}

fn ended(store: &dyn Store, run: &str, active: bool, millis: i64) {
    ok(store.commit(&last_step(run, active, millis)));
}

fn prune(store: &dyn Store, ended_before: i64, limit: usize) -> Vec<String> {
    let gone = ok(store.prune(&Prune { ended_before: at(ended_before), limit }));
    gone.iter().map(ToString::to_string).collect()
}

fn decided(store: &dyn Store) -> Vec<(String, Cursor)> {
    let decisions = ok(store.decisions(&DecisionFilter::default())).into_iter();
    decisions.map(|decision| (decision.body, decision.cursor)).collect()
}

pub(super) fn only_old_ended_runs_are_pruned(store: &dyn Store) {
    for (run, active, millis) in
        [("old", false, 11), ("active", true, 10), ("young", false, 20), ("older", false, 10)]
    {
        ended(store, run, active, millis);
    }
    assert_eq!(ok(store.size()).runs, 4);
    // The oldest last step first, so many and no more.
    assert_eq!(prune(store, 20, 0), [""; 0]);
    assert_eq!(prune(store, 20, 1), ["older"]);
    assert_eq!(prune(store, 20, 10), ["old"]);
    assert_eq!(prune(store, 20, 10), [""; 0]);
    let left = ok(store.list(&RunFilter::default()));
    assert_eq!(left.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["young", "active"]);
    assert_eq!(
        decided(store).iter().map(|(body, _)| &**body).collect::<Vec<_>>(),
        ["young", "active"]
    );
    assert_eq!(ok(store.due_timers(at(0), 10)).len(), 2);
    assert_eq!(ok(store.size()).runs, 2);
    assert_eq!(some(ok(store.load(&id("young")))).parts.len(), 1);
    assert_eq!(ok(store.size()).unfinished, 0);
}

pub(super) fn a_probe_leaves_nothing_behind(store: &dyn Store) {
    for _ in 0..3 {
        ok(store.probe());
    }
    missing_things_are_not_errors(store);
}

pub(super) fn pruning_forgets_everything(store: &dyn Store) {
    ended(store, "r", false, 10);
    let (_, newest) = decided(store).remove(0);
    // Pending effects or not: that old they are given up.
    assert_eq!(prune(store, 11, 10), ["r"]);
    missing_things_are_not_errors(store);
    assert_eq!(ok(store.effect("r/open")), None);
    assert_eq!(ok(store.event_by_source(&id("r"), "e")), None);
    let gone = refused(store, &step("r", 1));
    assert!(matches!(gone, CommitError::NoSuchRun { .. }), "{gone}");

    // The same step is now a new run, with its own keys and sources, and its decisions come later.
    let again = Step { parts: Vec::new(), ..last_step("r", false, 10) };
    assert_eq!(ok(store.commit(&again)).revision, Revision(1));
    assert_eq!(ok(store.decisions_after(None, &newest, 10)).len(), 1);
    assert_eq!(some(ok(store.event_by_source(&id("r"), "e"))).seq, 1);
    assert!(ok(store.effect("r/open")).is_some());
    assert_eq!(some(ok(store.load(&id("r")))).parts, []);
}

pub(super) fn a_pruned_effect_frees_its_lane(store: &dyn Store) {
    for (run, active) in [("old", false), ("other", true)] {
        let effect = NewEffect { lane: "shared".to_owned(), ..effect(run, 0) };
        let record = RunRecord { active, ..record() };
        ok(store.commit(&Step { effects: vec![effect], record, at: at(5), ..step(run, 0) }));
    }
    let of_other = ClaimRequest {
        run: Some(id("other")),
        ..ClaimRequest::new(&[], "me", at(10), Duration::from_millis(5))
    };
    assert_eq!(ok(store.claim(&of_other)), []);
    let mut all = of_other.clone();
    all.run = None;
    all.limit = 1;
    let lost = ok(store.claim(&all)).remove(0);
    assert_eq!(prune(store, 10, 10), ["old"]);
    assert!(!ok(store.done(&lost)));
    assert_eq!(ok(store.claim(&of_other)).len(), 1);
}

pub(super) fn a_reader_knows_what_it_missed(store: &dyn Store) {
    let continuity = |cursor: &Cursor| ok(store.continuity(cursor));
    assert_eq!(continuity(&Cursor::START), Continuity::Complete);
    for (run, active) in [("a", false), ("b", true), ("c", false)] {
        ended(store, run, active, 10);
    }
    let cursors: Vec<Cursor> = decided(store).into_iter().map(|(_, cursor)| cursor).collect();
    ok(store.commit(&Step { at: at(30), ..step("c", 1) }));
    assert!(cursors.iter().all(|cursor| continuity(cursor) == Continuity::Complete));
    assert_eq!(continuity(&Cursor::START), Continuity::Complete);
    assert_eq!(prune(store, 20, 10), ["a"]);
    assert_eq!(continuity(&Cursor::START), Continuity::Pruned);
    assert!(cursors.iter().all(|cursor| continuity(cursor) == Continuity::Complete));
    // Of another store, or of this one before a backup was restored.
    assert_eq!(continuity(&ok("4711".parse())), Continuity::Unknown);
    assert_eq!(continuity(&ok("47-11".parse())), Continuity::Unknown);
}
