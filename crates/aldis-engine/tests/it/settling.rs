//! Conflicts, failing stores and fences: nothing is lost, nothing is there twice, and what is told
//! comes from the state that was stored.

use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, EngineError, Handle};
use aldis_machine::run::{Effect, Event, State};
use aldis_machine::turns;
use aldis_store::{Driver, RunId};

use crate::stepping::{exited, spent, working};
use crate::support::{Fate, World, a_channel, at, each_store, id};

/// Somebody else lets the run take an event.
fn meddle(engine: &Engine, run: &RunId, second: i64, event: Event) {
    let mut other = engine.open::<State>(run).unwrap();
    other.advance(engine, at(second), event).unwrap();
}

fn pause(by: &str) -> Event {
    Event::Pause { by: by.to_owned() }
}

fn abort() -> Event {
    Event::Abort { by: "them".to_owned() }
}

/// Lets somebody else be first at the next commit.
fn plan_meddling(world: &World, run: &RunId, second: i64, event: Event) {
    let (engine, run) = (world.engine.clone(), run.clone());
    world.store.plan(Fate::After(Box::new(move || meddle(&engine, &run, second, event))));
}

#[test]
fn a_step_that_comes_second_is_computed_again() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        handle.advance(&world.engine, at(3), spent(5)).unwrap();
        // Before the agent's end can be written, a human aborts.
        plan_meddling(world, handle.id(), 4, abort());
        let stepped = handle.advance(&world.engine, at(5), exited()).unwrap();
        assert!(stepped.written);
        let rules = world.rules(handle.id());
        let told: Vec<&str> = stepped.outcome.decisions.iter().map(|it| &*it.rule).collect();
        assert_eq!(told, ["run/aborted"], "the end of an aborted run: {rules:?}");
        assert_eq!(rules[rules.len() - 2..], ["run/abort", "run/aborted"]);
        assert!(matches!(stepped.outcome.effects.last(), Some(Effect::Finish { .. })));
        let kinds = world.kinds(handle.id());
        assert_eq!(kinds[kinds.len() - 3..], ["abort", "spent", "exited"]);
        assert_eq!(world.engine.open::<State>(handle.id()).unwrap().state(), handle.state());
        world.assert_replays(handle.id());
    });
}

#[test]
fn an_event_may_mean_nothing_any_more_after_a_conflict() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        plan_meddling(world, handle.id(), 3, pause("them"));
        let stepped = handle.advance(&world.engine, at(4), pause("us")).unwrap();
        assert!(stepped.outcome.is_nothing(), "{:?}", stepped.outcome);
        let suspends = world.rules(handle.id());
        assert_eq!(suspends.iter().filter(|rule| *rule == "run/paused").count(), 1);
        world.assert_replays(handle.id());
    });
}

#[test]
fn others_who_are_always_first_are_an_error_and_nothing_is_lost() {
    let world = World::memory();
    let mut handle = working(&world, "r", Driver::Process);
    for turn in 0..64 {
        let event = match turn % 2 {
            0 => pause("them"),
            _ => Event::Resume { by: "them".to_owned() },
        };
        plan_meddling(&world, handle.id(), 3, event);
        // The meddler's own commit has a fate, too.
        world.store.plan(Fate::Nothing);
    }
    let tell = Event::Tell { text: "Hello".to_owned(), by: "us".to_owned() };
    let contended = handle.advance(&world.engine, at(4), tell);
    assert!(matches!(contended, Err(EngineError::Contended(_))), "{contended:?}");
    assert!(world.store.forget() > 0);
    // The next event brings it along, with the decision about it.
    let stepped = handle.advance(&world.engine, at(5), spent(1)).unwrap();
    assert_eq!(stepped.outcome.decisions.len(), 1);
    assert_eq!(world.rules(handle.id()).last().unwrap(), "run/message-received");
    let kinds = world.kinds(handle.id());
    assert_eq!(kinds.iter().filter(|kind| *kind == "tell").count(), 1);
    assert_eq!(kinds.last().unwrap(), "spent");
    world.assert_replays(handle.id());
}

