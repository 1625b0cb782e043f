//! Reading: order, filters and pages.

use std::time::Duration;

use super::{at, create, decision, effect, event, id, ok, record, set, step};
use crate::claim::ClaimRequest;
use crate::cursor::Cursor;
use crate::record::{Decision, DecisionFilter, EffectFilter, Prune, RunFilter, RunSummary};
use crate::step::{Driver, Revision, RunRecord, Step};
use crate::store::Store;

fn listed(store: &dyn Store, filter: &RunFilter) -> Vec<String> {
    let summaries = ok(store.list(filter));
    let all = RunFilter { limit: usize::MAX, ..filter.clone() };
    assert_eq!(ok(store.count(filter)), ok(store.list(&all)).len() as u64);
    let loaded = ok(store.loaded(filter));
    assert!(loaded.iter().map(|loaded| &loaded.run.id).eq(summaries.iter().map(|run| &run.id)));
    summaries.iter().map(|run| run.id.to_string()).collect()
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
        ("r1", "p", Some("s1"), "run", Driver::Process, true),
        ("r2", "p", None, "phases", Driver::Hook, false),
        ("r3", "q", Some("s1"), "run", Driver::Worker, false),
        ("r4", "o", Some("s2"), "turns", Driver::Server, true),
    ];
    for (millis, (run, project, session, machine, driver, active)) in (10..).zip(rows) {
        let record = RunRecord {
            project: project.to_owned(),
            session: session.map(str::to_owned),
            machine: machine.to_owned(),
            driver,
            active,
            ..record()
        };
        ok(store.commit(&Step { record, at: at(millis), ..step(run, 0) }));
    }
    let all = RunFilter::default;
    let of = |projects: &[&str]| projects.iter().map(|name| (*name).to_owned()).collect();
    let cases: [(RunFilter, &[&str]); 15] = [
        (RunFilter { projects: of(&["p"]), ..all() }, &["r2", "r1"]),
        (RunFilter { projects: of(&["q", "p", "none"]), ..all() }, &["r3", "r2", "r1"]),
        (RunFilter { projects: of(&["none"]), ..all() }, &[]),
        (RunFilter { machine: Some("run".to_owned()), ..all() }, &["r3", "r1"]),
        (RunFilter { driver: Some(Driver::Hook), ..all() }, &["r2"]),
        (RunFilter { driver: Some(Driver::Worker), active: Some(true), ..all() }, &[]),
        (RunFilter { updated_before: Some(at(12)), ..all() }, &["r2", "r1"]),
        (RunFilter { updated_before: Some(at(12)), active: Some(false), ..all() }, &["r2"]),
        (RunFilter { projects: of(&["p", "o"]), active: Some(true), ..all() }, &["r4", "r1"]),
        (RunFilter { active: Some(true), limit: 1, ..all() }, &["r4"]),
        (RunFilter { active: Some(true), ..all() }, &["r4", "r1"]),
        (RunFilter { active: Some(false), ..all() }, &["r3", "r2"]),
        (RunFilter { session: Some("s1".to_owned()), ..all() }, &["r3", "r1"]),
        (RunFilter { session: Some(String::new()), ..all() }, &[]),
        (
            RunFilter {
                projects: of(&["p", "q"]),
                machine: Some("run".to_owned()),
                driver: Some(Driver::Process),
                active: Some(true),
                session: Some("s1".to_owned()),
                updated_before: Some(at(11)),
                after: None,
                limit: 1,
            },
            &["r1"],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(listed(store, &filter), expected, "{filter:?}");
    }
}

pub(super) fn a_summary_has_everything_but_the_state(store: &dyn Store) {
    let busy = Step { events: vec![event("e", None)], ..step("r", 0) };
    ok(store.commit(&busy));
    let summary = |store: &dyn Store| ok(store.list(&RunFilter::default())).remove(0);
    let first = summary(store);
    let RunRecord { project, session, machine, driver, title, active, state: _ } = record();
    assert_eq!(
        first,
        RunSummary {
            id: id("r"),
            revision: Revision(1),
            last_event: 1,
            created: busy.at,
            updated: busy.at,
            fence: 0,
            lease: None,
            project,
            session,
            machine,
            driver,
            title,
            active,
            page: first.page,
        }
    );
    // Of the lease, who holds it and until when.
    let lease = ok(store.acquire_lease(&id("r"), "me", at(5), Duration::from_millis(5)));
    assert_eq!(summary(store).lease, Some(lease.clone()));
    assert_eq!((summary(store).fence, lease.until), (1, at(10)));
    assert!(ok(store.release_lease(&lease)));
    assert_eq!(summary(store), RunSummary { fence: 1, ..first });
    // A later step changes what the list is filtered by.
    let record = RunRecord { driver: Driver::Worker, active: false, ..record() };
    ok(store.commit(&Step { record, at: at(9_000), ..step("r", 1) }));
    let last = summary(store);
    assert_eq!((last.driver, last.active, last.updated), (Driver::Worker, false, at(9_000)));
}

