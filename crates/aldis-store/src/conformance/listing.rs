//! Reading: order, filters, pages, and what retention takes away.

use super::{at, create, decision, effect, event, id, ok, record, refused, set, some, step};
use crate::cursor::{Continuity, Cursor};
use crate::error::CommitError;
use crate::record::{Decision, DecisionFilter, EffectFilter, Run, RunFilter};
use crate::step::{Revision, RunRecord, Step};
use crate::store::Store;

fn listed(store: &dyn Store, filter: &RunFilter) -> Vec<String> {
    ok(store.runs(filter)).iter().map(|run: &Run| run.id.to_string()).collect()
}

fn decided(store: &dyn Store, filter: &DecisionFilter) -> Vec<Decision> {
    ok(store.decisions(filter))
}

fn bodies(decisions: &[Decision]) -> Vec<&str> {
    decisions.iter().map(|decision| &*decision.body).collect()
}

pub(super) fn runs_are_listed_newest_first(store: &dyn Store) {
    // By creation, not by name, clock or last step.
    for (run, millis) in [("m", 30), ("z", 10), ("a", 20)] {
        ok(store.commit(&Step { at: at(millis), ..step(run, 0) }));
    }
    ok(store.commit(&Step { at: at(99), ..step("m", 1) }));
    assert_eq!(listed(store, &RunFilter::default()), ["a", "z", "m"]);
    assert_eq!(listed(store, &RunFilter { limit: 2, ..RunFilter::default() }), ["a", "z"]);
}

pub(super) fn runs_are_filtered(store: &dyn Store) {
    let rows = [
        ("r1", "p", Some("s1"), "run", true),
        ("r2", "p", None, "phases", false),
        ("r3", "q", Some("s1"), "run", false),
        ("r4", "o", Some("s2"), "turns", true),
    ];
    for (run, project, session, machine, active) in rows {
        let record = RunRecord {
            project: project.to_owned(),
            session: session.map(str::to_owned),
            machine: machine.to_owned(),
            active,
            ..record()
        };
        ok(store.commit(&Step { record, ..step(run, 0) }));
    }
    let all = RunFilter::default;
    let of = |projects: &[&str]| projects.iter().map(|name| (*name).to_owned()).collect();
    let cases: [(RunFilter, &[&str]); 9] = [
        (RunFilter { projects: of(&["p"]), ..all() }, &["r2", "r1"]),
        (RunFilter { projects: of(&["q", "p", "none"]), ..all() }, &["r3", "r2", "r1"]),
        (RunFilter { projects: of(&["none"]), ..all() }, &[]),
        (RunFilter { machine: Some("run".to_owned()), ..all() }, &["r3", "r1"]),
        (RunFilter { active: Some(true), ..all() }, &["r4", "r1"]),
        (RunFilter { active: Some(false), ..all() }, &["r3", "r2"]),
        (RunFilter { session: Some("s1".to_owned()), ..all() }, &["r3", "r1"]),
        (RunFilter { session: Some(String::new()), ..all() }, &[]),
        (
            RunFilter {
                projects: of(&["p", "q"]),
                machine: Some("run".to_owned()),
                active: Some(true),
                session: Some("s1".to_owned()),
                limit: 1,
            },
            &["r1"],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(listed(store, &filter), expected, "{filter:?}");
    }
}

pub(super) fn events_are_read_in_pages(store: &dyn Store) {
    for expected in 0..4 {
        let kinds = ["a", "b", "c"].map(|kind| event(&format!("{kind}{expected}"), None));
        ok(store.commit(&Step { events: kinds.to_vec(), ..step("r", expected) }));
    }
    ok(store.commit(&Step { events: vec![event("other", None)], ..step("s", 0) }));
    let mut read = Vec::new();
    let mut after = 0;
    loop {
        let page = ok(store.events(&id("r"), after, 5));
        let Some(last) = page.last() else { break };
        assert!(last.seq > after, "a page must lead on");
        after = last.seq;
        read.extend(page);
    }
    let kinds: Vec<&str> = read.iter().map(|event| &*event.kind).collect();
    assert_eq!(kinds, ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]);
    assert!(read.iter().map(|event| event.seq).eq(1..=12), "numbered without gaps");
}