/// How whoever holds a handle goes on after the store failed.
type GoesOn = fn(&mut Handle<State>, &Engine) -> Vec<String>;

fn rules(stepped: aldis_engine::Stepped<Effect>) -> Vec<String> {
    stepped.outcome.decisions.into_iter().map(|decision| decision.rule).collect()
}

const WAYS: [(&str, GoesOn); 5] = [
    ("recover", |handle, engine| rules(handle.recover(engine, at(10)).unwrap())),
    ("flush", |handle, engine| rules(handle.flush(engine, at(10)).unwrap())),
    ("refresh", |handle, engine| rules(handle.refresh(engine, at(10)).unwrap().unwrap())),
    ("advance", |handle, engine| rules(handle.advance(engine, at(10), spent(9)).unwrap())),
    ("step", |handle, engine| {
        let outcome = engine.step(at(10), handle, spent(9), None).unwrap();
        outcome.decisions.into_iter().map(|decision| decision.rule).collect()
    }),
];

#[test]
fn a_step_that_the_store_failed_to_write_is_written_once() {
    each_store(|world| {
        for (number, (way, goes_on)) in WAYS.into_iter().enumerate() {
            for (written, meddled) in [(false, false), (false, true), (true, false), (true, true)] {
                let name = format!("r{number}{written}{meddled}");
                let mut handle = working(world, &name, Driver::Process);
                let tell = Event::Tell { text: "Hello".to_owned(), by: "us".to_owned() };
                world.store.plan(if written { Fate::FailsAfter } else { Fate::FailsBefore });
                let failed = handle.advance(&world.engine, at(4), tell);
                assert!(matches!(failed, Err(EngineError::Store(_))), "{way}");
                if meddled {
                    meddle(&world.engine, handle.id(), 5, pause("them"));
                }
                let told = goes_on(&mut handle, &world.engine);
                let case = format!("{way}, written: {written}, meddled: {meddled}");
                assert_eq!(told, ["run/message-received"], "{case}");
                let of =
                    |list: Vec<String>, what: &str| list.iter().filter(|it| *it == what).count();
                assert_eq!(of(world.kinds(handle.id()), "tell"), 1, "{case}");
                assert_eq!(of(world.rules(handle.id()), "run/message-received"), 1, "{case}");
                assert_eq!(handle.state().feedback().len(), 1, "{case}");
                handle.flush(&world.engine, at(11)).unwrap();
                let stored = world.engine.open::<State>(handle.id()).unwrap();
                assert_eq!(stored.state(), handle.state(), "{case}");
                world.assert_replays(handle.id());
            }
        }
    });
}

#[test]
fn a_store_that_keeps_failing_loses_nothing() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let tell = |text: &str| Event::Tell { text: text.to_owned(), by: "us".to_owned() };
        for (second, text) in [(3, "one"), (4, "two"), (5, "three")] {
            world.store.plan(if second == 4 { Fate::FailsAfter } else { Fate::FailsBefore });
            assert!(handle.advance(&world.engine, at(second), tell(text)).is_err());
        }
        world.store.plan(Fate::FailsBefore);
        assert!(handle.recover(&world.engine, at(6)).is_err());
        let stepped = handle.recover(&world.engine, at(7)).unwrap();
        assert_eq!(stepped.outcome.decisions.len(), 3, "each is told once");
        assert_eq!(handle.state().feedback().len(), 3);
        let kinds = world.kinds(handle.id());
        assert_eq!(kinds.iter().filter(|kind| *kind == "tell").count(), 3);
        assert!(!handle.recover(&world.engine, at(8)).unwrap().written, "nothing is left");
        world.assert_replays(handle.id());
    });
}

