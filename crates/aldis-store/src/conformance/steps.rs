//! One step is one write: whole, in order, once.

use std::thread;

use super::full_step as full;
use super::{create, decision, event, id, ok, refused, some, step, stored};
use crate::error::CommitError;
use crate::record::{DecisionFilter, EffectFilter};
use crate::step::{Committed, Revision, Step};
use crate::store::Store;

/// Everything that can be seen of a run and its step `mark`.
fn traces(store: &dyn Store, run: &str) -> String {
    let run = id(run);
    let mine = DecisionFilter { run: Some(run.clone()), ..DecisionFilter::default() };
    let due = EffectFilter { run: Some(run.clone()), ..EffectFilter::due_by(super::at(i64::MAX)) };
    format!(
        "{:#?}",
        (
            ok(store.run(&run)),
            ok(store.events(&run, 0, 100)),
            ok(store.decisions(&mine)),
            ok(store.pending_effects(&due)),
            ok(store.due_timers(super::at(i64::MAX), 100)),
        )
    )
}

pub(super) fn the_first_step_creates_the_run(store: &dyn Store) {
    let first = full("r", 0, "one");
    let committed = ok(store.commit(&first));
    assert_eq!(committed, Committed { revision: Revision(1), last_event: 2 });

    let run = stored(store, "r");
    assert_eq!((&run.id, run.revision, run.last_event), (&id("r"), Revision(1), 2));
    assert_eq!((run.created, run.updated, run.fence), (first.at, first.at, 0));
    assert_eq!(run.record, first.record);

    let events = ok(store.events(&id("r"), 0, 10));
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((&*events[0].kind, &*events[1].kind), ("one", "plain"));
    assert_eq!(events[0].source.as_deref(), Some("one"));
    assert_eq!(events[1].source, None);
    let decisions = ok(store.decisions(&DecisionFilter::default()));
    assert_eq!((&*decisions[0].body, decisions[0].revision), ("one", Revision(1)));
    assert_eq!(decisions[0].run, id("r"));
}

pub(super) fn each_step_raises_the_revision(store: &dyn Store) {
    for expected in 0..5 {
        let committed = ok(store.commit(&full("r", expected, &format!("s{expected}"))));
        assert_eq!(committed.revision, Revision(expected + 1));
        assert_eq!(committed.last_event, 2 * (expected + 1));
        let run = stored(store, "r");
        assert_eq!((run.revision, run.last_event), (committed.revision, committed.last_event));
    }
    let later = Step { at: super::at(9_000), ..step("r", 5) };
    ok(store.commit(&later));
    let run = stored(store, "r");
    assert_eq!((run.created, run.updated), (super::at(1_000), super::at(9_000)));
}

pub(super) fn a_stale_step_changes_nothing(store: &dyn Store) {
    ok(store.commit(&full("r", 0, "one")));
    ok(store.commit(&full("r", 1, "two")));
    let before = traces(store, "r");
    for stale in [0, 1, 3, 17] {
        let error = refused(store, &full("r", stale, "late"));
        assert!(matches!(error, CommitError::Conflict { found: Revision(2) }), "{error}");
        assert_eq!(traces(store, "r"), before);
    }
}

pub(super) fn a_step_of_a_missing_run_is_refused(store: &dyn Store) {
    let error = refused(store, &full("r", 1, "one"));
    assert!(matches!(&error, CommitError::NoSuchRun { run } if *run == id("r")), "{error}");
    assert_eq!(ok(store.run(&id("r"))), None);
    assert_eq!(ok(store.next_timer()), None);
}

pub(super) fn a_known_source_changes_nothing(store: &dyn Store) {
    ok(store.commit(&full("r", 0, "one")));
    let before = traces(store, "r");
    // Whatever the revision: a second delivery often comes with an old one.
    for (expected, index) in [(0, 1), (1, 1), (7, 1), (0, 0), (1, 0), (7, 0)] {
        let mut again = full("r", expected, "two");
        again.events.insert(index, event("again", Some("one")));
        let error = refused(store, &again);
        assert!(
            matches!(
                &error,
                CommitError::Duplicate { source_key, digest, revision: Some(Revision(1)) }
                    if source_key == "one" && digest.as_deref() == Some("of one")
            ),
            "{error:?}"
        );
        assert_eq!(traces(store, "r"), before);
    }
    let first = some(ok(store.event_by_source(&id("r"), "one")));
    assert_eq!((first.seq, &*first.kind), (1, "one"));
    assert_eq!((first.revision, first.digest.as_deref()), (Some(Revision(1)), Some("of one")));
}

