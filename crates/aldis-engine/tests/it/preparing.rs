//! A step that is prepared and settled by somebody who cannot wait is the step that is taken at once.

use aldis_engine::{EngineError, Preparation, RequestOutcome};
use aldis_machine::{run, turns};
use aldis_store::{CommitError, Driver, RunId, Source};
use serde_json::{Value, json};

use crate::support::{Builtin, World, a_channel, a_run, at, each_store, id, members};

/// Prepares, commits and settles.
fn prepared(world: &World, run: &str, event: &Value, source: Option<&Source>) -> RequestOutcome {
    let open = world.engine.open_any(&id(run)).unwrap();
    let event = members(event.clone());
    let preparation = open.prepare_json(&world.engine, at(1), event, source, &Builtin).unwrap();
    settled(world, preparation)
}

fn settled(world: &World, preparation: Preparation) -> RequestOutcome {
    match preparation {
        Preparation::Nothing(answer) => *answer,
        Preparation::Step(step, prepared) => {
            let committed = world.engine.store().commit(&step).unwrap();
            prepared.settled(&step, committed)
        }
    }
}

/// Two runs that took the same steps are the same but for their names.
#[track_caller]
fn assert_same(world: &World, one: &str, other: &str) {
    let [one, other] = [id(one), id(other)];
    let state = |run| world.engine.store().run(run).unwrap().unwrap().record.state;
    assert_eq!(state(&one), state(&other));
    let events = |run| {
        let events = world.engine.store().events(run, 0, usize::MAX).unwrap();
        events.into_iter().map(|it| (it.seq, it.at, it.body, it.source)).collect::<Vec<_>>()
    };
    assert_eq!(events(&one), events(&other));
    let decisions = |run| {
        let revision = world.engine.store().run(run).unwrap().unwrap().revision;
        let last = world.engine.store().decisions_of(run, revision).unwrap();
        last.into_iter().map(|it| it.body).collect::<Vec<_>>()
    };
    assert_eq!(decisions(&one), decisions(&other));
    let timer = |run: &RunId| {
        let timers = world.engine.due(at(1_000_000), 100).unwrap();
        timers.into_iter().find(|timer| timer.run == *run).map(|timer| timer.due)
    };
    assert_eq!(timer(&one), timer(&other));
    world.assert_replays(&one);
    world.assert_replays(&other);
}

#[test]
fn prepared_and_settled_is_the_same_as_at_once() {
    each_store(|world| {
        for name in ["t1", "t2"] {
            world.begin::<turns::State>(name, Driver::Server, a_channel());
        }
        for name in ["r1", "r2"] {
            world.begin::<run::State>(name, Driver::Server, a_run());
        }
        let source = Source::new("k");
        let quiet = json!({ "event": "spent", "tokens": 5 });
        for (run, event, source) in [
            ("t", json!({ "event": "message", "agent": "pm", "text": "Hi." }), None),
            ("t", json!({ "event": "remove", "agent": "nobody" }), None),
            ("t", json!({ "event": "remove", "agent": "nobody" }), Some(&source)),
            ("t", json!({ "event": "human", "text": "Why?" }), None),
            ("r", json!({ "event": "begin" }), Some(&source)),
            ("r", json!({ "event": "launched", "agent": "1" }), None),
            ("r", quiet, None),
            ("r", json!({ "event": "heard", "text": "<chorus>COMPLETE</chorus>" }), None),
        ] {
            let [one, other] = [format!("{run}1"), format!("{run}2")];
            let now = at(1);
            let told = members(event.clone());
            let at_once = world.engine.step_json(now, &id(&one), &told, source, &Builtin).unwrap();
            let later = prepared(world, &other, &event, source);
            assert_eq!(later.effects, at_once.effects, "{event}");
            assert_eq!(later.decisions, at_once.decisions, "{event}");
            assert_eq!(later.run.revision(), at_once.run.revision(), "{event}");
            assert_eq!((later.repeated, at_once.repeated), (false, false));
            assert_same(world, &one, &other);
        }
        for name in ["t1", "t2"] {
            let known = world.engine.answered(&id(name), &source).unwrap().unwrap();
            assert_eq!(known.effects[0]["effect"], "warning", "{name}");
        }
    });
}

#[test]
fn a_prepared_wake_is_the_same_as_a_timer() {
    each_store(|world| {
        for name in ["t1", "t2"] {
            world.begin::<turns::State>(name, Driver::Server, a_channel());
        }
        let late = world.engine.open::<turns::State>(&id("t1")).unwrap().state().next_wake();
        let late = late.unwrap();
        for timer in world.engine.due(late, 1).unwrap() {
            let open = world.engine.open_any(&id("t2")).unwrap();
            let other = if timer.run == id("t1") { "t2" } else { "t1" };
            let open = if other == "t2" { open } else { world.engine.open_any(&id("t1")).unwrap() };
            world.engine.fire(late, &timer, false).unwrap();
            let preparation = open.prepare_wake(&world.engine, late, false).unwrap();
            assert!(matches!(preparation, Preparation::Step(..)));
            assert_ne!(settled(world, preparation).decisions, []);
        }
        assert_same(world, "t1", "t2");
    });
}

#[test]
fn what_cannot_be_prepared_says_why() {
    let world = World::memory();
    world.begin::<run::State>("r", Driver::Process, a_run());
    let open = || world.engine.open_any(&id("r")).unwrap();
    let begin = || members(json!({ "event": "begin" }));
    let refused = open().prepare_json(&world.engine, at(1), begin(), None, &Builtin);
    assert!(matches!(refused, Err(EngineError::DrivenElsewhere { .. })));
    let start = crate::support::phases();
    let run = world.begin::<aldis_machine::phases::State>("p", Driver::Server, start);
    let open = world.engine.open_any(run.id()).unwrap();
    let refused = open.clone().prepare_wake(&world.engine, at(1), false);
    assert!(matches!(refused, Err(EngineError::NotPossible(_))));
    let refused = open.prepare_json(&world.engine, at(1), begin(), None, &Builtin);
    assert!(matches!(refused, Err(EngineError::Invalid(_))));
}

/// Somebody else was first: the step is refused, and nothing is lost by preparing it again.
#[test]
fn a_prepared_step_that_comes_second_is_refused() {
    each_store(|world| {
        world.begin::<run::State>("r", Driver::Server, a_run());
        let open = world.engine.open_any(&id("r")).unwrap();
        let begin = members(json!({ "event": "begin" }));
        let early = open.prepare_json(&world.engine, at(1), begin.clone(), None, &Builtin);
        let Ok(Preparation::Step(step, _)) = early else { panic!("{early:?}") };
        world.engine.step_json(at(1), &id("r"), &begin, None, &Builtin).unwrap();
        let refused = world.engine.store().commit(&step);
        assert!(matches!(refused, Err(CommitError::Conflict { .. })));
        assert_eq!(world.kinds(&id("r")), ["start", "begin"]);
    });
}