#[test]
fn a_handle_that_cannot_read_its_run_keeps_what_it_has() {
    let world = World::memory();
    let mut handle = working(&world, "r", Driver::Process);
    handle.advance(&world.engine, at(3), spent(5)).unwrap();
    // Somebody newer was here: what is stored cannot be understood for a while.
    let run = world.engine.store().run(handle.id()).unwrap().unwrap();
    let mut record = run.record.clone();
    record.state = r#"{"v":99,"state":{}}"#.to_owned();
    let step = aldis_store::Step::new(run.id.clone(), run.revision, record, at(4));
    let newer = world.engine.store().commit(&step).unwrap().revision;
    let failed = handle.advance(&world.engine, at(5), exited());
    assert!(matches!(failed, Err(EngineError::Unreadable { .. })));
    let step = aldis_store::Step::new(run.id, newer, run.record, at(6));
    world.engine.store().commit(&step).unwrap();
    assert_ne!(handle.recover(&world.engine, at(7)).unwrap().outcome.decisions, []);
    let kinds = world.kinds(handle.id());
    assert_eq!(kinds[kinds.len() - 2..], ["spent", "exited"]);
    world.assert_replays(handle.id());
}

#[test]
fn whoever_was_replaced_writes_nothing() {
    each_store(|world| {
        let mut handle = working(world, "r", Driver::Process);
        let store = world.engine.store();
        let ttl = Duration::from_secs(30);
        let lease = store.acquire_lease(handle.id(), "one", at(3), ttl).unwrap();
        handle.set_fence(lease.fence);
        handle.advance(&world.engine, at(4), pause("us")).unwrap();
        let next = store.acquire_lease(handle.id(), "two", at(40), ttl).unwrap();
        let before = world.kinds(handle.id());
        let resume = || Event::Resume { by: "us".to_owned() };
        let fenced = handle.advance(&world.engine, at(41), resume());
        assert!(matches!(fenced, Err(EngineError::Fenced(_))), "{fenced:?}");
        for fenced in [
            handle.recover(&world.engine, at(42)).map(drop),
            handle.flush(&world.engine, at(42)).map(drop),
            handle.set_notes(&world.engine, at(42), Vec::new()),
        ] {
            assert!(matches!(fenced, Err(EngineError::Fenced(_))), "{fenced:?}");
        }
        assert_eq!(world.kinds(handle.id()), before);
        // Recording what was performed is fenced as well.
        let mut old = world.engine.open::<State>(handle.id()).unwrap();
        old.set_fence(lease.fence);
        let key = old.next_effect(&world.engine).unwrap().unwrap().key;
        old.performed(key.clone());
        assert!(matches!(old.flush(&world.engine, at(43)), Err(EngineError::Fenced(_))));
        assert!(world.pending(handle.id()).iter().any(|effect| effect.key == key));
        let mut new = world.engine.open::<State>(handle.id()).unwrap();
        new.set_fence(next.fence);
        new.advance(&world.engine, at(44), resume()).unwrap();
        world.assert_replays(handle.id());
    });
}

/// Threads that all speak at once: each message is taken once, in some order.
#[test]
fn a_crowd_is_served_one_after_the_other() {
    each_store(|world| {
        world.begin::<turns::State>("t", Driver::Server, a_channel());
        let engine = Arc::new(world.engine.clone());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let engine = Arc::clone(&engine);
                scope.spawn(move || {
                    for number in 0..5 {
                        let text = format!("{thread}-{number}");
                        loop {
                            let mut handle = engine.open::<turns::State>(&id("t")).unwrap();
                            let (from, to) = (None, None);
                            let (text, by) = (text.clone(), String::new());
                            let event = turns::Event::Human { text, from, to, by };
                            match engine.step(at(1), &mut handle, event, None) {
                                Ok(outcome) => break assert_eq!(outcome.decisions.len(), 1),
                                Err(EngineError::Contended(_)) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                });
            }
        });
        let events = world.engine.store().events(&id("t"), 1, usize::MAX).unwrap();
        let mut texts: Vec<&str> = events.iter().map(|event| &*event.body).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!((events.len(), texts.len()), (20, 20));
        world.assert_replays(&id("t"));
    });
}
