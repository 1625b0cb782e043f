//! Whatever is asked of them, PostgreSQL, SQLite and the plain tables in memory answer alike.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{
    Claim, ClaimRequest, Cursor, Decision, DecisionFilter, Driver, EffectFilter, Lease,
    MemoryStore, NewDecision, NewEffect, NewEvent, PageCursor, PartChange, Prune, Revision,
    RunFilter, RunId, RunRecord, RunSummary, Source, SqliteStore, Step, Store, TimerChange,
    Transfer,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
#[cfg(all(feature = "postgres", target_os = "linux"))]
use proptest::test_runner::TestRunner;

/// Something done to a store. Names come from small sets, so that they meet.
#[derive(Clone, Debug)]
enum Action {
    /// A step at the current revision, moved by `off`.
    Commit {
        step: Box<Step>,
        off: i64,
    },
    EffectsDone(RunId, Option<u64>, Vec<String>),
    Claim(ClaimRequest),
    /// These are done to an earlier claim, chosen by its number.
    Keep(usize, i64),
    Done(usize),
    Failed(usize, Option<i64>),
    Acquire(RunId, String, i64),
    Renew(Lease, i64),
    Release(Lease),
    Break(RunId, u64),
    Prune(i64, usize),
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "A", "\0", "ä🙂"]).prop_map(str::to_owned)
}

fn run_ids() -> [RunId; 3] {
    ["r", "s", "t"].map(|id| RunId::new(id).unwrap())
}

fn run() -> impl Strategy<Value = RunId> {
    prop::sample::select(run_ids().to_vec())
}

fn moment() -> impl Strategy<Value = Timestamp> {
    (0..20_i64).prop_map(Timestamp::from_millis)
}

