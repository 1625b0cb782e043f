//! What only a database of many machines can get wrong.

mod access;
mod pooler;
mod projects;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aldis_signal::time::Timestamp;
use aldis_store::{
    ClaimRequest, Continuity, Cursor, Driver, LeaseError, NewDecision, NewEffect, PostgresAddress,
    PostgresStore, Revision, RunId, RunRecord, Step, Store, StoreError,
};

use crate::cluster::Cluster;

const LONG: Duration = Duration::from_secs(600);

/// Starts a server, or says that the test is skipped.
pub(crate) fn cluster() -> Option<Cluster> {
    let cluster = Cluster::start().unwrap();
    if cluster.is_none() {
        use std::io::Write as _;
        std::io::stderr().write_all(b"skipped: PostgreSQL is not installed\n").unwrap();
    }
    cluster
}

/// Opens the store at this address, with the times of its callers.
pub(crate) fn open(address: &str) -> PostgresStore {
    PostgresStore::open(PostgresAddress::parse(address).unwrap().with_callers_clock()).unwrap()
}

/// Opens the store as users do.
fn open_shared(address: &str) -> PostgresStore {
    PostgresStore::open(PostgresAddress::parse(address).unwrap()).unwrap()
}

fn id(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A step with a decision and an effect that say which one it is.
fn step(run: &str, expected: u64) -> Step {
    let record = RunRecord {
        project: String::new(),
        session: None,
        machine: "test".to_owned(),
        driver: Driver::Server,
        title: String::new(),
        active: true,
        state: expected.to_string(),
    };
    let body = format!("{run}/{expected}");
    let mut step = Step::new(id(run), Revision(expected), record, at(0));
    step.decisions = vec![NewDecision { body: body.clone(), at: at(0) }];
    step.effects = vec![NewEffect {
        key: body,
        kind: "post".to_owned(),
        body: String::new(),
        due: at(0),
        lane: run.to_owned(),
        requires: Vec::new(),
    }];
    step
}

fn bodies(store: &dyn Store, after: &Cursor) -> Vec<String> {
    let decisions = store.decisions_after(None, after, usize::MAX).unwrap();
    decisions.into_iter().map(|decision| decision.body).collect()
}

#[test]
fn decisions_are_followed_in_the_order_in_which_they_become_visible() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address_of("feed");
    let [one, other] = [open(&address), open(&address)];
    // A step that has its numbers and is not committed for a while.
    cluster
        .sql(
            "CREATE FUNCTION feed.wait() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$; \
             CREATE TRIGGER slow AFTER INSERT ON feed.decisions FOR EACH ROW \
             WHEN (NEW.run = 'slow') EXECUTE FUNCTION feed.wait()",
        )
        .unwrap();
    one.commit(&step("first", 0)).unwrap();
    let mut after = one.decisions_after(None, &Cursor::START, 9).unwrap()[0].cursor;
    let mut seen = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| one.commit(&step("slow", 0)).unwrap());
        while cluster
            .sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
            .unwrap()
            == "0"
        {}
        other.commit(&step("fast", 0)).unwrap();
        let revision = other.run(&id("fast")).unwrap().unwrap().revision;
        assert_eq!(revision, Revision(1), "it is committed before the slow one is");
        // Who reads the run itself need not wait for others.
        let own = other.decisions_after(Some(&id("fast")), &after, 9).unwrap();
        assert_eq!(own.len(), 1);
        while seen.len() < 2 {
            for decision in other.decisions_after(None, &after, 1).unwrap() {
                after = decision.cursor;
                seen.push(decision.body);
            }
        }
    });
    assert_eq!(
        seen,
        ["slow/0", "fast/0"],
        "a reader that had seen fast/0 would have missed slow/0"
    );
}