pub(super) fn decisions_are_read_backwards_across_runs(store: &dyn Store) {
    for (run, expected, bodies) in
        [("a", 0, vec!["1", "2"]), ("b", 0, vec!["3"]), ("a", 1, vec!["4"]), ("b", 1, vec!["5"])]
    {
        let decisions = bodies.into_iter().map(decision).collect();
        ok(store.commit(&Step { decisions, ..step(run, expected) }));
    }
    let all = decided(store, &DecisionFilter::default());
    assert_eq!(bodies(&all), ["5", "4", "3", "2", "1"]);
    assert!(all.windows(2).all(|pair| pair[0].cursor != pair[1].cursor));
    let revisions: Vec<u64> = all.iter().map(|decision| decision.revision.0).collect();
    assert_eq!(revisions, [2, 2, 1, 1, 1]);

    let older =
        DecisionFilter { before: Some(all[1].cursor), limit: 2, ..DecisionFilter::default() };
    assert_eq!(bodies(&decided(store, &older)), ["3", "2"]);
    let of_a = DecisionFilter { run: Some(id("a")), ..DecisionFilter::default() };
    assert_eq!(bodies(&decided(store, &of_a)), ["4", "2", "1"]);
    let older_of_a = DecisionFilter { before: Some(all[1].cursor), ..of_a };
    assert_eq!(bodies(&decided(store, &older_of_a)), ["2", "1"]);
}

pub(super) fn decisions_can_be_followed(store: &dyn Store) {
    for (run, expected, bodies) in
        [("a", 0, vec!["1", "2"]), ("b", 0, vec!["3"]), ("a", 1, vec!["4"])]
    {
        let decisions = bodies.into_iter().map(decision).collect();
        ok(store.commit(&Step { decisions, ..step(run, expected) }));
    }
    let after = |run: Option<&str>, after, limit| {
        ok(store.decisions_after(run.map(id).as_ref(), &after, limit))
    };
    let all = after(None, Cursor::START, 10);
    assert_eq!(bodies(&all), ["1", "2", "3", "4"]);
    assert_eq!(bodies(&after(None, all[1].cursor, 10)), ["3", "4"]);
    assert_eq!(bodies(&after(None, all[0].cursor, 2)), ["2", "3"]);
    assert_eq!(bodies(&after(Some("a"), all[0].cursor, 10)), ["2", "4"]);
    assert_eq!(bodies(&after(Some("a"), all[3].cursor, 10)), [""; 0]);
    assert_eq!(bodies(&after(None, Cursor::START, 0)), [""; 0]);
    // A client brings the text back.
    let text = all[1].cursor.to_string();
    assert_eq!(bodies(&after(None, ok(text.parse()), 10)), ["3", "4"]);
}

pub(super) fn a_reader_knows_what_it_missed(store: &dyn Store) {
    let continuity = |cursor: &Cursor| ok(store.continuity(cursor));
    assert_eq!(continuity(&Cursor::START), Continuity::Complete);
    for (run, active) in [("a", false), ("b", true), ("c", false)] {
        ended(store, run, active, 10);
    }
    let [c, b, a] = [0, 1, 2].map(|at| decided(store, &DecisionFilter::default())[at].cursor);
    ok(store.commit(&Step { at: at(30), ..step("c", 1) }));
    for cursor in [Cursor::START, a, b, c] {
        assert_eq!(continuity(&cursor), Continuity::Complete);
    }
    assert_eq!(ok(store.prune(at(20))), 1);
    assert_eq!(continuity(&Cursor::START), Continuity::Pruned);
    for cursor in [a, b, c] {
        assert_eq!(continuity(&cursor), Continuity::Complete);
    }
    // Of another store, or of this one before a backup was restored.
    assert_eq!(continuity(&ok("4711".parse())), Continuity::Unknown);
    assert_eq!(continuity(&ok("47-11".parse())), Continuity::Unknown);
}

