//! Whatever is asked of them, SQLite and the plain tables in memory answer alike.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{
    DecisionFilter, Driver, EffectFilter, Lease, MemoryStore, NewDecision, NewEffect, NewEvent,
    PartChange, Revision, RunFilter, RunId, RunRecord, Source, SqliteStore, Step, Store,
    TimerChange,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Something done to a store. Names come from small sets, so that they meet.
#[derive(Clone, Debug)]
enum Action {
    /// A step at the current revision, moved by `off`.
    Commit {
        step: Box<Step>,
        off: i64,
    },
    EffectDone(String),
    EffectFailed(String, Option<i64>),
    Acquire(RunId, String, i64),
    Renew(Lease, i64),
    Release(Lease),
    Prune(i64),
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
    let effect = ("[a-d]", name(), moment()).prop_map(|(key, kind, due)| NewEffect {
        key,
        body: kind.clone(),
        kind,
        due,
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

fn action() -> impl Strategy<Value = Action> {
    let off = prop_oneof![8 => Just(0_i64), 1 => Just(-1), 1 => Just(1)];
    prop_oneof![
        8 => (step(), off).prop_map(|(step, off)| Action::Commit { step: Box::new(step), off }),
        1 => "[a-d]".prop_map(Action::EffectDone),
        2 => ("[a-d]", option::of(0..20_i64))
            .prop_map(|(key, next)| Action::EffectFailed(key, next)),
        2 => (run(), name(), 0..20_i64)
            .prop_map(|(run, holder, now)| Action::Acquire(run, holder, now)),
        1 => (lease(), 0..20_i64).prop_map(|(lease, now)| Action::Renew(lease, now)),
        1 => lease().prop_map(Action::Release),
        1 => (0..20_i64).prop_map(Action::Prune),
    ]
}

/// Does it, and returns the answer.
fn act(store: &dyn Store, action: &Action) -> String {
    let at = Timestamp::from_millis;
    let ttl = Duration::from_millis(5);
    match action {
        Action::Commit { step, off } => {
            let found = store.run(&step.run).unwrap().map_or(0, |run| run.revision.0);
            let expected = Revision(found.saturating_add_signed(*off));
            format!("{:?}", store.commit(&Step { expected, ..(**step).clone() }))
        }
        Action::EffectDone(key) => format!("{:?}", store.effect_done(key)),
        Action::EffectFailed(key, next) => {
            format!("{:?}", store.effect_failed(key, next.map(at), "no"))
        }
        Action::Acquire(run, holder, now) => {
            format!("{:?}", store.acquire_lease(run, holder, at(*now), ttl))
        }
        Action::Renew(lease, now) => format!("{:?}", store.renew_lease(lease, at(*now), ttl)),
        Action::Release(lease) => format!("{:?}", store.release_lease(lease)),
        Action::Prune(before) => format!("{:?}", store.prune(at(*before))),
    }
}

/// Everything that can be read.
fn look(store: &dyn Store) -> String {
    let now = Timestamp::from_millis(10);
    let runs = store.list(&RunFilter::default()).unwrap();
    let events: Vec<_> =
        runs.iter().map(|run| store.events(&run.id, 1, usize::MAX).unwrap()).collect();
    let loaded: Vec<_> = runs.iter().map(|run| store.load(&run.id).unwrap()).collect();
    let effects: Vec<_> = ["a", "b", "c", "d"].map(|key| store.effect(key).unwrap()).to_vec();
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
    format!(
        "{:#?}",
        (
            (runs, loaded),
            events,
            effects,
            (store.loaded(&some).unwrap(), store.list(&late).unwrap()),
            (store.count(&late).unwrap(), store.find("", 2).unwrap()),
            run_ids().map(|run| store.decisions_of(&run, Revision(2)).unwrap()),
            store.decisions(&DecisionFilter::default()).unwrap(),
            ["0", "1", "3", "9"].map(|text| store.continuity(&text.parse().unwrap()).unwrap()),
            store.pending_effects(&EffectFilter::due_by(now)).unwrap(),
            store.due_timers(now, 4).unwrap(),
            store.next_timer().unwrap(),
        )
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_sqlite_answer_alike(actions in vec(action(), 1..25)) {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = SqliteStore::open(directory.path()).unwrap();
        let memory = MemoryStore::new();
        for action in &actions {
            prop_assert_eq!(act(&sqlite, action), act(&memory, action), "{:?}", action);
        }
        prop_assert_eq!(look(&sqlite), look(&memory));
    }
}