#[test]
fn a_follower_misses_nothing_that_many_write() {
    const WRITERS: usize = 6;
    const STEPS: u64 = 60;
    let Some(cluster) = cluster() else { return };
    let address = cluster.address();
    let store = open(&address);
    let writing = AtomicU64::new(WRITERS as u64);
    let mut seen: Vec<String> = Vec::new();
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let (address, writing) = (&address, &writing);
            scope.spawn(move || {
                let own = open(address);
                for expected in 0..STEPS {
                    own.commit(&step(&format!("r{number}"), expected)).unwrap();
                }
                writing.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut after = Cursor::START;
        loop {
            let over = writing.load(Ordering::SeqCst) == 0;
            let page = store.decisions_after(None, &after, 50).unwrap();
            if page.is_empty() && over {
                break;
            }
            after = page.last().map_or(after, |decision| decision.cursor);
            seen.extend(page.into_iter().map(|decision| decision.body));
        }
    });
    for number in 0..WRITERS {
        let run = format!("r{number}/");
        let of_run = seen.iter().filter_map(|body| body.strip_prefix(&run));
        assert!(of_run.map(|it| it.parse::<u64>().unwrap()).eq(0..STEPS), "{run} {seen:?}");
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn the_clock_of_the_database_counts() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address();
    let [one, other] = [open_shared(&address), open_shared(&address)];
    one.commit(&step("r", 0)).unwrap();
    let (early, late) = (at(0), at(i64::MAX / 2));
    let ttl = Duration::from_secs(30);
    let lease = one.acquire_lease(&id("r"), "one", early, ttl).unwrap();
    assert!(lease.until > at(1_700_000_000_000), "{lease:?}");
    // Somebody whose clock is far ahead steals nothing.
    let held = other.acquire_lease(&id("r"), "other", late, ttl);
    assert!(matches!(held, Err(LeaseError::Held { fence: 1, .. })), "{held:?}");
    let request = |worker, now| ClaimRequest::new(&[], worker, now, ttl);
    let claims = one.claim(&request("one", early)).unwrap();
    assert_eq!(claims.len(), 1);
    assert_eq!(other.claim(&request("other", late)).unwrap(), []);
    assert_eq!(one.keep(&claims, late, Duration::ZERO).unwrap(), [true]);
    assert_eq!(other.claim(&request("other", early)).unwrap()[0].fence, 2);
}

#[test]
fn a_killed_server_loses_nothing_that_was_acknowledged() {
    const WRITERS: usize = 4;
    let Some(mut cluster) = cluster() else { return };
    let address = cluster.address_of("crash");
    let store = open(&address);
    let stop = AtomicBool::new(false);
    let kills = 3;
    let acknowledged: Vec<u64> = thread::scope(|scope| {
        let write = |number: usize| {
            let run = id(&format!("r{number}"));
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                let mut acknowledged = 0;
                while !stop.load(Ordering::SeqCst) {
                    // Whether a step that failed was written is unknown, so the run is read again.
                    let Ok(found) = store.run(&run) else { continue };
                    let revision = found.map_or(0, |found| found.revision.0);
                    assert!(revision >= acknowledged, "{revision} after {acknowledged}");
                    if let Ok(committed) = store.commit(&step(run.as_str(), revision)) {
                        assert_eq!(committed.revision.0, revision + 1);
                        acknowledged = committed.revision.0;
                    }
                }
                acknowledged
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(300));
            cluster.kill().unwrap();
            cluster.restart().unwrap();
        }
        thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let all = bodies(&store, &Cursor::START);
    for (number, acknowledged) in acknowledged.iter().enumerate() {
        let run = format!("r{number}");
        let revision = store.run(&id(&run)).unwrap().unwrap().revision.0;
        assert!(revision >= *acknowledged && *acknowledged > 0, "{run} {revision} {acknowledged}");
        let decided = all.iter().filter(|body| body.starts_with(&format!("{run}/"))).count();
        assert_eq!(decided as u64, revision, "each step once");
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn writers_elsewhere_wake_those_who_wait() {
    const ROUNDS: u64 = 20;
    let Some(cluster) = cluster() else { return };
    let address = cluster.address();
    let [one, other] = [open(&address), open(&address)];
    let began = Instant::now();
    thread::scope(|scope| {
        let play = |store: PostgresStore, mine: u64| {
            scope.spawn(move || {
                loop {
                    let stamp = store.change().unwrap();
                    let revision = store.run(&id("r")).unwrap().map_or(0, |run| run.revision.0);
                    if revision >= ROUNDS {
                        return;
                    }
                    if revision % 2 == mine {
                        store.commit(&step("r", revision)).unwrap();
                    } else {
                        store.wait_for_change(&stamp, LONG).unwrap();
                    }
                }
            });
        };
        play(one, 0);
        play(other, 1);
    });
    // Looking once a second would take as many seconds.
    assert!(began.elapsed() < Duration::from_secs(ROUNDS * 3 / 4), "{:?}", began.elapsed());
}

#[test]
fn a_notification_that_is_lost_costs_a_second() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address_of("silent");
    let [one, other] = [open(&address), open(&address)];
    let stamp = one.change().unwrap();
    other.commit(&step("r", 0)).unwrap();
    // As a writer that is killed between its commit and the notification.
    other.abandon();
    assert_ne!(one.wait_for_change(&stamp, LONG).unwrap(), stamp);
}

#[test]
fn the_turn_of_a_run_is_between_machines() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address();
    let [one, other] = [open(&address), open(&address)];
    let inside = AtomicBool::new(false);
    thread::scope(|scope| {
        for store in [&one, &other] {
            let inside = &inside;
            scope.spawn(move || {
                for expected in 0..20 {
                    let _turn = store.turn(&id("r")).unwrap();
                    let _again = store.turn(&id("r")).unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two at once");
                    // Commits of whoever holds the turn are not in its way.
                    let found = store.run(&id("r")).unwrap().map_or(0, |run| run.revision.0);
                    store.commit(&step("r", found)).unwrap();
                    assert!(found >= expected);
                    inside.store(false, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(one.run(&id("r")).unwrap().unwrap().revision, Revision(40));
    // A machine that is gone holds no turn.
    std::mem::forget(one.turn(&id("r")).unwrap());
    cluster
        .sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_locks \
             WHERE locktype = 'advisory' AND granted",
        )
        .unwrap();
    drop(other.turn(&id("r")).unwrap());
}

#[test]
fn a_restored_backup_counts_on() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address_of("old");
    let store = open(&address);
    store.commit(&step("r", 0)).unwrap();
    drop(store);
    // As if another server had counted much farther.
    cluster.sql("UPDATE old.decisions SET tx = tx + 1000000000").unwrap();
    let parsed = PostgresAddress::parse(&address).unwrap();
    let error = PostgresStore::open(parsed.clone()).unwrap_err();
    assert!(matches!(error, StoreError::OlderSchema { .. }), "{error}");
    assert!(error.to_string().contains("aldis store migrate"), "{error}");
    assert_eq!(PostgresStore::migrate(parsed).unwrap(), (4, 4));
    let store = open(&address);
    let before = store.decisions_after(None, &Cursor::START, 9).unwrap();
    assert_eq!(before.len(), 1);
    store.commit(&step("r", 1)).unwrap();
    assert_eq!(bodies(&store, &before[0].cursor), ["r/1"]);
    assert_eq!(store.continuity(&before[0].cursor).unwrap(), Continuity::Complete);
}

#[test]
fn databases_that_cannot_be_used_are_left_alone() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address_of("odd");
    drop(open(&address));
    let refused = |address: &str| {
        PostgresStore::open(PostgresAddress::parse(address).unwrap()).map(drop).unwrap_err()
    };
    cluster.sql("UPDATE odd.store SET version = 99").unwrap();
    let error = refused(&address);
    assert!(matches!(error, StoreError::NewerSchema { found: 99, .. }), "{error}");
    cluster.sql("UPDATE odd.store SET version = 4").unwrap();
    drop(open(&address));
    cluster.sql("ALTER ROLE aldis SET synchronous_commit = off").unwrap();
    let error = refused(&address);
    assert!(matches!(error, StoreError::Unsafe { .. }), "{error}");
    assert!(error.to_string().contains("synchronous_commit"), "{error}");
}

#[test]
fn many_come_to_an_empty_database_at_once() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address();
    thread::scope(|scope| {
        for number in 0..6 {
            let address = &address;
            scope.spawn(move || open(address).commit(&step(&format!("r{number}"), 0)).unwrap());
        }
    });
    assert_eq!(open(&address).size().unwrap().runs, 6);
}

#[test]
fn steps_that_nobody_waits_for_are_written_in_order() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address();
    let store = open(&address);
    let (sender, results) = std::sync::mpsc::channel();
    for expected in 0..50 {
        for run in ["a", "b", "c"] {
            let sender = sender.clone();
            let reply = move |step: Box<Step>, result| sender.send((step, result)).unwrap();
            store.commit_then(Box::new(step(run, expected)), Box::new(reply));
        }
    }
    // What was handed over is written before the store is closed.
    drop(store);
    drop(sender);
    let mut count = 0;
    for (step, result) in results {
        let result: Result<aldis_store::Committed, aldis_store::CommitError> = result;
        assert_eq!(result.unwrap().revision.0, step.expected.0 + 1);
        count += 1;
    }
    assert_eq!(count, 150);
    assert_eq!(open(&address).run(&id("b")).unwrap().unwrap().revision, Revision(50));
}