pub(super) fn a_second_delivery_finds_the_first_answer(store: &dyn Store) {
    for expected in 0..5 {
        let mark = format!("s{expected}");
        let decisions = vec![decision(&mark), decision(&format!("{mark} too"))];
        ok(store.commit(&Step { decisions, ..full("r", expected, &mark) }));
        ok(store.commit(&full("other", expected, &mark)));
    }
    // However much happened since: by the key to the revision, by the revision to the decisions.
    let first = some(ok(store.event_by_source(&id("r"), "s1")));
    assert_eq!(first.revision, Some(Revision(2)));
    let answer = ok(store.decisions_of(&id("r"), Revision(2)));
    let bodies: Vec<&str> = answer.iter().map(|decision| &*decision.body).collect();
    assert_eq!(bodies, ["s1", "s1 too"]);
    assert!(answer.iter().all(|decision| decision.run == id("r")));
    for nothing in [Revision(0), Revision(6), Revision(u64::MAX)] {
        assert_eq!(ok(store.decisions_of(&id("r"), nothing)), []);
    }
    assert_eq!(ok(store.decisions_of(&id("none"), Revision(1))), []);
    // Events without a source have a revision, too.
    let events = ok(store.events(&id("r"), 0, 100));
    let revisions: Vec<_> = events.iter().filter_map(|event| event.revision).collect();
    assert!(revisions.iter().map(|revision| revision.0).eq([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]));
    assert_eq!((&events[1].source, &events[1].digest), (&None, &None));
}

pub(super) fn a_source_twice_in_one_step_is_refused(store: &dyn Store) {
    let twice =
        Step { events: vec![event("a", Some("same")), event("b", Some("same"))], ..step("r", 0) };
    let error = refused(store, &twice);
    assert!(
        matches!(error, CommitError::Duplicate { digest: None, revision: None, .. }),
        "{error:?}"
    );
    assert_eq!(ok(store.run(&id("r"))), None);
}

pub(super) fn sources_belong_to_their_run(store: &dyn Store) {
    for run in ["a", "b"] {
        let events = vec![event(run, Some("same"))];
        ok(store.commit(&Step { events, ..step(run, 0) }));
    }
    for run in ["a", "b"] {
        let found = some(ok(store.event_by_source(&id(run), "same")));
        assert_eq!((&found.run, &*found.kind), (&id(run), run));
    }
}

pub(super) fn a_refused_step_leaves_no_trace(store: &dyn Store) {
    create(store, "r");
    let before = traces(store, "r");
    let mut refusable = full("r", 9, "late");
    refused(store, &refusable);
    assert_eq!(traces(store, "r"), before);
    assert_eq!(ok(store.effect("late")), None);
    // Not even a remembered key or source: the same step passes once its revision is right.
    refusable.expected = Revision(1);
    ok(store.commit(&refusable));
    assert!(ok(store.effect("late")).is_some());
}

pub(super) fn steps_of_racing_threads_are_all_counted(store: &dyn Store) {
    const THREADS: usize = 4;
    const STEPS: usize = 5;
    create(store, "r");
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..STEPS {
                    count_once(store, &format!("{thread}.{number}"));
                }
            });
        }
    });
    let run = stored(store, "r");
    let steps = (THREADS * STEPS) as u64;
    assert_eq!((run.revision, run.last_event), (Revision(1 + steps), steps));
    assert_eq!(run.record.state, steps.to_string());
}

/// Raises the number in the run's state by one, trying again until nobody interferes.
fn count_once(store: &dyn Store, source: &str) {
    loop {
        let run = stored(store, "r");
        let number = run.record.state.parse::<u64>().unwrap_or(0);
        let mut next = step("r", run.revision.0);
        next.record.state = (number + 1).to_string();
        next.events = vec![event("count", Some(source))];
        match store.commit(&next) {
            Ok(_) => return,
            Err(CommitError::Conflict { found }) => assert!(found > run.revision),
            Err(error) => panic!("unexpected {error:?}"),
        }
    }
}

pub(super) fn a_turn_admits_its_own_thread(store: &dyn Store) {
    for expected in 0..3 {
        let _turn = ok(store.turn(&id("r")));
        let _again = ok(store.turn(&id("r")));
        ok(store.commit(&step("r", expected)));
    }
    thread::scope(|scope| {
        scope.spawn(|| drop(ok(store.turn(&id("r")))));
    });
    assert_eq!(stored(store, "r").revision, Revision(3));
}

pub(super) fn a_turn_holds_up_nobody_else(store: &dyn Store) {
    create(store, "r");
    create(store, "s");
    let turn = ok(store.turn(&id("r")));
    // Commits need no turn, and other runs have their own.
    thread::scope(|scope| {
        scope.spawn(|| ok(store.commit(&step("r", 1))));
        scope.spawn(|| {
            let _turn = ok(store.turn(&id("s")));
            ok(store.commit(&step("s", 1)));
        });
    });
    // Whoever wants the same turn waits, and then finds what was committed in it.
    thread::scope(|scope| {
        scope.spawn(|| {
            let _turn = ok(store.turn(&id("r")));
            ok(store.commit(&step("r", 3)));
        });
        ok(store.commit(&step("r", 2)));
        drop(turn);
    });
    assert_eq!(stored(store, "r").revision, Revision(4));
}
