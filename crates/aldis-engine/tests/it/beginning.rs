//! Runs begin once, under their names, with their notes.

use aldis_engine::{EngineError, MACHINES, NewRun};
use aldis_machine::{Machine, delivery, phases, run, turns};
use aldis_store::{Driver, Source};
use serde_json::json;

use crate::support::{
    Builtin, Fate, World, a_channel, a_delivery, a_run, a_stop, at, each_store, id, members, named,
    phases,
};

/// Begins a run and reads it again.
fn begins<M: Machine>(world: &World, name: &str, driver: Driver, start: M::Start, title: &str) {
    let note = aldis_engine::note("launch", &json!({ "command": ["true"] })).unwrap();
    let new = NewRun { notes: vec![note], ..named(name, driver) };
    let (handle, outcome) = world.engine.begin::<M>(at(0), &new, start.clone()).unwrap();
    assert_eq!((handle.revision().0, handle.created(), handle.driver()), (1, at(0), driver));
    assert_eq!(world.kinds(handle.id()), ["start"]);
    assert_eq!(world.rules(handle.id()).len(), outcome.decisions.len());
    let stored = world.engine.open::<M>(handle.id()).unwrap();
    assert_eq!(stored.state(), handle.state());
    assert_eq!((stored.project(), stored.driver()), ("project", driver));
    let launch: Option<serde_json::Value> = stored.note("launch").unwrap();
    assert_eq!(launch, Some(json!({ "command": ["true"] })));
    let run = world.engine.store().run(handle.id()).unwrap().unwrap();
    assert_eq!((&*run.record.machine, &*run.record.title), (M::NAME, title));
    assert!(run.record.active);
    world.assert_replays(handle.id());

    // The name is taken, also by a run of another machine.
    let taken = world.engine.begin::<M>(at(1), &new, start);
    assert!(matches!(taken, Err(EngineError::Exists(it)) if it == id(name)));
    let taken = world.engine.begin::<run::State>(at(1), &named(name, driver), a_run());
    assert!(matches!(taken, Err(EngineError::Exists(_))));
    assert_eq!(world.kinds(handle.id()), ["start"]);
}

#[test]
fn runs_of_every_machine_begin() {
    each_store(|world| {
        begins::<run::State>(world, "r", Driver::Process, a_run(), "Add CSV export");
        let title = "Write the CSV and 1 more task";
        begins::<delivery::State>(world, "d", Driver::Worker, a_delivery(), title);
        begins::<phases::State>(world, "p", Driver::Hook, phases(), "Add CSV export");
        begins::<turns::State>(world, "t", Driver::Server, a_channel(), "general");
    });
}

#[test]
fn a_run_without_a_name_gets_one_that_nobody_has() {
    each_store(|world| {
        let new = NewRun::of("", Driver::Process);
        let one = world.engine.begin::<run::State>(at(0), &new, a_run()).unwrap().0;
        let other = world.engine.begin::<run::State>(at(0), &new, a_run()).unwrap().0;
        assert_ne!(one.id(), other.id());
    });
}

#[test]
fn what_cannot_be_meant_does_not_begin() {
    let world = World::memory();
    let mut start = a_run();
    start.config.max_iterations = 0;
    let refused = world.engine.begin::<run::State>(at(0), &named("r", Driver::Process), start);
    assert!(matches!(refused, Err(EngineError::Invalid(_))), "{refused:?}");
    let start = members(json!({ "task": "x", "unknown": 1 }));
    let new = named("r", Driver::Server);
    for (machine, start) in [("run", start), ("turns", members(json!({ "channel": "x y" })))] {
        let refused = world.engine.begin_json(at(0), machine, &new, start, &Builtin);
        assert!(matches!(refused, Err(EngineError::Invalid(_))), "{machine}: {refused:?}");
    }
    let none = world.engine.begin_json(at(0), "chess", &new, members(json!({})), &Builtin);
    assert!(matches!(&none, Err(EngineError::NoSuchMachine(name)) if name == "chess"));
    assert!(none.unwrap_err().to_string().contains(&MACHINES.join(", ")));
    assert!(world.engine.snapshot(&id("r")).unwrap().is_none());
}

#[test]
fn a_store_that_fails_at_the_beginning_leaves_a_run_or_none() {
    let world = World::memory();
    let new = named("r", Driver::Process);
    world.store.plan(Fate::FailsBefore);
    let failed = world.engine.begin::<run::State>(at(0), &new, a_run());
    assert!(matches!(failed, Err(EngineError::Store(_))));
    assert!(matches!(world.engine.open_any(&id("r")), Err(EngineError::NoSuchRun(_))));
    world.store.plan(Fate::FailsAfter);
    assert!(world.engine.begin::<run::State>(at(0), &new, a_run()).is_err());
    assert_eq!(world.engine.open::<run::State>(&id("r")).unwrap().revision().0, 1);
    let again = world.engine.begin::<run::State>(at(0), &new, a_run());
    assert!(matches!(again, Err(EngineError::Exists(_))));
}

#[test]
fn a_run_of_another_program_is_adopted_with_what_made_us_notice_it() {
    each_store(|world| {
        let theirs = phases::State::start(at(-60), phases());
        let new = NewRun { source: Some(Source::new("file")), ..named("p", Driver::Hook) };
        let adopted = world.engine.adopt(at(0), &new, theirs, Some(a_stop("S1"))).unwrap();
        let (handle, outcome) = adopted;
        assert_eq!(world.kinds(handle.id()), ["adopt", "stop"]);
        assert_eq!(outcome.decisions.len(), 1);
        assert!(outcome.effects.contains(&phases::Effect::WriteView));
        assert_eq!(world.engine.open::<phases::State>(handle.id()).unwrap().state().iteration(), 1);
        world.assert_replays(handle.id());
        let known = world.engine.answered(handle.id(), &Source::new("file")).unwrap().unwrap();
        assert_eq!(known.decisions, outcome.decisions);

        let (theirs, _) = turns::State::start(at(-60), a_channel()).unwrap();
        let adopted = world.engine.adopt(at(0), &named("t", Driver::Server), theirs, None);
        let (handle, outcome) = adopted.unwrap();
        assert_ne!(outcome.decisions, []);
        assert_eq!(world.kinds(handle.id()), ["adopt"]);
        world.assert_replays(handle.id());

        let theirs = run::State::start(at(-60), a_run());
        let refused = world.engine.adopt(at(0), &named("r", Driver::Process), theirs, None);
        assert!(matches!(refused, Err(EngineError::Invalid(_))));
    });
}

#[test]
fn only_runs_of_the_machine_that_is_asked_for_are_opened() {
    let world = World::memory();
    world.begin::<run::State>("r", Driver::Process, a_run());
    let other = world.engine.open::<turns::State>(&id("r"));
    assert!(matches!(other, Err(EngineError::Unreadable { .. })));
    assert_eq!(world.engine.open_any(&id("r")).unwrap().machine(), "run");
    assert!(matches!(world.engine.open::<run::State>(&id("x")), Err(EngineError::NoSuchRun(_))));
}