fn record() -> impl Strategy<Value = RunRecord> {
    let driver = prop::sample::select(vec![Driver::Hook, Driver::Server]);
    (name(), option::of(name()), name(), driver, name(), any::<bool>()).prop_map(
        |(project, session, machine, driver, state, active)| RunRecord {
            project,
            session,
            machine,
            driver,
            title: String::new(),
            active,
            state,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let source = ("[a-f]{2}", name()).prop_map(|(key, digest)| Source { key, digest });
    let event = (name(), option::weighted(0.3, source), moment())
        .prop_map(|(kind, source, at)| NewEvent { body: kind.clone(), kind, source, at });
    let decision = (name(), moment()).prop_map(|(body, at)| NewDecision { body, at });
    let lane = prop::sample::select(vec!["", "", "x", "y"]).prop_map(str::to_owned);
    let requires = prop_oneof![2 => Just(Vec::new()), 1 => vec(name(), 0..2)];
    let effect =
        ("[a-h]", name(), moment(), lane, requires).prop_map(|(key, kind, due, lane, requires)| {
            NewEffect { key, body: kind.clone(), kind, due, lane, requires }
        });
    let timer = prop_oneof![
        (name(), moment()).prop_map(|(key, due)| TimerChange::Set { key, due }),
        name().prop_map(|key| TimerChange::Clear { key }),
    ];
    let part = prop_oneof![
        (name(), name()).prop_map(|(key, body)| PartChange::Set { key, body }),
        name().prop_map(|key| PartChange::Clear { key }),
    ];
    (
        (run(), option::weighted(0.2, 0..3_u64), record(), moment()),
        vec(event, 0..3),
        vec(decision, 0..3),
        vec(effect, 0..3),
        vec("[a-d]", 0..2),
        vec(timer, 0..3),
        vec(part, 0..3),
    )
        .prop_map(
            |((run, fence, record, at), events, decisions, effects, done, timers, parts)| Step {
                fence,
                events,
                decisions,
                effects,
                done,
                timers,
                parts,
                ..Step::new(run, Revision(0), record, at)
            },
        )
}

fn lease() -> impl Strategy<Value = Lease> {
    (run(), name(), 0..4_u64, moment()).prop_map(|(run, holder, fence, until)| Lease {
        run,
        holder,
        fence,
        until,
    })
}

fn request() -> impl Strategy<Value = ClaimRequest> {
    (
        vec(name(), 0..3),
        option::weighted(0.3, name()),
        option::weighted(0.3, run()),
        0..4_usize,
        0..20_i64,
    )
        .prop_map(|(kinds, lane, run, limit, now)| ClaimRequest {
            labels: vec!["a".to_owned(), "\0".to_owned()],
            lane,
            run,
            limit,
            // Half of the kinds would mean half of the effects.
            kinds: if kinds.len() == 1 { Vec::new() } else { kinds },
            ..ClaimRequest::new(&[], "w", Timestamp::from_millis(now), Duration::from_millis(5))
        })
}

fn action() -> impl Strategy<Value = Action> {
    let off = prop_oneof![8 => Just(0_i64), 1 => Just(-1), 1 => Just(1)];
    prop_oneof![
        8 => (step(), off).prop_map(|(step, off)| Action::Commit { step: Box::new(step), off }),
        1 => (run(), option::weighted(0.3, 0..3_u64), vec("[a-d]", 0..3))
            .prop_map(|(run, fence, keys)| Action::EffectsDone(run, fence, keys)),
        6 => request().prop_map(Action::Claim),
        2 => (0..8_usize, 0..20_i64).prop_map(|(claim, now)| Action::Keep(claim, now)),
        2 => (0..8_usize).prop_map(Action::Done),
        2 => (0..8_usize, option::of(0..20_i64))
            .prop_map(|(claim, next)| Action::Failed(claim, next)),
        2 => (run(), name(), 0..20_i64)
            .prop_map(|(run, holder, now)| Action::Acquire(run, holder, now)),
        1 => (lease(), 0..20_i64).prop_map(|(lease, now)| Action::Renew(lease, now)),
        1 => lease().prop_map(Action::Release),
        1 => (run(), 0..4_u64).prop_map(|(run, fence)| Action::Break(run, fence)),
        1 => (0..20_i64, 0..3_usize).prop_map(|(before, limit)| Action::Prune(before, limit)),
    ]
}

/// Does it, and returns the answer.
fn act(store: &dyn Store, action: &Action, claims: &mut Vec<Claim>) -> String {
    let at = Timestamp::from_millis;
    let ttl = Duration::from_millis(5);
    match action {
        Action::Commit { step, off } => {
            let found = store.run(&step.run).unwrap().map_or(0, |run| run.revision.0);
            let expected = Revision(found.saturating_add_signed(*off));
            format!("{:?}", store.commit(&Step { expected, ..(**step).clone() }))
        }
        Action::EffectsDone(run, fence, keys) => {
            format!("{:?}", store.effects_done(run, *fence, keys))
        }
        Action::Claim(request) => {
            let handed_out = store.claim(request).unwrap();
            claims.extend(handed_out.iter().cloned());
            format!("{handed_out:?}")
        }
        Action::Keep(number, now) => {
            let some = claims.get(*number..).unwrap_or_default();
            format!("{:?}", store.keep(some, at(*now), ttl))
        }
        Action::Done(number) => format!("{:?}", claims.get(*number).map(|it| store.done(it))),
        Action::Failed(number, next) => {
            let failed = |claim| store.failed(claim, next.map(at), "no");
            format!("{:?}", claims.get(*number).map(failed))
        }
        Action::Acquire(run, holder, now) => {
            format!("{:?}", store.acquire_lease(run, holder, at(*now), ttl))
        }
        Action::Renew(lease, now) => format!("{:?}", store.renew_lease(lease, at(*now), ttl)),
        Action::Break(run, fence) => format!("{:?}", store.break_lease(run, *fence)),
        Action::Release(lease) => format!("{:?}", store.release_lease(lease)),
        Action::Prune(before, limit) => {
            let (ended_before, limit) = (at(*before), *limit);
            format!("{:?}", store.prune(&Prune { ended_before, limit }))
        }
    }
}

/// A decision without its position, which every store has in its own way.
fn plain(decision: Decision) -> Decision {
    Decision { cursor: Cursor::START, ..decision }
}

/// Everything that can be read. `cursors` are those of all decisions there ever were.
fn look(store: &dyn Store, cursors: &[Cursor]) -> String {
    let now = Timestamp::from_millis(10);
    let runs = store.list(&RunFilter::default()).unwrap();
    let page: PageCursor = "0".parse().unwrap();
    let on_page = |run: &RunSummary| RunSummary { page, ..run.clone() };
    let events: Vec<_> =
        runs.iter().map(|run| store.events(&run.id, 1, usize::MAX).unwrap()).collect();
    let loaded: Vec<_> = runs.iter().map(|run| store.load(&run.id).unwrap()).collect();
    let effects: Vec<_> =
        ["a", "b", "c", "d", "e", "f", "g", "h"].map(|key| store.effect(key).unwrap()).to_vec();
    let some = RunFilter {
        projects: vec!["a".to_owned(), "\0".to_owned()],
        active: Some(true),
        session: Some("b".to_owned()),
        ..RunFilter::default()
    };
    let late = RunFilter {
        driver: Some(Driver::Hook),
        updated_before: Some(now),
        after: runs.first().map(|run| run.page),
        ..RunFilter::default()
    };
    let list =
        |filter: &RunFilter| store.list(filter).unwrap().iter().map(on_page).collect::<Vec<_>>();
    let found: Vec<_> = store.find("", 2).unwrap().iter().map(on_page).collect();
    let decided = |decisions: Vec<Decision>| decisions.into_iter().map(plain).collect::<Vec<_>>();
    let followed = store.decisions_after(None, cursors.first().unwrap_or(&Cursor::START), 9);
    format!(
        "{:#?}",
        (
            (runs.iter().map(on_page).collect::<Vec<_>>(), loaded),
            events,
            effects,
            (store.loaded(&some).unwrap(), list(&late)),
            (store.count(&late).unwrap(), found),
            run_ids().map(|run| decided(store.decisions_of(&run, Revision(2)).unwrap())),
            (
                decided(store.decisions(&DecisionFilter::default()).unwrap()),
                decided(followed.unwrap())
            ),
            cursors.iter().map(|cursor| store.continuity(cursor).unwrap()).collect::<Vec<_>>(),
            (
                store.pending_effects(&EffectFilter::due_by(now)).unwrap(),
                store.pending_count().unwrap()
            ),
            store.due_timers(now, 4).unwrap(),
            store.next_timer().unwrap(),
        )
    )
}

/// Does the same to both, and compares every answer and then all that can be read.
fn compare(actions: &[Action], one: &dyn Store, other: &dyn Store) -> Result<(), TestCaseError> {
    let (mut claims, mut cursors) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for action in actions {
        let answer = act(one, action, &mut claims[0]);
        prop_assert_eq!(answer, act(other, action, &mut claims[1]), "{:?}", action);
        for (store, cursors) in [one, other].into_iter().zip(&mut cursors) {
            let after = cursors.last().copied().unwrap_or(Cursor::START);
            let new = store.decisions_after(None, &after, usize::MAX).unwrap();
            cursors.extend(new.into_iter().map(|decision| decision.cursor));
        }
    }
    prop_assert_eq!(look(one, &cursors[0]), look(other, &cursors[1]));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_sqlite_answer_alike(actions in vec(action(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = SqliteStore::open(directory.path()).unwrap();
        compare(&actions, &sqlite, &MemoryStore::new())?;
    }
}

/// Of a test that runs so many cases itself, nothing is kept in a file.
#[cfg(all(feature = "postgres", target_os = "linux"))]
fn in_one(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[cfg(all(feature = "postgres", target_os = "linux"))]
#[test]
fn memory_and_postgres_answer_alike() {
    let Some(cluster) = crate::postgres::cluster() else { return };
    let config = in_one(48);
    // One server for all of them, a schema for each.
    let tried = TestRunner::new(config).run(&vec(action(), 1..40), |actions| {
        let postgres = crate::postgres::open(&cluster.address());
        compare(&actions, &postgres, &MemoryStore::new())?;
        prop_assert_eq!(postgres.check().unwrap(), Vec::<String>::new());
        Ok(())
    });
    tried.unwrap();
}

/// Takes all runs from one store to another.
#[cfg(all(feature = "postgres", target_os = "linux"))]
fn copy_all(from: &dyn Transfer, to: &dyn Transfer) {
    for run in from.list(&RunFilter::default()).unwrap().into_iter().rev() {
        let copy = from.export(&run.id).unwrap().unwrap();
        to.import(&copy).unwrap();
        // Twice is as good as once, also over what another one left.
        to.import(&copy).unwrap();
        assert!(to.export(&run.id).unwrap().unwrap().is_same(&copy));
    }
}

#[cfg(all(feature = "postgres", target_os = "linux"))]
#[test]
fn a_copy_answers_as_the_original_does() {
    let Some(cluster) = crate::postgres::cluster() else { return };
    let config = in_one(24);
    let tried = TestRunner::new(config).run(&vec(action(), 1..40), |actions| {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str| SqliteStore::open(&directory.path().join(name)).unwrap();
        let (original, copy) = (open("original"), open("copy"));
        let mut claims = Vec::new();
        for action in &actions {
            act(&original, action, &mut claims);
        }
        // Leases stay behind, and claims end.
        for run in original.list(&RunFilter::default()).unwrap() {
            original.break_lease(&run.id, run.fence).unwrap();
        }
        original.keep(&claims, Timestamp::from_millis(0), Duration::ZERO).unwrap();
        let postgres = crate::postgres::open(&cluster.address());
        copy_all(&original, &postgres);
        copy_all(&postgres, &copy);
        prop_assert_eq!(postgres.check().unwrap(), Vec::<String>::new());
        copy.check().unwrap();
        // Across runs, decisions and effects are in another order.
        let expected = look_at_runs(&original);
        for store in [&postgres as &dyn Store, &copy] {
            prop_assert_eq!(look_at_runs(store), &*expected);
        }
        Ok(())
    });
    tried.unwrap();
}

/// Everything that can be read of each run, and handed out of it.
#[cfg(all(feature = "postgres", target_os = "linux"))]
fn look_at_runs(store: &dyn Store) -> String {
    let now = Timestamp::from_millis(10);
    let mut seen = Vec::new();
    for run in run_ids() {
        let of_run = DecisionFilter { run: Some(run.clone()), ..DecisionFilter::default() };
        let decided = store.decisions(&of_run).unwrap().into_iter().map(plain).collect::<Vec<_>>();
        let filter = EffectFilter { run: Some(run.clone()), ..EffectFilter::due_by(now) };
        seen.push((
            store.load(&run).unwrap(),
            store.events(&run, 0, usize::MAX).unwrap(),
            decided,
            store.pending_effects(&filter).unwrap(),
        ));
    }
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|key| store.effect(key).unwrap());
    let request = ClaimRequest::new(&[], "w", now, Duration::ZERO);
    let mut lane_free: Vec<_> = store
        .claim(&ClaimRequest { lane: Some(String::new()), ..request })
        .unwrap()
        .into_iter()
        .map(|claim| (claim.effect.key, claim.fence))
        .collect();
    lane_free.sort();
    format!("{:#?}", (seen, keys, lane_free, store.due_timers(now, 9).unwrap()))
}