pub(super) fn runs_are_listed_in_pages(store: &dyn Store) {
    for number in 0..7 {
        create(store, &format!("r{number}"));
    }
    let mut filter = RunFilter { limit: 3, ..RunFilter::default() };
    let mut pages = Vec::new();
    loop {
        let page = ok(store.list(&filter));
        let Some(last) = page.last() else { break };
        // The position as a client brings it back.
        filter.after = Some(ok(last.page.to_string().parse()));
        pages.push(page.iter().map(|run| run.id.to_string()).collect::<Vec<_>>());
        // A run that is created meanwhile moves nobody.
        create(store, &format!("new{}", pages.len()));
    }
    assert_eq!(pages, [vec!["r6", "r5", "r4"], vec!["r3", "r2", "r1"], vec!["r0"]]);
}

pub(super) fn runs_are_found_by_prefix(store: &dyn Store) {
    for run in ["ab", "abc", "b", "a", "aB", "ab-1", "ab.1", "ab_1", "abz", "ac"] {
        create(store, run);
    }
    let found = |prefix: &str, limit| {
        let summaries = ok(store.find(prefix, limit));
        summaries.into_iter().map(|run| run.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found("ab", 10), ["ab", "ab-1", "ab.1", "ab_1", "abc", "abz"]);
    assert_eq!(found("ab", 2), ["ab", "ab-1"]);
    assert_eq!(found("", 3), ["a", "aB", "ab"]);
    for nothing in ["abd", "A", "%", "a%", "_", "é", "\0", "ab\u{7f}"] {
        assert_eq!(found(nothing, 10), [""; 0], "{nothing:?}");
    }
    assert_eq!(found("a", 0), [""; 0]);
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
    let within = |limit, bytes| ok(store.decisions_within(None, &Cursor::START, limit, bytes));
    for (limit, bytes, count) in [(10, 1, 1), (10, 2, 2), (10, 3, 3), (2, 9, 2), (10, 9, 4)] {
        assert_eq!(bodies(&within(limit, bytes)), bodies(&all[..count]), "{limit} {bytes}");
    }
    // A client brings the text back.
    let text = all[1].cursor.to_string();
    assert_eq!(bodies(&after(None, ok(text.parse()), 10)), ["3", "4"]);
}

pub(super) fn missing_things_are_not_errors(store: &dyn Store) {
    let none = id("none");
    assert_eq!(ok(store.run(&none)), None);
    assert_eq!(ok(store.list(&RunFilter::default())), []);
    assert_eq!(ok(store.loaded(&RunFilter::default())), []);
    assert_eq!(ok(store.count(&RunFilter::default())), 0);
    assert_eq!(ok(store.find("", 10)), []);
    assert_eq!(ok(store.events(&none, 0, 10)), []);
    assert_eq!(ok(store.event_by_source(&none, "s")), None);
    assert_eq!(decided(store, &DecisionFilter::default()), []);
    assert_eq!(ok(store.pending_effects(&EffectFilter::due_by(at(i64::MAX)))), []);
    assert_eq!(ok(store.effect("k")), None);
    assert_eq!(ok(store.pending_count()), []);
    let anything = ClaimRequest::new(&[], "me", at(i64::MAX), Duration::ZERO);
    assert_eq!(ok(store.claim(&anything)), []);
    assert_eq!(ok(store.due_timers(at(i64::MAX), 10)), []);
    assert_eq!(ok(store.next_timer()), None);
    let everything = Prune { ended_before: at(i64::MAX), limit: usize::MAX };
    assert_eq!(ok(store.prune(&everything)), []);
    assert_eq!(ok(store.size()).runs, 0);
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
        assert_eq!(ok(store.list(&RunFilter { limit, ..RunFilter::default() })).len(), expected);
        assert_eq!(ok(store.events(&id("r"), 0, limit)).len(), expected);
        let filter = DecisionFilter { limit, ..DecisionFilter::default() };
        assert_eq!(decided(store, &filter).len(), expected);
        let filter = EffectFilter { limit, ..EffectFilter::due_by(at(0)) };
        assert_eq!(ok(store.pending_effects(&filter)).len(), expected);
        assert_eq!(ok(store.due_timers(at(0), limit)).len(), expected);
    }
}