pub(super) fn missing_things_are_not_errors(store: &dyn Store) {
    let none = id("none");
    assert_eq!(ok(store.run(&none)), None);
    assert_eq!(ok(store.runs(&RunFilter::default())), []);
    assert_eq!(ok(store.events(&none, 0, 10)), []);
    assert_eq!(ok(store.event_by_source(&none, "s")), None);
    assert_eq!(decided(store, &DecisionFilter::default()), []);
    assert_eq!(ok(store.pending_effects(&EffectFilter::due_by(at(i64::MAX)))), []);
    assert_eq!(ok(store.effect("k")), None);
    assert_eq!(ok(store.due_timers(at(i64::MAX), 10)), []);
    assert_eq!(ok(store.next_timer()), None);
    assert_eq!(ok(store.prune(at(i64::MAX))), 0);
}

pub(super) fn limits_hold(store: &dyn Store) {
    let busy = Step {
        events: vec![event("a", Some("a")), event("b", None)],
        decisions: vec![decision("a"), decision("b")],
        effects: vec![effect("a", 0), effect("b", 0)],
        timers: vec![set("a", 0), set("b", 0)],
        ..step("r", 0)
    };
    ok(store.commit(&busy));
    create(store, "s");
    for limit in [0, 1, 2, usize::MAX] {
        let expected = limit.min(2);
        assert_eq!(ok(store.runs(&RunFilter { limit, ..RunFilter::default() })).len(), expected);
        assert_eq!(ok(store.events(&id("r"), 0, limit)).len(), expected);
        let filter = DecisionFilter { limit, ..DecisionFilter::default() };
        assert_eq!(decided(store, &filter).len(), expected);
        let filter = EffectFilter { limit, ..EffectFilter::due_by(at(0)) };
        assert_eq!(ok(store.pending_effects(&filter)).len(), expected);
        assert_eq!(ok(store.due_timers(at(0), limit)).len(), expected);
    }
}

/// Commits a first step that ends the run at `millis`, or does not.
fn ended(store: &dyn Store, run: &str, active: bool, millis: i64) -> Step {
    let last = Step {
        events: vec![event("e", Some("e"))],
        decisions: vec![decision(run)],
        effects: vec![effect(run, 0)],
        done: vec![run.to_owned()],
        timers: vec![set("t", 0)],
        record: RunRecord { active, ..record() },
        at: at(millis),
        ..step(run, 0)
    };
    ok(store.commit(&last));
    last
}

pub(super) fn only_old_ended_runs_are_pruned(store: &dyn Store) {
    ended(store, "old", false, 10);
    ended(store, "active", true, 10);
    ended(store, "young", false, 20);
    assert_eq!(ok(store.prune(at(20))), 1);
    assert_eq!(listed(store, &RunFilter::default()), ["young", "active"]);
    assert_eq!(ok(store.prune(at(20))), 0);
    assert_eq!(bodies(&decided(store, &DecisionFilter::default())), ["young", "active"]);
    assert_eq!(ok(store.due_timers(at(0), 10)).len(), 2);
}

pub(super) fn pruning_forgets_everything(store: &dyn Store) {
    let last = ended(store, "r", false, 10);
    let newest = decided(store, &DecisionFilter::default())[0].cursor;
    assert_eq!(ok(store.prune(at(11))), 1);
    missing_things_are_not_errors(store);
    let gone = refused(store, &step("r", 1));
    assert!(matches!(gone, CommitError::NoSuchRun { .. }), "{gone}");

    // The same step is now a new run, and its decisions get new numbers.
    assert_eq!(ok(store.commit(&last)).revision, Revision(1));
    assert_eq!(ok(store.decisions_after(None, &newest, 10)).len(), 1);
    assert_eq!(some(ok(store.event_by_source(&id("r"), "e"))).seq, 1);
}

pub(super) fn pruning_keeps_what_is_still_to_be_done(store: &dyn Store) {
    ended(store, "r", false, 10);
    let record = RunRecord { active: false, ..record() };
    ok(store.commit(&Step { effects: vec![effect("open", 0)], record, ..step("r", 1) }));
    assert_eq!(ok(store.prune(at(i64::MAX))), 0);
    assert!(ok(store.effect_failed("open", None, "gone")));
    assert_eq!(ok(store.prune(at(i64::MAX))), 1);
}
